"""Kinds of labels: what a task's arrays, tensors, files and pictures are. A task names its kind.

Nothing here imports torch before a label is decoded: `fmtlbench list` reads tasks too.
"""

from ._base import LabelError, LabelKind, draw_image
from ._classes import Classes
from ._doubts import Doubts
from ._positive import Metres, Positive
from ._probability import ProbabilityMap
from ._vectors import FAINT, UnitVectors

__all__ = [
    "FAINT",
    "Classes",
    "Doubts",
    "LabelError",
    "LabelKind",
    "Metres",
    "Positive",
    "ProbabilityMap",
    "UnitVectors",
    "draw_image",
]
