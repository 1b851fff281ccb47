"""Draw the README's three pictures in docs/pictures: the leaderboard page, the terminal, predictions.

Run: python docs/draw_pictures.py RUN      RUN: a run of st_mt_1 that kept its weights, such as that of `make demo`
The leaderboard's site must be there (`python docs/write_leaderboard.py`).
Needs Debian's chromium, which takes the pictures of the page and of the terminal's text.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from fmtlbench.cli import main as fmtlbench

ROOT = Path(__file__).parents[1]
FOLDER, SITE = ROOT / "docs" / "pictures", ROOT / "docs" / "leaderboard" / "site"
SHOWN = "fmtlbench leaderboard results/nano-3 --scenario st_mt_1"
COLUMNS, WIDTH = 112, 1600  # of the terminal in letters, of pictures in pixels at most
STYLES = {"0": "</b></u>", "1": "<b>", "4": "<u>"}  # what the terminal is told with a code
TERMINAL = """<meta charset="utf-8"><style>
body {{ margin: 0; padding: 14px 18px; background: #16181d; color: #d7dae0 }}
body {{ font: 14px/1.35 "DejaVu Sans Mono", monospace }}
pre {{ margin: 0; font: inherit }} b {{ color: #fff }} i {{ color: #7fd17f; font-style: normal }}
</style><pre><i>$</i> {command}\n{text}</pre>"""


def photograph(page: Path, target: Path, size: tuple[int, int]) -> None:
    """Take a picture of a page with chromium."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("no chromium here; Debian's package of that name has it")
    calm = ("quic", "background-networking", "component-update", "sync", "gpu")
    with tempfile.TemporaryDirectory() as profile:
        flags = ["--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars", f"--user-data-dir={profile}"]
        flags += [f"--disable-{what}" for what in calm]
        flags += [f"--window-size={size[0]},{size[1]}", f"--screenshot={target}"]
        subprocess.run([program, *flags, page.as_uri()], check=True, capture_output=True)


def shrink(picture: Path) -> None:
    """Bring a picture to the pages' width and few colours, so that a clone stays small."""
    with Image.open(picture) as image:
        scale = min(1, WIDTH / image.width)
        small = image.convert("RGB").resize((round(image.width * scale), round(image.height * scale)), Image.LANCZOS)
    small.quantize(128, dither=Image.Dither.NONE).save(picture, optimize=True)


def ask_as_at_a_terminal(command: str) -> str:
    """Return what a command prints at a terminal of COLUMNS letters, with its codes for bold and underlined."""
    words = f"stty cols {COLUMNS}; {sys.executable} -m {command}"
    done = subprocess.run(["script", "-qec", words, "/dev/null"], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.replace("\r", "")


def draw_terminal(target: Path) -> None:
    """Draw a leaderboard as the terminal shows it."""
    text = ask_as_at_a_terminal(SHOWN).rstrip()
    marked = re.sub(r"\x1b\[(\d+)m", lambda code: STYLES.get(code[1], ""), html.escape(text))
    lines = text.count("\n") + 2
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.html"
        page.write_text(TERMINAL.format(command=SHOWN, text=marked), encoding="utf-8")
        photograph(page, target, (round(COLUMNS * 8.43) + 36, round(lines * 18.9) + 28))


def draw(run: Path) -> None:
    """Draw all three."""
    FOLDER.mkdir(exist_ok=True)
    photograph(SITE / "index.html", FOLDER / "leaderboard.png", (796, 1104))
    draw_terminal(FOLDER / "terminal.png")
    panel = FOLDER / "predictions.png"
    if fmtlbench(["predict", str(run), "--client", "nyud-multi", "--limit", "2", "--panel", str(panel)]):
        raise SystemExit(1)
    for picture in FOLDER.glob("*.png"):
        shrink(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN")
    draw(parser.parse_args().run)
