"""Which memory expressions may denote: points-to, no-alias and mod/ref, over the whole program and flow-insensitive."""
