"""What is around the nests of a function: the driver, run by Python, and which of its loops are nests (regions)."""
