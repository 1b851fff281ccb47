"""`fmtlbench.run` from Python, as a README would show it."""

from __future__ import annotations

from pathlib import Path

import pytest

import fmtlbench


def test_the_result_answers_questions(tiny_run, scenario_file):
    result = tiny_run(scenario=Path(scenario_file), rounds=1)
    assert isinstance(result, fmtlbench.RunResult)
    assert result.folder.is_dir() and (result.folder / "summary.json").exists()
    score = next(r for r in result.scores if (r["client"], r["task"], r["split"]) == ("nyud-multi", "depth", "global"))
    assert result.value("nyud-multi", "depth") == score["value"] > 0
    assert result.value("nyud-multi", "depth", split="personal") != score["value"]
    assert score["trivial"] > 0 and score["metric"] == "RMSE" and score["unit"] == "m"
    with pytest.raises(KeyError, match="no score for client 'nobody'"):
        result.value("nobody", "depth")


def test_options_of_the_method_are_overrides_too(tiny_run):
    result = tiny_run("fedhca2", rounds=1, **{"algo.c": 0.2})
    assert result.summary["options"]["c"] == 0.2
    assert not list(result.folder.parents[2].glob("**/*.tmp"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "gpu"}, "--device gpu: expected auto, cpu, cuda"),
        ({"rounds": 0}, "--rounds 0: expected a whole number"),
        ({"rounds": 2.5}, "--rounds 2.5: expected a whole number"),
        ({"rounds": 1, "federation.rounds": 2}, "give one of them"),
        ({"seed": -1}, "--seed -1"),
        ({"data_root": "/data"}, "--data-root /data: preset 'nano' uses the embedded data"),
        ({"lr": 1}, "no section 'lr'"),
        ({"data.train_samples.pascal": 1}, "only 1 images to share, two each"),
    ],
)
def test_a_wrong_request_is_refused(tiny_run, given, message):
    with pytest.raises(fmtlbench.UsageError, match=message):
        tiny_run(**given)


def test_attributes_are_lazy_and_complete():
    assert set(fmtlbench.__all__) <= {name for name in fmtlbench.__all__ if hasattr(fmtlbench, name)}
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = fmtlbench.nope
