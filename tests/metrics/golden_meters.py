"""The golden meters' batches."""

from __future__ import annotations


def feed(meter, file, convert):
    """Give the meter every batch of a golden file."""
    batch = 0
    while f"b{batch}_pred" in file.files:
        meter.update(*convert(file[f"b{batch}_pred"], file[f"b{batch}_gt"]))
        batch += 1
    assert batch
    return meter
