"""Verdicts of probes: what is measured, when it is decided, and what the tables and the command say."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from made_runs import summary

from fmtlbench import cli
from fmtlbench.base.errors import UsageError
from fmtlbench.bench.probes import choose_probes, plan_probes
from fmtlbench.config.installed import method_titles
from fmtlbench.config.request import RunRequest
from fmtlbench.reports.probes import (  # fmt: skip
    FAIL,
    PASS,
    UNDECIDED,
    Answers,
    Candidate,
    Finished,
    Question,
    adjusted_rand_index,
    client_gains,
    groups_found,
    judge,
    probe_tables,
)
from fmtlbench.scenarios import Expectation, load_scenario

CLIENTS = {name: ("nyud", ("semseg",)) for name in ("plain-1", "plain-2", "twisted-1", "twisted-2")}
FILE = """\
description: two worlds of two clients
paper: none
version: 1
parameters:
  images: {default: 8, low: 1, doc: of each client}
clients:
  - {dataset: nyud, tasks: [semseg], id: plain, count: 2, images: $images}
  - {dataset: nyud, tasks: [semseg], id: twisted, count: 2, images: $images, relabel: {semseg: rotate}}
probe:
  question: Who is who?
  expect:
    - {who: [averages], than: local, below: 0}
    - {who: [clusters], than: fedavg, above: 0}
    - {who: [clusters], measure: groups, above: 0.5}
"""
FOUND = {"plain-1": 0, "plain-2": 0, "twisted-1": 1, "twisted-2": 1}


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "worlds.yml"
    file.write_text(FILE)
    return file


def finished(values, groups=None, rounds=4):
    """A run whose clients score these percentages."""
    scores = {(client, "semseg"): value for client, value in zip(CLIENTS, values)}
    told = {"bytes_up": 0, "bytes_down": 0, "algorithm": {} if groups is None else {"groups": groups}}
    rows = [{"round": i + 1, **told} for i in range(rounds)]
    return Finished(summary("any", scores, clients=CLIENTS), rows)


def answers(file, refused=(), **methods):
    """Of each method a list of runs, seed by seed."""
    runs = {(label, None): dict(enumerate(of)) for label, of in methods.items()}
    return Answers(load_scenario(str(file)), runs, dict(refused))


AVERAGES, CLUSTERS = Candidate("fedavg", "FedAvg", ("shares", "averages")), Candidate("mine", "Mine", ("clusters",))
LOCAL = [finished([50, 50, 50, 50])] * 3


def test_gains_are_relative_to_the_same_client_of_local():
    ours, theirs = finished([60, 50, 25, 50]).summary, LOCAL[0].summary
    assert client_gains(ours, theirs) == pytest.approx({"plain-1": 20, "plain-2": 0, "twisted-1": -50, "twisted-2": 0})


@pytest.mark.parametrize(
    ("scores", "word"),
    [
        ([40, 41, 39], PASS),  # far below local
        ([60, 61, 59], FAIL),
        ([49, 52, 48], UNDECIDED),
        ([40], UNDECIDED),  # one seed
        ([50, 50, 50], UNDECIDED),  # equal is not below
        ([45, 45, 45], PASS),  # no spread at all
    ],
)
def test_pass_fail_and_undecided(file, scores, word):
    given = answers(file, local=LOCAL, fedavg=[finished([score] * 4) for score in scores])
    expectation = given.scenario.probe.expect[0]
    verdict = judge(given, expectation, AVERAGES, 0.95)
    assert verdict.word == word and verdict.mean == pytest.approx(2 * (sum(scores) / len(scores)) - 100)
    assert judge(given, expectation, CLUSTERS, 0.95) is None  # nobody expects it of that role


def test_confidence_is_that_of_each_side(file):
    given = answers(file, local=LOCAL, fedavg=[finished([score] * 4) for score in (49, 48, 49.6)])
    expectation = given.scenario.probe.expect[0]
    values = [-2, -4, -0.8]
    mean, std = sum(values) / 3, math.sqrt(sum((v + 34 / 15) ** 2 for v in values) / 2)
    # Student's t with two degrees of freedom, 95 % on one side: 2.91999
    low, high = judge(given, expectation, AVERAGES, 0.95).interval
    assert (low, high) == pytest.approx(
        (mean - 2.91999 * std / math.sqrt(3), mean + 2.91999 * std / math.sqrt(3)), rel=1e-5
    )
    assert judge(given, expectation, AVERAGES, 0.95).word == UNDECIDED
    assert judge(given, expectation, AVERAGES, 0.9).word == PASS


def test_compared_with_another_method_on_the_worst_of_some_clients(file):
    given = answers(
        file, local=LOCAL, fedavg=[finished([10, 20, 50, 5])] * 3, mine=[finished([40, 45, 1, 1])] * 3
    )  # fmt: skip
    expectation = Expectation(("clusters",), above=0, than="fedavg", over="worst", clients=("plain-1", "plain-2"))
    verdict = judge(given, expectation, CLUSTERS, 0.95)
    assert verdict.word == PASS and verdict.mean == pytest.approx(-20 - -80)


def test_seeds_without_a_partner_do_not_count(file):
    given = answers(file, local=LOCAL[:2], fedavg=[finished([40] * 4)] * 3)
    assert set(judge(given, given.scenario.probe.expect[0], AVERAGES, 0.95).values) == {0, 1}


def test_a_refused_and_a_missing_method_are_said_so(file):
    expectation = load_scenario(str(file)).probe.expect[0]
    refused = judge(answers(file, {"fedavg": "no meaning"}, local=LOCAL), expectation, AVERAGES, 0.95)
    missing = judge(answers(file, local=LOCAL), expectation, AVERAGES, 0.95)
    assert refused.note == "refused: no meaning" and missing.note == "not run" and refused.mean is None


def test_planted_groups_are_found_by_what_a_method_reports(file):
    expectation = load_scenario(str(file)).probe.expect[2]
    for groups, word in ((FOUND, PASS), (dict.fromkeys(FOUND, 0), FAIL), (None, "–")):
        given = answers(file, local=LOCAL, mine=[finished([50] * 4, groups)] * 3)
        assert judge(given, expectation, CLUSTERS, 0.95).word == word
    early = [*finished([1] * 4, dict.fromkeys(FOUND, 0), 2).rows, *finished([1] * 4, FOUND, 2).rows]
    assert groups_found(early, FOUND) == 1.0  # the first half of the rounds may err
    followed = {"plain-1": ["plain-1", "plain-2"], "plain-2": ["plain-1", "plain-2"], "twisted-1": ["twisted-1"]}
    assert groups_found([{"algorithm": {"groups": followed}}], FOUND) == 1.0


def test_adjusted_rand_index_against_its_definition():
    """(index - mean over all relabellings of one side) / (most - that mean)."""
    for one, other in [("aabb", "aabb"), ("aabb", "abab"), ("aaab", "aabb"), ("abcd", "aabb"), ("aabbc", "abbbc")]:

        def together(a, b):
            pairs = list(itertools.combinations(range(len(a)), 2))
            return sum(a[i] == a[j] and b[i] == b[j] for i, j in pairs)

        mixed = [together(p, other) for p in itertools.permutations(one)]
        expected = sum(mixed) / len(mixed)
        most = (together(one, one) + together(other, other)) / 2
        assert adjusted_rand_index(one, other) == pytest.approx((together(one, other) - expected) / (most - expected))
    assert adjusted_rand_index("abc", "xyz") == 1.0 and adjusted_rand_index("aaa", "bbb") == 1.0


def test_a_family_takes_the_last_value_less_the_first(file):
    text = FILE.partition("probe:")[0]
    file.write_text(
        text + "probe:\n  question: Does it?\n  expect: [{who: [shares], above: 0}]\n  family: {images: [2, 4, 8]}\n"
    )
    runs = {("local", value): dict(enumerate(LOCAL)) for value in (2, 4, 8)}
    runs |= {
        ("fedavg", value): dict(enumerate([finished([score] * 4)] * 3)) for value, score in ((2, 40), (4, 1), (8, 60))
    }
    given = Answers(load_scenario(str(file)), runs, {})
    assert judge(given, given.scenario.probe.expect[0], AVERAGES, 0.95).mean == pytest.approx(20 - -20)


def test_tables_hold_verdicts_numbers_and_what_was_asked(file):
    given = answers(file, local=LOCAL, fedavg=[finished([40] * 4)] * 3, mine=[finished([55] * 4, FOUND)] * 3)
    words, numbers = probe_tables(Question([given], [AVERAGES, CLUSTERS], 0.95, method_titles()), "made")
    assert [[cell.word for cell in row.cells] for row in words.rows] == [[PASS, " ", " "], [" ", PASS, PASS]]
    assert [row.labels for row in words.rows] == [("FedAvg",), ("Mine",)]
    assert numbers.rows[1].cells[1].value == pytest.approx(30) and numbers.rows[1].cells[2].value == 1
    notes = "\n".join(words.notes)
    for part in ("Who is who?", "Δm against FedAvg > 0", "against Local < 0", "adjusted Rand index > 0.5"):
        assert part in notes


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def probe(file, tmp_path, capsys, monkeypatch):
    """The command on runs that are finished already: method → a score per seed."""
    monkeypatch.setattr(cli, "VERBS", ("probe",))

    def call(scores, *argv, algos="fedavg,matfl", before=lambda: None):
        out = tmp_path / "probes"
        seeds = max(len(values) for values in scores.values())
        _, _, plan = plan_probes(algos, [str(file)], f"0-{seeds - 1}", "probe", {}, RunRequest("", "", out=out), "cpu")
        for run in plan.runs:
            score = scores[run.label][run.config.seed]
            made = finished([score] * 4, FOUND if run.label == "matfl" else None)
            run.store.folder.mkdir(parents=True)
            made_by = {"sha256": run.store.code.sha256, "parts": run.store.code.parts}
            (run.store.folder / "summary.json").write_text(json.dumps({**made.summary, "code": made_by}))
            (run.store.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made.rows))
        before()
        words = [
            "probe",
            "--algos",
            algos,
            "--probes",
            str(file),
            "--seeds",
            f"0-{seeds - 1}",
            "--out",
            str(out),
            *argv,
        ]
        code = cli.main([*words, "--device", "cpu"])
        return code, *capsys.readouterr()

    return call


SCORES = {"local": [50, 50], "fedavg": [40, 41], "matfl": [50, 51]}


def test_the_command_shows_a_table(probe):
    code, out, err = probe(SCORES)
    assert code == 0, err
    assert [line.split()[1:] for line in out.splitlines() if line.startswith(("FedAvg", "MaT-FL"))][:2] == [
        ["pass"], ["pass", "pass"]
    ]  # fmt: skip
    assert "preset probe" in out and "seeds 0, 1" in out


def test_a_damaged_run_is_left_out_with_its_reason(probe, tmp_path):
    def damage():
        next(tmp_path.glob("probes/worlds/fedavg/*-s0-*/metrics.jsonl")).write_text("nothing of the kind\n")

    code, out, err = probe({**SCORES, "fedavg": [40, 41]}, before=damage)
    assert code == 0 and "left out: " in err and "metrics.jsonl" in err and "one seed has no spread" in out


def test_strict_tells_a_failure_by_its_exit_code(probe):
    code, out, _ = probe({**SCORES, "fedavg": [60, 61]}, "--strict")
    assert code == 1 and "fail" in out


def test_as_json(probe):
    code, out, _ = probe(SCORES, "--format", "json", "--confidence", "0.9")
    records = json.loads(out)
    assert code == 0 and [(r["method"], r["verdict"]) for r in records] == [
        ("fedavg", "pass"), ("matfl", "pass"), ("matfl", "pass")
    ]  # fmt: skip
    assert records[1]["by_seed"] == pytest.approx({"0": 20, "1": 20}) and records[0]["confidence"] == 0.9


def test_which_probes_by_default(file):
    plain = {"probe_absent", "probe_conflict", "probe_scarce", "probe_strangers", "probe_two_worlds"}
    assert set(choose_probes(None)) == plain and set(choose_probes("all")) > plain
    assert choose_probes("scarce,label_skew") == ["probe_scarce", "probe_label_skew"]
    with pytest.raises(UsageError, match="expects nothing"):
        choose_probes("mt_mt")


def test_methods_to_compare_with_are_planned_and_a_family_takes_every_value(tmp_path):
    _, parts, plan = plan_probes(
        "matfl", ["probe_two_worlds", "probe_label_skew"], "0-1", "probe", {}, RunRequest("", "", out=tmp_path), "cpu"
    )
    assert [(part.scenario.name, part.value) for part in parts] == [
        ("probe_two_worlds", None), ("probe_label_skew", 1000), ("probe_label_skew", 0.1)
    ]  # fmt: skip
    labels = [sorted(asked.label for asked in part.asked_in(plan)) for part in parts]
    assert labels == [["fedavg", "local", "matfl"], ["local", "matfl"], ["local", "matfl"]]
    assert len(plan.runs) == 2 * (3 + 2 + 2) and len({run.store.folder for run in plan.runs}) == len(plan.runs)
    skewed = [run for asked in parts[2].asked_in(plan) for run in plan.runs_of(asked)]
    assert {run.config.scenario.partition.alpha for run in skewed} == {0.1} and len(skewed) == 4
