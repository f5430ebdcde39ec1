"""What became of a program's communications, for people and for machines."""
