"""Where the real datasets lie: --data-root, else $FMTLBENCH_DATA, else the user's config file. No folder is guessed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ...errors import FmtlbenchError, unknown
from ...userconfig import config_path, read_user_config

VARIABLE = "FMTLBENCH_DATA"


class Archive(NamedTuple):
    """An archive's folder, how to recognise it under another name, and who distributes it."""

    name: str
    marks: tuple[str, ...]  # globs that all match something in it, and not in the domain's other layouts
    source: str


# The first layout of a domain that is found is taken.
ARCHIVES: dict[str, tuple[Archive, ...]] = {
    "nyud": (
        Archive(
            "NYUDv2", ("gt_sets", "images/*.png"),
            "NYUDv2.tar.gz, which the GitHub projects brdav/atrc and prismformore/Multi-Task-Transformer distribute",
        ),
        Archive(
            "NYUD_MT", ("gt_sets", "images/*.jpg"),
            "the older NYUD_MT.tgz of SimonVandenhende/Multi-Task-Learning-PyTorch",
        ),
    ),
    "pascal": (
        Archive(
            "PASCALContext", ("ImageSets/Context", "JPEGImages"),
            "PASCALContext.tar.gz, which the GitHub projects brdav/atrc and prismformore/Multi-Task-Transformer "
            "distribute",
        ),
    ),
}  # fmt: skip


class Place(NamedTuple):
    """One of the three places a data root can be named in; `path` is None where nothing is."""

    origin: str
    path: Path | None


def places(data_root: str | Path | None) -> list[Place]:
    """All three, in the order in which they count; relative paths are taken from the working directory."""
    variable = os.environ.get(VARIABLE)
    return [
        Place("--data-root", _absolute(data_root)),
        Place(f"${VARIABLE}", _absolute(variable)),
        Place(f"data_root in {config_path()}", _absolute(read_user_config().data_root)),
    ]


def find_archive(domain: str, data_root: str | Path | None = None, layout: str | None = None) -> tuple[Path, str]:
    """The folder of the domain's archive and the archive's name.

    Only the first place that names a folder is searched: data from another one would be a surprise.
    """
    archives = _wanted(domain, layout)
    looked = places(data_root)
    chosen = next((place for place in looked if place.path), None)
    if chosen:
        for archive in archives:
            if (chosen.path / archive.name).is_dir():
                return chosen.path / archive.name, archive.name
        for archive in archives:
            if all(next(chosen.path.glob(mark), None) for mark in archive.marks):
                return chosen.path, archive.name
    raise FmtlbenchError(_not_found(domain, archives, looked, chosen))


def _wanted(domain: str, layout: str | None) -> tuple[Archive, ...]:
    if domain not in ARCHIVES:
        raise unknown("real dataset", domain, ARCHIVES)
    archives = ARCHIVES[domain]
    if layout is None:
        return archives
    by_name = {archive.name: archive for archive in archives}
    if layout not in by_name:
        raise unknown(f"layout of {domain}", layout, by_name, "--layout")
    return (by_name[layout],)


def _absolute(path: str | Path | None) -> Path | None:
    return Path(path).expanduser().absolute() if path else None


def _not_found(domain: str, archives: tuple[Archive, ...], looked: list[Place], chosen: Place | None) -> str:
    names = " or ".join(f"{archive.name}/" for archive in archives)
    said = []
    for place in looked:
        if place.path is None:
            said.append(f"{place.origin}: not set")
        elif place is not chosen:
            said.append(f"{place.origin}: {place.path}, not searched because of {chosen.origin}")
        elif place.path.is_dir():
            said.append(f"{place.origin}: {place.path} neither holds {names} nor is such a folder itself")
        else:
            said.append(f"{place.origin}: {place.path} is not a folder")
    return (
        f"dataset {domain!r}: no {names} found. Looked at {'; '.join(said)}. Unpack "
        f"{', or '.join(archive.source for archive in archives)}, and name the folder that holds it. "
        "The embedded data need no files: --preset nano"
    )
