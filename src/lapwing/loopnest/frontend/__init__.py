"""From the source of a Python function to the loop nest it is."""
