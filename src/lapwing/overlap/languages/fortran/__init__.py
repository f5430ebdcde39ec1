"""Fortran: parsing, reading, printing, and support code."""
