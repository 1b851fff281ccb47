"""Write the table of errors in docs/errors.md from the exception classes. A test fails while it is stale.

Run: python docs/write_errors.py
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

from page_parts import put_table

import fmtlbench
from fmtlbench.base.errors import FmtlbenchError, UsageError

PAGE = Path(__file__).parent / "errors.md"
BEGIN, END = "<!-- errors: written by write_errors.py -->", "<!-- end of errors -->"
PACKAGES = ("", ".algorithms", ".metrics", ".reports", ".scenarios")  # the last four may lie beside the first
HEADS = ("error", "exit code", "is a", "meaning")


def find_errors() -> list[type[FmtlbenchError]]:
    """Return every public error of the package, by name; all modules are imported, since any may define one."""
    for package in (importlib.import_module(f"fmtlbench{name}") for name in PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found, waiting = set(), [FmtlbenchError]
    while waiting:
        error = waiting.pop()
        found.add(error)
        waiting += error.__subclasses__()
    public = (e for e in found if e.__module__.startswith("fmtlbench") and not e.__name__.startswith("_"))
    return sorted(public, key=lambda e: e.__name__)


def write_page() -> str:
    """Return docs/errors.md with the table as the classes have it."""
    return put_table(PAGE, BEGIN, END, HEADS, map(_describe, find_errors()))


def _describe(error: type[FmtlbenchError]) -> tuple[str, str, str, str]:
    """Return the row of one error; what it means is the first line of its docstring, which it must have."""
    meaning = inspect.cleandoc(error.__dict__["__doc__"]).partition("\n")[0]
    code = "2" if issubclass(error, UsageError) else "1"  # as fmtlbench.cli.main returns it
    bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
    home = "fmtlbench" if error.__name__ in fmtlbench.__all__ else error.__module__
    return f"`{home}.{error.__name__}`", code, bases, meaning.partition(": exit code")[0].rstrip(".")


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
