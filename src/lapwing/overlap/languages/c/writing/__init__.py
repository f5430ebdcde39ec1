"""Writing C and C++."""
