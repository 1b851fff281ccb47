"""Three rounds of FedHCA², its ablations and FedAvg against the public implementation's numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from fmtlbench.algorithms import _conflict_averse
from fmtlbench.algorithms.fedavg import FedAvg
from fmtlbench.algorithms.fedhca2 import FedHCA2

from fmtlbench.exchange import Owner, Party, Round, Rows, TensorSlice

ABLATION = {
    "fedhca2": {},
    "enc_only": {"decoder": "none"},
    "dec_only": {"encoder": "none"},
}


class Case:
    """A golden layout turned into the rows an algorithm sees."""

    def __init__(self, folder, case):
        layout = json.loads((folder / f"layout_{case}.json").read_text())
        self.clients = layout["clients"]
        self.beta_layers = layout["beta_layer_names"]
        self.decoders = [(d["client"], d["prefix"].split(".", 1)[1]) for d in layout["decoder_order"]]
        self.parties = [Party(c["index"], f"c{c['index']}", c["dataname"], tuple(c["tasks"]), 10) for c in self.clients]

    def slices(self, client, prefix):
        params = [p for p in self.clients[client]["params"] if p["name"].startswith(prefix + ".")]
        start = params[0]["offset"]
        tensors = tuple(
            TensorSlice(
                p["name"], p["name"][len(prefix) + 1 :].rpartition(".")[0],
                p["offset"] - start, p["offset"] - start + p["numel"],
            )
            for p in params
        )  # fmt: skip
        return start, start + tensors[-1].stop, tensors

    def rows(self, data, r):
        encoder = [(Owner(i), i, "encoder") for i in range(len(self.clients))]
        decoder = [(Owner(i, task), i, f"decoders.{task}") for i, task in self.decoders]
        made = {}
        for kind, owners in (("encoder", encoder), ("decoder", decoder)):
            before, after = [], []
            for _, i, prefix in owners:
                a, b, tensors = self.slices(i, prefix)
                before.append(torch.from_numpy(data[f"r{r}_c{i}_last"][a:b]))
                after.append(torch.from_numpy(data[f"r{r}_c{i}_current"][a:b]))
            made[kind] = Rows(tuple(o for o, _, _ in owners), torch.stack(before), torch.stack(after), tensors)
        return made

    def expected(self, data, r, kind):
        owners = [(i, "encoder") for i in range(len(self.clients))]
        if kind == "decoder":
            owners = [(i, f"decoders.{task}") for i, task in self.decoders]
        rows = []
        for i, prefix in owners:
            a, b, _ = self.slices(i, prefix)
            rows.append(data[f"r{r}_c{i}_aggregated"][a:b])
        return np.stack(rows)


def unconverged(data, r, c=0.4):
    """The public solver's weights of round r, if they are further from the optimum than ours; else None."""
    gram, theirs = data[f"r{r}_ca_GG"].astype(np.float64), data[f"r{r}_ca_w"]
    mean = np.full(len(gram), 1 / len(gram))
    value = lambda w: w @ gram @ mean + c * np.sqrt(mean @ gram @ mean) * np.sqrt(w @ gram @ w)  # noqa: E731
    ours = _conflict_averse.simplex_weights(gram, c)
    assert value(ours) <= value(theirs) + 1e-9 * np.trace(gram)
    return theirs if np.abs(ours - theirs).max() > 1e-4 else None


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
    make = lambda parties: FedHCA2(FedHCA2.Params(**ABLATION[algo]), parties)  # noqa: E731
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
    make = lambda parties: FedHCA2(FedHCA2.Params(), parties)  # noqa: E731
    rounds = list(
        check_rounds(reference / "A_aggregation", "st_interleaved", "fedhca2", "moderate", make, ("decoder",))
    )
    assert len(rounds) == 3


@pytest.mark.parametrize("regime", ["moderate", "strong"])
@pytest.mark.parametrize("case", ["st_mt_1", "st_mt_2"])
def test_fedavg_matches_the_public_code(reference, case, regime):
    make = lambda parties: FedAvg(FedAvg.Params(), parties)  # noqa: E731
    kinds = ("encoder", "decoder")
    assert len(list(check_rounds(reference / "A_aggregation", case, "fedavg", regime, make, kinds))) == 3
