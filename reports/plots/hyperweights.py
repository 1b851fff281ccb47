"""FedHCA²: α of single- and of multi-task clients over rounds, β of decoder layers; --round.

FedHCA²'s Figs. 6 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from ..collect import Collection, RunRecord
from ..figure_style import LINE, Style, heat_bar, heat_map, in_order, legend_columns, legend_height, new_figure, styled
from . import Options
from ._choose_runs import check_part, only_run
from ._curves import PlotError
from ._diagnostics import read_diagnostics

NEEDS = ("alpha", "beta")  # by client; by decoder, a list over layers


def reads(options: Options) -> tuple[str, ...]:
    return ("rounds",)


def draw(collection: Collection, options: Options, notes: list[str]) -> Figure:
    check_part(options, ("alpha", "beta"))
    run = only_run(collection, options, notes, NEEDS)
    alpha, beta = hyperweights_data(run, options.round)
    if options.part is not None and (alpha if options.part == "alpha" else beta).empty:
        raise PlotError(f"--part {options.part}: {run.name} did not share what it weighs")
    alphas = {} if options.part == "beta" else split_by_tasks(run, alpha)
    return hyperweights_figure(alphas, beta.iloc[:0] if options.part == "alpha" else beta)


def hyperweights_data(run: RunRecord, round_: int | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return α [rounds, clients] and a round's β [decoders, layers] (default: the last), as used: clamped to [0, 1]."""
    rows = read_diagnostics(run, NEEDS)
    if round_ is not None and round_ not in rows:
        raise PlotError(f"--round {round_}: {run.name} has rounds {min(rows)} to {max(rows)}")
    alpha = pd.DataFrame.from_dict({r: d["alpha"] for r, d in rows.items()}, orient="index").sort_index()
    beta = pd.DataFrame.from_dict(rows[round_ or max(rows)]["beta"], orient="index")
    beta.columns = [f"L{i + 1}" for i in range(beta.shape[1])]
    if alpha.empty and beta.empty:
        raise PlotError(f"{run.name}: neither encoders nor decoders were shared, so there are no weights")
    return alpha.clip(0, 1), beta.clip(0, 1)


def split_by_tasks(run: RunRecord, alpha: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return α of the clients with one task and of those with several, by what to call them; nobody is no entry."""
    several = {client["id"] for client in run.summary["clients"] if len(client["tasks"]) > 1}
    names = {
        "single-task clients": [client for client in alpha if client not in several],
        "multi-task clients": [client for client in alpha if client in several],
    }
    return {words: alpha[clients] for words, clients in names.items() if clients}


@styled
def hyperweights_figure(alphas: Mapping[str, pd.DataFrame], beta: pd.DataFrame) -> Figure:
    """Draw α as lines, a panel per kind of client, β as a heat map below; a part that was not shared is left out."""
    columns = {words: legend_columns(list(alpha), 2) for words, alpha in alphas.items()}
    titled = len(alphas) > 1
    heights = [1.8 + 0.1 * titled + legend_height(a.shape[1], columns[words]) for words, a in alphas.items()]
    heights += [max(1.3, 0.45 + LINE * len(beta))] * (not beta.empty)
    figure = new_figure(sum(heights))
    panels = list(figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
    look = in_order(client for alpha in alphas.values() for client in alpha)
    for words, alpha in alphas.items():
        _encoders(panels.pop(0), alpha, columns[words], words if titled else "", look)
    if not beta.empty:
        _decoders(panels.pop(0), beta)
    return figure


def _encoders(panel: SubFigure, alpha: pd.DataFrame, columns: int, title: str, look: Mapping[str, Style]) -> None:
    axes = panel.add_subplot(xlabel="communication round", ylabel="encoder weight α", title=title)
    for client in alpha:
        every = max(1, len(alpha) // 5)
        axes.plot(alpha.index, alpha[client], label=client, markevery=every, **look[client].line())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))  # one round is one tick
    axes.margins(x=0.02)
    panel.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def _decoders(panel: SubFigure, beta: pd.DataFrame) -> None:
    axes = panel.add_subplot(xlabel="decoder layer")
    image = heat_map(axes, beta.to_numpy(), cmap="cividis")
    owners = [name.split("/")[0] for name in beta.index]
    names = [owner if owners.count(owner) == 1 else name for owner, name in zip(owners, beta.index)]
    axes.set_xticks(range(beta.shape[1]), list(beta))
    axes.set_yticks(range(len(beta)), names)
    axes.tick_params(length=0)
    heat_bar(panel, axes, image, "decoder weight β")
