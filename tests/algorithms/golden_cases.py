"""The reference vectors as the rows an algorithm sees."""

from __future__ import annotations

import json

import numpy as np
import torch

from fmtlbench.exchange import Owner, Party, Round, Rows, TensorSlice, conflicts


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
    value = lambda w: w @ gram @ mean + c * np.sqrt(mean @ gram @ mean) * np.sqrt(w @ gram @ w)
    ours = conflicts.simplex_weights(gram, c)
    assert value(ours) <= value(theirs) + 1e-9 * np.trace(gram)
    return theirs if np.abs(ours - theirs).max() > 1e-4 else None


class EncoderCase:
    """A golden layout that holds encoders only (FMTL-Benchmark's and MaT-FL's)."""

    def __init__(self, folder, layout):
        layout = json.loads((folder / f"layout_{layout}.json").read_text())
        self.parties = tuple(
            Party(c["index"], f"c{c['index']}", c["dataname"], tuple(c.get("tasks", [c.get("task")])), 10)
            for c in layout["clients"]
        )
        params = layout.get("encoder_params") or layout["tensors"]
        self.tensors = tuple(
            TensorSlice(p["name"], "encoder", p["offset"], p["offset"] + p["numel"], p.get("is_buffer", False))
            for p in params
        )

    def stack(self, data, suffix, prefix=""):
        return np.stack([data[f"{prefix}c{party.index}_{suffix}"] for party in self.parties])

    def round(self, index, before, after):
        owners = tuple(Owner(party.index) for party in self.parties)
        rows = Rows(owners, torch.from_numpy(before), torch.from_numpy(after), self.tensors)
        return Round(index, self.parties, encoder=rows)
