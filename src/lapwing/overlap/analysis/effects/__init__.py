"""The effects of statements and procedures: abstract interpretation with value numbering, and summaries of procedures."""
