"""Ways to weigh the losses of one client's tasks, one file each. Importing this package does not import torch.

A package brings its own by an entry point of group `fmtlbench.weightings`; a config may name a .py file.
"""

from ._base import WEIGHTINGS, Weighting

__all__ = ["WEIGHTINGS", "Weighting"]
