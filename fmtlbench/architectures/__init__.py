"""The networks that clients can build: one file each. Importing this room, or any built-in file, leaves torch alone."""

from ._base import ARCHITECTURES, Architecture

__all__ = ["ARCHITECTURES", "Architecture"]
