"""What commands do beyond their options, loaded when they do it."""
