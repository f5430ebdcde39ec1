"""C and C++: reading, printing, and support code."""
