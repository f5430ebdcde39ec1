"""Communications taken apart into split-phase operations, in the same place; code motion then moves the parts."""
