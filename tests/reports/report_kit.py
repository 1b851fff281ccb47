"""What tests of reports share: tables read by their keys, printed CSV, drawn figures, and files changed in place."""

from __future__ import annotations

import csv
import io
import json

from made_runs import DUO

from fmtlbench.reports.plots import Options, make_figure

TRIPLE = {**DUO, "pascal-edge": ("pascal", ("edge",))}


def read_row(table, *labels):
    """Return the cells of the row that begins with these labels, by the keys of their columns."""
    row = next(row for row in table.rows if row.labels[: len(labels)] == labels)
    return dict(zip((column.key for column in table.columns), row.cells, strict=True))


def printed_rows(capsys):
    """Return the rows of the CSV that a command printed."""
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def draw(kind, collection, **options):
    """Return a figure, and what its reader is told."""
    notes = []
    return make_figure(kind, collection, Options(**options), notes), notes


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def change_json(file, change):
    """Write a file of one record anew, as `change` makes it."""
    file.write_text(json.dumps(change(json.loads(file.read_text()))))


def change_lines(file, change):
    """Write the rows of a file anew, each as `change` makes it; None: without it."""
    rows = [change(json.loads(line)) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None))
