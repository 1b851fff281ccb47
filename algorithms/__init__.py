"""The zoo: one file per method. Importing this room, or any built-in method, does not import torch."""

from ._base import ALGORITHMS, Algorithm, Batch, EpochKinds, Evaluation, Kinds, Local, RowName, Schedule, Workbench

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Batch",
    "EpochKinds",
    "Evaluation",
    "Kinds",
    "Local",
    "RowName",
    "Schedule",
    "Workbench",
]
