"""How a program's communications relate: call sites, matching, completions, producers and consumers."""
