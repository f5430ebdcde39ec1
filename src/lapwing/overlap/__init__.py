"""Existing MPI programs: parses them, finds what may overlap, moves it, and writes the change as a small diff."""
