"""What networks predict, as files and as pictures."""
