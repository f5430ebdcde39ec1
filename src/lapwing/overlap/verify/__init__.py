"""A transformed program run beside its original, in copies of the project, and what came of it."""
