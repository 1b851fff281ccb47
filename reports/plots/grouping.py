"""MaT-FL: how often clients were grouped, and the votes of one client's layers; --client.

MaT-FL's Figs. 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from ...base.errors import unknown
from ..collect import Collection, RunRecord
from ..figure_style import LINE, WIDTH, heat_bar, heat_map, new_figure, styled
from . import Options
from ._choose_runs import check_part, only_run
from ._curves import PlotError
from ._diagnostics import read_diagnostics

THREE = 3  # clients abreast
NEEDS = ("groups",)  # by client: a name, or the clients it follows


def reads(options: Options) -> tuple[str, ...]:
    return ("rounds",)


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    check_part(options, ("frequency", "votes"))
    run = only_run(collection, options, notes, NEEDS)
    if options.part == "frequency":
        return grouping_figure(grouping_frequency(run))
    if options.part is None:
        return grouping_figure(grouping_frequency(run), layer_votes(run, options.client))
    # One client of each kind, unless one is named.
    of_each_kind = {group: name for name, group in reversed(run.groups.items())}
    clients = [options.client] if options.client else list(of_each_kind.values())
    return votes_figure([layer_votes(run, client) for client in sorted(clients, key=list(run.groups).index)])


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
    n = len(frequency)
    heights = [max(1.4, 0.2 + LINE * n)] + ([max(0.9, 0.35 + LINE * len(votes))] if votes is not None else [])
    figure = new_figure(sum(heights) + 0.45, max(WIDTH, 1.6 + 0.09 * n))
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    image = heat_map(panels[0], frequency.to_numpy(), cmap="cividis", vmin=0, vmax=100)
    panels[0].set_yticks(range(n), [f"{name}  {i + 1}" for i, name in enumerate(frequency.index)])
    heat_bar(figure, panels[0], image, "grouped (% of rounds)")
    if votes is not None:
        image = _draw_votes(panels[1], votes, None)
        heat_bar(figure, panels[1], image, "mean votes")
    for axes in panels:
        _number_clients(axes, n)
    panels[-1].set_xlabel("client")
    return figure


@styled
def votes_figure(votes: Sequence[pd.DataFrame]) -> Figure:
    """Draw what the layers of some clients voted, three clients abreast, with the same colours for all."""
    columns = min(THREE, len(votes))
    rows = -(-len(votes) // columns)
    height = max(0.9, 0.5 + LINE * len(votes[0]))
    figure = new_figure(rows * height + 0.3, WIDTH * (1 if columns == 1 else 2))
    places = figure.subplots(rows, columns, squeeze=False)
    most = float(np.nanmax([np.nanmax(of.to_numpy()) for of in votes]))
    for place, axes in enumerate(places.flat):
        if place >= len(votes):
            axes.set_axis_off()
            continue
        image = _draw_votes(axes, votes[place], most)
        _number_clients(axes, votes[place].shape[1])
        if place % columns:
            axes.set_yticks([])  # the layers are the same
        if place + columns >= len(votes):
            axes.set_xlabel("client")
    bar = figure.colorbar(image, ax=list(places.flat), aspect=40, pad=0.01)
    bar.set_label("mean votes")
    bar.outline.set_linewidth(0.4)
    return figure


def _draw_votes(axes: Axes, votes: pd.DataFrame, most: float | None) -> QuadMesh:
    image = heat_map(axes, votes.to_numpy(), cmap="cividis", vmin=0, vmax=most)
    axes.set_yticks(range(len(votes)), short_names(list(votes.index)))
    axes.set_title(f"layers of {votes.index.name}", pad=3)
    axes.spines[:].set_visible(False)
    return image


def _number_clients(axes: Axes, count: int) -> None:
    numbers = range(1, count + 1, -(-count // 12))  # as many as stand side by side
    axes.set_xticks([k - 1 for k in numbers], numbers)
    axes.tick_params(length=0)


def short_names(names: list[str], width: int = 22) -> list[str]:
    """Return layer names without the words that say nothing, or that all of them have, cut at the front."""
    words = [name.removesuffix(".weight").replace("layers_", "").split(".") for name in names]
    common = {"encoder", "layers", "blocks"} | (set.intersection(*map(set, words)) if len(words) > 1 else set())
    short = [".".join(w for w in own if w not in common) or ".".join(own) for own in words]
    return [name if len(name) <= width else "…" + name[-width + 1 :] for name in short]
