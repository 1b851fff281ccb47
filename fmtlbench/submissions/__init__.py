"""Runs as one file that somebody else can check: packed, verified without executing anything in it, unpacked."""
