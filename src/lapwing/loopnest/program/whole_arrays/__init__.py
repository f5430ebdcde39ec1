"""Statements on whole arrays in loops that are compiled with the regions in them."""
