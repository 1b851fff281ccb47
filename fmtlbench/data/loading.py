"""Read, transform and stack real images into batches, in this process or in worker processes.

A batch depends only on its indices and seed, so any number of workers gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..base.errors import FmtlbenchError, UsageError
from ..base.seeds import stream
from ..tasks import TASKS
from .amounts import USUAL, Amounts
from .datasets import read_sample
from .tensors import empty_batch, fill
from .transforms import prepare, stretch_labels, test_transform, train_transform

Batch = dict[str, Tensor]


class RealBatches(Dataset):
    """A sequence of batches; item b is the b-th batch, or the error that occurred while making it.

    Args:
        dataset: gives `sample(index, keys)` at native resolution, and `size` and `resize`.
        parts: the sample numbers of each batch.
        keys: 'image' and the tasks.
        augment: names of transforms.AUGMENTATIONS.
        seed: of the random transforms; None for test samples, which get none.
        amounts: strengths of the random transforms.
        labels_of: image → another image whose labels it carries.
    """

    def __init__(
        self,
        dataset: Any,
        parts: Sequence[np.ndarray],
        keys: tuple[str, ...],
        augment: tuple[str, ...],
        seed: int | None,
        amounts: Amounts = USUAL,
        labels_of: Mapping[int, int] | None = None,
    ) -> None:
        self.dataset, self.parts, self.keys, self.augment, self.seed = dataset, parts, keys, augment, seed
        self.amounts, self.labels_of = amounts, labels_of or {}

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, number: int) -> Batch | FmtlbenchError:
        try:
            return self._stack(self.parts[number])
        except FmtlbenchError as error:
            return error  # raising it here would show the user a worker's stack trace

    def _stack(self, indices: np.ndarray) -> Batch:
        batch: dict[str, np.ndarray] = {}
        for place, index in enumerate(indices):
            sample = self._transform(int(index))
            # Copied at once, while its arrays are still in the processor's cache.
            for key in self.keys:
                value = sample[key][None]
                if place == 0:
                    batch[key] = empty_batch(key, value, len(indices))
                fill(batch[key][place : place + 1], key, value)
        return {key: torch.from_numpy(value) for key, value in batch.items()}

    def _transform(self, index: int) -> dict[str, np.ndarray]:
        sample = self._read(index)
        with self._naming(index):
            size, resize = self.dataset.size, self.dataset.resize
            if self.seed is None:
                return test_transform(sample, size, resize)
            return train_transform(sample, size, self.augment, stream(self.seed, index), self.amounts, resize)

    def _read(self, index: int) -> dict[str, np.ndarray]:
        """Return an image with its labels, or with those of another image, which are then brought to its size."""
        if index not in self.labels_of:
            return self._read_own(index)
        image = read_sample(self.dataset, index, ("image",))["image"]
        source = self.labels_of[index]
        other = self._read_own(source)
        with self._naming(source):
            return {"image": image, **stretch_labels(other, image.shape[:2])}

    def _read_own(self, index: int) -> dict[str, np.ndarray]:
        sample = read_sample(self.dataset, index, self.keys)
        if not self.dataset.checks_itself:
            with self._naming(index):
                _check_labels(sample, self.dataset.info.classes)
        return sample

    @contextmanager
    def _naming(self, index: int) -> Iterator[None]:
        """Say which image what is wrong is about."""
        try:
            yield
        except UsageError as error:
            raise type(error)(f"image {self.dataset.image_id(index)}: {error}") from None


def _check_labels(sample: dict[str, np.ndarray], classes: Mapping[str, int]) -> None:
    """Refuse labels that are not of their kind's form or hold what it cannot."""
    for key, value in sample.items():
        if key != "image" and (problem := TASKS[key].kind.problem(value, None, classes.get(key))):
            raise UsageError(f"{key}: {problem}")


def load(batches: RealBatches, device: torch.device, workers: int) -> Iterator[Batch]:
    """Yield the batches in order, on `device`, while `workers` processes prepare the next ones."""
    pinned = device.type == "cuda"
    if workers:
        prepare()
        batches.dataset.prepare_workers()
    loader = DataLoader(
        batches,
        batch_size=None,
        num_workers=min(workers, len(batches)),
        collate_fn=_return_unchanged,
        pin_memory=pinned,
        generator=torch.Generator(),  # it draws one number per epoch, which must not come from the training's stream
    )
    prepared = iter(loader)
    try:
        while (batch := _next(prepared)) is not None:
            if isinstance(batch, FmtlbenchError):
                raise batch
            yield {key: tensor.to(device, non_blocking=pinned) for key, tensor in batch.items()}
    finally:
        del prepared  # ends the workers, also when the caller stops early


def _next(prepared: Iterator[Any]) -> Batch | FmtlbenchError | None:
    """Return the next batch, None at the end, or the error of a failed worker.

    The error is returned, not raised: its traceback would keep the workers alive.
    """
    try:
        return next(prepared, None)
    except RuntimeError as error:
        if "worker" not in str(error):
            raise
        said = str(error).splitlines()[0].rstrip(".")
        return FmtlbenchError(
            f"a loading process ended unexpectedly ({said}), most often because memory ran out; try fewer data.workers"
        )


def _return_unchanged(batch: Any) -> Any:
    return batch
