"""Fortran: parsing, reading, printing, and what changed files need."""
