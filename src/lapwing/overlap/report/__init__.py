"""Reports of what was done with a program's communications, for people and for machines."""
