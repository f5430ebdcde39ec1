"""Verification: runs a transformed program and its original in copies of the project, and compares them."""
