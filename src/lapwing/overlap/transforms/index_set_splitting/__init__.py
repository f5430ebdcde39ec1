"""Loop nests divided into an interior, done during a transfer, and the boundary that a transfer needs or brings."""
