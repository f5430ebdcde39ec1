"""The program model: expressions, statements, procedures, and a communication taken apart."""
