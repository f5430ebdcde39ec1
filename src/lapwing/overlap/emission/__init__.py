"""From a transformed program to its files' texts."""
