"""Outlining: a procedure is split into a start and an end procedure, so that callers can put something between them."""
