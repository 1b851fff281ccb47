"""A table says in what its runs depart from their preset, as it was when they were made."""

from __future__ import annotations

import pytest
from made_runs import write_run
from report_kit import change_json

from fmtlbench.config.resolve import resolve
from fmtlbench.reports.collect import collect
from fmtlbench.reports.leaderboard import leaderboards
from fmtlbench.reports.settings import say_departures


def test_a_config_knows_what_was_changed_and_its_hash_does_not_ask():
    assert resolve("fedavg", "st_mt_1").departures == {}
    given = {"federation.rounds": 3, "train.lr": 0.5, "data.train_samples.pascal": 32, "algo.mu": 0.1}
    changed = resolve("fedprox", "st_mt_1", overrides=given)
    assert changed.departures == {"federation.rounds": 3, "train.lr": 0.5, "data.train_samples.pascal": 32}
    assert resolve("fedavg", "st_mt_1", overrides={"train.lr": 1.2e-2}).departures == {}, "the preset's own value"
    assert "departures" not in str(changed.setting().values)


def test_only_domains_that_take_part_depart():
    given = {"data.train_samples": {"pascal": 8, "nyud": 8}}
    assert resolve("fedavg", "iid1_sdmt", overrides=given).departures == {"data.train_samples.nyud": 8}


def test_parameters_of_a_scenario_are_no_departures():
    assert resolve("fedavg", "iid1_sdmt", overrides={"scenario.clients": 3}).departures == {}


@pytest.mark.parametrize(
    ("departures", "words"),
    [
        ({}, ""),
        (
            {"federation.rounds": 3, "data.train_samples.pascal": 32, "data.train_samples.nyud": 32},
            "32 training images, 3 rounds",
        ),
        (
            {"data.test_samples.pascal": 4, "data.test_samples.nyud": 8, "train.lr": 0.5},
            "4 pascal and 8 nyud test images, train.lr 0.5",
        ),
        ({"model.backbone": "swin_nano", "model.pretrained": False}, "backbone swin_nano, pretrained false"),
        ({"federation.rounds": 1}, "1 round"),
    ],
)
def test_words(departures, words):
    assert say_departures(departures) == words


def test_captions_say_them(tmp_path):
    write_run(tmp_path / "a", algorithm="local")
    write_run(tmp_path / "b", algorithm="local", departures={"train.lr": 0.5})
    older = write_run(tmp_path / "c", algorithm="local")
    change_json(older / "summary.json", lambda made: {key: made[key] for key in made if key != "departures"})
    plain, changed, unknown = (leaderboards(collect([tmp_path / name]))[0].caption for name in "abc")
    assert "preset nano · " in plain
    assert "preset nano with train.lr 0.5 · " in changed
    assert "preset nano (departures from it were not recorded) · " in unknown


def test_a_lone_run_says_them_too(tiny_run, capsys, monkeypatch):
    from fmtlbench.cli._result import print_result

    monkeypatch.setenv("COLUMNS", "400")
    result = tiny_run("local", rounds=1)
    assert result.summary["departures"]["federation.rounds"] == 1
    print_result(result, "table")
    said = " ".join(capsys.readouterr().out.split())
    assert "16 pascal and 12 nyud training images" in said
    assert "train.lr 0.006" in said
