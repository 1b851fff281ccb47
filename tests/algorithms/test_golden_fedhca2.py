"""Three rounds of FedHCA², its ablations and FedAvg against the public implementation's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from golden_cases import Case, unconverged

from fmtlbench.algorithms import _conflict_averse
from fmtlbench.algorithms.fedavg import FedAvg
from fmtlbench.algorithms.fedhca2 import FedHCA2
from fmtlbench.exchange import Owner, Round

ABLATION = {
    "fedhca2": {},
    "enc_only": {"decoder": "none"},
    "dec_only": {"encoder": "none"},
}


def check_rounds(folder, case, algo, regime, method, kinds, monkeypatch=None):
    layout = Case(folder, case)
    data = np.load(folder / f"fedhca2repo_{case}_{algo}_{regime}.npz")
    method = method(layout.parties)
    tolerance = 1e-4 if regime == "strong" else 1e-5
    for r in (1, 2, 3):
        rows = layout.rows(data, r)
        shared = method.shared(r - 1)
        if monkeypatch and "encoder" in shared and (weights := unconverged(data, r)) is not None:
            # Their solver stopped early: everything but the solver must still agree, given its weights.
            monkeypatch.setattr(_conflict_averse, "simplex_weights", lambda gram, c, w=weights: w)
        new = method.aggregate(Round(r - 1, tuple(layout.parties), **{k: rows[k] for k in shared}))
        if monkeypatch:
            monkeypatch.undo()
        assert set(new) == set(shared)
        for kind in kinds:
            got = new.get(kind, rows[kind].after)  # a part that stays home keeps its local value
            np.testing.assert_allclose(got.numpy(), layout.expected(data, r, kind), atol=tolerance, rtol=0)
        yield r, method, data, layout


@pytest.mark.parametrize("regime", ["moderate", "strong", "tiny"])
@pytest.mark.parametrize("algo", list(ABLATION))
@pytest.mark.parametrize("case", ["st_mt_1", "st_mt_2"])
def test_fedhca2_matches_the_public_code(reference, monkeypatch, case, algo, regime):
    make = lambda parties: FedHCA2(FedHCA2.Params(**ABLATION[algo]), parties)
    kinds = ("encoder", "decoder")
    folder = reference / "A_aggregation"
    for r, method, data, layout in check_rounds(folder, case, algo, regime, make, kinds, monkeypatch):
        if "encoder" in method.shared(0):
            alpha = [method.alpha.weights[i][0] for i in range(len(layout.clients))]
            np.testing.assert_allclose(alpha, data[f"r{r}_alpha_after"], atol=1e-5)
        if "decoder" in method.shared(0):
            order = [layout_layer(layout).index(name) for name in layout.beta_layers]
            beta = np.array([method.beta.weights[Owner(*d)] for d in layout.decoders])[:, order].T
            np.testing.assert_allclose(beta, data[f"r{r}_beta_after"], rtol=1e-5, atol=1e-6)


def layout_layer(layout):
    tensors = layout.slices(*next((i, f"decoders.{t}") for i, t in layout.decoders))[2]
    return list(dict.fromkeys(t.layer for t in tensors))


def test_decoders_match_with_clients_interleaved(reference):
    make = lambda parties: FedHCA2(FedHCA2.Params(), parties)
    rounds = list(
        check_rounds(reference / "A_aggregation", "st_interleaved", "fedhca2", "moderate", make, ("decoder",))
    )
    assert len(rounds) == 3


@pytest.mark.parametrize("regime", ["moderate", "strong"])
@pytest.mark.parametrize("case", ["st_mt_1", "st_mt_2"])
def test_fedavg_matches_the_public_code(reference, case, regime):
    make = lambda parties: FedAvg(FedAvg.Params(), parties)
    kinds = ("encoder", "decoder")
    assert len(list(check_rounds(reference / "A_aggregation", case, "fedavg", regime, make, kinds))) == 3
