"""Calls of small helper functions in loops, replaced by what the functions compute."""
