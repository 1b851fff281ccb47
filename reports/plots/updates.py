"""Clients' updates in the plane of their two main directions, from stored inner products (compare MaT-FL Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...errors import unknown
from ...tasks import colour_of, in_columns, title_of
from ..collect import RunRecord
from ._curves import PlotError
from .style import GREY, legend_below, new_figure, styled

SEVERAL = "several tasks"
SHAPES = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True)
class Updates:
    """Points in the plane; `explained` is the share of the variance along each axis."""

    points: pd.DataFrame  # client, dataset, task, x, y
    explained: tuple[float, float]
    round: int
    kind: str
    normalised: bool


def updates_points(run: RunRecord, kind: str = "encoder", round_: int | None = None, normalise: bool = True) -> Updates:
    """Return the principal components of the updates of one round (default: the last that has them).

    Args:
        run: Of any method whose clients share something.
        kind: encoder or decoder.
        round_: One of the evaluated rounds.
        normalise: To length 1 first, since directions are what conflicts.
    """
    rounds = {row["round"]: row["updates"] for row in run.rounds() if row.get("updates")}
    if not rounds:
        raise PlotError(
            f"{run.name}: no updates in metrics.jsonl; methods that share nothing, and older runs, have none"
        )
    chosen = max(rounds) if round_ is None else round_
    if chosen not in rounds:
        raise PlotError(f"--round {chosen}: {run.name} has updates of rounds {', '.join(map(str, sorted(rounds)))}")
    if kind not in rounds[chosen]:
        raise unknown("kind of updates", kind, rounds[chosen], "--updates")
    owners, gram = rounds[chosen][kind]["owners"], np.array(rounds[chosen][kind]["gram"], float)
    if len(owners) < 3:
        raise PlotError(f"{run.name}: {len(owners)} updates in round {chosen}; a plane needs at least 3")
    xy, explained = principal_plane(gram, normalise)
    clients = {c["id"]: c for c in run.summary["clients"]}
    rows = []
    for (client, task), (x, y) in zip(owners, xy):
        tasks = [task] if task else clients[client]["tasks"]
        name = tasks[0] if len(tasks) == 1 else SEVERAL
        rows.append({"client": client, "dataset": clients[client]["dataset"], "task": name, "x": x, "y": y})
    return Updates(pd.DataFrame(rows), explained, chosen, kind, normalise)


def principal_plane(gram: np.ndarray, normalise: bool) -> tuple[np.ndarray, tuple[float, float]]:
    """Return coordinates [n, 2] and shares of variance from inner products alone, by the centred Gram matrix."""
    if normalise:
        length = np.sqrt(np.clip(np.diag(gram), 0, None))
        length[length == 0] = 1  # a client that did not move stays at the origin
        gram = gram / np.outer(length, length)
    centre = np.eye(len(gram)) - 1 / len(gram)
    values, vectors = np.linalg.eigh(centre @ gram @ centre)
    values, vectors = np.clip(values[::-1][:2], 0, None), vectors[:, ::-1][:, :2]
    total = max(np.trace(centre @ gram @ centre), 0)
    flip = np.sign(vectors[np.abs(vectors).argmax(0), [0, 1]])  # eigenvectors have no sign of their own
    shares = values / total if total > 0 else np.zeros(2)
    return vectors * flip * np.sqrt(values), (float(shares[0]), float(shares[1]))


@styled
def updates_figure(updates: Updates) -> Figure:
    """Draw the updates: a colour per task, a marker per dataset."""
    points = updates.points
    figure = new_figure(2.5)
    share = [f"PC {i + 1} ({100 * s:.0f} % of variance)" for i, s in enumerate(updates.explained)]
    axes = figure.add_subplot(xlabel=share[0], ylabel=share[1])
    tasks = in_columns(points["task"].unique())
    colours = {task: colour_of(task, "black") for task in tasks}
    shapes = dict(zip(sorted(points["dataset"].unique()), SHAPES * 9))
    for (task, dataset), of in points.groupby(["task", "dataset"]):
        axes.plot(
            of["x"],
            of["y"],
            shapes[dataset],
            color=colours[task],
            markersize=5,
            alpha=0.85,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )
    for line in (axes.axhline, axes.axvline):
        line(0, color="0.85", linewidth=0.5, zorder=0)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    handles = [Line2D([], [], linestyle="none", marker="o", color=colours[task]) for task in tasks]
    labels = [title_of(task) for task in tasks]
    if len(shapes) > 1:
        handles += [
            Line2D([], [], linestyle="none", marker=m, color=GREY, markerfacecolor="none") for m in shapes.values()
        ]
        labels += list(shapes)
    legend_below(figure, handles, labels, handle=1.0)
    return figure
