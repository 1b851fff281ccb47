"""A small run as it was once recorded: a change of the engine that moves it was meant to, or is a mistake.

`python tests/engine/test_recorded_run.py` records it anew; say in the commit why.
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

import pytest
from kit import QUICK, THREE

RECORDED = Path(__file__).parents[1] / "golden" / "recorded_run"
# Other kernels round differently, and three rounds of training make that larger.
NEAR = {"rel": 0.05, "abs": 1e-3}


def make_run(folder):
    """Return (the rows of a small run as bytes, what decides their last digits)."""
    import fmtlbench

    file = folder / "recorded.yml"
    file.write_text(THREE)
    result = fmtlbench.run("fedhca2", str(file), out=folder / "runs", rounds=3, device="cpu", energy=False, **QUICK)
    session = json.loads((result.folder / "manifest.json").read_text())["sessions"][-1]
    numerics = result.summary["numerics"]
    made = {key: session[key] for key in ("versions", "arithmetic")} | {"numerics": numerics}
    made["processor"] = session["hardware"]["processor"]
    return (result.folder / "metrics.jsonl").read_bytes(), made


def alike(mine, recorded):
    """Whether two trees have the same form and words and near numbers."""
    if isinstance(recorded, dict):
        return mine.keys() == recorded.keys() and all(alike(mine[key], recorded[key]) for key in recorded)
    if isinstance(recorded, list):
        return len(mine) == len(recorded) and all(map(alike, mine, recorded))
    if isinstance(recorded, float) and math.isfinite(recorded):
        return mine == pytest.approx(recorded, **NEAR)
    return mine == recorded


def test_the_recorded_run_comes_out_again(tmp_path):
    rows, made = make_run(tmp_path)
    recorded, then = (RECORDED / "metrics.jsonl").read_bytes(), json.loads((RECORDED / "made.json").read_text())
    if made == then:  # the same kernels, so the same bytes
        assert rows == recorded
    assert made["numerics"] == then["numerics"], "numbers were meant to move: record the run anew"
    for mine, row in zip(rows.splitlines(), recorded.splitlines(), strict=True):
        mine, row = json.loads(mine), json.loads(row)
        for tree in (mine, row):  # inner products of updates: small differences of large numbers
            tree.pop("updates", None)
        assert alike(mine, row)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        rows, made = make_run(Path(temporary))
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / "metrics.jsonl").write_bytes(rows)
    (RECORDED / "made.json").write_text(json.dumps(made, indent=2) + "\n")
