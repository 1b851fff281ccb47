"""The zoo: one file per method. Importing this room, or any built-in method, does not import torch."""

from ._base import ALGORITHMS, Algorithm, EpochKinds, Evaluation, Kinds, Local, Schedule

__all__ = ["ALGORITHMS", "Algorithm", "EpochKinds", "Evaluation", "Kinds", "Local", "Schedule"]
