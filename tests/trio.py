"""Three clients with one, two and four tasks: what methods are asked with end to end."""

from __future__ import annotations

import json

TRIO = """\
description: one single-task, one two-task and one four-task client
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth, edge, normals, semseg], id: four}
  - {dataset: pascal, tasks: [sal], id: one}
  - {dataset: pascal, tasks: [normals, edge], id: two}
"""

# What is asked of every method is asked with few images: two batches, or one in two epochs.
SMALLER = {
    "data.size": {"pascal": [32, 32], "nyud": [32, 32]},
    "data.train_samples": {"pascal": 8, "nyud": 4},
    "data.test_samples": {"pascal": 2, "nyud": 2},
}


def rows_of(result):
    """The rows of a run's metrics.jsonl."""
    return [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
