"""A nest with its arguments: every expression typed as NumPy and Python would, and what is refused."""
