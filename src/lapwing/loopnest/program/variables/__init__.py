"""The variables of a function: where they are assigned, and read."""
