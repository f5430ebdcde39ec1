"""What limits a tile: a roofline with ceilings inside the core."""
