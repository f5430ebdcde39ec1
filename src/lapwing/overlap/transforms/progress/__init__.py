"""Calls that let MPI go on with what is under way."""
