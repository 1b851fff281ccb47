"""How Sphinx builds the site of docs/: `make docs`."""

from __future__ import annotations

import logging
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the scripts beside this file

import site_pages  # noqa: E402
import write_leaderboard  # noqa: E402

project = "fmtlbench"
author = "the fmtlbench authors"
release = version = installed_version("fmtlbench")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["methods/equations.yml", site_pages.LEADERBOARD]
source_suffix = {".md": "markdown"}
highlight_language = "bash"  # of blocks that name no language: commands
default_role = "code"  # docstrings write `name`, as Markdown does
nitpicky = False  # docstrings and hints name things that have no page here

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # signatures stay short; the text says what a value is
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"fmtlbench {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False


def setup(app):
    """Let the site's pages be made of the folder's: see site_pages.py."""
    app.connect("config-inited", lambda _app, _config: site_pages.write_copies())
    app.connect("source-read", _prepare)
    app.connect("autodoc-process-docstring", _escape_bars, priority=600)  # after napoleon
    app.connect("build-finished", _add_leaderboard)


def _prepare(_app, docname, source):
    source[0] = site_pages.prepare(docname, source[0])


def _escape_bars(_app, _what, _name, _object, _options, lines):
    """Keep |x| in docstrings what it is; in reStructuredText bars would name a substitution."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        lines[number] = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def _add_leaderboard(app, error):
    """Put the leaderboard's own site where the page about it links to."""
    if error is None:
        logging.getLogger("fontTools").setLevel(logging.WARNING)  # Sphinx shows what every library logs
        write_leaderboard.write_site(Path(app.outdir, site_pages.LEADERBOARD))
