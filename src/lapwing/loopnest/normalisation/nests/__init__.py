"""Loops of other forms as counted ones, over ranges, which is what the front end knows."""
