"""Score a folder of predictions against labels: with which meter, and what is told and written of the score."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, one_line, shorten, unknown
from ..base.files import write_output, write_output_text
from ..base.located import Tree
from ..base.words import say_count
from ..config.resolve import parse_overrides
from ..data.datasets import DATASETS, ArchiveDataset, DatasetInfo, dataset_of_file
from ..data.meters import typed_options
from ..metrics import METRICS, Metric, MetricError
from ..tasks import TASKS, TaskSpec
from .scoring import Findings, pair_files, score_pairs

PLAIN = "plain"  # labels as files of the task's kind
MOST_CLASSES = 255
SHOWN = 12  # files that are named when many are wrong
DATASET_FILES = (".py", ".yml", ".yaml")


@dataclass(frozen=True)
class FileScore:
    """A score of a folder of predictions, as plain data, and the meter that it is from."""

    record: dict[str, Any]
    meter: Metric

    def write(self, folder: Path) -> None:
        """Write the score, and for edges the curve of precision and recall as numbers and as a figure."""
        start = str(folder / self.record["task"])
        write_output_text(f"{start}.json", json.dumps(self.record, indent=2, allow_nan=False) + "\n", make_folder=True)
        if hasattr(self.meter, "curve"):
            curve = self.meter.curve()
            lines = [",".join(curve)] + [",".join(f"{x:.6f}" for x in row) for row in zip(*curve.values())]
            write_output_text(f"{start}_pr.csv", "\n".join(lines) + "\n")
            write_output(f"{start}_pr.png", lambda path: _draw_curve(path, curve, self.record))


@dataclass(frozen=True)
class FileRequest:
    """What is to be scored against which labels.

    Args:
        task: Its name.
        predictions: Their folder, or one with a folder per task.
        labels: The archive's root, or a folder of labels.
        dataset: The layout of the labels: a dataset with files, its .py or .yml file, or "plain".
        split: The list of ids of the archive.
        ids: A file of ids to score instead.
        classes: Their number, where the dataset does not say.
        options: Of the metric, as `--option` takes them: "NAME=VALUE".
        flags: More of them, by name: the flag that stands for it, and its value; None: not given.
        jobs: Processes, where the metric takes several.
    """

    task: str
    predictions: Path
    labels: Path
    dataset: str
    split: str = "val"
    ids: Path | None = None
    classes: int | None = None
    options: Sequence[str] = ()
    flags: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    jobs: int = 1

    def score(self, judge: Callable[[Findings], None], watch: Callable[[list[str]], Iterable[str]] = iter) -> FileScore:
        """Give every pair of files to the task's meter.

        Args:
            judge: Is given what was found about the files, and may refuse to score them; `Judge` does.
            watch: Is given the ids, and gives them back one by one.
        """
        if self.classes is not None and not 2 <= self.classes <= MOST_CLASSES:
            raise UsageError(f"--classes {self.classes}: expected 2 to {MOST_CLASSES}; 255 is the label to ignore")
        info = self._find_dataset()  # its file may bring the task
        task = TASKS.resolve(self.task, "--task")
        classes = self.classes or (info.classes.get(task.name) if info else None)
        pairs = pair_files(self.predictions, self.labels, task, info, classes, self.split, self.ids)
        judge(Findings(pairs.problems()))
        meter = self._make_meter(task, info, classes)
        try:
            found = score_pairs(meter, pairs, watch(pairs.ids))
            judge(found)
            result = meter.compute()
        finally:
            if hasattr(meter, "close"):
                meter.close()
        record = {
            "task": task.name,
            "dataset": self.dataset,
            "images": len(pairs.ids),
            "metric": result.label,
            "value": _number(result.value),
            "unit": result.unit,
            "higher_is_better": result.higher_is_better,
            "extras": {key: _number(value) for key, value in result.extras.items()},
            "options": meter.options,
            **({"doubts": found.doubts} if found.doubts else {}),
            **({"notes": found.notes} if found.notes else {}),
        }
        return FileScore(record, meter)

    def _find_dataset(self) -> DatasetInfo | None:
        """Return the dataset in whose form the labels are; None for plain files."""
        if self.dataset == PLAIN:
            return None
        if self.dataset.endswith(DATASET_FILES):
            return dataset_of_file(self.dataset)
        there = {name: info for name, info in DATASETS.items() if info.source != "synth"}
        if self.dataset not in there:
            raise unknown("dataset layout", self.dataset, [*there, PLAIN], "--dataset")
        return there[self.dataset]

    def _make_meter(self, task: TaskSpec, info: DatasetInfo | None, classes: int | None) -> Metric:
        metric, given = METRICS[task.metric], self._read_options(task)
        if task.kind.outputs is None and not classes:
            raise UsageError(f"--classes: needed, since the layout {self.dataset!r} does not fix it for {task.name}")
        readers = [reader for reader in info.readers if issubclass(reader, ArchiveDataset)] if info else []
        if "gt" in given and any(reader.needs.get(task.name) for reader in readers):
            raise UsageError(
                f"--option gt={given['gt']}: is for boundary maps, and {self.dataset} draws its own labels"
            )
        accepted = _option_names(metric)
        meant = info.metric_options.get(task.metric, {}) if info else {"gt": "plain"} if "gt" in accepted else {}
        options = {**meant, **({"jobs": self.jobs} if "jobs" in accepted else {}), **given}
        names = {task.name: tuple(map(str, range(classes)))} if classes else {}
        known = DatasetInfo(self.dataset, self.dataset, "real", self.dataset, (task.name,), names, "", ())
        try:
            return metric.set_up(task, known, (1, 1), options)
        except MetricError as error:
            raise UsageError(str(error)) from None
        except Exception as error:
            raise UsageError(
                f"{task.metric} cannot be set up for {task.name}: {type(error).__name__}: {error}"
            ) from error

    def _read_options(self, task: TaskSpec) -> dict[str, Any]:
        """Return the options that are given to the metric, with their types; refuse one that is given twice."""
        values = parse_overrides(list(self.options), "--option", "absent=zero")
        for option, (flag, value) in self.flags.items():
            if value is None:
                continue
            if option in values:
                raise UsageError(f"--option {option}: {flag} is given too; give one of them")
            if option not in _option_names(METRICS[task.metric]):
                raise UsageError(f"{flag}: {task.metric}, which scores {task.name}, has no option {option}")
            values[option] = value
        told = {option: f"--option {option}={value}" for option, value in values.items()}
        return typed_options(task.metric, Tree(values, places=told))


@dataclass(frozen=True)
class Judge:
    """Refuses to score files with problems, and predictions that cannot be right unless somebody vouches for them.

    Args:
        tell: Hears of every such file, and of what is odd.
        trust: Somebody vouches for them.
    """

    tell: Callable[[str], None]
    trust: bool = False

    def __call__(self, found: Findings) -> None:
        """Judge what was found about a folder of predictions.

        Raises:
            FmtlbenchError: They are not scored.
        """
        for line in found.problems[:SHOWN]:
            self.tell(shorten(one_line(line), longest=300))
        if found.problems:
            more = f" (the first {SHOWN})" if len(found.problems) > SHOWN else ""
            files = say_count(len(found.problems), "file")
            raise FmtlbenchError(f"not scored: {files} to put right, listed above{more}")
        for note in found.notes:
            self.tell(f"note: {note}")
        if found.doubts and not self.trust:
            raise FmtlbenchError(
                f"not scored: {'; '.join(found.doubts)}. Is it meant? --trust scores them all the same"
            )
        for doubt in found.doubts:
            self.tell(f"scored all the same (--trust): {doubt}")


def _option_names(metric: type[Metric]) -> set[str]:
    return set(inspect.signature(metric).parameters)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _draw_curve(path: Path, curve: dict, record: dict) -> None:
    """Draw precision over recall, with lines of equal F in the background."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    x = np.linspace(0.01, 1, 200)
    for f in np.arange(0.1, 1, 0.1):
        inside = 2 * x > f
        axes.plot(x[inside], f * x[inside] / (2 * x[inside] - f), color="0.85", linewidth=0.8, zorder=1)
    axes.plot(curve["recall"], curve["precision"], zorder=2)
    best = curve["F"].argmax()
    score = "none" if record["value"] is None else f"{record['value']:.2f}"
    axes.plot(curve["recall"][best], curve["precision"][best], "o", label=f"odsF {score}", zorder=3)
    axes.legend(loc="lower left")
    figure.savefig(path, format="png", dpi=150)
