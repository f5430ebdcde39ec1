"""Procedures divided in two, so that callers can put something between their halves."""
