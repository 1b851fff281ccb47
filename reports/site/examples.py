"""Example predictions of a run beside the ground truth, from the pictures that `fmtlbench predict` left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...runs.folder import examples_in
from ...tasks import title_of
from ..collect import RunRecord
from .data import SPLITS

FOLDER = "examples"  # in the site
INPUT, TRUTH, PREDICTION = "input", "truth", "prediction"
ENDING = ".png"


@dataclass(frozen=True)
class Example:
    """One image of one client: its pictures, by name, and the tasks that have both truth and prediction."""

    client: str
    image: str
    pictures: dict[str, Path]
    tasks: list[str]


def find_examples(run: RunRecord) -> list[Example]:
    """Return the examples that the run has, of the first split that has some, in the order of its clients."""
    for split in SPLITS:
        folder = examples_in(run.files.predictions(split))
        found = [e for client in run.summary["clients"] for e in _of_client(folder, client["id"], client["tasks"])]
        if found:
            return found
    return []


def _of_client(folder: Path, client: str, tasks: list[str]) -> Iterator[Example]:
    for image in sorted((folder / client).glob("*/")):
        pictures = {file.name.removesuffix(ENDING): file for file in sorted(image.glob(f"*{ENDING}"))}
        shown = [task for task in tasks if {f"{task}-{TRUTH}", f"{task}-{PREDICTION}"} <= pictures.keys()]
        if INPUT in pictures and shown:
            yield Example(client, image.name, pictures, shown)


def copy_examples(run: RunRecord, page: str, root: Path) -> None:
    """Copy the pictures of a run into the site; `page` is the address of the run's page."""
    for example in find_examples(run):
        for name, file in example.pictures.items():
            target = root / _address(page, example, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())


def _address(page: str, example: Example, name: str) -> str:
    """Return where a picture lies, from the site's root."""
    return f"{FOLDER}/{Path(page).stem}/{example.client}/{example.image}/{name}{ENDING}"


def show_examples(run: RunRecord, page: str) -> dict[str, dict[str, Any]]:
    """Return what a run's page shows, by client: the tasks, and the pictures of every image."""
    clients: dict[str, dict[str, Any]] = {}
    for example in find_examples(run):
        tasks = ", ".join(map(title_of, example.tasks))  # as the first image has them
        clients.setdefault(example.client, {"tasks": tasks, "images": []})["images"].append(_pictures(example, page))
    return clients


def _pictures(example: Example, page: str) -> list[dict[str, str]]:
    names = {INPUT: "input"}
    for task in example.tasks:
        names[f"{task}-{TRUTH}"] = f"{title_of(task)}, ground truth"
        names[f"{task}-{PREDICTION}"] = f"{title_of(task)}, predicted"
    of = f"of image {example.image}, client {example.client}"
    return [
        {"address": f"../{_address(page, example, name)}", "words": words, "alt": f"{words} {of}"}
        for name, words in names.items()
    ]
