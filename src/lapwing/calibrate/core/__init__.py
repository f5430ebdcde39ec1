"""What one core takes at best, measured."""
