"""`fmtlbench.run`, `fmtlbench.bench` and `fmtlbench.load`: what the command line does, from Python."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .base.files import check_folder
from .bench.request import bench
from .config.keep import choose_keep
from .config.ray_options import check_ray_device
from .config.request import RunRequest, split_keywords
from .config.run_file import ask_for_run
from .cost.energy import EnergyChoice, choose_energy
from .engine.device import check_device, pick_device
from .listeners import Listener, Listeners, find_listeners
from .listeners.notebook import Notebook, in_notebook
from .runs.find import find_run
from .runs.result import RunResult

__all__ = ["bench", "launch", "load", "run"]

if TYPE_CHECKING:
    import torch

    from .engine.executor import Executor
    from .inference.loaded_run import LoadedRun


def run(
    algo: str | Path | None = None,
    scenario: str | Path | None = None,
    *,
    config: str | Path | None = None,
    progress: Listener | None = None,
    executor: str | Executor | None = None,
    **asked: Any,
) -> RunResult:
    """Train `algo` on `scenario` and return the result; a finished run is returned without repeating it.

    Args:
        algo: A name of `fmtlbench list algorithms`, or the path of a .py file with one registered method.
        scenario: A name of `fmtlbench list scenarios`, or the path of a .yml file.
        config: A YAML file that asks for the run, or the config.yaml of an earlier one (docs/guide.md); what is given
            beside it takes the place of its values.
        progress: Told what happens. By default nobody is, but in a notebook a bar below the cell shows the rounds;
            `fmtlbench.listeners.Listener()` is told and says nothing.
        executor: Who holds the clients: "serial" (the default), "ray", or an object of one's own
            (`fmtlbench.engine.executor`).
        **asked: `preset`, `seed`, `rounds`, `device`, `data_root`, `out`, `fresh`, `reuse`, `save_predictions`, `keep`,
            `energy`, `country`, `region`, `log` and `ray_address`, as `fmtlbench.config.request.RunRequest` explains
            them. Any
            other is a config value by dotted name, for example `**{"train.lr": 1e-3, "algo.c": 0.2}`.

    Raises:
        UsageError: The request makes no sense; nothing was touched.
        FmtlbenchError: The run failed; what it had finished is kept, and the same call goes on from there.
    """
    if progress is None and in_notebook():
        progress = Notebook()
    fields, overrides = split_keywords(asked)
    named = {"algo": algo, "scenario": scenario, "executor": executor if isinstance(executor, str) else None}
    fields |= {name: value for name, value in named.items() if value is not None}
    return launch(ask_for_run(config, fields, overrides), progress, None if isinstance(executor, str) else executor)


def load(
    run: str | Path,
    *,
    device: str = "cpu",
    data_root: str | Path | None = None,
    progress: Listener | None = None,
) -> LoadedRun:
    """Load a stored run: its config, its scores and its networks.

    Args:
        run: Its folder, or a part of its name that no other run below ./runs has.
        device: Where the networks work: "auto", "cpu", "cuda", "cuda:1" or "mps".
        data_root: Where the real datasets lie. Data are needed only for an unfinished run.
        progress: Told what happens, for example that the run is unfinished; by default nobody is.

    Raises:
        FmtlbenchError: There is no such run, or it keeps no networks.
    """
    check_device(device)
    folder = find_run(str(run))

    from .inference.loaded_run import LoadedRun

    root = None if data_root is None else Path(data_root)
    return LoadedRun(folder, root, pick_device(device), Listeners([] if progress is None else [progress]))


def launch(request: RunRequest, progress: Listener | None = None, executor: Executor | None = None) -> RunResult:
    """Do the run that is asked for, continue it, or return it if it is finished.

    An `executor` holds the clients instead of one made for the request.
    """
    with request.naming_lines():
        check_device(request.device)
        check_folder(request.out, "--out")
        energy = choose_energy(request.energy, request.country, request.region)
        keep = choose_keep(request.keep)
        asked = find_listeners(request.log)
        config = request.config()
        kind, device = pick_devices(request)

    from .algorithms import ALGORITHMS
    from .config.presets import default_options
    from .engine.run import Circumstances, execute
    from .inference.predict import predict_at_end, predict_finished

    config = dataclasses.replace(config, device=kind)
    listeners = Listeners([] if progress is None else [progress])
    for listener in asked:
        listeners.add(listener)
    at_end = partial(predict_at_end, device, listeners) if request.save_predictions else None
    method = ALGORITHMS.resolve(config.algorithm.file or config.algorithm.name)
    how = Circumstances(
        Path(request.out),
        device,
        energy,
        Path(request.data_root) if request.data_root else None,
        fresh=request.fresh,
        reuse=request.reuse,
        keep=keep,
        before_summary=at_end,
        default_options=default_options(method, config.preset, config.preset_options),
        command=request.command(),
    )
    executor = executor or make_executor(request, energy)
    try:
        result = execute(config, how, listeners, executor)
        if result.reused and request.save_predictions:
            predict_finished(result.folder, config, how.data_root, device, listeners)
        if not result.reused:
            listeners.bill(result.cost())
    finally:
        listeners.end()
    return result


def make_executor(request: RunRequest, energy: EnergyChoice) -> Executor:
    """Make what holds the clients of a run."""
    if request.executor == "ray":
        from .engine.ray.executor import RayExecutor

        return RayExecutor(request.ray_options(), request.ray_address, energy)
    from .engine.executor import SerialExecutor

    return SerialExecutor()


def pick_devices(request: RunRequest) -> tuple[str, torch.device]:
    """Return the kind of device that clients work on, and the server's own.

    In a cluster the server's steps are done on the CPU, because what is sent lies in the machine's memory. Ray chooses
    the card that a client gets, and this machine need not have one.
    """
    if request.executor != "ray":
        device = pick_device(request.device)
        return device.type, device
    check_ray_device(request.device)
    import torch

    return "cuda" if request.device == "cuda" else pick_device(request.device).type, torch.device("cpu")
