"""Write which public names docs/api.md shows; autodoc fills in what their docstrings say.

Run: python docs/write_api.py     prints it
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

# heading, what it is for, and the names: a class with its own members, a function, or a class alone (ends in !)
PARTS = (
    ("Runs", "What the command line's `run` and `bench` do, and what they leave.", (
        "fmtlbench.run",
        "fmtlbench.api.bench",
        "fmtlbench.bench.request.Bench",
        "fmtlbench.load",
        "fmtlbench.runs.result.RunResult",
        "fmtlbench.inference.loaded_run.LoadedRun",
        "fmtlbench.runs.folder.RunFolder",
        "fmtlbench.config.request.RunRequest",
    )),
    ("Methods", "The base class of a method, and what hooks are given ([add-your-own.md](add-your-own.md#a-method)).", (
        "fmtlbench.algorithms.Algorithm",
        "fmtlbench.algorithms.Local",
        "fmtlbench.algorithms.Workbench",
        "fmtlbench.algorithms.Evaluation",
        "fmtlbench.exchange.Party",
        "fmtlbench.exchange.Rows",
        "fmtlbench.exchange.Round",
    )),
    ("Weightings", "How a client makes one step of its tasks' losses ([weightings.md](weightings.md)).", (
        "fmtlbench.weightings.Weighting",
    )),
    ("Metrics", "Meters that add up batches and can be merged ([add-your-own.md](add-your-own.md#a-metric)).", (
        "fmtlbench.metrics.Metric",
        "fmtlbench.metrics.MetricResult",
        "fmtlbench.metrics.MeanIoU",
        "fmtlbench.metrics.MaxF",
        "fmtlbench.metrics.MeanAngle",
        "fmtlbench.metrics.RMSE",
        "fmtlbench.metrics.OdsF",
        "fmtlbench.metrics.delta_m",
    )),
    ("Scenarios, datasets, tasks, networks", "The records and base classes behind their files.", (
        "fmtlbench.scenarios.load_scenario",
        "fmtlbench.scenarios.read_scenario",
        "fmtlbench.scenarios.Scenario",
        "fmtlbench.scenarios.ClientSpec",
        "fmtlbench.scenarios.Partition",
        "fmtlbench.data.datasets.Dataset",
        "fmtlbench.data.partitions.PartitionRule",
        "fmtlbench.tasks.TaskSpec",
        "fmtlbench.networks.architectures.Architecture",
    )),
    ("Reports", "Tables, tests and figures of stored runs; none of them loads torch ([reports.md](reports.md)).", (
        "fmtlbench.leaderboard",
        "fmtlbench.reports.collect.collect",
        "fmtlbench.reports.leaderboard.leaderboards",
        "fmtlbench.reports.formats.render",
        "fmtlbench.reports.stats.analyse",
        "fmtlbench.reports.stats.Analysis",
        "fmtlbench.reports.papers.claims.judge",
        "fmtlbench.reports.cost.cost_tables",
        "fmtlbench.reports.over.cost_over",
    )),
    ("Listeners", "Who is told what happens in a run ([add-your-own.md](add-your-own.md#a-listener)).", (
        "fmtlbench.listeners.Listener",
        "fmtlbench.listeners.Start",
    )),
    ("Errors", "All errors that a user can cause: [errors.md](errors.md).", (
        "fmtlbench.FmtlbenchError",
        "fmtlbench.UsageError",
    )),
)  # fmt: skip


def write() -> str:
    """Return Markdown that asks autodoc for every name, a section for each part."""
    return "\n".join(line for part in PARTS for line in _section(*part))


def _section(title: str, text: str, names: tuple[str, ...]) -> Iterator[str]:
    yield f"## {title}\n\n{text}\n\n```{{eval-rst}}"
    for name in names:
        kind = "class" if name.rpartition(".")[2][0].isupper() else "function"
        yield f".. auto{kind}:: {name}" + ("\n   :members:" if kind == "class" else "") + "\n"
    yield "```\n"


if __name__ == "__main__":
    sys.stdout.write(write())
