"""Source files as bytes: places in them, edits, patches, and their text as compilers see it."""
