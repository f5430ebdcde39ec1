"""What a program's communications have to do with each other: sites, matching, completions, producers and consumers."""
