"""Splits communications into split-phase operations, in the same place; code motion then moves these."""
