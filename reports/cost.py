"""The view of FMTL-Bench's Table 8: what methods cost per round and until Δm reaches a target. No torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import UsageError, unknown
from ..base.words import inflect
from .code_notes import code_notes
from .collect import Collection, RunRecord
from .delta import Bases, Delta
from .gains import Gains, Method, method_of, zoo_order
from .settings import by_setting, describe, listed, table_name
from .table import Cell, Column, Row, Table, mean_cell
from .time_to_target import Arrival, Spent, arrivals, resolution, spent
from .units import digits_of

TARGETS = (-30.0, -10.0)  # percent, FMTL-Bench's
NOT_TRAINING = ("evaluate", "checkpoint")  # phases of a round; all others are training


@dataclass(frozen=True)
class Convention:
    """A way to count: what stands per round and until a target, (key, title, value) each, and the words about it."""

    name: str
    title: str
    per_round: tuple[tuple[str, str, Callable[[RunRecord], float | None]], ...]
    until: tuple[tuple[str, str, Callable[[RunRecord, Spent], float | None]], ...]
    notes: tuple[str, ...]
    g_per_kwh: float | None = None  # None: each run's own
    in_all: tuple[tuple[str, str, Callable[[RunRecord, Spent], float | None]], ...] = ()  # of all rounds
    waited_for: Callable[[Sequence[RunRecord]], Cell] | None = None  # whom the rounds of some runs wait for
    gaps: Callable[[Sequence[RunRecord]], str] = lambda runs: ""  # why what stands per round is missing
    power: bool = True  # whether the power that was measured says anything


def cost_tables(
    collection: Collection,
    targets: Sequence[float] = TARGETS,
    scenario: str | None = None,
    split: str = "global",
    convention: str | Convention = "ours",
    delta: Delta | None = None,
) -> list[Table]:
    """Make a table per setting, a row per method, means over seeds; `delta` says which Δm the targets are of.

    `convention` is a name or, for other machines and lines, what `over.cost_over` returns.

    Raises:
        UsageError: A scenario or split no run has, a target that is no number, or an unknown convention.
    """
    if isinstance(convention, str) and convention not in CONVENTIONS:
        raise unknown("convention", convention, CONVENTIONS)
    for target in targets:
        if not math.isfinite(target):
            raise UsageError(f"--target {target}: expected a percentage such as -10")
    known = {run.summary["scenario"] for run in collection.runs}
    if scenario is not None and scenario not in known:
        raise unknown("run of scenario", scenario, known)
    frame = collection.frame
    rows = frame[frame["primary"].astype(bool) & (frame["split"] == split)]
    if scenario is not None:
        rows = rows[rows["run"].isin({run.name for run in collection.runs if run.summary["scenario"] == scenario})]
    if rows.empty:
        there = listed(set(frame[frame["primary"].astype(bool)]["split"]))
        raise UsageError(f"no finished run has scores on the {split!r} split; splits: {there}")
    targets = list(dict.fromkeys(map(float, targets)))
    way = CONVENTIONS[convention] if isinstance(convention, str) else convention
    tables = []
    for _, _, runs in by_setting(rows, collection.runs):
        gains = Gains(runs, split, delta or Delta())
        tables.append(_table(gains, collection.heads, targets, way))
    return tables


def _table(gains: Gains, heads: tuple[str, ...], targets: Sequence[float], way: Convention) -> Table:
    runs, bases = gains.runs, Bases(gains.runs, gains.split, gains.delta)
    methods: dict[Method, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda run: (zoo_order(method_of(run)), run.summary["seed"])):
        methods.setdefault(method_of(run), []).append(run)
    rows = [_row(method, members, gains, bases, targets, way) for method, members in methods.items()]
    return Table(
        f"cost-{table_name(runs, gains.split)}" + f"-{way.name}" * (way is not OURS),
        f"{listed({run.summary['scenario'] for run in runs})}: {way.title}",
        describe(list(runs)),
        heads,
        _columns(targets, rows, way),
        tuple(rows),
        tuple(_notes(gains, bases, targets, len(heads) > 1, way)),
    )


def _row(
    method: Method, runs: Sequence[RunRecord], gains: Gains, bases: Bases, targets: Sequence[float], way: Convention
) -> Row:
    cells = [_known([power(run) for run in runs], _no_energy(runs))] if way.power else []
    cells += [_known([value(run) for run in runs], way.gaps(runs)) for _, _, value in way.per_round]
    cells += [way.waited_for(runs)] if way.waited_for else []
    cells += [_known([value(run, spent(run, run.summary["rounds"])) for run in runs]) for _, _, value in way.in_all]
    for column in zip(*(arrivals(run, bases, targets) for run in runs)):
        cells += _arrival_cells(runs, column, way)
    return Row(method[1], (*cells, gains.cells.get(method, Cell()), Cell(float(len(runs)))))


def _arrival_cells(runs: Sequence[RunRecord], seeds: Sequence[Arrival], way: Convention) -> list[Cell]:
    """Make the cells of a target: that of the rounds says what became of it, others may be missing."""
    there = [(run, a.spent) for run, a in zip(runs, seeds) if a.spent is not None]
    if not there:
        return [Cell(word=seeds[0].why), *[Cell()] * (len(way.until) - 1)]
    note = ""
    if len(there) < len(seeds):
        late = {a.why for a in seeds if a.spent is None}
        note = f"over {len(there)} of {len(seeds)} seeds; the others: {', '.join(sorted(late))}"
    return [_known([value(run, spent) for run, spent in there], note) for _, _, value in way.until]


def _known(values: Sequence[float | None], note: str = "") -> Cell:
    """Mean over seeds; `note` explains what the numbers do not show."""
    cell = mean_cell(values)
    if cell.value is None:
        return Cell(note=note)
    return Cell(cell.value, cell.std, cell.n, note=note or cell.note)


# -- of one run ------------------------------------------------------------------------------------------------------


def power(run: RunRecord) -> float | None:
    """Mean watts while the rounds ran."""
    energy = run.cost.get("energy") or {}
    if energy.get("power_w") is not None:
        return energy["power_w"]
    kwh, seconds = energy.get("kwh"), run.cost.get("seconds_total")
    return kwh * 3.6e6 / seconds if kwh is not None and seconds else None


def _mb_per_round(run: RunRecord) -> float | None:
    both = [run.summary.get(key, run.cost.get(key)) for key in ("bytes_up", "bytes_down")]
    return None if None in both else sum(both) / 1e6 / run.summary["rounds"]


def _seconds_per_round(run: RunRecord) -> float | None:
    total = run.cost.get("seconds_total")
    return None if total is None else total / run.summary["rounds"]


def training_seconds(run: RunRecord) -> float | None:
    """Return the seconds per round without evaluation and checkpoints; None where a round has no record."""
    rows = run.timing()
    if len(rows) != run.summary["rounds"]:
        return None
    spent = (seconds for row in rows for phase, seconds in row["seconds"].items() if phase not in NOT_TRAINING)
    return math.fsum(spent) / len(rows)


def _no_energy(runs: Sequence[RunRecord]) -> str:
    reasons = [(run.cost.get("energy") or {}).get("reason") for run in runs]
    known = sorted({reason for reason in reasons if reason})
    return f"energy: {'; '.join(known)}" if known else ""


# -- conventions -----------------------------------------------------------------------------------------------------


def _times(*factors: float | None) -> float | None:
    return None if None in factors else math.prod(factors)


OURS = Convention(
    "ours",
    "what the runs cost",
    (
        ("mb_per_round", "MB", _mb_per_round),
        ("seconds_per_round", "s", _seconds_per_round),
        ("training_seconds_per_round", "s training", training_seconds),
    ),
    (
        ("rounds", "rounds", lambda _, s: s.round),
        ("kwh", "kWh", lambda _, s: s.kwh),
        ("mb", "MB", lambda _, s: None if s.bytes is None else s.bytes / 1e6),
        ("minutes", "min", lambda _, s: s.minutes),
        ("co2e_g", "g CO2e", lambda _, s: s.co2e_g),
    ),
    (
        "MB: 10^6 bytes, up and down, all clients; time (by the wall clock) and energy (of all processes): training, "
        "exchange, evaluation and checkpoints; s training: without evaluation and checkpoints",
    ),
)

# Table 8 prints power, traffic and time per round; its columns until a target are these times the round's index, which
# the code counts from 0: one round less than was made. Its energy is power × time, and its CO2e that × 541.2 g/kWh.
PAPERS_GB = 1.024e9  # bytes: the table divides 10^6 bytes by 1024
PAPERS_INTENSITY = 541.2  # g/kWh; its 18 rows allow 541.20 to 541.33


def _papers_kwh(run: RunRecord, s: Spent) -> float | None:
    return _times(power(run), training_seconds(run), s.round - 1, 1 / 3.6e6)


FMTL_BENCH = Convention(
    "fmtl-bench",
    "what the runs cost, as FMTL-Bench's Table 8 counts",
    (
        ("papers_gb_per_round", '"GB"', lambda run: _times(_mb_per_round(run), 1e6 / PAPERS_GB)),
        ("training_seconds_per_round", "s training", training_seconds),
    ),
    (
        ("round_from_0", "round, from 0", lambda _, s: s.round - 1),
        ("estimated_kwh", "kWh est.", _papers_kwh),
        ("papers_gb", '"GB"', lambda run, s: _times(_mb_per_round(run), s.round - 1, 1e6 / PAPERS_GB)),
        ("training_minutes", "min training", lambda run, s: _times(training_seconds(run), s.round - 1, 1 / 60)),
        ("estimated_co2e_g", "g CO2e est.", lambda run, s: _times(_papers_kwh(run, s), PAPERS_INTENSITY)),
    ),
    (
        'convention fmtl-bench: "GB" is megabytes (10^6 bytes) / 1024, up and down, all clients; time is training '
        "alone: all of a round but evaluation and checkpoints",
        "until a target: the round's number counted from 0, times what stands per round, as in the paper; that is one "
        "round less than was made",
        f"kWh est.: mean power (evaluation included) × training time, an estimated share: energy is measured per round "
        f"as a whole; CO2e est.: that × {PAPERS_INTENSITY:g} g/kWh, what the paper's columns imply",
    ),
    PAPERS_INTENSITY,
)
CONVENTIONS = {way.name: way for way in (OURS, FMTL_BENCH)}


# -- columns and words -----------------------------------------------------------------------------------------------


def _columns(targets: Sequence[float], rows: Sequence[Row], way: Convention) -> tuple[Column, ...]:
    plan = [("power_w", "power W", "")] if way.power else []
    plan += [(key, title, "per round") for key, title, _ in way.per_round]
    plan += [("waited_for", "waited for", "per round")] if way.waited_for else []
    plan += [(key, title, "all rounds") for key, title, _ in way.in_all]
    for target in targets:
        plan += [(f"{key}_to_{target:g}", title, f"until Δm ≥ {target:g} %") for key, title, _ in way.until]
    columns = [
        Column(key, title, heading=heading, digits=0 if key.startswith("round") else _digits(rows, i))
        for i, (key, title, heading) in enumerate(plan)
    ]
    return (*columns, Column("delta_m", "Δm %", digits=2, signed=True), Column("seeds", "seeds", digits=0))


def _digits(rows: Sequence[Row], index: int) -> int:
    """Return the decimals of a column: a kWh may be a day's or a second's."""
    values = [row.cells[index].value for row in rows if row.cells[index].value]
    return digits_of(values) if values else 2


def _notes(gains: Gains, bases: Bases, targets: Sequence[float], rows_differ: bool, way: Convention) -> list[str]:
    runs = gains.runs
    notes = [*way.notes, *gains.notes(rows_differ)]
    if targets:
        gaps = sorted({gap for run in runs if (gap := resolution(run, bases.split)) is not None})
        every = " or ".join(map(str, gaps)) or "?"
        notes.append(
            "until Δm ≥ …: the first evaluated round at or above, against the reference's last round; scores were "
            f"taken every {every} {inflect('round', 1 if gaps == [1] else 2)}"
        )
    if way.power and (told := _energy_note(runs, way)):
        notes.append(told)
    return notes + code_notes(runs)


def _energy_note(runs: Sequence[RunRecord], way: Convention) -> str:
    """Say where the energy figures come from; several sources in one table are several sentences."""
    found: dict[str, int] = {}
    for run in runs:
        energy = run.cost.get("energy") or {}
        if energy.get("kwh") is None:
            continue
        words = energy.get("source") or "source not recorded"
        if energy.get("how"):
            words += f" ({energy['how']})"
        if way.g_per_kwh is None and energy.get("g_per_kwh") is not None:
            place = ", ".join(filter(None, (energy.get("country"), energy.get("region")))) or "world average"
            words += f", CO2e at {energy['g_per_kwh']:.0f} g/kWh ({place})"
        found[words] = found.get(words, 0) + 1
    if len(found) == 1:
        return f"energy: {next(iter(found))}"
    return "; ".join(f"energy of {n} runs: {words}" for words, n in found.items())


def as_json(tables: Sequence[Table], convention: str = "ours") -> list[dict[str, Any]]:
    """Return everything the tables say, for programs."""
    made = []
    for table in tables:
        rows = [
            {
                **dict(zip(map(str.lower, table.heads), row.labels)),
                **{c.key: _cell(cell) for c, cell in zip(table.columns, row.cells)},
            }
            for row in table.rows
        ]
        made.append(
            {
                "table": table.name,
                "title": table.title,
                "caption": table.caption,
                "convention": convention,
                "rows": rows,
                "notes": list(table.notes),
            }
        )
    return made


def _cell(cell: Cell) -> dict[str, Any]:
    parts = {"value": cell.value, "std": cell.std, "n": cell.n, "word": cell.word or None, "note": cell.note or None}
    return {key: value for key, value in parts.items() if value is not None or key == "value"}
