"""Draw docs/rooms.svg and the table of rooms in docs/architecture.md from what the source files import.

Run: python docs/draw_rooms.py             writes both; a test fails while they are stale
     python docs/draw_rooms.py --imports   prints the real imports of every room, as tests/rooms.py lists them
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from html import escape
from itertools import pairwise
from pathlib import Path
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from rooms import CONTRACTS, LAYERS, Room, read_imports

HERE = Path(__file__).parent
BEGIN, END = "<!-- rooms: written by draw_rooms.py -->", "<!-- end of rooms -->"

WIDTH, MARGIN = 980, 24  # pixels
BOX, BOX_HEIGHT, STEP = 116, 30, 84  # a room, and from row to row
LANE = 8  # where arrows to one room pass a row
SWEEPS = 24  # over the rows, to bring what belongs together side by side
STYLE = """
  svg { background: #ffffff; font: 13px system-ui, sans-serif; }
  rect { fill: #eef2f7; stroke: #7f8ea3; } text { fill: #1b2430; text-anchor: middle; }
  .contracts { fill: #f7f3e6; stroke: #b3a26a; } .small { font-size: 12px; }
  path { fill: none; stroke: #5b6b80; stroke-width: 1.1; } .wrong { stroke: #c62f2f; stroke-dasharray: 5 3; }
  marker path { fill: #5b6b80; stroke: none; }
  @media (prefers-color-scheme: dark) {
    svg { background: #12171e; }
    rect { fill: #1f2935; stroke: #64748a; } text { fill: #dfe6ee; }
    .contracts { fill: #2b2718; stroke: #8d7f4c; }
    path { stroke: #8fa1b8; } .wrong { stroke: #ff7b72; } marker path { fill: #8fa1b8; }
  }
"""

Arrow = tuple[str, str]
Place = tuple[int, int]
Stop = str | tuple[str, int]  # a room, or the lane of arrows to a room in a row


def draw_rooms() -> str:
    """Return the picture: rooms in their rows, cli on top, the contracts as the floor that all stand on."""
    arrows = _real_arrows()
    planned = {(room.name, to) for layer in LAYERS for room in layer for to in room.imports}
    # What follows from other arrows would hide them; the table has all.
    shown = sorted(_without_implied(arrows & planned)) + sorted(arrows - planned)
    there = {room for arrow in arrows for room in arrow}
    rows = [[room for room in layer if room.name in there] for layer in reversed(LAYERS)]
    ways = _find_ways([[room.name for room in row] for row in rows], shown)
    floor = MARGIN + STEP * len(rows)
    names = wrap(" · ".join(room.name for room in CONTRACTS), 110)
    height = floor + 34 + 18 * len(names) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms of fmtlbench and what they import</title>",
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    parts += [_curve(ways[arrow], "" if arrow in planned else "wrong") for arrow in shown]
    places = {arrow[0]: way[0] for arrow, way in ways.items()} | {arrow[1]: way[-1] for arrow, way in ways.items()}
    parts += [_box(room, *places[room.name]) for row in rows for room in row]
    size = f'width="{WIDTH - 2 * MARGIN}" height="{30 + 18 * len(names)}"'
    parts.append(f'<rect class="contracts" x="{MARGIN}" y="{floor}" {size} rx="6"/>')
    parts.append(_text("contracts, which every room may import", WIDTH // 2, floor + 20))
    parts += [_text(line, WIDTH // 2, floor + 40 + 18 * i, "small") for i, line in enumerate(names)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def write_table() -> str:
    """Return docs/architecture.md with the table of rooms as the plan has it."""
    lines = ["| room | what it is for | may import, beside contracts |", "|---|---|---|"]
    for layer in reversed(LAYERS):
        lines += [f"| `{room.name}` | {room.purpose} | {', '.join(sorted(room.imports)) or '–'} |" for room in layer]
    lines += ["", "The contracts, each of which may import those before it:", ""]
    lines += ["| contract | what it is for |", "|---|---|"]
    lines += [f"| `{room.name}` | {room.purpose} |" for room in CONTRACTS]
    text = (HERE / "architecture.md").read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    return "\n".join([before + BEGIN, "", *lines, "", END]) + after


FILES = {HERE / "rooms.svg": draw_rooms, HERE / "architecture.md": write_table}


def _real_arrows() -> set[Arrow]:
    """Return who imports whom, but for the contracts."""
    floor = {room.name for room in CONTRACTS}
    found = {(i.room, i.target) for i in read_imports()}
    return {arrow for arrow in found if not floor & set(arrow)}


def _without_implied(arrows: Iterable[Arrow]) -> set[Arrow]:
    """Leave out an arrow where other arrows lead to the same place. The arrows have no circle."""
    below: dict[str, set[str]] = {}
    for room, to in arrows:
        below.setdefault(room, set()).add(to)

    def reaches(room: str) -> set[str]:
        return {end for to in below.get(room, ()) for end in (to, *reaches(to))}

    return {(room, to) for room, tos in below.items() for to in tos if not any(to in reaches(o) for o in tos - {to})}


def _find_ways(rows: list[list[str]], arrows: list[Arrow]) -> dict[Arrow, list[Place]]:
    """Return the points that each arrow passes, between the boxes of a row; arrows to one room share their lane."""
    level = {room: number for number, row in enumerate(rows) for room in row}
    filled: list[list[Stop]] = [list(row) for row in rows]
    stops: dict[Arrow, list[Stop]] = {}
    for arrow in arrows:
        start, end = (level[room] for room in arrow)
        between = range(start + 1, end) if start < end else range(start - 1, end, -1)
        lanes = [(arrow[1], number) for number in between]
        for lane in lanes:
            if lane not in filled[lane[1]]:
                filled[lane[1]].append(lane)
        stops[arrow] = [arrow[0], *lanes, arrow[1]]
    near: dict[Stop, list[Stop]] = {}
    for way in stops.values():
        for one, other in pairwise(way):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    x = {stop: place for row in filled for stop, place in _spread(row).items()}
    for _ in range(SWEEPS):
        for row in filled:
            row.sort(key=lambda stop: (round(sum(x[other] for other in near[stop]) / len(near[stop]), 3), str(stop)))
            x |= _spread(row)
    y = {stop: MARGIN + BOX_HEIGHT // 2 + STEP * number for number, row in enumerate(filled) for stop in row}
    return {arrow: [(round(x[stop]), y[stop]) for stop in way] for arrow, way in stops.items()}


def _spread(row: list[Stop]) -> dict[Stop, float]:
    """Return where the members of a row stand: boxes and passing arrows in their order, with equal gaps."""
    widths = [BOX if isinstance(stop, str) else LANE for stop in row]
    gap = (WIDTH - 2 * MARGIN - sum(widths)) / (len(row) + 1)
    places, x = {}, MARGIN + gap
    for stop, width in zip(row, widths):
        places[stop] = x + width / 2
        x += width + gap
    return places


def _curve(way: list[Place], look: str) -> str:
    half = BOX_HEIGHT // 2
    (x, y), (last_x, last_y) = way[0], way[-1]
    if y == last_y:  # of one row: over what stands between
        line = f"M{x} {y - half} C{x} {y - 2 * half - 16} {last_x} {y - 2 * half - 16} {last_x} {y - half}"
    else:
        down = 1 if last_y > y else -1
        y += down * half
        line = f"M{x} {y}"
        for next_x, middle in way[1:]:
            near, bend = middle - down * half, (middle - down * half - y) // 2
            line += f" C{x} {y + bend} {next_x} {near - bend} {next_x} {near}"
            x, y = next_x, middle + down * half
            line += f" L{x} {y}" if (next_x, middle) != way[-1] else ""
    kind = f' class="{look}"' if look else ""
    return f'<path{kind} d="{line}" marker-end="url(#tip)"/>'


def _box(room: Room, x: int, y: int) -> str:
    corner = f'x="{x - BOX // 2}" y="{y - BOX_HEIGHT // 2}"'
    box = f'<rect {corner} width="{BOX}" height="{BOX_HEIGHT}" rx="6"/>'
    return f"<g><title>{escape(room.purpose)}</title>{box}{_text(room.name, x, y + 5)}</g>"


def _text(text: str, x: int, y: int, look: str = "") -> str:
    kind = f' class="{look}"' if look else ""
    return f'<text{kind} x="{x}" y="{y}">{escape(text)}</text>'


def main() -> None:
    """Write the files, or print the real imports."""
    if "--imports" in sys.argv[1:]:
        arrows = _real_arrows()
        for room in sorted({room for room, _ in arrows}):
            sys.stdout.write(f"{room}: {' '.join(sorted(to for one, to in arrows if one == room))}\n")
        return
    for file, make in FILES.items():
        file.write_text(re.sub(r"[ \t]+\n", "\n", make()), encoding="utf-8")


if __name__ == "__main__":
    main()
