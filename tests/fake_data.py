"""Datasets of nothing but what a test needs, with the rest of what an open dataset has."""

from __future__ import annotations

from fmtlbench.data.datasets import dataset_for


class FakeReader:
    """An open dataset whose images come as stacks; tests add what they look at."""

    stacked, resize, split, fingerprint, checks_itself = True, "none", "train", "", True
    info = dataset_for("nyud", "synth")

    def eligible(self, tasks):
        return None

    def image_id(self, index):
        return f"{index:04d}"

    def prepare_workers(self):
        pass


class Images(FakeReader):
    """So many images of which nobody asks more than their number."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count
