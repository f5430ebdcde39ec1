"""Fortran's trees read into the program model: program units, entities by scope, symbols, then statements."""

from lapwing.overlap.languages.fortran.reading.program import read_fortran, read_text

__all__ = ["read_fortran", "read_text"]
