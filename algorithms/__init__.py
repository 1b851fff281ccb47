"""The zoo: one file per method. Importing this room, or any built-in method, does not import torch."""

from ._base import ALGORITHMS, Algorithm, Evaluation, Kinds, Local

__all__ = ["ALGORITHMS", "Algorithm", "Evaluation", "Kinds", "Local"]
