"""The transformations, one a file: before → after, the proof obligation, and what refuses."""
