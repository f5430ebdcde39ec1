"""Writing Fortran."""
