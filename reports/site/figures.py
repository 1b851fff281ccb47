"""The figures of one leaderboard as drawings in its page. What cannot be drawn becomes a line that says why."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import FmtlbenchError
from ...tasks import title_of
from ..collect import Collection
from ..delta import Delta
from .data import Page
from .markup import Markup


@dataclass(frozen=True)
class Drawn:
    """A figure as part of a page, its file for print from the site's root, and what to say about it."""

    title: str
    alt: str
    drawing: Markup
    print: str
    notes: tuple[str, ...]


def _wanted(page: Page) -> list[tuple[str, str, str, str, dict[str, Any]]]:
    """List the figures of a page: (file, title, what it shows, kind, options)."""
    lines = "one line per method"
    wanted = [("delta", "Δm over rounds", f"Δm over rounds against final scores, {lines}", "rounds", {})]
    for task in page.tasks:
        title = title_of(task)
        shows = f"{title} over rounds, mean over the clients that have the task, {lines}"
        wanted.append((f"metric-{task}", f"{title} over rounds", shows, "rounds", {"task": task}))
    wanted += [
        ("cd", "Critical difference", "Average ranks; a bar joins methods that do not differ (Nemenyi)", "cd", {}),
        ("pvalues", "p-values of all pairs", "Wilcoxon tests of all pairs of methods, Holm-corrected", "pvalues", {}),
    ]
    for cost, name in (("seconds", "time"), ("kwh", "energy"), ("bytes", "traffic")):
        shows = f"Δm over {name}; the line joins methods that no other beats in both"
        wanted.append((f"pareto-{cost}", f"Δm against {name}", shows, "pareto", {"cost": cost}))
    return wanted


def draw_figures(
    page: Page, collection: Collection, root: Path, delta: Delta | None = None
) -> tuple[list[Drawn], list[str]]:
    """Draw the figures of a page from its own runs, below `root`; return them, and a line for each that is missing."""
    from ..plots import Options, make_figure, save_figure
    from .svg import inline_svg

    drawn, refused = [], []
    for name, title, shows, kind, given in _wanted(page):
        if kind in ("cd", "pvalues") and page.too_many:
            refused.append(f"{title}: {page.too_many}")
            continue
        notes: list[str] = []
        stem = f"figures/{page.slug}-{_file(name)}"
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing")  # a box in the figure says the same
                figure = make_figure(kind, collection, Options(split=page.split, delta=delta, **given), notes)
                drawing = inline_svg(figure, _file(name), shows)
                save_figure(figure, root / f"{stem}.pdf")
        except FmtlbenchError as error:
            refused.append(f"{title}: {error}")
        except Exception as error:  # an odd run must not cost the whole site
            refused.append(f"{title}: {type(error).__name__}: {error}")
        else:
            drawn.append(Drawn(title, shows, drawing, f"{stem}.pdf", tuple(notes)))
    return drawn, refused


def _file(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)
