"""odsF of edge detection: SEISM's measure with exact matching, without MATLAB."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

from ._base import METRICS, Metric, MetricError, binary_label, option, require, within

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future, ProcessPoolExecutor

    import numpy as np
    import torch
    from typing_extensions import Self

    from fmtlbench.data.datasets import DatasetInfo
    from fmtlbench.tasks import TaskSpec

    from .edges.image import Counts

# The smallest matching tolerance: on tiny images the papers' fraction of the diagonal is less than one pixel, and only
# the very same pixel would match. No effect at the papers' sizes (5.4 and 8.0 pixels).
MIN_PIXELS = 1.5


@METRICS.register("odsf")
class OdsF(Metric):
    """odsF in percent: the best F over thresholds of counts summed over the set, edges matched one to one.

    Per image: truncate the probability to 8 bits, suppress non-maxima, and per threshold thin the binary map and count
    a maximum matching with the thin label edges. Extras: oisF (best threshold per image), AP, and threshold, precision
    and recall at the maximum. NaN when the labels hold no edge at all.

    A frame of ignored pixels (padding) is cut off before anything else, so that a padded image scores as the image
    itself; in ignored pixels inside, neither predicted nor labelled edges count.

    Args:
        max_dist: Matching tolerance as a fraction of the image diagonal (0.011 for NYUD-v2, 0.0075 for PASCAL-Context).
        nms: Suppress non-maxima first.
        gt: How label edges come from the target. "seism": boundary map sent through label-change detection again, as
            for the published NYUD scores; "plain": boundary map thinned as it is; "labelmap": integer map of segments
            without ignore label, as for PASCAL-Context.
        thresholds: Number n of thresholds k/(n+1).
        jobs: Worker processes over images; 1 computes in this process. Does not change the score. Workers start by
            spawning, so a script that asks for them needs the usual `if __name__ == "__main__":`.
    """

    label, unit, higher_is_better = "odsF", "%", True
    tasks = ("edge",)
    decided: ClassVar = {
        "jobs": "does not change the score",
        "gt=labelmap": "the labels here are boundary maps: seism or plain",
    }
    description = "best boundary F-measure over thresholds (SEISM), exact matching"

    def __init__(
        self,
        *,
        max_dist: float = 0.011,
        nms: bool = True,
        gt: str = "seism",
        thresholds: int = 99,
        jobs: int = 1,
    ) -> None:
        if not 0 <= max_dist <= 1:
            raise MetricError(f"odsF: max_dist is {max_dist}, expected a fraction of the diagonal in [0, 1]")
        if not 1 <= thresholds <= 255:
            raise MetricError(f"odsF: thresholds is {thresholds}, expected 1 to 255")
        if jobs < 1:
            raise MetricError(f"odsF: jobs is {jobs}, expected at least 1")
        option("odsF", "gt", gt, ("seism", "plain", "labelmap"))
        super().__init__(max_dist=max_dist, nms=bool(nms), gt=gt, thresholds=thresholds)
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._running: deque[Future[Counts]] = deque()

    @classmethod
    def set_up(cls, task: TaskSpec, dataset: DatasetInfo, size: tuple[int, int], options: Mapping[str, Any]) -> Self:
        """Return a meter with the dataset's tolerance, raised to MIN_PIXELS; a config's own tolerance is not raised."""
        meant = dataset.metric_options.get(cls.name, {})
        if "max_dist" in meant:
            options = {"max_dist": max(meant["max_dist"], MIN_PIXELS / math.hypot(*size)), **options}
        return super().set_up(task, dataset, size, options)

    def update(self, prediction: Any, target: Any) -> None:
        """Add edge probabilities [B, H, W] in [0, 1] and labels {0, 1, 255} (or segments, for gt="labelmap")."""
        segments = self.options["gt"] == "labelmap"
        prediction, target = self._as_tensors(prediction, target, ("f", "i" if segments else "ibf"))
        if not target.numel():
            return
        probable = (within(prediction, 0, 1), "odsF prediction", prediction, "probabilities in [0, 1]")
        if segments:
            require(probable)
            labels, ignored = target.cpu().numpy(), None
        else:
            label, known = binary_label(target)
            require(probable, (known, "odsF target", target, "0, 1 or 255 (ignore)"))
            codes = label.byte().cpu().numpy()
            labels, ignored = codes & 1, codes == 2 if (codes == 2).any() else None
        strength = (prediction.float() * 255).byte().cpu().numpy()  # truncates, as the public code does
        for i in range(len(strength)):
            self._image(strength[i], labels[i], None if ignored is None else ignored[i])

    def _image(self, strength: np.ndarray, labels: np.ndarray, ignored: np.ndarray | None) -> None:
        from .edges.image import score, valid_part

        part = valid_part(ignored)
        if part is None:
            return
        strength, labels = strength[part], labels[part]
        ignored = None if ignored is None else ignored[part]
        if min(strength.shape) < 2:
            raise MetricError(f"odsF prediction: {strength.shape[0]}×{strength.shape[1]} pixels, expected at least 2×2")
        if self.jobs == 1:
            self._count(score(strength, labels, ignored, **self.options))
            return
        if self._pool is None:
            self._pool = _pool(self.jobs)
        self._running.append(self._pool.submit(score, strength, labels, ignored, **self.options))
        self._settle(waiting=8 * self.jobs)  # bounds the memory held by waiting images

    def _count(self, counts: Counts) -> None:
        import torch

        self._add(
            matched=torch.from_numpy(counts.matched),
            predicted=torch.from_numpy(counts.predicted),
            actual=torch.tensor(counts.actual),
            best=torch.from_numpy(counts.best),
        )

    def _settle(self, waiting: int = 0) -> None:
        from concurrent.futures.process import BrokenProcessPool

        while len(self._running) > waiting:
            try:
                self._count(self._running.popleft().result())
            except BrokenProcessPool as error:
                self._pool = None
                self._running.clear()
                raise MetricError(
                    "odsF: a worker process died; a script that asks for workers needs `if __name__ == '__main__':`, "
                    "and jobs=1 uses none"
                ) from error

    def close(self) -> None:
        """Finish the running work and end the worker processes; the next update starts them again."""
        self._settle()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return {**self.__dict__, "_pool": None}

    def curve(self) -> dict[str, np.ndarray]:
        """Return arrays threshold, precision, recall and F (fractions), one entry per threshold."""
        import numpy as np

        from .edges.curve import precision_recall

        n = self.options["thresholds"]
        sums = self.state() or {"matched": np.zeros(n, int), "predicted": np.zeros(n, int), "actual": np.zeros((), int)}
        precision, recall, f = precision_recall(sums["matched"], sums["predicted"], sums["matched"], sums["actual"])
        return {"threshold": np.arange(1, n + 1) / (n + 1), "precision": precision, "recall": recall, "F": f}

    def _score(self, sums: dict[str, torch.Tensor]) -> tuple[float, dict[str, float]]:
        from .edges.curve import average_precision, precision_recall

        if not sums["actual"].item():
            return math.nan, {}
        curve = self.curve()
        best = int(curve["F"].argmax())
        hit, predicted, actual = sums["best"].tolist()
        extras = {
            "oisF": 100 * float(precision_recall(hit, predicted, hit, actual)[2]),
            "AP": 100 * average_precision(curve["precision"], curve["recall"]),
            "threshold": float(curve["threshold"][best]),
            "precision": 100 * float(curve["precision"][best]),
            "recall": 100 * float(curve["recall"][best]),
        }
        return 100 * float(curve["F"][best]), extras


def _pool(jobs: int) -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # forking a process that holds torch's threads can hang
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
