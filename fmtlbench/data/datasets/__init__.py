"""The datasets: what each offers, and its reader. Each is one file; a user's own dataset is given by its path.

A scenario names a *domain* (`nyud`, `pascal`); a preset's `data.source` decides which dataset stands for it.
Nothing here imports torch, so that `fmtlbench list datasets` and the scenario checks stay fast.
"""

from ._archive import ArchiveDataset, Files
from ._dataset import Dataset, Provenance, Reader, SampleRangeError, read_sample
from ._files import DamagedFileError, list_by_id, read_array, read_ids, read_label_file
from ._info import DatasetInfo, OfficialList, open_split
from ._registry import DATASETS, dataset_for, dataset_of_file, domains, identify_dataset_file
from ._roots import find_archive

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
    "find_archive",
    "identify_dataset_file",
    "list_by_id",
    "open_split",
    "read_array",
    "read_ids",
    "read_label_file",
    "read_sample",
]
