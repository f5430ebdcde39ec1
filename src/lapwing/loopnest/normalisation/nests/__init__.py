"""Loops with other things beside them, and indices by other names, as nests whose accesses are affine."""
