"""What the networks of stored runs predict: as files, and as rows of a panel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..base.errors import UsageError, unknown
from ..base.files import write_json
from ..base.stored import DamagedRun, NewerFormat
from ..config.run_config import RunConfig
from ..config.setting import is_below
from ..data.views import ClientData, View
from ..engine.method import Hooks
from ..exchange import Party
from ..listeners import Listener
from ..runs.folder import RunFolder, examples_in, read_record, with_format
from ..runs.records import Predictions
from ..tasks import TASKS
from .panel import MOST_EXAMPLES, PanelRow, PanelTask, write_examples
from .prediction_folder import ABOUT, replace_predictions
from .stored_run import StoredRun, choose_clients, sample_at_own_size


def predict_run(folder: Path, config: RunConfig, open_run: Callable[[], StoredRun]) -> list[Path]:
    """Write what a run's networks say after its last round, for every split its participants are judged on.

    What is there already is kept; the run is opened only where something is missing.
    """
    splits = [split for split in config.scenario.evaluation if split != "unseen"]
    targets = {split: RunFolder(folder).predictions(split) for split in splits}
    made_by = (folder.resolve().name, config.federation.rounds)
    missing = {split: target for split, target in targets.items() if not _is_complete(target, made_by)}
    if missing:
        run = open_run()
        for split, target in missing.items():
            save_predictions(run, target, split)
    return list(targets.values())


def predict_at_end(
    device: torch.device,
    progress: Listener,
    folder: Path,
    config: RunConfig,
    data: list[ClientData],
    method: Hooks,
) -> None:
    """Write the predictions of a run that is about to be finished, on the data that are open."""

    def open_run() -> StoredRun:
        run = StoredRun(folder, config)
        run.use(data, device, progress, method)
        return run

    predict_run(folder, config, open_run)


def predict_finished(
    folder: Path, config: RunConfig, data_root: Path | None, device: torch.device, progress: Listener
) -> None:
    """Write those predictions of a finished run that are missing."""

    def open_run() -> StoredRun:
        run = StoredRun(folder)
        run.open(data_root, device, progress)
        return run

    predict_run(folder, config, open_run)


def _is_complete(folder: Path, made_by: tuple[str, int]) -> bool:
    """Say whether a folder has all predictions of a run after a round."""
    try:
        about = read_record(folder / ABOUT, Predictions)
    except NewerFormat:
        raise
    except DamagedRun:  # predictions can be made again
        return False
    return about is not None and about["complete"] and (about["run"], about["round"]) == made_by


def save_predictions(
    run: StoredRun,
    folder: Path,
    split: str = "global",
    clients: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    images: Sequence[int] | None = None,
    limit: int | None = None,
    arrays: bool = False,
) -> Path:
    """Write the predictions of an opened run to `folder`, which is replaced as a whole; some also as pictures.

    With `arrays`, every prediction is a .npy file.
    """
    chosen = choose(run, split, clients, tasks)
    places = {party.id: pick_places(run.view(party, split), images, limit) for party, _ in chosen}
    about: dict[str, Any] = {
        "algorithm": run.config.algorithm.name,
        "scenario": run.config.scenario.name,
        "seed": run.config.seed,
        "run": run.name,
        "round": run.done,
        "rounds": run.rounds,
        "split": split,
        "complete": not any((clients, tasks, images, limit)),
        "clients": {},
    }
    with replace_predictions(folder) as partial:
        for party, wanted in chosen:
            names = class_names(run, party)
            for task in wanted:
                (partial / party.id / task).mkdir(parents=True)
            for count, prediction in enumerate(run.predictions(party, split, wanted, places[party.id]), 1):
                for task, value in prediction.values.items():
                    target, kind = partial / party.id / task, TASKS[task].kind
                    if arrays:
                        kind.write_array(target, prediction.image, value)
                    else:
                        kind.write_prediction(target, prediction.image, value, names.get(task))
                run.progress.preparing(f"predictions of {party.id}", count, len(places[party.id]))
            about["clients"][party.id] = {"tasks": list(wanted), "images": len(places[party.id])}
        first = images[:MOST_EXAMPLES] if images else None
        some = None if images else min(limit or MOST_EXAMPLES, MOST_EXAMPLES)
        write_examples(examples_in(partial), panel_rows([run], split, clients, tasks, first, some))
        write_json(partial / ABOUT, with_format(about))
    return folder


def panel_rows(
    runs: Sequence[StoredRun],
    split: str = "global",
    clients: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    images: Sequence[int] | None = None,
    limit: int | None = None,
) -> list[PanelRow]:
    """Return what a panel shows of opened runs: a row per client and image, with all wanted tasks."""
    rows = []
    for party, wanted in choose(runs[0], split, clients, tasks):
        view = runs[0].view(party, split)
        for run in runs[1:]:
            other = run.view(_same_client(run, party), split)
            same = np.array_equal(view.indices, other.indices)
            if not same or view.dataset.fingerprint != other.dataset.fingerprint:
                raise UsageError(f"{run.folder}: judges {party.id} on other {split} images than {runs[0].folder}")
        places = pick_places(view, images, limit)
        said = [list(run.predictions(_same_client(run, party), split, wanted, places)) for run in runs]
        names = class_names(runs[0], party)
        for of_image in zip(*said):
            truth = sample_at_own_size(view.dataset, of_image[0].index, ("image", *wanted))
            of_tasks = []
            for task in wanted:
                values = [TASKS[task].kind.as_label(prediction.values[task]) for prediction in of_image]
                of_tasks.append(PanelTask(task, truth[task], values, names.get(task)))
            rows.append(PanelRow(party.id, of_image[0].image, truth["image"], of_tasks))
    return rows


def _same_client(run: StoredRun, party: Party) -> Party:
    """Return the client of this number in another run of the same scenario."""
    for member in run.members:
        if member.index == party.index:
            return member
    raise UsageError(f"{run.folder}: keeps no network of {party.id}, which never took part")


# What runs in one panel must share, and how messages call it.
_SHARED = {"scenario": "scenario", "data.source": "data", "data.size": "image size"}


def check_comparable(runs: Sequence[StoredRun]) -> None:
    """Refuse runs in one panel that differ in scenario or data."""
    first = runs[0].config.setting()
    for run in runs[1:]:
        other = run.config.setting().differences(first)
        for parent, what in _SHARED.items():
            if any(is_below(path, [parent]) for path in other):
                raise UsageError(f"{run.folder}: another {what} than {runs[0].folder}; a panel needs the same")


def choose(
    run: StoredRun, split: str, clients: Sequence[str] | None, tasks: Sequence[str] | None
) -> list[tuple[Party, tuple[str, ...]]]:
    """Return the asked clients that are judged on a split, with those of the asked tasks that they have."""
    judged = run.judged(split)
    asked = choose_clients(judged, clients, "--clients")
    offered = {task for party in judged for task in party.tasks}
    for name in tasks or ():
        if name not in offered:
            raise unknown("task", name, offered, "--tasks")
    chosen = [(party, tuple(task for task in party.tasks if tasks is None or task in tasks)) for party in asked]
    chosen = [(party, wanted) for party, wanted in chosen if wanted]
    if not chosen:
        raise UsageError(
            f"--tasks {','.join(tasks or ())}: none of the clients {', '.join(clients or ())} has any of them"
        )
    return chosen


def pick_places(view: View, images: Sequence[int] | None, limit: int | None) -> list[int]:
    """Places in the view: the asked ones, or the first `limit`, or all."""
    for place in images or ():
        if not 0 <= place < len(view):
            raise UsageError(f"--images {place}: expected numbers from 0 to {len(view) - 1}")
    return list(range(len(view))[:limit]) if images is None else list(images)


def class_names(run: StoredRun, party: Party) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the classes of a client's tasks."""
    return run.config.data.dataset(party.dataset).class_names
