"""Summaries of procedures that are in no source: C's library and Fortran's intrinsics."""
