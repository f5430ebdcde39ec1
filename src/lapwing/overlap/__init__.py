"""Existing MPI programs: parse, find what may overlap, move it, and say so in a small diff."""
