"""Groups of clients: how often they were grouped (MaT-FL's Fig. 5), and what each layer voted (its Fig. 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ...errors import unknown
from ..collect import RunRecord
from ._curves import PlotError
from ._diagnostics import read_diagnostics
from .style import LINE, WIDTH, heat_bar, heat_map, new_figure, styled

NEEDS = ("groups",)  # by client: a name, or the clients it follows


def grouping_frequency(run: RunRecord) -> pd.DataFrame:
    """Return the percentage of rounds both took part in where the row followed the column: [clients, clients]."""
    groups = [told["groups"] for told in read_diagnostics(run, NEEDS).values() if told["groups"]]
    if not groups:
        raise PlotError(f"{run.name}: groups are empty in every round of metrics.jsonl")
    clients = [client["id"] for client in run.summary["clients"]]
    together = pd.DataFrame(0.0, index=clients, columns=clients)
    present = together.copy()
    for of in groups:
        here = list(of)
        present.loc[here, here] += 1
        for client, group in of.items():
            friends = group if isinstance(group, list) else [other for other in here if of[other] == group]
            together.loc[client, friends] += 1
    return 100 * together / present.where(present > 0)


def layer_votes(run: RunRecord, client: str | None = None) -> pd.DataFrame | None:
    """Return the mean votes over rounds of a client's layers (default: the first), [layers, clients]; None without."""
    rounds = [row["algorithm"]["votes"] for row in run.rounds() if (row.get("algorithm") or {}).get("votes")]
    if not rounds:
        if client:
            raise PlotError(f"{run.name}: its layers did not vote; MaT-FL with variant=voting does")
        return None
    known = [c["id"] for c in run.summary["clients"]]
    if client and client not in known:
        raise unknown("client", client, known, "--client")
    client = client or known[0]
    total, count = pd.DataFrame(0.0, index=rounds[0]["layers"], columns=known), pd.Series(0, index=known)
    for of in rounds:
        if client in of["clients"]:
            votes = np.array(of["votes"])[:, of["clients"].index(client)]  # [layers, clients present]
            total.loc[:, of["clients"]] += votes
            count[of["clients"]] += 1
    if not count[client]:
        raise PlotError(f"{run.name}: {client} never took part, so its layers never voted")
    mean = total / count.where(count > 0)
    mean.index.name = client
    return mean


@styled
def grouping_figure(frequency: pd.DataFrame, votes: pd.DataFrame | None = None) -> Figure:
    """Draw the frequencies as a heat map, and below it the votes if there are some; clients are numbered from above."""
    return _draw(frequency, [] if votes is None else [votes])


@styled
def frequency_figure(frequency: pd.DataFrame) -> Figure:
    """Draw how often clients were grouped, alone."""
    return _draw(frequency, [])


@styled
def votes_figure(votes: Sequence[pd.DataFrame]) -> Figure:
    """Draw what the layers of some clients voted, one client below the other, with the same colours for all."""
    return _draw(None, votes)


def _draw(frequency: pd.DataFrame | None, votes: Sequence[pd.DataFrame]) -> Figure:
    n = len(frequency) if frequency is not None else votes[0].shape[1]
    heights = [max(1.4, 0.2 + LINE * n)] * (frequency is not None)
    heights += [max(0.9, 0.35 + LINE * len(of)) for of in votes]
    figure = new_figure(sum(heights) + 0.45, max(WIDTH, 1.6 + 0.09 * n))
    panels = list(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
    rest = list(panels)
    if frequency is not None:
        axes = rest.pop(0)
        image = heat_map(axes, frequency.to_numpy(), cmap="cividis", vmin=0, vmax=100)
        axes.set_yticks(range(n), [f"{name}  {i + 1}" for i, name in enumerate(frequency.index)])
        heat_bar(figure, axes, image, "grouped (% of rounds)")
    most = max((np.nanmax(of.to_numpy()) for of in votes), default=None)
    for axes, of in zip(rest, votes):
        image = heat_map(axes, of.to_numpy(), cmap="cividis", vmin=0, vmax=most)
        axes.set_yticks(range(len(of)), short_names(list(of.index)))
        axes.set_title(f"layers of {of.index.name}", pad=3)
        heat_bar(figure, axes, image, "mean votes")
    for axes in panels:
        numbers = range(1, n + 1, -(-n // 12))  # as many as stand side by side
        axes.set_xticks([k - 1 for k in numbers], numbers)
        axes.tick_params(length=0)
    panels[-1].set_xlabel("client")
    return figure


def short_names(names: list[str], width: int = 22) -> list[str]:
    """Return layer names without the words that say nothing, or that all of them have, cut at the front."""
    words = [name.removesuffix(".weight").replace("layers_", "").split(".") for name in names]
    common = {"encoder", "layers", "blocks"} | (set.intersection(*map(set, words)) if len(words) > 1 else set())
    short = [".".join(w for w in own if w not in common) or ".".join(own) for own in words]
    return [name if len(name) <= width else "…" + name[-width + 1 :] for name in short]
