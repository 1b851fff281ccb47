"""Scores before the server's step, after it, or both: which models they are of, and that the run itself is the same."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from kit import TINY, rows_of
from resuming import about_to_send, numbers_of, whole_with_copies

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve
from fmtlbench.engine.factory import ClientFactory
from fmtlbench.engine.federation import Federation
from fmtlbench.engine.messages import Evaluate, Install

TWINS = """\
description: three alike clients
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth], count: 3}
"""
SMALL = {**TINY, "data.size": {"pascal": [32, 32], "nyud": [32, 32]}, "evaluation.every": 1}


@pytest.fixture(scope="module")
def twins(shared_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "twins.yml"
    path.write_text(TWINS)

    def run(algo, when=None, **given):
        chosen = {"evaluation.when": when} if when else {}
        return shared_run(algo, **{"scenario": str(path), "rounds": 2, **SMALL, **chosen, **given})

    return run


def values(records, split="global"):
    return [record["value"] for record in records if record["split"] == split and record["primary"]]


def test_without_a_server_before_and_after_are_the_same(twins):
    for row in rows_of(twins("local", "both")):
        assert row["scores"] == row["scores_before"]


def test_before_are_the_clients_models_and_after_the_servers(twins):
    """Of alike clients that exchange whole models, without running statistics, which would stay at home."""
    whole = {"federation.exchange": "models", "model.architecture": "md", "data.size": {"nyud": [32, 64]}}
    result = twins("fedavg", "both", **whole)
    for row in rows_of(result):
        assert len(set(values(row["scores"]))) == 1
        assert len(set(values(row["scores_before"]))) == 3
    summed_up, last = result.summary["scores_before"], rows_of(result)[-1]["scores_before"]
    assert [r["value"] for r in summed_up] == [r["value"] for r in last]
    assert [r["trivial"] for r in summed_up if r["primary"]] == [r["trivial"] for r in result.scores]


@pytest.mark.parametrize("algo", ["fedhca2", "ditto", "fedbabu"])
def test_the_three_choices_tell_of_one_and_the_same_run(twins, algo):
    """Scoring between the halves of a round, with fine-tuning and second tracks too, leaves no trace."""
    results = {when: twins(algo, when) for when in ("after_aggregation", "before_aggregation", "both")}
    after, before, both = map(rows_of, results.values())
    assert [row["scores"] for row in both] == [row["scores"] for row in after]
    assert [row["scores_before"] for row in both] == [row["scores"] for row in before]
    assert not any("scores_before" in row for row in after + before)
    apart = ("scores", "scores_before")
    rest = [[{k: v for k, v in row.items() if k not in apart} for row in told] for told in (after, before, both)]
    assert rest[0] == rest[1] == rest[2]
    assert after == rows_of(twins(algo))  # the default


def test_the_setting_is_another_one_and_says_so(twins):
    results = [twins("local", when) for when in (None, "before_aggregation", "both")]
    assert len({result.summary["setting"] for result in results}) == 3
    assert [result.summary["setting_text"].get("when") for result in results] == [None, "before_aggregation", "both"]
    assert ["scores_before" in result.summary for result in results] == [False, False, True]


def test_absent_clients_are_scored_as_they_are(twins):
    told = rows_of(twins("fedavg", "both", **{"federation.participation": 0.67, "rounds": 3}))
    absent = [({"nyud-depth-1", "nyud-depth-2", "nyud-depth-3"} - set(row["present"])).pop() for row in told]
    for row, client in zip(told, absent):
        before, now = ([r["value"] for r in row[key] if r["client"] == client] for key in ("scores_before", "scores"))
        assert before == now


def test_the_scored_models_are_those_of_the_round(tmp_path):
    """`before` is what the executor's clients hold between training and download."""
    (tmp_path / "twins.yml").write_text(TWINS)
    config = resolve("fedavg", str(tmp_path / "twins.yml"), overrides={**SMALL, "federation.rounds": 1})
    fed = Federation(ClientFactory(config, "cpu"))
    start = [client.main.flat.vector.clone() for client in fed.executor.clients]
    trained = fed.train(0)
    own = [client.main.flat.vector.clone() for client in fed.executor.clients]
    assert not any(torch.equal(a, b) for a, b in zip(start, own))
    fed.evaluate(0)
    assert all(torch.equal(client.main.flat.vector, vector) for client, vector in zip(fed.executor.clients, own))
    fed.exchange(trained)
    encoders = [client.main.flat.rows("encoder")[0] for client in fed.executor.clients]
    assert torch.equal(encoders[0], encoders[1]) and not torch.equal(own[0], fed.executor.clients[0].main.flat.vector)
    seconds = fed.timing()["seconds"]
    assert seconds["evaluate"] > 0 and set(seconds) >= {"upload", "aggregate", "download"}


CUTS = {
    "before the first server step": about_to_send(Evaluate, done=0),
    "after the second": about_to_send(Evaluate, done=1, following=Install),
}


def test_cut_while_scoring_and_resumed_equals_uninterrupted(twins, tmp_path):
    run = partial(twins, "fedavg", "both")
    whole = whole_with_copies(run, tmp_path, CUTS)
    for moment in CUTS:
        assert numbers_of(run(out=tmp_path / moment)) == numbers_of(whole)


def test_another_word_is_refused():
    with pytest.raises(UsageError, match=r"evaluation\.when: expected one of after_.*, before_.*, both, got 'during'"):
        resolve("local", "st_mt_1", overrides={"evaluation.when": "during"})


def test_the_mat_fl_preset_scores_before():
    assert resolve("matfl", "matfl_pascal5", "mat-fl").evaluation.when == "before_aggregation"
    for preset in ("nano", "paper", "fmtl-bench"):
        assert resolve("local", "st_mt_1", preset).evaluation.when == "after_aggregation"
