"""C and C++: reading, printing, and what changed files need."""
