"""What recipes are there, how much of each is done, and its table or figure in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..base.files import write_output_text
from ..reports.formats import render
from ..reports.papers.recipes import load_recipe, recipe_names
from .recipes import Panel, Planned, make_figure, make_table

# What is counted: word → states. A run without the files that a figure reads, or with damaged ones, is unusable.
COUNTED = {"done": ("done",), "begun": ("resume",), "missing": ("new", "other code"), "unusable": ("unusable",)}
STYLES = {"txt": "table", "csv": "csv", "md": "md", "tex": "latex"}  # ending → format of a table


def describe_recipes() -> list[dict[str, Any]]:
    """Return a record for every recipe: what of which paper it makes, and of how many runs."""
    records = []
    for recipe in map(load_recipe, recipe_names()):
        record = {"name": recipe.name, "source": recipe.source, "title": recipe.title}
        records.append({**record, "preset": recipe.preset, "runs": len(recipe.wanted)})
    return records


def count_states(planned: Planned) -> dict[str, Any]:
    """Return how many runs of a recipe are in which state."""
    states = planned.states()
    counts = {word: sum(states.count(state) for state in of) for word, of in COUNTED.items()}
    record = {"name": planned.recipe.name, "preset": planned.preset, "runs": sum(counts.values()), **counts}
    return {**record, "refused": states.count("refused")}


def write_table(planned: Planned, folder: Path) -> str:
    """Write a recipe's table of what is finished in all formats; return it as text."""
    target = folder / planned.name
    tables = make_table(planned).tables()
    for ending, style in STYLES.items():
        _write_text(target.with_suffix(f".{ending}"), render(tables, style))
    return render(tables, "table")


def write_figure(planned: Planned, folder: Path, draw_panel: Panel) -> list[Path]:
    """Draw a recipe's figure of what is finished; return its files. What a reader must know is written beside them.

    Raises:
        FmtlbenchError: It cannot be drawn.
    """
    from ..reports.plots import save_figure

    target, notes = folder / planned.name, []
    figure = make_figure(planned, notes, draw_panel)
    _write_text(target.with_suffix(".txt"), "".join(f"{note}\n" for note in dict.fromkeys(notes)))
    return save_figure(figure, target)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_output_text(path, text)
