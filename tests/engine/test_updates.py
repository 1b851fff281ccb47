"""Which updates a scored round describes: of what travels, or of encoders that stay at home too."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from kit import DUO, TINY, make_federation, rows_of

from fmtlbench.base.errors import UsageError
from fmtlbench.config.resolve import resolve

SHOW = {"evaluation.updates": "encoder"}


@pytest.fixture
def play(shared_run):
    return partial(shared_run, rounds=2, **{"evaluation.every": 1})


def without_updates(result):
    return [{key: value for key, value in row.items() if key != "updates"} for row in rows_of(result)]


@pytest.mark.parametrize(
    "algo, options, travels", [("local", {}, []), ("fedhca2", {"algo.encoder": "none"}, ["decoder"])]
)
def test_shown_encoders_change_nothing_else_of_a_run(play, algo, options, travels):
    usual, shown = play(algo, **options), play(algo, **options, **SHOW)
    assert without_updates(usual) == without_updates(shown)
    assert usual.folder != shown.folder  # a run without them is not taken for one that has them
    for key in ("scores", "bytes_up", "bytes_down"):
        assert usual.summary[key] == shown.summary[key]
    for before, now in zip(rows_of(usual), rows_of(shown), strict=True):
        assert list(before.get("updates", {})) == travels and list(now["updates"]) == [*travels, "encoder"]
        assert all(before["updates"][kind] == now["updates"][kind] for kind in travels)


def test_local_clients_show_their_encoders_without_traffic(play):
    usual, shown = rows_of(play("local")), rows_of(play("local", **SHOW))
    assert not any("updates" in row for row in usual)
    for row in shown:
        told = row["updates"]["encoder"]
        assert told["owners"] == [["pascal-human_parts", None], ["nyud-multi", None]]
        gram = np.array(told["gram"])
        assert gram.shape == (2, 2) and (np.diag(gram) > 0).all() and np.allclose(gram, gram.T)
        assert row["bytes_up"] == row["bytes_down"] == 0 and not row["ledger"]


def test_they_are_the_distances_that_the_encoders_went(scenario):
    federation = make_federation("local", scenario(DUO), **TINY, **SHOW)
    encoders = lambda: [client.main.flat.read("encoder")[0].double() for client in federation.executor.clients]
    start = encoders()
    row = federation.round(0, describe=True)
    moved = [after - before for after, before in zip(encoders(), start)]
    expected = [[float(one @ other) for other in moved] for one in moved]
    np.testing.assert_allclose(row["updates"]["encoder"]["gram"], expected, rtol=1e-4)
    assert "updates" not in federation.round(1)  # not scored


def test_what_travels_anyway_is_described_once(play):
    assert rows_of(play("fedhca2", rounds=1)) == rows_of(play("fedhca2", rounds=1, **SHOW))
    [row] = rows_of(play("fedhca2", rounds=1))
    assert sorted(row["updates"]) == ["decoder", "encoder"]


def test_a_run_of_one_round_has_its_updates(play):
    """Local epochs from one common start: what MaT-FL's Fig. 2 shows."""
    [row] = rows_of(play("local", rounds=1, **SHOW))
    assert row["round"] == 1 and len(row["updates"]["encoder"]["owners"]) == 2


def test_configs_keep_their_hash(scenario):
    path = scenario(DUO)
    usual, told, shown = (
        resolve("local", path, overrides={**TINY, **given}) for given in ({}, {"evaluation.updates": "shared"}, SHOW)
    )
    assert usual.hash() == told.hash() != shown.hash()
    assert "evaluation.updates" not in usual.setting().values
    with pytest.raises(UsageError, match=r"evaluation\.updates"):
        resolve("local", path, overrides={**TINY, "evaluation.updates": "decoder"})
