"""How every figure looks: column width, fonts of 7 points and more, and for each method one colour, marker and line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure, FigureBase
from matplotlib.textpath import TextPath

from ...errors import UsageError
from ...files import check_output, is_stdout, is_stream, write_output
from ...seeds import seed_of

WIDTH = 3.3  # inches, one column of a two-column page
LINE = 0.135  # inches, one line of the smallest text
ENDINGS = (".pdf", ".png", ".svg")
GREY = "#777777"

RC = {
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.0,
    "legend.labelspacing": 0.3,
    "legend.borderpad": 0.1,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.linewidth": 0.4,
    "grid.color": "0.88",
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.h_pad": 0.02,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fmtlbench",
    "image.interpolation": "nearest",
}

# Told apart by people with any of the usual colour-vision deficiencies, and by lightness in print (Okabe–Ito, Tol).
COLOURS = (
    "#000000",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#56B4E9",
    "#CC79A7",
    "#999933",
    "#882255",
    "#D55E00",
    "#777777",
)
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<", "*", ">", "p", "h", "d")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

# A method keeps its place whatever else a figure shows.
PLACES = (
    "local",
    "fedavg",
    "fedprox",
    "fedper",
    "fedrep",
    "ditto",
    "fedamp",
    "matfl",
    "fedhca2",
    "singletaskfl",
    "fedbabu",
    "fedmtl",
    "fedsta",
    "pcgrad",
    "cagrad",
)


@dataclass(frozen=True)
class Style:
    color: str
    marker: str
    linestyle: str | tuple

    def line(self) -> dict:
        return {"color": self.color, "marker": self.marker, "markersize": self._size(3.5), "linestyle": self.linestyle}

    def point(self) -> dict:
        return {"color": self.color, "marker": self.marker, "markersize": self._size(5), "linestyle": "none"}

    def _size(self, usual: float) -> float:
        return usual * 1.5 if self.marker == "*" else usual  # a star is mostly empty


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """Return one style per label, the same in every figure: fixed for the zoo, derived from the name for others.

    A variant, "FedProx (mu=0.1)", has its method's colour with a marker and line of its own.
    """
    made: dict[str, Style] = {}
    zoo = {_style(place) for place in range(len(PLACES))}
    for label in sorted(set(labels), key=lambda name: (_key(name) not in PLACES, name)):
        base = _key(label.split(" (")[0].removesuffix("-E"))
        place = PLACES.index(base) if base in PLACES else None
        if place is not None and _key(label) == base:
            made[label] = _style(place)
            continue
        ways = len(COLOURS) * len(MARKERS) * len(LINES)
        start = seed_of(0, "style", label)
        for k in range(start, start + ways):
            colour = k if place is None else place
            way = _look(colour, k // len(COLOURS), k // (len(COLOURS) * len(MARKERS)))
            if way not in zoo and way not in made.values():
                break
        made[label] = way
    return {label: made[label] for label in labels}


def in_order(names: Iterable[str]) -> dict[str, Style]:
    """Return styles for what has no place of its own, such as clients."""
    return {name: _style(place) for place, name in enumerate(names)}


def _style(place: int) -> Style:
    return _look(place, place, place + place // len(COLOURS))


def _look(colour: int, marker: int, line: int) -> Style:
    return Style(COLOURS[colour % len(COLOURS)], MARKERS[marker % len(MARKERS)], LINES[line % len(LINES)])


def _key(label: str) -> str:
    return "".join(c for c in label.lower().replace("²", "2") if c.isalnum())


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Make a function's figure under our settings, leaving everybody else's alone."""

    @functools.wraps(draw)
    def wrapped(*args, **kwargs) -> Figure:
        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(height: float, width: float = WIDTH) -> Figure:
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def arrow(higher_is_better: bool) -> str:
    return "↑" if higher_is_better else "↓"


def legend_below(figure: Figure, handles, labels, columns: int = 3, handle: float = 2.4) -> None:
    """Put a legend under the axes, in as many columns as fit; the figure grows by it. `handle`: length in letters."""
    columns = legend_columns(labels, columns, handle)
    figure.set_figheight(figure.get_figheight() + legend_height(len(labels), columns))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=handle)


def text_width(texts: Iterable[str], size: float = 7) -> float:
    """Return the width of the longest text in inches."""
    return max((TextPath((0, 0), text, size=size).get_extents().x1 for text in texts if text), default=0) / 72


def legend_columns(labels, most: int, handle: float = 2.4) -> int:
    """Return how many columns of these labels fit the width of a figure."""
    each = text_width(labels) + (handle + 1.8) * 7 / 72
    return max(1, min(most, len(labels), int(WIDTH / each)))


def legend_height(entries: int, columns: int) -> float:
    return LINE * -(-entries // columns) + 0.08


def heat_bar(figure: FigureBase, axes, image, label: str) -> None:
    """Draw the colours' scale beside a heat map."""
    bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.02)
    bar.set_label(label)
    bar.outline.set_linewidth(0.4)
    axes.spines[:].set_visible(False)


def targets(path: str | Path, flag: str = "-o") -> list[Path]:
    """Return the files a name stands for: itself, or PDF and PNG where it has no ending; refuse what cannot be one."""
    path = Path(path)
    if path.name in ("", ".."):
        raise UsageError(f"{flag} {path}: a folder, expected a file")
    if path.suffix.lower() not in ENDINGS and (path.suffix or is_stdout(path) or is_stream(path)):
        none = ", or none for PDF and PNG" if path.suffix else ", which says what to write"
        raise UsageError(f"{flag} {path}: expected a name ending in {', '.join(ENDINGS)}{none}")
    files = [path] if path.suffix else [path.with_suffix(ending) for ending in ENDINGS[:2]]
    return [check_output(file, flag, make_folder=True) for file in files]


def save(figure: Figure, path: str | Path, flag: str = "-o") -> list[Path]:
    """Write the figure; the same runs give the same bytes. Folders that are not there are made."""
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
    files = targets(path, flag)
    with mpl.rc_context(RC):  # laid out once: a second time would start from the first and end elsewhere
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for file in files:
            ending = file.suffix.lower()
            options = {"format": ending[1:], "dpi": 300, "metadata": undated[ending]}
            write_output(file, lambda new, options=options: figure.savefig(new, **options), flag, make_folder=True)
    return files
