"""The leaderboard as a folder of pages that need neither a server nor the network."""

from .write import write_site

__all__ = ["write_site"]
