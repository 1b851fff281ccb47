"""What the tests found, as tables and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ...base.words import say_count
from ..table import Cell, Column, Row, Table
from .analysis import Analysis


def rank_table(a: Analysis) -> Table:
    """Make the table of average ranks, best first, with the tests over all methods below."""
    blocks, methods = a.blocks.matrix.shape
    size = f"{say_count(methods, 'method')} on {say_count(blocks, 'block')} (scenario, client, task)"
    columns = (Column("average_rank", "average rank", digits=3), Column("best_in", "best in", digits=0))
    rows = tuple(Row((name,), (Cell(rank), Cell(float(a.firsts[name])))) for name, rank in a.ranks.items())
    return Table(
        "ranks",
        "Average ranks",
        f"{size}, split {a.split}; rank 1 is the best",
        ("method",),
        columns,
        rows,
        (*_sentences(a), *a.notes),
    )


def pair_table(a: Analysis) -> Table:
    """Make the table of all pairs, the better average rank first, the clearest difference on top."""
    columns = [
        Column("wins", "wins", digits=0),
        Column("losses", "losses", digits=0),
        Column("ties", "ties", digits=0),
        Column("rank_gap", "rank gap", digits=3),
        Column("p_nemenyi", "p Nemenyi", digits=5),
        Column("p_wilcoxon", "p Wilcoxon", digits=5),
        Column("p_corrected", f"p {a.correction}", digits=5),
        Column("differ", f"at {a.alpha:g}"),
    ]
    rows = []
    for p in a.pairs.sort_values(["p_corrected", "p"], kind="stable").to_dict("records"):
        first, second, wins, losses = p["a"], p["b"], p["wins_a"], p["wins_b"]
        if a.ranks[first] > a.ranks[second]:
            first, second, wins, losses = second, first, losses, wins
        posthoc = Cell() if a.nemenyi is None else Cell(float(a.nemenyi.loc[first, second]))
        counts = [Cell(float(n)) for n in (wins, losses, p["ties"], a.ranks[second] - a.ranks[first])]
        verdict = Cell(word="differ" if p["p_corrected"] < a.alpha else "no")
        rows.append(Row((first, second), (*counts, posthoc, Cell(p["p"]), Cell(p["p_corrected"]), verdict)))
    correction = f"{a.correction.capitalize()} correction for {say_count(len(rows), 'pair')}"
    caption = f"Wilcoxon signed ranks, {correction}; wins: blocks"
    heads = ("better rank", "than")
    return Table("pairs", "Pairs of methods", caption, heads, tuple(columns), tuple(rows), a.pair_notes)


def as_json(a: Analysis) -> dict[str, Any]:
    overall = asdict(a.friedman) if a.friedman else None
    if overall and overall["f"] == float("inf"):
        overall["f"] = None  # JSON knows no infinity; its p is 0
    return {
        "blocks": [dict(zip(("scenario", "client", "task"), key)) for key in a.blocks.matrix.index],
        "methods": list(a.blocks.matrix),
        "split": a.split,
        "metrics": list(a.blocks.metrics),
        "alpha": a.alpha,
        "correction": a.correction,
        "average_ranks": dict(a.ranks),
        "best_in": {name: int(n) for name, n in a.firsts.items()},
        "friedman": overall,
        "critical_difference": a.cd,
        "nemenyi": None if a.nemenyi is None else {m: dict(a.nemenyi[m]) for m in a.nemenyi},
        "wilcoxon": a.pairs.to_dict("records"),
        "improvement": asdict(a.improvement) if a.improvement else None,
        "notes": [*a.notes, *a.pair_notes],
    }


def _sentences(a: Analysis) -> list[str]:
    """Tell the tests that have one number."""
    lines = []
    if f := a.friedman:
        k = f.methods - 1
        lines.append(
            f"Friedman: χ²({k}) = {f.chi2:.3f}, p = {f.p:.3g}; "
            f"Iman–Davenport: F({k}, {k * (f.blocks - 1)}) = {f.f:.3f}, p = {f.f_p:.3g}; both corrected for ties"
        )
        lines.append(f"Nemenyi: average ranks differ at {a.alpha:g} if they are at least {a.cd:.3f} apart")
    if i := a.improvement:
        seeds = say_count(i.seeds[0], "seed") if i.seeds[0] == i.seeds[1] else f"{i.seeds[0]} to {i.seeds[1]} seeds"
        interval = "" if i.low is None else f", {i.level:.0%} interval {i.low:.3f} to {i.high:.3f}"
        lines.append(
            f"P({i.a} better than {i.b}) = {i.probability:.3f}{interval} "
            f"({i.how}; {say_count(i.blocks, 'block')}, {seeds} each; a tie counts half)"
        )
    return lines
