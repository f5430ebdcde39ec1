"""The languages that programs are read from and written in."""
