"""How the images of one domain are dealt to its clients: one file per rule.

A package brings its own by an entry point of group `fmtlbench.partitions`; a scenario may name a .py file.
"""

from ._base import PARTITIONS, PartitionRule, deal, equal_sizes, linear_sizes
from ._histograms import histograms

__all__ = ["PARTITIONS", "PartitionRule", "deal", "equal_sizes", "histograms", "linear_sizes"]
