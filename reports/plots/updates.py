"""the clients' updates in a plane; --method pca or tsne, --updates, --round, --raw.

MaT-FL's Fig. 2, from stored inner products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...base.errors import FmtlbenchError, unknown
from ...tasks import colour_of, in_columns, title_of
from ..collect import Collection, RunRecord
from ..figure_style import GREY, legend_below, new_figure, styled
from . import Options
from ._choose_runs import only_run
from ._curves import PlotError

SEVERAL = "several tasks"
SHAPES = ("o", "s", "^", "D", "v", "P")
METHODS = {"pca": 3, "tsne": 4}  # the fewest updates that make a plane
PERPLEXITY = 30.0  # of t-SNE, where there are updates enough


def reads(options: Options) -> tuple[str, ...]:
    return ("rounds",)


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    run = only_run(collection, options, notes)
    updates = updates_points(run, options.updates, options.round, options.normalise, options.method)
    length = "to length 1" if updates.normalised else "not normalised"
    notes.append(f"{updates.kind} updates of round {updates.round}, {length}: {updates.how} of {len(updates.points)}")
    return updates_figure(updates)


@dataclass(frozen=True)
class Updates:
    """Points in the plane, and how they came there."""

    points: pd.DataFrame  # client, dataset, task, x, y
    method: str
    axes: tuple[str, str]  # what the axes say
    how: str
    round: int
    kind: str
    normalised: bool


def updates_points(
    run: RunRecord,
    kind: str = "encoder",
    round_: int | None = None,
    normalise: bool = True,
    method: str = "pca",
) -> Updates:
    """Return the updates of one round (default: the last that has them) in a plane.

    Args:
        run: Of any method whose clients share something, or show their encoders (`evaluation.updates=encoder`).
        kind: encoder or decoder.
        round_: One of the evaluated rounds.
        normalise: To length 1 first, since directions are what conflicts.
        method: pca or tsne.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS, "--method")
    rounds = {row["round"]: row["updates"] for row in run.rounds() if row.get("updates")}
    if not rounds:
        raise PlotError(
            f"{run.name}: no updates in metrics.jsonl; older runs have none, and methods that share nothing have "
            "them with --set evaluation.updates=encoder"
        )
    chosen = max(rounds) if round_ is None else round_
    if chosen not in rounds:
        raise PlotError(f"--round {chosen}: {run.name} has updates of rounds {', '.join(map(str, sorted(rounds)))}")
    if kind not in rounds[chosen]:
        raise unknown("kind of updates", kind, rounds[chosen], "--updates")
    owners, gram = rounds[chosen][kind]["owners"], np.array(rounds[chosen][kind]["gram"], float)
    if len(owners) < METHODS[method]:
        raise PlotError(
            f"{run.name}: {len(owners)} updates in round {chosen}; {method} needs at least {METHODS[method]}"
        )
    if normalise:
        gram = with_length_one(gram)
    if method == "pca":
        xy, explained = principal_plane(gram)
        axes = tuple(f"PC {i + 1} ({100 * share:.0f} % of variance)" for i, share in enumerate(explained))
        how = "principal components"
    else:
        xy, perplexity = tsne_plane(gram)
        axes, how = ("t-SNE 1", "t-SNE 2"), f"t-SNE with perplexity {perplexity:.3g}"
    clients = {c["id"]: c for c in run.summary["clients"]}
    rows = []
    for (client, task), (x, y) in zip(owners, xy):
        tasks = [task] if task else clients[client]["tasks"]
        name = tasks[0] if len(tasks) == 1 else SEVERAL
        rows.append({"client": client, "dataset": clients[client]["dataset"], "task": name, "x": x, "y": y})
    return Updates(pd.DataFrame(rows), method, axes, how, chosen, kind, normalise)


def with_length_one(gram: np.ndarray) -> np.ndarray:
    """Return the inner products of the same vectors at length 1; a client that did not move stays at the origin."""
    length = np.sqrt(np.clip(np.diag(gram), 0, None))
    length[length == 0] = 1
    return gram / np.outer(length, length)


def tsne_plane(gram: np.ndarray) -> tuple[np.ndarray, float]:
    """Return coordinates [n, 2] by t-SNE from the distances that inner products give, and the perplexity."""
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise FmtlbenchError('t-SNE needs scikit-learn: pip install "fmtlbench[tsne]"') from None
    square = np.diag(gram)
    distances = np.sqrt(np.clip(square[:, None] + square[None, :] - 2 * gram, 0, None))
    np.fill_diagonal(distances, 0)
    if not distances.any():
        raise PlotError("all updates are the same, so t-SNE has nothing to tell apart")
    perplexity = min(PERPLEXITY, (len(gram) - 1) / 3)
    # A start from principal components would need the updates themselves.
    found = TSNE(metric="precomputed", init="random", perplexity=perplexity, random_state=0, method="exact")
    return found.fit_transform(distances), perplexity


def principal_plane(gram: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Return coordinates [n, 2] and shares of variance from inner products alone, by the centred Gram matrix."""
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
    axes = figure.add_subplot(xlabel=updates.axes[0], ylabel=updates.axes[1])
    tasks = in_columns(points["task"].unique())
    colours = {task: colour_of(task, "black") for task in tasks}
    shapes = dict(zip(sorted(points["dataset"].unique()), SHAPES * 9))
    for (task, dataset), of in points.groupby(["task", "dataset"]):
        look = {"color": colours[task], "markersize": 5, "alpha": 0.85}
        axes.plot(of["x"], of["y"], shapes[dataset], markeredgecolor="white", markeredgewidth=0.4, **look)
    if updates.method == "tsne":  # only who is near to whom means something there
        axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    else:
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
