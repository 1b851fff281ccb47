"""What every metric shares: the registry, the result, the accumulating state, and the checks of its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from fmtlbench.base.errors import FmtlbenchError
from fmtlbench.base.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    import torch
    from typing_extensions import Self

    from fmtlbench.data.datasets import DatasetInfo
    from fmtlbench.tasks import TaskSpec

METRICS: Registry[type[Metric]] = Registry("metric", "fmtlbench.metrics")

IGNORE = 255  # the label that means "do not score this pixel", in every task


class MetricError(FmtlbenchError, ValueError):
    """A tensor or option that a metric cannot score."""


@dataclass(frozen=True)
class MetricResult:
    """A score. `value` is NaN if there was no valid pixel."""

    value: float
    label: str
    unit: str
    higher_is_better: bool
    extras: Mapping[str, float] = field(default_factory=dict)


class Metric:
    """A meter: `update` adds a batch to its sums, `merge` another meter's sums, `compute` turns them into a score.

    Subclasses implement `update`, which ends in `self._add(name=tensor, ...)`, and `_score(sums)`. Counts are int64 and
    sums float64, so the order of updates and merges does not change counts and changes sums only in the last bits. The
    state stays on the device of the first update.
    """

    name: ClassVar[str] = ""  # set by the registry
    label: ClassVar[str]
    unit: str
    higher_is_better: ClassVar[bool]
    tasks: ClassVar[tuple[str, ...]]
    description: ClassVar[str]
    # Arguments (or name=value) that a config or a flag cannot choose, with the reason.
    decided: ClassVar[Mapping[str, str]] = {}
    scores_training_labels: ClassVar[bool] = False  # score against the labels used for training, if they differ
    takes_raw: ClassVar[bool] = False  # `update` takes the network's raw outputs, before the task decodes them

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._sums: dict[str, torch.Tensor] = {}

    @classmethod
    def set_up(cls, task: TaskSpec, dataset: DatasetInfo, size: tuple[int, int], options: Mapping[str, Any]) -> Self:
        """Return a meter for a task of a dataset at an image size.

        A metric that needs more than its options, such as the number of classes (`dataset.classes[task.name]`),
        overrides this method.

        Args:
            task: The task's record: name, kind of labels, and so on.
            dataset: The dataset's description: class names, options for this metric, and so on.
            size: Height and width of the images.
            options: The config's options; they take precedence over the dataset's.
        """
        meter = cls(**{**dataset.metric_options.get(cls.name, {}), **options})
        if task.unit is not None:
            meter.unit = task.unit
        return meter

    def update(self, prediction: Any, target: Any) -> None:
        """Add a batch of predictions and labels."""
        raise NotImplementedError

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        """Return (value, extras) from the sums, which are on the CPU; called only if something was added."""
        raise NotImplementedError

    def merge(self, other: Metric) -> None:
        if type(other) is not type(self):
            raise MetricError(f"{self.label}: cannot merge a {type(other).__name__} into a {type(self).__name__}")
        if other.options != self.options:
            raise MetricError(f"{self.label}: cannot merge meters with options {self.options} and {other.options}")
        self._settle()
        other._settle()
        self._add(**other._sums)

    def _as_tensors(
        self, prediction: Any, target: Any, kinds: tuple[str, str], channels: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a batch as tensors of one shape on one device; `kinds` and `channels` as `as_tensor` has them."""
        prediction = as_tensor(prediction, f"{self.label} prediction", kinds=kinds[0], channels=channels)
        target = as_tensor(target, f"{self.label} target", kinds=kinds[1], channels=channels)
        wrong = None
        if prediction.shape != target.shape:
            wrong = f"shape {list(prediction.shape)}, but target is {list(target.shape)}"
        elif prediction.device != target.device:
            wrong = f"on {prediction.device}, but target is on {target.device}"
        if wrong:
            raise MetricError(f"{self.label} prediction: {wrong}")
        return prediction, target

    def _settle(self) -> None:
        """Finish work that `update` left running; for metrics that compute in the background."""

    def compute(self) -> MetricResult:
        self._settle()
        value, extras = math.nan, dict[str, float]()
        if self._sums:
            value, extras = self._score({key: value.cpu() for key, value in self._sums.items()})
        return MetricResult(value, self.label, self.unit, self.higher_is_better, extras)

    def reset(self) -> None:
        self._settle()
        self._sums = {}

    def state(self) -> dict[str, np.ndarray]:
        """Return the sums so far as arrays, from which `load_state` continues."""
        self._settle()
        return {key: value.cpu().numpy().copy() for key, value in self._sums.items()}

    def load_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Replace the sums by those that `state` returned."""
        import torch

        self._sums = {key: torch.as_tensor(value).clone() for key, value in state.items()}

    def _add(self, **sums: torch.Tensor) -> None:
        for key, value in sums.items():
            if key in self._sums:
                self._sums[key] += value.to(self._sums[key].device)
            else:
                self._sums[key] = value.clone()


def option(metric: str, name: str, value: str, valid: tuple[str, ...]) -> str:
    """Return an option's value if it is valid; otherwise raise MetricError."""
    if value not in valid:
        raise MetricError(f"{metric}: {name} is {value!r}, expected one of {', '.join(map(repr, valid))}")
    return value


def as_tensor(value: Any, name: str, *, kinds: str, channels: int = 1) -> torch.Tensor:
    """Return `value` as a tensor [B, H, W] (or [B, C, H, W]) of an accepted kind; drop an axis of a single channel.

    Args:
        value: Torch tensor or numpy array.
        name: Its name in error messages, for example "mIoU prediction".
        kinds: Accepted dtypes: any of "i" (integer), "b" (bool), "f" (floating).
        channels: Expected length of axis 1; 1 also accepts a tensor without that axis.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        try:
            value = torch.as_tensor(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise MetricError(f"{name}: expected a tensor or array, got {type(value).__name__} ({error})") from None
    kind = "f" if value.is_floating_point() else "b" if value.dtype == torch.bool else "i"
    if value.is_complex() or kind not in kinds:
        words = {"i": "integer", "b": "bool", "f": "floating"}
        raise MetricError(f"{name}: dtype {value.dtype}, expected {' or '.join(words[k] for k in kinds)}")
    if channels == 1:
        if value.ndim == 4 and value.shape[1] == 1:
            value = value[:, 0]
        wanted, fits = "[B, H, W]", value.ndim == 3
    else:
        wanted, fits = f"[B, {channels}, H, W]", value.ndim == 4 and value.shape[1] == channels
    if not fits:
        raise MetricError(f"{name}: shape {list(value.shape)}, expected {wanted}")
    return value.detach()


def require(*checks: tuple[torch.Tensor, str, torch.Tensor, str]) -> None:
    """Raise for the first failing check, with one device synchronisation for all of them.

    Each check is (scalar bool tensor that is True when fine, tensor's name, tensor, what was expected).
    """
    import torch

    for fine, (_, name, tensor, expected) in zip(torch.stack([check[0] for check in checks]).tolist(), checks):
        if not fine:
            raise MetricError(f"{name}: {_describe_values(tensor)}, expected {expected}")


def _describe_values(tensor: torch.Tensor) -> str:
    if not tensor.is_floating_point():
        return f"values from {tensor.min().item()} to {tensor.max().item()}"
    bad = (~tensor.isfinite()).sum().item()
    if bad:
        return f"{bad} of {tensor.numel()} values are NaN or infinite"
    return f"values from {tensor.min().item():.6g} to {tensor.max().item():.6g}"


def within(tensor: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Return a scalar bool, true if every value is in [low, high]; false for NaN and infinities."""
    smallest, largest = tensor.aminmax()
    return (smallest >= low) & (largest <= high)


def finite(tensor: torch.Tensor) -> torch.Tensor:
    """Return a scalar bool, true if every value is finite; one pass, since the extrema carry NaN and infinity."""
    smallest, largest = tensor.aminmax()
    return smallest.isfinite() & largest.isfinite()


def whole(target: torch.Tensor) -> torch.Tensor:
    """Return a scalar bool, true if the labels are whole numbers from 0 to 255."""
    fine = within(target, 0, IGNORE)
    return fine & (target.int() == target).all() if target.is_floating_point() else fine


def binary_label(target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return labels {0, 1, 255} as int32 with 2 for ignored, and a scalar bool, true if no other value occurs."""
    label = target.int()
    values = label.clamp(0, IGNORE).flatten().bincount(minlength=IGNORE + 1)
    return label.clamp(max=2), whole(target) & (values[2:IGNORE].sum() == 0)
