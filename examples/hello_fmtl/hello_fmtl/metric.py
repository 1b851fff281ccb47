"""The error of the darker half, which needs to know what the dataset and the images are like."""

from fmtlbench.metrics import METRICS, Metric


@METRICS.register("darkest_error")
class DarkestError(Metric):
    label, unit, higher_is_better = "dErr", "", False
    tasks = ("brightness",)
    description = "mean absolute error of pixels below the middle of the classes"

    def __init__(self, *, classes: int, pixels: int, below: float = 0.5):
        super().__init__(classes=classes, pixels=pixels, below=below)

    @classmethod
    def set_up(cls, task, dataset, size, options):
        known = {"classes": len(dataset.class_names["semseg"]), "pixels": size[0] * size[1]}
        return super().set_up(task, dataset, size, {**known, **options})

    def update(self, prediction, target):
        dark = target < self.options["below"]
        self._add(error=((prediction - target).abs() * dark).double().sum(), pixels=dark.sum())

    def _score(self, sums):
        return sums["error"].item() / max(1, sums["pixels"].item()), {}
