"""The source languages of programs: reading and writing them."""
