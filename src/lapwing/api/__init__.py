"""Nests and programs as their users have them, and the check against the plain loop."""
