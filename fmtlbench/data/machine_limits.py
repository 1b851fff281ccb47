"""Compare the memory that a request needs at least with what the machine has, so that typing errors are found early."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UsageError
from ..base.words import say_bytes

if TYPE_CHECKING:
    from ..config.run_config import RunConfig

# Bytes of a pixel: rendering keeps some twenty numbers of eight bytes, an embedded sample is bytes and floats.
RENDERED, STORED = 160, 20


@cache
def machine_memory() -> int:
    """Return the bytes of this machine's memory."""
    import psutil

    return psutil.virtual_memory().total


def check_image_memory(images: int, size: tuple[int, int], where: str) -> None:
    """Refuse more rendered images of a size than the machine's memory can hold."""
    needed = images * size[0] * size[1] * RENDERED
    if needed > machine_memory():
        raise UsageError(
            f"{where}: {images} × {size[0]} × {size[1]} pixels take at least {say_bytes(needed)} of memory, and this "
            f"machine has {say_bytes(machine_memory())}"
        )


def check_config_memory(config: RunConfig, complain: Callable[[str, str], UsageError]) -> None:
    """Refuse batches that exceed the memory and embedded data that exceed the disk; `complain` makes the error."""
    widest: dict[str, int] = {}  # dataset → the most tasks that one of its clients has
    for group in config.scenario.clients:
        widest[group.dataset] = max(len(group.tasks), widest.get(group.dataset, 0))
    for domain, tasks in widest.items():
        height, width = config.data.size[domain]
        # A batch is at least its images, its labels and the network's outputs: numbers of four bytes.
        image = 4 * height * width * (3 + 2 * tasks)
        counts = {"train": config.data.train_images(domain), "test": (config.data.test_samples or {}).get(domain)}
        for section, split in (("train", "train"), ("evaluation", "test")):
            batch = getattr(config, section).batch_size
            batch = batch if counts[split] is None else min(batch, counts[split])
            if batch * image > machine_memory():
                key = f"data.size.{domain}" if image > machine_memory() else f"{section}.batch_size"
                raise complain(
                    key,
                    f"a batch of {batch} images of {height} × {width} takes at least {say_bytes(batch * image)} of "
                    f"memory, and this machine has {say_bytes(machine_memory())}",
                )
        if config.data.dataset(domain).source == "synth":
            for split, count in counts.items():
                _check_disk(count, height * width * STORED, f"data.{split}_samples.{domain}", complain)


def _check_disk(count: int, each: int, key: str, complain: Callable[[str, str], UsageError]) -> None:
    from ..base.cache_folder import cache_root

    folder = Path(cache_root()).absolute()
    folder = next((place for place in (folder, *folder.parents) if place.is_dir()), folder)
    there = max(shutil.disk_usage(folder).total, machine_memory())
    if count * each > there:
        raise complain(
            key,
            f"{count} images take about {say_bytes(count * each)}, and the disk of {folder} holds {say_bytes(there)}",
        )
