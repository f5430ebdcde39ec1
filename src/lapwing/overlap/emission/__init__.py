"""Code generation: from a transformed program to the text of its files."""
