"""Learning curves of one run as small inline drawings: seen without any program, and light enough for thousands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...tasks import title_of
from .markup import Html, join, tag

WIDTH, HEIGHT, EDGE = 200, 64, 4
MOST = 60  # points of a line: more would not be seen
Points = list[tuple[int, float]]


def score_curves(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Points]]:
    """Return the primary scores: split → "client · task metric" → (round, value)."""
    found: dict[str, dict[str, Points]] = {}
    for row in rows:
        for s in row.get("scores") or ():
            if s.get("primary") and s.get("value") is not None:
                arrow = {True: " ↑", False: " ↓"}.get(s.get("higher_is_better"), "")
                name = f"{s['client']} · {_title(s['task'])} {s['metric']}{arrow}"
                found.setdefault(s["split"], {}).setdefault(name, []).append((row["round"], s["value"]))
    return found


def loss_curves(rows: Iterable[Mapping[str, Any]]) -> dict[str, Points]:
    """Return the training losses: "client · task" → (round, value)."""
    found: dict[str, Points] = {}
    for row in rows:
        for client, losses in (row.get("losses") or {}).items():
            for task, value in losses.items():
                if value is not None:
                    found.setdefault(f"{client} · {_title(task)}", []).append((row["round"], value))
    return found


def _title(task: str) -> str:
    return title_of(task)


def draw(curves: Mapping[str, Points]) -> Html | None:
    """Draw one small figure per curve that has two points and more; None where there is no such curve."""
    drawn = [_figure(name, points) for name, points in curves.items() if len(points) > 1]
    return tag("div", join(drawn, "\n"), class_="curves") if drawn else None


def _figure(name: str, points: Points) -> Html:
    points = [(r, v) for r, v in points if math.isfinite(v)]
    if len(points) < 2:
        return tag("figure", tag("figcaption", name), tag("p", "not finite"))
    points = _thinned(points)
    (first, start), (last, end) = points[0], points[-1]
    values = [value for _, value in points]
    low, high = min(values), max(values)
    said = f"{name}: {start:.4g} in round {first}, {end:.4g} in round {last}, between {low:.4g} and {high:.4g}"
    line = tag("polyline", points=" ".join(_place(p, (first, last), (low, high)) for p in points))
    drawing = tag(
        "svg", tag("title", said), line, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", preserveAspectRatio="none"
    )
    under = tag("p", f"{start:.4g} → {end:.4g}", tag("span", f"rounds {first}–{last}"))
    return tag("figure", tag("figcaption", name), drawing, under)


def _thinned(points: Points) -> Points:
    """Return at most `MOST` of them, the first and the last among them."""
    if len(points) <= MOST:
        return points
    return [points[round(i * (len(points) - 1) / (MOST - 1))] for i in range(MOST)]


def _place(point: tuple[int, float], rounds: Sequence[int], values: Sequence[float]) -> str:
    x = EDGE + (WIDTH - 2 * EDGE) * (point[0] - rounds[0]) / (rounds[1] - rounds[0] or 1)
    share = (point[1] - values[0]) / (values[1] - values[0]) if values[1] > values[0] else 0.5
    return f"{x:.1f},{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share:.1f}"
