"""The networks that clients can build, one file each. Importing this package does not import torch."""

from ._base import ARCHITECTURES, Architecture

__all__ = ["ARCHITECTURES", "Architecture"]
