"""A run's result on stdout: a table for people, tab-separated values or JSON for programs."""

from __future__ import annotations

import json

from ..cost.bill import bill_lines
from ..runs.result import RunResult

MISSING = "–"


def print_result(result: RunResult, style: str) -> None:
    if style == "json":
        whole = {"folder": str(result.folder), "reused": result.reused, **result.summary, "cost": result.cost()}
        print(json.dumps(whole, indent=2))
    elif style == "tsv":
        print("\t".join(RunResult.COLUMNS))
        for row in result.rows():
            print("\t".join(row))
    else:
        _print_table(result)


def _print_table(result: RunResult) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..reports.settings import say_departures

    s = result.summary
    words = say_departures(s.get("departures") or {})
    departing = f" with {words}" if words else ""
    table = Table(
        title=escape(
            f"{s['title']} on {s['scenario']} · preset {s['preset']}{departing} · {s['data']} data · "
            f"seed {s['seed']} · {s['rounds']} rounds"
        ),
        caption=f"value: last round, on {_say_splits(result)} · trivial: best constant prediction for those images",
    )
    several = len({score["split"] for score in result.scores}) > 1
    for name in ("client", *(("split",) if several else ()), "task", "metric"):
        table.add_column(name)
    table.add_column("value", justify="right", style="bold")
    table.add_column("trivial", justify="right")
    from ..tasks import title_of

    last = None
    for client, _, split, task, metric, better, value, trivial in result.rows():
        if last not in (None, client):
            table.add_section()
        arrow = "↑" if better == "up" else "↓"
        name = escape(client) if client != last else ""
        trivial = "" if trivial == MISSING else trivial  # only a task's first metric has one
        table.add_row(name, *((split,) if several else ()), title_of(task), f"{metric} {arrow}", value, trivial)
        last = client
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    for line in bill_lines(result.cost()):
        console.print(line, highlight=False, markup=False, emoji=False, soft_wrap=True)
    note = "finished before, shown again (--fresh repeats it)" if result.reused else "done"
    console.print(f"{note}: {result.folder}", highlight=False, markup=False, emoji=False, soft_wrap=True)


def _say_splits(result: RunResult) -> str:
    splits = dict.fromkeys(score["split"] for score in result.scores)
    return "the named split" if len(splits) > 1 else f"the {next(iter(splits), 'test')} split"
