"""The program model: expressions, statements, procedures, and split-phase operations."""
