"""Learning curves of one run as small inline drawings, a task each: seen without any script, light enough for many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ...tasks import title_of
from .markup import Markup, fill

WIDTH, HEIGHT = 240, 120  # of a drawing, in its own units
LEFT, RIGHT, TOP, BOTTOM = 38, 8, 8, 16  # room for the numbers of its axes
MOST = 60  # points of a line: more would not be seen
COLOURS = 9  # of methods in style.css, lent to clients here
MOST_NAMED = 9  # clients in a key; more of them are told by pointing at their lines
Points = list[tuple[int, float]]
Lines = dict[str, Points]  # by client


def score_curves(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Lines]]:
    """Return the primary scores: split → "task metric" → client → (round, value)."""
    found: dict[str, dict[str, Lines]] = {}
    for row in rows:
        for s in row.get("scores") or ():
            if s.get("primary") and s.get("value") is not None:
                arrow = {True: " ↑", False: " ↓"}.get(s.get("higher_is_better"), "")
                lines = found.setdefault(s["split"], {}).setdefault(f"{title_of(s['task'])} {s['metric']}{arrow}", {})
                lines.setdefault(s["client"], []).append((row["round"], s["value"]))
    return found


def loss_curves(rows: Iterable[Mapping[str, Any]]) -> dict[str, Lines]:
    """Return the training losses: task → client → (round, value)."""
    found: dict[str, Lines] = {}
    for row in rows:
        for client, losses in (row.get("losses") or {}).items():
            for task, value in losses.items():
                if value is not None:
                    found.setdefault(title_of(task), {}).setdefault(client, []).append((row["round"], value))
    return found


def draw(curves: Mapping[str, Lines]) -> Markup | None:
    """Draw one figure per task, a line per client that has two finite points; None where there is no line."""
    clients = list(dict.fromkeys(client for lines in curves.values() for client in lines))
    colours = {client: place % COLOURS for place, client in enumerate(clients)}
    figures = []
    for title, lines in curves.items():
        finite = {client: [p for p in points if math.isfinite(p[1])] for client, points in lines.items()}
        drawn = {client: points for client, points in finite.items() if len(points) > 1}
        if drawn:
            figures.append(_figure(title, drawn, colours))
    sizes = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM}
    return fill("curves.html", figures=figures, most_named=MOST_NAMED, **sizes) if figures else None


def _figure(title: str, lines: Lines, colours: Mapping[str, int]) -> dict[str, Any]:
    rounds = [number for points in lines.values() for number, _ in points]
    values = [value for points in lines.values() for _, value in points]
    low, high, first, last = min(values), max(values), min(rounds), max(rounds)

    def place(number: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (number - first) / ((last - first) or 1)
        share = (value - low) / (high - low) if high > low else 0.5
        return f"{x:.1f},{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share:.1f}"

    drawn = []
    for client, points in lines.items():
        (start, before), (end, after) = points[0], points[-1]
        said = f"{client}: {before:.4g} in round {start}, {after:.4g} in round {end}"
        thin = " ".join(place(*point) for point in _thin_out(points))
        drawn.append({"client": client, "points": thin, "colour": colours[client], "said": said, "value": after})
    alt = f"{title} from round {first} to {last}, between {low:.4g} and {high:.4g}"
    return {"title": title, "alt": alt, "lines": drawn, "low": low, "high": high, "first": first, "last": last}


def _thin_out(points: Points) -> Points:
    """Return at most `MOST` of them, the first and the last among them."""
    if len(points) <= MOST:
        return points
    return [points[round(i * (len(points) - 1) / (MOST - 1))] for i in range(MOST)]
