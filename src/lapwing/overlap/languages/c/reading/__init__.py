"""C and C++ programs: read by libclang, position by position, into the program model."""

from lapwing.overlap.languages.c.reading.units import read_c, read_c_text

__all__ = ["read_c", "read_c_text"]
