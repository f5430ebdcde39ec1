"""What the implementations of both languages share."""
