"""Which memory expressions may denote: points-to, no-alias and mod/ref analyses, whole-program and flow-insensitive."""
