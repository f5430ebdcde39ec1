"""Code shared by the implementations of both languages."""
