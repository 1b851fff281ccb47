"""Three rounds of FedHCA², its ablations and FedAvg against the public implementation's numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from golden_cases import Case, unconverged
from golden_files import cases

from fmtlbench.algorithms.fedavg import FedAvg
from fmtlbench.algorithms.fedhca2 import FedHCA2
from fmtlbench.exchange import Owner, Round, conflicts

FILES = "A_aggregation/fedhca2repo_{}_{}_{}.npz"
CASES = ["st_mt_1", "st_mt_2"]
ALL_CASES = [*CASES, "st_interleaved"]  # there encoders are averaged otherwise, all else is the same
REGIMES = ["moderate", "strong", "tiny"]
ABLATION = {"fedhca2": {}, "enc_only": {"decoder": "none"}, "dec_only": {"encoder": "none"}}


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
            monkeypatch.setattr(conflicts, "simplex_weights", lambda gram, c, w=weights: w)
        new = method.aggregate(Round(r - 1, tuple(layout.parties), **{k: rows[k] for k in shared}))
        if monkeypatch:
            monkeypatch.undo()
        assert set(new) == set(shared)
        for kind in kinds:
            got = new.get(kind, rows[kind].after)  # a part that stays home keeps its local value
            np.testing.assert_allclose(got.numpy(), layout.expected(data, r, kind), atol=tolerance, rtol=0)
        yield r, method, data, layout


@pytest.mark.parametrize("case, algo, regime", cases(FILES, CASES, ABLATION, REGIMES))
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


def common_update_with_their_epsilons(ours, data, r, delta, c=0.4):
    """Ũ with the 1e-8 that the public code adds to ‖Δ̄‖², to √φ and to ‖U_w‖: it shows where updates are tiny."""
    gram, w = data[f"r{r}_ca_GG"].astype(np.float64), data[f"r{r}_ca_w"]
    square, norm = gram.mean(), np.sqrt(w @ gram @ w)
    stretch = (c * np.sqrt(square + 1e-8) + 1e-8) / (c * np.sqrt(square)) * norm / (norm + 1e-8)
    mean = delta.mean(0)
    return (mean + stretch * (ours * (1 + c * c) - mean)) / (1 + c * c)


@pytest.mark.parametrize("case, algo, regime", cases(FILES, ALL_CASES, ["fedhca2", "enc_only"], REGIMES))
def test_the_common_update_is_the_public_one(reference, monkeypatch, case, algo, regime):
    make = lambda parties: FedHCA2(FedHCA2.Params(**ABLATION[algo]), parties)
    for r, method, data, layout in check_rounds(reference / "A_aggregation", case, algo, regime, make, (), monkeypatch):
        delta = layout.rows(data, r)["encoder"].delta.double().numpy()
        ours = common_update_with_their_epsilons(method.common_update.double().numpy(), data, r, delta)
        theirs = data[f"r{r}_ca_delta_update"]
        assert np.linalg.norm(ours - theirs) <= 1e-4 * np.linalg.norm(theirs)


def check_momenta(reference, monkeypatch, case, algo, regime, **options):
    """Gradient, weight decay and momentum together: a hyper weight itself hides the decay, which moves it by 1e-7."""
    make = lambda parties: FedHCA2(FedHCA2.Params(**ABLATION[algo], **options), parties)
    for r, method, data, layout in check_rounds(reference / "A_aggregation", case, algo, regime, make, (), monkeypatch):
        if r > 1 and "encoder" in method.shared(0):  # the solvers' weights may differ by 1e-4
            alpha = [method.alpha.momenta[i][0] for i in range(len(layout.clients))]
            np.testing.assert_allclose(alpha, data[f"r{r}_alpha_momentum"], rtol=1e-3)
        if r > 1 and "decoder" in method.shared(0):
            order = [layout_layer(layout).index(name) for name in layout.beta_layers]
            beta = np.array([method.beta.momenta[Owner(*d)] for d in layout.decoders])[:, order].T
            np.testing.assert_allclose(beta, data[f"r{r}_beta_momentum"], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("case, algo, regime", cases(FILES, ALL_CASES, ABLATION, REGIMES))
def test_hyper_weights_move_as_in_the_public_code(reference, monkeypatch, case, algo, regime):
    check_momenta(reference, monkeypatch, case, algo, regime)


@pytest.mark.parametrize("case, algo, regime", cases(FILES, CASES, ABLATION, ["tiny"]))
def test_without_weight_decay_they_would_not(reference, monkeypatch, case, algo, regime):
    with pytest.raises(AssertionError, match="Mismatched elements"):
        check_momenta(reference, monkeypatch, case, algo, regime, weight_decay=0.0)


def layout_layer(layout):
    tensors = layout.slices(*next((i, f"decoders.{t}") for i, t in layout.decoders))[2]
    return list(dict.fromkeys(t.layer for t in tensors))


def test_decoders_match_with_clients_interleaved(reference):
    make = lambda parties: FedHCA2(FedHCA2.Params(), parties)
    rounds = list(
        check_rounds(reference / "A_aggregation", "st_interleaved", "fedhca2", "moderate", make, ("decoder",))
    )
    assert len(rounds) == 3


def test_encoders_match_with_clients_interleaved_if_only_neighbours_are_alike(reference, monkeypatch):
    """Only clients next to each other average their updates in the public code; everything else is the same."""

    def make(parties):
        runs = groupby(parties, key=lambda party: (party.dataset, party.tasks))
        renamed = [replace(p, dataset=f"{p.dataset} {n}") for n, (_, run) in enumerate(runs) for p in run]
        return FedHCA2(FedHCA2.Params(), renamed)

    folder = reference / "A_aggregation"
    kinds = ("encoder", "decoder")
    rounds = list(check_rounds(folder, "st_interleaved", "fedhca2", "moderate", make, kinds, monkeypatch))
    assert len(rounds) == 3


@pytest.mark.parametrize("case, algo, regime", cases(FILES, CASES, ["fedavg"], REGIMES))
def test_fedavg_matches_the_public_code(reference, case, algo, regime):
    make = lambda parties: FedAvg(FedAvg.Params(), parties)
    kinds = ("encoder", "decoder")
    assert len(list(check_rounds(reference / "A_aggregation", case, algo, regime, make, kinds))) == 3
