"""Index-set splitting of loop nests: an interior, computed during a transfer, and the boundary that the transfer needs or
delivers."""
