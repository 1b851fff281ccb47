"""How every figure looks: column width, fonts of 7 points and more, and for each method one colour, marker and line."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter
from matplotlib.transforms import ScaledTranslation, Transform

from ..base.errors import UsageError
from ..base.files import check_output, is_stdout, is_stream, write_output
from ..base.seeds import seed_of
from .fences import find_fences
from .labels import SECOND_ZOO

WIDTH = 3.3  # inches, one column of a two-column page
ABREAST = 2  # panels side by side
LINE = 0.135  # inches, one line of the smallest text
APART = 2.5  # points between whiskers
ENDINGS = (".pdf", ".png", ".svg")
GREY = "#777777"
DELTA = "Δm (%) ↑"  # what an axis says of it

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
    "lines.linewidth": 0.9,
    "lines.markersize": 3.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.formatter.useoffset": False,  # "0.1003", not "3 (1e-4 + 0.1)"
    "axes.formatter.limits": (-12, 12),
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
    "#000000", "#0072B2", "#E69F00", "#009E73", "#56B4E9", "#CC79A7", "#999933", "#882255", "#D55E00", "#777777",
)  # fmt: skip
MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<", "*", ">", "p", "h", "d")
LINES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

# A method keeps its place whatever else a figure shows.
PLACES = (
    "local", "fedavg", "fedprox", "fedper", "fedrep", "ditto", "fedamp", "matfl", "fedhca2", "singletaskfl", "fedbabu",
    "fedmtl", "fedsta", "pcgrad", "cagrad", *(name.replace("_", "") for name in SECOND_ZOO),
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    color: str
    marker: str
    linestyle: str | tuple

    def line(self) -> dict:
        return {"color": self.color, "marker": self.marker, "markersize": self._size(3.0), "linestyle": self.linestyle}

    def point(self) -> dict:
        return {"color": self.color, "marker": self.marker, "markersize": self._size(5), "linestyle": "none"}

    def _size(self, usual: float) -> float:
        return usual * 1.5 if self.marker == "*" else usual  # a star is mostly empty


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """Return one style per label, the same in every figure: fixed for the zoo, derived from the name for others.

    A variant, "FedProx (mu=0.1)", "FedProx+UW" or "FedProx, tc", has its method's colour with a marker and line of its
    own.
    """
    made: dict[str, Style] = {}
    zoo = {_style(place) for place in range(len(PLACES))}
    for label in sorted(set(labels), key=lambda name: (_key(name) not in PLACES, name)):
        base = _key(label.partition(", ")[0].partition(" (")[0].partition("+")[0].removesuffix("-E"))
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


def panel_grid(count: int, height: float, lines: int = 0) -> tuple[Figure, list[Axes]]:
    """Make a figure of `count` panels, two abreast; a panel is high enough for `lines` of text beside it."""
    columns = min(count, ABREAST)
    rows = -(-count // columns)
    figure = new_figure(rows * max(height, 0.6 + LINE * lines), WIDTH * columns)
    if rows > 1:
        figure.get_layout_engine().set(h_pad=0.05)  # inches: a title is nearer to its own panel than to the one above
    places = [figure.add_subplot(rows, columns, place + 1) for place in range(count)]
    return figure, places


def draw_whisker(
    axes: Axes, end: tuple[float, float], spread: float, look: Style, number: float, units: Transform
) -> None:
    """Draw a thin bar of ± `spread` at a line's end, given in `units`, moved by `number` steps beside the others."""
    beside = ScaledTranslation(APART / 72 * number, 0, axes.figure.dpi_scale_trans)
    thin = {"color": look.color, "elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
    axes.errorbar(*end, spread, transform=units + beside, **thin)


def bend_axis(axes: Axes, values: Sequence[float]) -> None:
    """Let the y axis run by powers of ten where only a few values lie, far from all others; its label says so."""
    low, high = find_fences(values)
    most = [value for value in values if low <= value <= high]
    if all(low <= value <= high or not isfinite(value) for value in values):
        return
    bend = max(map(abs, most))
    axes.set_yscale("symlog", linthresh=bend, linscale=2)  # room for two powers of ten where most are
    beyond = [sign * 10.0**power for sign in (-1, 1) for power in range(-3, 9)]
    near = MaxNLocator(4).tick_values(min(0, *most), max(0, *most))
    ticks = [*(tick for tick in near if abs(tick) <= bend), *(tick for tick in beyond if abs(tick) > bend)]
    axes.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(f"{axes.get_ylabel()}, log beyond ±{bend:.2g}")


@dataclass(frozen=True)
class End:
    """Where a line ends, in the units of its axes, and what is written there."""

    label: str
    point: tuple[float, float]
    color: str


LONGEST, MOST_LINES = 20, 3  # of a label at a line's end: letters and lines; more is cut


def label_ends(figure: Figure, places: Sequence[Axes], ends: Sequence[Sequence[End]]) -> None:
    """Write the labels of lines beside their ends, right of the axes, moved apart where they would overlap."""
    written = []
    for axes, of in zip(places, ends):
        for end in of:
            text = "\n".join(_fold(end.label))
            line = {"arrowstyle": "-", "color": end.color, "linewidth": 0.5, "shrinkA": 1, "shrinkB": 0}
            look = {"textcoords": "axes fraction", "va": "center", "fontsize": 7, "linespacing": 1.0}
            written.append(axes.annotate(text, end.point, (1.06, 0.5), arrowprops={**line, "relpos": (0, 0.5)}, **look))
    figure.draw_without_rendering()  # now the axes have their size
    labels = iter(written)
    for axes, of in zip(places, ends):
        mine = [next(labels) for _ in of]
        high = axes.get_window_extent().height
        wanted = [axes.transAxes.inverted().transform(axes.transData.transform(end.point))[1] for end in of]
        # Without the line to the end, and with a little room between them.
        sizes = [1.05 * Text.get_window_extent(label).height / high for label in mine]
        for label, at in zip(mine, move_apart(wanted, sizes)):
            label.set_position((1.06, at))


def label_lines(labels: Iterable[str]) -> int:
    """Return how many lines of text these labels take at the ends of lines."""
    return sum(len(_fold(label)) for label in labels)


def _fold(label: str) -> list[str]:
    lines = textwrap.wrap(label, LONGEST) or [label]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], lines[MOST_LINES - 1][:-1] + "…"]


def move_apart(wanted: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return places as near as possible to the wanted ones at which labels of these sizes do not overlap.

    Nothing leaves 0 … 1 as long as all of it fits there.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    size = np.asarray(sizes)[order]
    before = np.cumsum(size) - size / 2  # where each would stand if all stood in a row from 0 on
    start = isotonic_regression(np.asarray(wanted)[order] - before).x
    room = 1 - size.sum()
    start = np.clip(start, 0, room) if room > 0 else np.full(len(size), room / 2)
    placed = np.empty(len(size))
    placed[order] = start + before
    return placed.tolist()


def text_width(texts: Iterable[str], size: float = 7) -> float:
    """Return the width of the longest text in inches."""
    return max((TextPath((0, 0), text, size=size).get_extents().x1 for text in texts if text), default=0) / 72


def legend_columns(labels, most: int, handle: float = 2.4) -> int:
    """Return how many columns of these labels fit the width of a figure."""
    each = text_width(labels) + (handle + 1.8) * 7 / 72
    return max(1, min(most, len(labels), int(WIDTH / each)))


def legend_height(entries: int, columns: int) -> float:
    return LINE * -(-entries // columns) + 0.08


def heat_map(axes: Axes, values, **colours):
    """Draw a table of values as coloured cells, the first row on top: shapes, which stay sharp at any size."""
    high, wide = values.shape
    mesh = axes.pcolormesh(range(wide), range(high), values, shading="nearest", edgecolors="face", **colours)
    axes.set_ylim(high - 0.5, -0.5)
    return mesh


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


def draw_once(figure: Figure) -> None:
    """Lay the figure out and keep it so: a second time would start from the first and end elsewhere."""
    with mpl.rc_context(RC):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


@contextmanager
def _plain_fonts() -> Iterator[None]:
    """Leave the tables for setting text out of the fonts of PDFs: every glyph has its place in them already.

    To cut these tables down to the glyphs that are shown takes longer than to draw the figure.
    """
    from fontTools.subset import Options

    before = getattr(Options, "_drop_tables_default", [])
    Options._drop_tables_default = [*before, "GSUB", "GPOS", "GDEF"]
    try:
        yield
    finally:
        Options._drop_tables_default = before


def save(figure: Figure, path: str | Path, flag: str = "-o") -> list[Path]:
    """Write the figure; the same runs give the same bytes. Folders that are not there are made."""
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}, ".png": {}}
    files = targets(path, flag)
    draw_once(figure)
    with mpl.rc_context(RC), _plain_fonts():
        for file in files:
            ending = file.suffix.lower()
            options = {"format": ending[1:], "dpi": 300, "metadata": undated[ending]}
            write_output(file, lambda new, options=options: figure.savefig(new, **options), flag, make_folder=True)
    return files
