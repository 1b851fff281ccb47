"""Are differences between methods more than chance? Friedman, Nemenyi, Wilcoxon and a bootstrap over finished runs."""

from .analysis import Analysis, analyse
from .blocks import Blocks, make_blocks
from .ranks import StatsError

__all__ = ["Analysis", "Blocks", "StatsError", "analyse", "make_blocks"]
