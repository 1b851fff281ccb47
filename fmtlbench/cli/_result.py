"""A run's result on stdout: a table for people, tab-separated values or JSON for programs."""

from __future__ import annotations

import json

from ..cost.bill import bill_lines
from ..runs.result import RunResult

COLUMNS = ("client", "dataset", "split", "task", "metric", "better", "value", "trivial")


def print_result(result: RunResult, style: str) -> None:
    if style == "json":
        whole = {"folder": str(result.folder), "reused": result.reused, **result.summary, "cost": result.cost()}
        print(json.dumps(whole, indent=2))
    elif style == "tsv":
        print("\t".join(COLUMNS))
        for row in _rows(result):
            print("\t".join(row))
    else:
        _print_table(result)


def _rows(result: RunResult) -> list[tuple[str, ...]]:
    rows = []
    for r in result.scores:
        better = "up" if r["higher_is_better"] else "down"
        values = (_format_value(r["value"], r["unit"]), _format_value(r["trivial"], r["unit"]))
        rows.append((r["client"], r["dataset"], r["split"], r["task"], r["metric"], better, *values))
    return rows


def _print_table(result: RunResult) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    s = result.summary
    table = Table(
        title=escape(
            f"{s['title']} on {s['scenario']} · preset {s['preset']} · {s['data']} data · "
            f"seed {s['seed']} · {s['rounds']} rounds"
        ),
        caption="value: last round, on the named split · trivial: best constant prediction for those images",
    )
    for name in ("client", "split", "task", "metric"):
        table.add_column(name)
    table.add_column("value", justify="right", style="bold")
    table.add_column("trivial", justify="right")
    from ..tasks import title_of

    last = None
    for client, _, split, task, metric, better, value, trivial in _rows(result):
        if last not in (None, client):
            table.add_section()
        arrow = "↑" if better == "up" else "↓"
        name = escape(client) if client != last else ""
        table.add_row(name, split, title_of(task), f"{metric} {arrow}", value, trivial)
        last = client
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    for line in bill_lines(result.cost()):
        console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)
    note = "finished before, shown again (--fresh repeats it)" if result.reused else "done"
    console.print(f"{note}: {result.folder}", highlight=False, markup=False, emoji=False, soft_wrap=True)


def _format_value(value: float | None, unit: str) -> str:
    """Format a value as the papers print it: metres with four decimals, all else with two."""
    if value is None:
        return "–"
    return f"{value:.4f}" if unit == "m" else f"{value:.2f}"
