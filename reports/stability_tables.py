"""What is known of a benchmark's noise, as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ..base.words import say_count
from .gains import Method
from .settings import describe
from .stability import Moves, Noise, Pair, Reruns, Stability, effects
from .stats.power import MOST
from .table import Cell, Column, Row, Table

APART = "†"
MANY = f"more than {MOST}"
NEEDED = "seeds needed to tell two methods apart"


def stability_tables(found: Sequence[Stability]) -> list[Table]:
    """Make the tables of every setting: noise, reruns if any, order, pairs, and the published order if asked for."""
    tables = []
    for one in found:
        tables.append(_noise(one))
        if one.reruns:
            tables += [_reruns(one), _rerun_columns(one)]
        tables.append(_order(one))
        if one.asked is None and len(one.noise) > 1:
            tables.append(_power(one))
        elif one.asked and set(one.asked) <= {method[1][0] for method in one.noise}:
            tables.append(_pair(one))
        if one.beside:
            tables.append(_published(one))
    return tables


def _table(one: Stability, kind: str, title: str, heads: tuple, columns: Sequence, rows: Sequence, notes=()) -> Table:
    caption = (
        describe(one.board.runs, one.board.words) if kind == "noise" else f"setting {one.board.runs[0].setting[:14]}"
    )
    name, title = f"{kind}-{one.board.name}", f"{one.board.title}: {title}"
    return Table(name, title, caption, heads, tuple(columns), tuple(rows), tuple(filter(None, notes)))


def _label(method: Method) -> str:
    return ", ".join(method[1])


# -- noise -------------------------------------------------------------------------------------------------------------


def _noise(one: Stability) -> Table:
    columns = [
        Column("seeds", "seeds", digits=0),
        Column("delta_m", "Δm %"),
        Column("delta_m_std", "std of Δm"),
        Column("self_noise", "self-noise"),
    ]
    for c in one.board.columns:
        columns.append(Column(f"{c.key}_std", c.title, f"std {c.metric}", c.heading, c.digits))
        columns.append(Column(f"{c.key}_std_percent", c.title, "std %", c.heading))
    rows = []
    for method, noise in one.noise.items():
        cells = [Cell(float(len(noise.seeds))), replace(noise.delta.cell, interval=None), noise.std, noise.self_noise]
        for cell in noise.columns.values():
            cells += [Cell(cell.std, note=cell.note), Cell(_percent(cell))]
        rows.append(Row(method[1], tuple(cells)))
    titles = {base.title for base in one.board.bases.values() if base.units}
    notes = [
        one.board.delta.words(", ".join(sorted(titles))) if titles else "",
        "std: over seeds, n − 1; [low, high]: 95 % by χ², if Δm is normal over seeds",
        "self-noise: std of Δm of each seed's run against the mean of the same method's other seeds; of n seeds it is "
        "about n/(n − 1) times the std of the method's own scores, in the unit of Δm",
        effects(one),
        *one.notes,
    ]
    return _table(one, "noise", "noise over seeds", ("Method",), columns, rows, notes)


def _percent(cell: Cell) -> float | None:
    return 100 * cell.std / abs(cell.value) if cell.std is not None and cell.value else None


# -- reruns ------------------------------------------------------------------------------------------------------------


def _reruns(one: Stability) -> Table:
    columns = [
        Column("pairs", "pairs", digits=0),
        Column("delta_m_rerun_std", "std", "Δm", "by reruns", 4),
        Column("delta_m_rerun_largest", "largest", "Δm", "by reruns", 4),
        Column("self_noise", "self-noise", "Δm", "by seeds", 4),
        Column("within_seeds", "within seeds"),
    ]
    rows = []
    for again in one.reruns:
        numbers = (float(again.pairs), again.delta.std, again.delta.largest, again.delta.seeds_std)
        rows.append(Row((_label(again.method), again.kind), (*map(Cell, numbers), _verdict(again))))
    notes = [
        "a rerun: the same method, setting and seed with sums in another order or on another machine; both runs of a "
        "pair are compared with the same run of the baseline",
        "by reruns: std of one run (the root of half the mean square of the pairs' differences) and largest difference",
        "within seeds: moves no column by more than the seeds do (the std of reruns is at most that of seeds)",
    ]
    return _table(one, "reruns", "what a rerun moves", ("Method", "Run again with"), columns, rows, notes)


def _verdict(again: Reruns) -> Cell:
    beyond = again.beyond_seeds
    if beyond is None:
        return Cell(note="no verdict: one seed has no spread")
    if beyond:
        return Cell(word="no", note=f"{_label(again.method)}, {again.kind}: reruns move {', '.join(beyond)} more")
    return Cell(word="yes")


def _rerun_columns(one: Stability) -> Table:
    columns = [Column("pairs", "pairs", digits=0)]
    for by in ("reruns", "seeds"):
        columns += [Column(f"{by}_{what}", what, heading=f"by {by}", digits=4) for what in ("std", "largest")]
    rows = []
    for again in one.reruns:
        for key, m in again.columns.items():
            numbers = (float(m.pairs), m.std, m.largest, m.seeds_std, m.seeds_largest)
            rows.append(Row((_label(again.method), again.kind, key), tuple(map(Cell, numbers))))
    notes = ["in each column's own unit; largest by seeds: between any two seeds"]
    heads = ("Method", "Run again with", "Column")
    return _table(one, "rerun-columns", "what a rerun moves, by column", heads, columns, rows, notes)


# -- order -------------------------------------------------------------------------------------------------------------


def _order(one: Stability) -> Table:
    columns = [Column(name, name, digits=0) for name in ("methods", "seeds", "splits")]
    columns += [Column("tau", "τ"), Column("p", "p", digits=4)]
    cells, notes = [Cell()] * 3 + [Cell(note=one.order_note), Cell()], []
    if a := one.order:
        cells = [
            *(Cell(float(n)) for n in (a.methods, a.seeds, a.splits)),
            Cell(a.tau, interval=(a.low, a.high)),
            Cell(),
        ]
        notes = [a.words(), one.order_note]
    rows = [Row(("halves of the seeds",), tuple(cells))]
    if one.beside:
        c, count = one.beside.correlation, Cell(float(len(one.beside.rows)))
        tau, p = (Cell(c.tau), Cell(c.p)) if c else (Cell(note=one.beside.no_tau), Cell())
        rows.append(Row((one.beside.published.name,), (count, Cell(), Cell(), tau, p)))
    return _table(one, "order", "does the order of methods hold?", ("Order against",), columns, rows, notes)


# -- pairs -------------------------------------------------------------------------------------------------------------


def _needed(pair: Pair | None, signs: str = "") -> Cell:
    if pair is None:
        return Cell(note="fewer than two seeds in common with a Δm")
    return Cell(word=MANY) if pair.seeds_needed is None else Cell(float(pair.seeds_needed), signs=signs)


def _test(one: Stability) -> str:
    return (
        "seeds needed: fewest for which a paired two-sided t-test at 95 % finds a difference of this mean and std with "
        f"a power of {one.power:g} (noncentral t); the mean and std found here are themselves uncertain"
    )


def _power(one: Stability) -> Table:
    """Make the table of pairs, methods by methods."""
    methods = list(one.noise)
    columns = [Column(_label(method), _label(method), digits=0) for method in methods]
    rows = []
    for a in methods:
        cells = []
        for b in methods:
            pair = one.pair(a, b)
            cells.append(Cell(word="·") if a == b else _needed(pair, APART if pair and pair.apart else ""))
        rows.append(Row(a[1], tuple(cells)))
    apart = sum(pair.apart for pair in one.pairs)
    pairs = say_count(len(one.pairs), "pair")
    tests = f"{APART} apart at 95 % with the seeds there are (paired t-test, Holm over {pairs}): {apart}"
    return _table(one, "power", NEEDED, ("Method",), columns, rows, [_test(one), tests])


def _pair(one: Stability) -> Table:
    a, b = (next(method for method in one.noise if method[1][0] == label) for label in one.asked)
    columns = [
        Column("seeds", "seeds", digits=0),
        Column("difference", "Δm of A − B", signed=True),
        Column("difference_std", "std"),
        Column("p", "p", digits=5),
        Column("p_holm", "p Holm", digits=5),
        Column("apart", "apart"),
        Column("seeds_needed", "seeds needed", digits=0),
    ]
    cells = [Cell()] * 6
    if pair := one.pair(a, b):
        cells = [
            Cell(float(len(pair.seeds))),
            Cell(pair.mean, interval=pair.interval),
            *map(Cell, (pair.std, pair.p, pair.p_holm)),
            Cell(word="yes" if pair.apart else "no"),
        ]
    notes = [
        _test(one),
        f"apart: p of the paired t-test, Holm over {say_count(len(one.pairs), 'pair')} of this setting, below 0.05",
    ]
    rows = [Row((_label(a), _label(b)), (*cells, _needed(pair)))]
    return _table(one, "pair", NEEDED, ("A", "B"), columns, rows, notes)


# -- published ---------------------------------------------------------------------------------------------------------


def _published(one: Stability) -> Table:
    beside = one.beside
    columns = [
        Column("measured", "Δm %", "measured"),
        Column("measured_place", "place", "measured", digits=0),
        Column("published", "Δm %", "published"),
        Column("published_place", "place", "published", digits=0),
    ]
    measured = [one.noise[method].delta.cell.value for method, _ in beside.rows]
    printed = [float(text) for _, text in beside.rows]
    rows = []
    for (method, text), mine, theirs in zip(beside.rows, measured, printed):
        ours = Cell(mine, one.noise[method].std.value, note=one.noise[method].delta.cell.note)
        published = Cell(theirs, printed=text)
        rows.append(Row((_label(method),), (ours, _place(mine, measured), published, _place(theirs, printed))))
    c = beside.correlation
    notes = [
        f"not the same setting: {', '.join(beside.unlike)}" if beside.unlike else "",
        f"Kendall's τ-b {c.tau:.3f}, p = {c.p:.3g} ({c.how})" if c else beside.no_tau,
        *beside.notes,
        *beside.published.notes,
    ]
    title = f"the order beside {beside.published.source}"
    return _table(one, "published", title, ("Method",), columns, rows, notes)


def _place(value: float, values: Sequence[float]) -> Cell:
    return Cell(float(1 + sum(other > value for other in values)))


# -- JSON --------------------------------------------------------------------------------------------------------------


def as_json(found: Sequence[Stability]) -> list[dict[str, Any]]:
    """Return every number, a setting each."""
    return [_setting(one) for one in found]


def _setting(one: Stability) -> dict[str, Any]:
    run = one.board.runs[0]
    return {
        "setting": run.setting,
        "scenario": run.summary["scenario"],
        "split": one.board.split,
        "metrics": {column.key: column.metric for column in one.board.columns},
        "delta": one.board.delta.words(next(iter(one.board.bases.values())).title),
        "methods": [_method(method, noise) for method, noise in one.noise.items()],
        "reruns": [
            {
                "method": _label(again.method),
                "differs": again.kind,
                "pairs": again.pairs,
                "delta_m": _moves(again.delta),
                "columns": {key: _moves(moves) for key, moves in again.columns.items()},
                "within_seeds": None if again.beyond_seeds is None else not again.beyond_seeds,
                "beyond_seeds": again.beyond_seeds,
            }
            for again in one.reruns
        ],
        "order": asdict(one.order) if one.order else None,
        "order_note": one.order_note,
        "power": one.power,
        "pairs": [
            asdict(pair) | {"a": _label(pair.a), "b": _label(pair.b)}
            for pair in one.pairs
            if one.asked is None or {pair.a[1][0], pair.b[1][0]} == set(one.asked)
        ],
        "published": _beside(one),
        "notes": list(one.notes),
    }


def _method(method: Method, noise: Noise) -> dict[str, Any]:
    columns = {
        key: {"mean": cell.value, "std": cell.std, "std_percent": _percent(cell), "seeds": cell.n or 0}
        for key, cell in noise.columns.items()
    }
    return {
        "method": _label(method),
        "algorithm": method[0],
        "seeds": list(noise.seeds),
        "delta_m": noise.delta.cell.value,
        "delta_m_by_seed": _keyed(noise.delta.by_seed),
        "delta_m_std": noise.std.value,
        "delta_m_std_interval": noise.std.interval,
        "self_noise": noise.self_noise.value,
        "self_delta_m_by_seed": _keyed(noise.own.by_seed),
        "columns": columns,
        "notes": list(dict.fromkeys(filter(None, (noise.delta.cell.note, noise.std.note, noise.self_noise.note)))),
    }


def _beside(one: Stability) -> dict[str, Any] | None:
    if (b := one.beside) is None:
        return None
    return {
        "table": b.published.name,
        "column": b.column,
        "methods": [
            {
                "method": _label(method),
                "measured": one.noise[method].delta.cell.value,
                "measured_std": one.noise[method].std.value,
                "published": float(printed),
            }
            for method, printed in b.rows
        ],
        "correlation": asdict(b.correlation) if b.correlation else None,
        "unlike": list(b.unlike),
        "notes": list(b.notes),
    }


def _moves(moves: Moves) -> dict[str, Any]:
    return asdict(moves) | {"within_seeds": moves.within_seeds}


def _keyed(by_seed: Mapping[int, float]) -> dict[str, float]:
    return {str(seed): value for seed, value in by_seed.items() if math.isfinite(value)}
