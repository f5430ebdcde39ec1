"""Files: numbers moved without the page cache, new files, and renaming that lasts."""
