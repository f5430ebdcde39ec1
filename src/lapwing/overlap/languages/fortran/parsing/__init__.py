"""Fortran sources, free and fixed form, as tree-sitter's trees, with the preprocessor's lines apart."""
