"""The Fortran front end: free and fixed form, read with tree-sitter into the program model."""

from lapwing.overlap.fortran.read import read_fortran, read_text

__all__ = ["read_fortran", "read_text"]
