"""`fmtlbench.run`: what the command line does, from Python."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import resolve
from .cost.energy import choose_energy
from .errors import FmtlbenchError, UsageError
from .progress import Quiet
from .runs.result import RunResult

if TYPE_CHECKING:
    import torch


def run(
    algo: str | Path,
    scenario: str | Path,
    preset: str = "nano",
    seed: int = 0,
    rounds: int | None = None,
    device: str = "auto",
    data_root: str | Path | None = None,
    out: str | Path = "runs",
    fresh: bool = False,
    progress: Quiet | None = None,
    save_predictions: bool = False,
    energy: bool | None = None,
    country: str | None = None,
    region: str | None = None,
    **overrides: Any,
) -> RunResult:
    """Train `algo` on `scenario` and return the result; a finished run is returned without repeating it.

    Args:
        algo: A name of `fmtlbench list algorithms`, or the path of a .py file with one registered method.
        scenario: A name of `fmtlbench list scenarios`, or the path of a .yml file.
        preset: How big: a name of `fmtlbench list presets`.
        seed: Of everything random.
        rounds: Shorthand for the override `federation.rounds`.
        device: "auto", "cpu", "cuda", "cuda:1" or "mps".
        data_root: Where the real datasets lie; the embedded data need none.
        out: The folder runs are kept in.
        fresh: Throw away what an earlier run with this config left, and start over.
        progress: Told what happens; by default nobody is.
        save_predictions: Write the last round's predictions for the test images into the run folder.
        energy: Measure it; by default unless $FMTLBENCH_ENERGY is "off".
        country: Three-letter code: whose electricity the CO₂e figure counts with; by default $FMTLBENCH_COUNTRY, the
            user's config file, or the world average.
        region: Of that country.
        **overrides: Any config value by dotted name, for example `**{"train.lr": 1e-3, "algo.c": 0.2}`.

    Raises:
        UsageError: The request makes no sense; nothing was touched.
        FmtlbenchError: The run failed; what it had finished is kept, and the same call goes on from there.
    """
    return launch(
        algo, scenario, preset, seed, rounds, device, data_root, out, fresh, progress, overrides, save_predictions,
        energy, country, region,
    )  # fmt: skip


def launch(
    algo: str | Path, scenario: str | Path, preset: str, seed: int, rounds: int | None, device: str,
    data_root: str | Path | None, out: str | Path, fresh: bool, progress: Quiet | None, overrides: Mapping[str, Any],
    save_predictions: bool = False, energy: bool | None = None, country: str | None = None, region: str | None = None,
) -> RunResult:  # fmt: skip
    """`run` with the overrides as a mapping, so that none can collide with an argument."""
    check_device(device)
    choice = choose_energy(energy, country, region)
    if rounds is not None:
        if not isinstance(rounds, numbers.Integral) or isinstance(rounds, bool) or rounds < 1:
            raise UsageError(f"--rounds {rounds}: expected a whole number, 1 or more")
        if "federation.rounds" in overrides:
            raise UsageError(f"--rounds {rounds}: federation.rounds is set too; give one of them")
        overrides = {**overrides, "federation.rounds": rounds}
    config = resolve(str(algo), str(scenario), preset, seed, overrides=overrides)
    if data_root is not None and config.data.source == "synth":
        raise UsageError(f"--data-root {data_root}: preset {preset!r} uses the embedded data; --set data.source=real?")
    chosen = pick_device(device)

    from .engine.run import execute

    config, root, progress = dataclasses.replace(config, device=chosen.type), _path(data_root), progress or Quiet()
    result = execute(config, chosen, Path(out), root, fresh, progress, choice)
    if save_predictions:
        from .engine.predict import predict_run

        predict_run(result.folder, root, chosen, progress)
    return result


def _path(given: str | Path | None) -> Path | None:
    return Path(given) if given else None


def check_device(name: str) -> None:
    """The name alone, before torch is imported."""
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise UsageError(f"--device {name}: expected auto, cpu, cuda, cuda:<number> or mps")


def pick_device(name: str) -> torch.device:
    import torch

    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise FmtlbenchError(f"--device {name}: {count} CUDA devices here; --device cpu works everywhere")
        return torch.device("cuda", device.index or 0)
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise FmtlbenchError("--device mps: not available here; --device cpu works everywhere")
    return device
