"""Write constraints.txt: the versions that are installed here of all that fmtlbench and its extras need.

Run by `make constraints` in the environment that the tests have passed in.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

TARGET = Path(__file__).parents[1] / "constraints.txt"
# Which of them there are, and which versions, depends on the build of torch: a CPU build has none.
OF_TORCH_BUILD = re.compile(r"(nvidia|cuda)-.*|triton|pytorch-triton.*")
HEADER = """\
# Written by `make constraints`: what the tests were run with, on Python {python}. Of torch, any build of that version
# will do. Lines count on Python {python} only; others, for which some of these do not exist, get the newest that fit.
"""


def find_installed(name: str) -> Distribution | None:
    """Find a package of this environment; None where it is not installed."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def list_requirements(package: Distribution, extras: set[str]) -> list[Requirement]:
    """List what a package with these extras requires on this machine."""
    found = [Requirement(line) for line in package.requires or []]
    return [
        requirement
        for requirement in found
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras})
    ]


def find_closure(name: str, extras: set[str]) -> dict[str, str]:
    """Find every package below `name` with its version; what is not installed is left out."""
    versions: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    todo = [(name, extra) for extra in {"", *extras}]
    while todo:
        name, extra = todo.pop()
        package = find_installed(name)
        if (name, extra) in done or package is None or OF_TORCH_BUILD.fullmatch(name):
            continue
        done.add((name, extra))
        versions[name] = Version(package.version).public  # 2.9.0+cu130 is 2.9.0
        for requirement in list_requirements(package, {extra}):
            below = canonicalize_name(requirement.name)
            todo += [(below, wanted) for wanted in {"", *requirement.extras}]
    return versions


def write_constraints() -> str:
    """Return the text of the file."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    own = distribution("fmtlbench")
    versions = find_closure("fmtlbench", set(own.metadata.get_all("Provides-Extra") or []))
    del versions["fmtlbench"]
    lines = [f'{name}=={version} ; python_version == "{python}"\n' for name, version in sorted(versions.items())]
    return HEADER.format(python=python) + "".join(lines)


if __name__ == "__main__":
    TARGET.write_text(write_constraints(), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.read_text(encoding='utf-8').count('==') // 2} packages")
