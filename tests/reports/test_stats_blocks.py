"""From runs to blocks: which runs are compared, what is dropped, and what the notes say."""

from __future__ import annotations

import pandas as pd
import pytest
from made_runs import score, write_run

from fmtlbench.base.errors import UsageError
from fmtlbench.reports.collect import collect
from fmtlbench.reports.stats import StatsError, analyse, make_blocks
from fmtlbench.reports.stats.analysis import find_pair
from fmtlbench.reports.stats.pairs import smallest_p

SEMSEG, NYUD, DEPTH = ("pascal-semseg", "semseg"), ("nyud-multi", "semseg"), ("nyud-multi", "depth")


@pytest.fixture
def runs(tmp_path):
    """Write runs, then `runs.frame()` them."""

    class Runs:
        def add(self, algorithm, semseg=50.0, depth=0.5, nyud=50.0, seed=0, **given):
            write_run(
                tmp_path, algorithm=algorithm, seed=seed, values={SEMSEG: semseg, DEPTH: depth, NYUD: nyud}, **given
            )
            return self

        def frame(self):
            return collect([tmp_path]).frame

    return Runs()


def noted(blocks, words):
    return any(words in note for note in blocks.notes)


def test_seeds_are_averaged_and_less_error_is_better(runs):
    runs.add("local", 40, 0.6).add("local", 50, 0.8, seed=1).add("fedavg", 46, 0.6).add("fedavg", 46, 0.7, seed=1)
    blocks = make_blocks(runs.frame())
    assert blocks.matrix.loc[("duo", *SEMSEG)].to_dict() == {"FedAvg": 46, "Local": 45}
    assert blocks.matrix.loc[("duo", *DEPTH)].to_dict() == pytest.approx({"FedAvg": -0.65, "Local": -0.7})
    (own,) = blocks.runs_of("Local")
    assert own.seeds == (0, 1)
    assert own.scores[:, list(blocks.matrix.index).index(("duo", *SEMSEG))].tolist() == [40, 50]
    assert blocks.mixed and blocks.metrics == ("RMSE", "mIoU")
    assert blocks.notes == ("scores are means over seeds (0, 1), taken before ranking",)


def test_a_missing_score_drops_the_block_and_says_so(runs):
    runs.add("local").add("fedavg", None).add("ditto")
    blocks = make_blocks(runs.frame())
    assert list(blocks.matrix.index) == [("duo", *DEPTH), ("duo", *NYUD)]
    assert noted(blocks, "dropped 1 of 3 blocks, which lack 1 scores")


def test_a_seed_without_a_score_is_a_hole_too(runs):
    runs.add("local").add("local", None, seed=1).add("fedavg").add("fedavg", seed=1)
    assert len(make_blocks(runs.frame()).matrix) == 2


def test_the_method_set_is_complete(runs):
    """Ditto did one scenario of two: two methods on six blocks are more than three on three."""
    for name, setting in (("duo", "a" * 64), ("other", "b" * 64)):
        runs.add("local", scenario=name, setting=setting).add("fedavg", scenario=name, setting=setting)
    runs.add("ditto", setting="a" * 64)
    blocks = make_blocks(runs.frame())
    assert list(blocks.matrix) == ["FedAvg", "Local"] and len(blocks.matrix) == 6
    assert noted(blocks, "they lack blocks the others have: Ditto")
    assert list(make_blocks(runs.frame(), ["duo"]).matrix) == ["Ditto", "FedAvg", "Local"]


def test_only_equal_settings_are_compared(runs):
    runs.add("local").add("fedavg").add("ditto", setting="f" * 64)
    blocks = make_blocks(runs.frame())
    assert list(blocks.matrix) == ["FedAvg", "Local"]
    assert noted(blocks, "duo: 2 settings among the runs; compared is setting 5e771000 with 2 methods, left out are 1")


def test_different_seeds_are_told(runs):
    runs.add("local").add("local", seed=1).add("fedavg")
    assert noted(make_blocks(runs.frame()), "different seeds (FedAvg: 0; Local: 0, 1)")


def test_a_copied_run_counts_once(runs):
    runs.add("local", 40).add("fedavg", 50)
    frame = runs.frame()
    copy = frame[frame["label"] == "FedAvg"].assign(run="elsewhere", value=0.0)
    blocks = make_blocks(pd.concat([frame, copy]))
    assert blocks.matrix.loc[("duo", *SEMSEG), "FedAvg"] == 50 and noted(blocks, "left out 1 runs that repeat")


def test_secondary_scores_and_other_splits_stay_out(runs):
    extra = [score("nyud-multi", "nyud", "semseg", 1.0, primary=False)]
    runs.add("local", extra_scores=extra, splits=("global", "personal"))
    runs.add("fedavg", extra_scores=extra, splits=("global", "personal"))
    blocks = make_blocks(runs.frame(), split="personal")
    assert len(blocks.matrix) == 3 and blocks.matrix.loc[("duo", *NYUD), "Local"] == 50


def test_refusals(runs):
    with pytest.raises(StatsError, match=r"no two methods have a common block.*Local"):
        make_blocks(runs.add("local").frame())
    with pytest.raises(UsageError, match="did you mean 'duo'"):
        make_blocks(runs.frame(), ["dua"])
    with pytest.raises(UsageError, match="valid: global"):
        make_blocks(runs.frame(), split="private")
    with pytest.raises(UsageError, match="between 0 and 1"):
        analyse(runs.frame(), alpha=5)
    with pytest.raises(StatsError, match="no finished run"):
        make_blocks(runs.frame().iloc[:0])


def test_two_methods_get_wilcoxon_and_the_probability_only(runs):
    a = analyse(runs.add("local", 40, 0.6, 40).add("fedavg", 50, 0.5, 45).frame())
    assert (a.friedman, a.nemenyi, a.cd) == (None, None, None)
    assert any("at least 3 methods, and here are 2" in note for note in a.notes)
    assert a.pairs[["wins_a", "wins_b"]].to_numpy().tolist() == [[3, 0]]
    assert (a.improvement.a, a.improvement.probability) == ("FedAvg", 1)
    assert a.ranks.to_dict() == {"FedAvg": 1, "Local": 2} and a.firsts.to_dict() == {"FedAvg": 3, "Local": 0}


def test_one_block_is_not_tested_over_all_methods(tmp_path):
    one = {"pascal-semseg": ("pascal", ("semseg",))}
    for i, name in enumerate(("local", "fedavg", "ditto")):
        write_run(tmp_path, algorithm=name, clients=one, values={SEMSEG: 40.0 + i})
    a = analyse(collect([tmp_path]).frame)
    assert a.friedman is None and any("at least 2 blocks" in note for note in a.notes)
    assert a.pairs["p"].tolist() == [1, 1, 1] and not a.blocks.mixed


def test_too_few_blocks_for_wilcoxon_are_told(runs):
    frame = runs.add("local").add("fedavg", 60.0, 0.4, 55.0).frame()
    few = analyse(frame)
    assert few.pairs["p"].min() == 0.25 and "with 3, p is never below 0.25" in few.pair_notes[-1]
    assert "never below" not in "".join(analyse(frame, alpha=0.3).pair_notes)
    assert [smallest_p(n) for n in (1, 5, 6)] == [1, 0.0625, 0.03125]


def test_a_pair_may_be_named_by_algorithm_or_label(runs):
    frame = runs.add("local").add("fedavg").add("mine", options={"a": 1, "b": 2}).add("mine", options={"a": 2}).frame()
    assert find_pair("fedavg,local", frame) == ("FedAvg", "Local")
    label = next(name for name in frame["label"].unique() if name.startswith("mine (a=1"))
    assert find_pair(f"{label},FEDAVG", frame) == (label, "FedAvg")
    with pytest.raises(UsageError, match=r"no method 'fedavk'.*did you mean 'fedavg'"):
        find_pair("fedavk,local", frame)
    for text in ("local", "local,local"):
        with pytest.raises(UsageError, match="expected two different methods"):
            find_pair(text, frame)


def test_a_pair_outside_the_compared_methods(runs):
    frame = runs.add("local").add("fedavg").add("ditto", setting="f" * 64).frame()
    with pytest.raises(UsageError, match="'Ditto' is not among the methods compared"):
        analyse(frame, pair=("Ditto", "Local"))
