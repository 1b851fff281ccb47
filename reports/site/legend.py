"""What the abbreviations of a leaderboard mean: as hints on its heads, and as a list that a phone can show too."""

from __future__ import annotations

from ...metrics import METRICS
from ...tasks import TASKS
from ..table import Column, Table

GENERAL = {
    "Δm %": "mean relative change of all scores against the reference, in percent; above zero is better",
    "↑ ↓": "higher is better, lower is better",
    "[low, high]": "95 % interval over seeds",
    "±": "one standard deviation",
    "ST, MT": "clients with a single task, clients with several",
}


def explain_column(column: Column) -> str:
    """Say what a column's metric measures; "" where nothing is known of it."""
    if column.key == "delta_m":
        return GENERAL["Δm %"]
    for name in METRICS:
        metric = METRICS.resolve(name)
        if metric.label == column.metric:
            return f"{metric.description} ({metric.unit})" if metric.unit else metric.description
    return ""


def legend(table: Table) -> dict[str, str]:
    """Return the abbreviations that the table uses, with what they mean."""
    meanings = {"Δm %": GENERAL["Δm %"]}
    for column in table.columns:
        task = next((TASKS[name] for name in TASKS if TASKS[name].title == column.title), None)
        if task and not f"{task.description} ".startswith(f"{column.title.lower()} "):
            meanings[column.title] = task.description or task.name
        if column.metric and (said := explain_column(column)):
            meanings[column.metric] = said
    meanings["↑ ↓"] = GENERAL["↑ ↓"]
    cells = [cell for row in table.rows for cell in row.cells]
    if any(cell.std is not None for cell in cells):
        meanings["±"] = GENERAL["±"]
    if any(cell.interval is not None for cell in cells):
        meanings["[low, high]"] = GENERAL["[low, high]"]
    if any(column.heading.endswith(("(ST)", "(MT)")) for column in table.columns):
        meanings["ST, MT"] = GENERAL["ST, MT"]
    return meanings
