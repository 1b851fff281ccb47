"""Draw docs/rooms.svg and write the table of rooms in docs/architecture.md from the plan in docs/rooms.py.

Run: python docs/draw_rooms.py   writes both; a test fails while they are stale
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from rooms import NARROW, ORDER, PURPOSES

HERE = Path(__file__).parent
BEGIN, END = "<!-- rooms: written by draw_rooms.py -->", "<!-- end of rooms -->"

WIDTH, MARGIN = 720, 16  # pixels
BOX, BOX_HEIGHT, GAP, STEP = 132, 32, 16, 50  # a room, and from row to row
STYLE = """
  svg { background: #ffffff; font: 14px system-ui, sans-serif; }
  rect { fill: #eef2f7; stroke: #7f8ea3; } text { fill: #1b2430; text-anchor: middle; }
  @media (prefers-color-scheme: dark) {
    svg { background: #12171e; }
    rect { fill: #1f2935; stroke: #64748a; } text { fill: #dfe6ee; }
  }
"""


def draw_rooms() -> str:
    """Return the picture: rooms in their rows, the command line on top, what knows nothing of the field below."""
    rows = ORDER[::-1]
    height = 2 * MARGIN + STEP * (len(rows) - 1) + BOX_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The rooms of fmtlbench: each may import those below it</title>",
        f"<style>{STYLE}</style>",
    ]
    for number, row in enumerate(rows):
        left = (WIDTH - len(row) * BOX - (len(row) - 1) * GAP) // 2
        parts += [_box(room, left + i * (BOX + GAP), MARGIN + number * STEP) for i, room in enumerate(row)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(room: str, x: int, y: int) -> str:
    title, box = escape(PURPOSES[room]), f'<rect x="{x}" y="{y}" width="{BOX}" height="{BOX_HEIGHT}" rx="6"/>'
    return f'<g><title>{title}</title>{box}<text x="{x + BOX // 2}" y="{y + 21}">{escape(room)}</text></g>'


def write_table() -> str:
    """Return docs/architecture.md with the order of the rooms, and what each is for."""
    lines = ["```text", *(" · ".join(row) for row in ORDER[::-1])]
    lines += [f"{room} imports {', '.join(targets)} only" for room, targets in NARROW.items()]
    lines += ["```", "", "| room | what it is for |", "|---|---|"]
    lines += [f"| `{room}` | {PURPOSES[room]} |" for row in ORDER[::-1] for room in row]
    text = (HERE / "architecture.md").read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    return "\n".join([before + BEGIN, "", *lines, "", END]) + after


FILES = {HERE / "rooms.svg": draw_rooms, HERE / "architecture.md": write_table}


def main() -> None:
    """Write the files."""
    for file, make in FILES.items():
        file.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
