"""The Fortran front end: free and fixed form, read with tree-sitter into the program model.

A file becomes a view that keeps every byte's place (view.py), a tree (parse.py), program units (units.py), entities by scope
(declarations.py, scope.py), symbols (symbols.py), and then statements (statements.py). read.py has the order of it all;
write.py writes Fortran.
"""

from lapwing.overlap.fortran.read import read_fortran, read_text

__all__ = ["read_fortran", "read_text"]
