"""The datasets: what each offers, and its reader. One file each; a user's own is given by path.

A scenario names a *domain* (`nyud`, `pascal`); a preset's `data.source` decides which dataset stands for it.
Nothing here imports torch: `fmtlbench list datasets` and the scenario checks read the descriptions.
"""

from ._archive import ArchiveDataset, Files
from ._dataset import Dataset, Provenance, Reader, SampleRangeError
from ._files import DamagedFileError, read_array
from ._info import DatasetInfo, OfficialList
from ._open import open_split
from ._registry import DATASETS, dataset_for, dataset_of_file, domains

__all__ = [
    "DATASETS",
    "ArchiveDataset",
    "DamagedFileError",
    "Dataset",
    "DatasetInfo",
    "Files",
    "OfficialList",
    "Provenance",
    "Reader",
    "SampleRangeError",
    "dataset_for",
    "dataset_of_file",
    "domains",
    "open_split",
    "read_array",
]
