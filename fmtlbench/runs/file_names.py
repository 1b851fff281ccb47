"""The names of the files and folders in a run folder. Nobody else knows them.

config.yaml and manifest.json come first, then metrics.jsonl (one line per round; numbers only, so the same config gives
the same bytes) and timing.jsonl (one line per round; what it took), the checkpoint folder, sums.npz (what the scores of
the last round were computed from), and summary.json, whose existence means "finished". repeated.jsonl has the timing
rows of rounds that had to be made again; networks has what the last round scored.
"""

from __future__ import annotations

from collections.abc import Collection

CONFIG, MANIFEST = "config.yaml", "manifest.json"
ROUNDS, TIMING, REPEATED = "metrics.jsonl", "timing.jsonl", "repeated.jsonl"
SUMMARY, COST = "summary.json", "cost.json"
SUMS = "sums.npz"  # of the meters, at the last scoring (sums_file.py)
TUNING = "tuning.json"  # how the config was chosen, where a bench tuned it
CHECKPOINTS, FIGURES, PREDICTIONS, LOGS = "checkpoint", "figures", "predictions", "logs"
NETWORKS = "networks"  # of the last round, as they were scored: a file per client and the index
INDEX = "index.json"
FORMER_WEIGHTS = "weights.safetensors"  # the networks of a run of an earlier version
EXAMPLES = "examples"  # in a folder of predictions: some of them as pictures, beside input and ground truth
LISTING = "predictions.sha256"  # of external predictions: which files they were
LOCK = ".lock"
ABSENT = ".absent.json"  # how the file ends that says, beside where a run would lie, why there is none
# In this order --fresh removes them: summary first, so that no moment shows a finished run without its rows.
FILES = (SUMMARY, SUMS, FORMER_WEIGHTS, COST, ROUNDS, TIMING, REPEATED, MANIFEST, CONFIG)

# What makes a finished run that others can read and check: all but its networks, predictions and figures.
RECORDS = (CONFIG, MANIFEST, ROUNDS, TIMING, REPEATED, TUNING, LISTING, SUMS, COST, SUMMARY)


def is_run(files: Collection[str]) -> bool:
    """Say whether a folder with these files is a run's, finished or not."""
    return SUMMARY in files or (CONFIG in files and (LOCK in files or MANIFEST in files))
