"""Writing a site: into a folder beside the target first, which then takes its place. The old one stays until then."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ...base.errors import FmtlbenchError, UsageError
from ...base.files import check_folder, list_files, refuse_strangers, replace_folder
from ..collect import Collection
from ..delta import Delta
from ..formats import render
from .data import Site, own_collection, plan_site
from .examples import copy_examples
from .figures import draw_figures
from .pages import DOWNLOADS, index_page, scenario_page
from .run import run_page

MARKER = ".fmtlbench-site"  # its lines are the files of the site
ASSETS = ("style.css", "app.js")


def write_site(
    collection: Collection,
    out: Path,
    scenario: str | None = None,
    splits: Sequence[str] | None = None,
    delta: Delta | None = None,
    sort: str = "zoo",
    spread: str = "seeds",
    figures: bool = True,
    fair: bool = False,
) -> Path:
    """Write the leaderboards as static pages into the folder `out`; a site that is there is replaced as a whole.

    Args:
        collection: What `collect` returned.
        out: The folder; it may be missing, empty, or an older site without files of others in it.
        scenario: Only this one.
        splits: Only these; None: all that have scores.
        delta: Which Δm the tables and figures show.
        sort: The order of rows to begin with, as for `leaderboards`.
        spread: What ± is over, as for `leaderboards`.
        figures: Draw them; they take most of the time.
        fair: With columns about single clients, as for `leaderboards`.

    Returns:
        The index page.
    """
    out = check_folder(out).resolve()
    _refuse_strangers(out)
    site = plan_site(collection, scenario, splits, delta, sort, spread, fair)
    try:
        with replace_folder(out) as new:
            _fill(new, site, collection, figures)
    except OSError as error:
        raise FmtlbenchError(f"could not write {out}: {error.strerror or error}") from None
    return out / "index.html"


def _refuse_strangers(out: Path) -> None:
    """Refuse to replace anything but an older site."""
    if not out.parent.is_dir():
        raise UsageError(f"-o {out}: no folder {out.parent}")
    if not list_files(out) - {MARKER}:
        return
    try:
        known = set((out / MARKER).read_text(encoding="utf-8").splitlines())
    except FileNotFoundError:
        raise UsageError(
            f"-o {out}: has files and is not a site that fmtlbench wrote (no {MARKER}); give an empty or a new folder"
        ) from None
    refuse_strangers(out, (known | {MARKER}).__contains__, "the site")


def _fill(root: Path, site: Site, collection: Collection, figures: bool) -> None:
    for name in ("assets", "tables", "runs"):
        (root / name).mkdir()
    for name in ASSETS:
        (root / "assets" / name).write_bytes(files(__package__).joinpath("assets", name).read_bytes())
    for page in site.pages:
        for style, (_, ending) in DOWNLOADS.items():
            _write(root / "tables" / f"{page.slug}.{ending}", render([page.table], style))
        own = own_collection(page, collection)
        drawn, refused = draw_figures(page, own, root, site.delta) if figures else ([], [])
        _write(root / f"{page.slug}.html", scenario_page(page, site, own, drawn, refused))
    for run in collection.runs:
        if run.name in site.run_files:
            copy_examples(run, site.run_files[run.name], root)
            _write(root / site.run_files[run.name], run_page(run, site))
    _write(root / "index.html", index_page(site))
    _write(root / MARKER, "".join(f"{name}\n" for name in sorted(list_files(root))))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
