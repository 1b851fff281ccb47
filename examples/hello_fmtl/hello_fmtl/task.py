"""Brightness: how light every pixel is."""

from fmtlbench.tasks import TASKS, Positive, TaskSpec

TASKS.add(
    TaskSpec(
        "brightness",
        title="Bright",
        description="brightness",
        kind=Positive("brightness", highest=1.0, nearer="shrinks"),
        loss="l1",
        metric="darkest_error",
    )
)
