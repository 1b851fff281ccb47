"""What a run keeps of its last scoring: the sums that its scores come out of, however it got there."""

from __future__ import annotations

import pytest
from kit import DUO, TINY
from resuming import cut_and_whole, numbers_of

import fmtlbench
from fmtlbench.base.stored import DamagedRun
from fmtlbench.engine.executor import SerialExecutor
from fmtlbench.engine.messages import Evaluate
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.sums_file import read_sums, write_sums
from fmtlbench.submissions.rescoring import find_difference, rescore

LATE = DUO.replace("personal]", "personal, unseen]").replace(
    "clients:\n", "clients:\n  - {dataset: nyud, tasks: [semseg], id: late, pool: late, unseen: true}\n"
)


@pytest.fixture
def run(tmp_path, scenario):
    def run(algo="fedavg", text=DUO, out="runs", **given):
        usual = {"rounds": 2, "out": tmp_path / out, "device": "cpu", "energy": False, "keep": "none"}
        return fmtlbench.run(algo, scenario(text), **{**usual, **TINY, **given})

    return run


@pytest.mark.parametrize("when", ["after_aggregation", "before_aggregation", "both"])
def test_the_scores_of_a_summary_come_out_whenever_they_were_taken(run, when):
    result = run(**{"evaluation.when": when})
    folder = RunFolder(result.folder)
    again = rescore(folder.run_config(), read_sums(folder.sums))
    assert not find_difference(result.summary["scores"], again)
    if when == "both":  # the file is of the scores that count
        assert find_difference(result.summary["scores_before"], again)


def test_clients_that_never_take_part_are_in_it(run):
    result = run(text=LATE)
    folder = RunFolder(result.folder)
    sums = read_sums(folder.sums)
    assert ("late", "unseen", "semseg") in sums
    assert not find_difference(result.summary["scores"], rescore(folder.run_config(), sums))


class Listening(SerialExecutor):
    """Remembers whether each scoring was asked for its sums."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def map(self, messages, on_step=None):
        self.asked += {message.sums for message in messages.values() if isinstance(message, Evaluate)}
        yield from super().map(messages, on_step)


def test_only_the_last_round_is_asked_for_them(run):
    executor = Listening()
    run(executor=executor, rounds=4)  # scored every second round
    assert executor.asked == [False, True]


def test_stopped_and_resumed_they_have_the_same_bytes(run, tmp_path):
    resumed, whole = cut_and_whole(run, tmp_path, 2)
    assert numbers_of(resumed) == numbers_of(whole)


def test_damaged_files_are_told(tmp_path):
    file = tmp_path / "sums.npz"
    assert read_sums(file) is None
    write_sums(file, {})
    assert read_sums(file) == {}
    file.write_bytes(b"PK nonsense")
    with pytest.raises(DamagedRun, match=r"sums\.npz cannot be read"):
        read_sums(file)
    file.unlink()
    file.mkdir()
    with pytest.raises(DamagedRun, match=r"sums\.npz cannot be read"):
        read_sums(file)
