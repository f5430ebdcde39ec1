"""What commands found, as people read it."""
