"""The one owner of the run folder: which files it has, what is in them, how they are written and read. No torch."""
