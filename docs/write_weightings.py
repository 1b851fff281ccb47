"""Write the table of weightings in docs/weightings.md from the registry.

Run: python docs/write_weightings.py   writes it; a test fails while it is stale
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields
from pathlib import Path

from page_parts import put_table

from fmtlbench.base.words import as_typed
from fmtlbench.config.presets import default_options
from fmtlbench.weightings import WEIGHTINGS, Weighting

PAGE = Path(__file__).parent / "weightings.md"
BEGIN, END = "<!-- weightings: written by write_weightings.py -->", "<!-- end of weightings -->"
HEADS = ("name", "in tables", "what it does", "a step of m tasks", "fixed weights", "options", "paper")


def write_page() -> str:
    """Return docs/weightings.md with the table as the registry has it; those of other packages are left out."""
    built_in = [w for name, w in WEIGHTINGS.items() if WEIGHTINGS.home_of(name).startswith("fmtlbench.")]
    return put_table(PAGE, BEGIN, END, HEADS, map(_describe, built_in))


def _describe(weighting: type[Weighting]) -> tuple[str, ...]:
    """Return the row of one weighting; what it does stands in the first line of its file."""
    opening = (inspect.getdoc(sys.modules[weighting.__module__]) or "").partition("\n")[0]
    does = opening.partition(": ")[2].rstrip(".")
    steps = "m backward passes" if weighting.needs_gradients else "1 backward pass"
    steps += ", 1 more forward pass" if weighting.needs_losses_again else ""
    fixed = "left out" if weighting.scale_free else "kept"
    return f"`{weighting.name}`", weighting.title, does, steps, fixed, _list_options(weighting), weighting.paper


def _list_options(weighting: type[Weighting]) -> str:
    meanings = {field.name: field.metadata.get("doc", "") for field in fields(weighting.Params)}
    told = []
    for name, value in default_options(weighting, "", {}).items():
        meaning = f": {meanings[name]}" if meanings[name] else ""
        told.append(f"`{name}={as_typed(value)}`{meaning}")
    return "; ".join(told)


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
