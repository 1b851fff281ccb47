"""For authors of methods: write one in a file, run it beside two that everybody knows, read Δm.

Run it as a script, or cell by cell in an editor that knows `# %%`. It takes under a minute on one core, because clients
have a handful of images and two rounds: enough to see that everything works, and nothing to conclude from.
"""

# %% A method is one class in one file. This one moves every encoder a share of the way to the mean; decoders stay home.
import sys
from pathlib import Path

import fmtlbench

HERE = Path(sys.argv[1] if len(sys.argv) > 1 else "examples_out/method_author")
HERE.mkdir(parents=True, exist_ok=True)

METHOD = '''\
from dataclasses import dataclass

from fmtlbench.algorithms import ALGORITHMS, Algorithm
from fmtlbench.base.schema import limits


@ALGORITHMS.register("part_way")
class PartWay(Algorithm):
    """Part of the way to the mean encoder."""

    title, paper = "PartWay", "none yet"

    @dataclass(frozen=True)
    class Params:
        share: float = limits(0.5, low=0, high=1, doc="0 is local training, 1 is FedPer")

    def shared(self, index):
        return ("encoder",)

    def aggregate(self, rnd):
        after = rnd.encoder.after  # one row per client that took part
        return {"encoder": after.lerp(after.mean(0, keepdim=True), self.params.share)}
'''
method = HERE / "part_way.py"
method.write_text(METHOD)

# %% A setting of seconds: two clients with different tasks. For real work leave SMALL out, and use --scenario st_mt_1.
scenario = HERE / "small.yml"
scenario.write_text("""\
description: A client with depth, another with depth and normals
paper: none
version: 1
clients:
  - {dataset: nyud, tasks: [depth]}
  - {dataset: nyud, tasks: [depth, normals]}
""")
SMALL = {
    "data.train_samples.nyud": 24,
    "data.test_samples.nyud": 8,
    "data.size.nyud": [32, 32],
    "train.batch_size": 4,
}


def train(algo: str, seed: int, out: str = "runs", **options: object) -> fmtlbench.RunResult:
    """Run a method on the small setting."""
    how = {"rounds": 2, "device": "cpu", "energy": False, "out": HERE / out}
    return fmtlbench.run(algo, scenario, seed=seed, **how, **SMALL, **options)


# %% The method beside local training and FedAvg, with two seeds each. A run that is there already is not made again.
for seed in (0, 1):
    for algo in ("local", "fedavg", str(method)):
        result = train(algo, seed)
        print(f"{result.summary['title']:8} seed {seed}: {result.summary['bytes_up'] / 1e6:5.1f} MB sent up")

# %% Does it do what it should where the answer is known? Without sharing it must be local training, number by number.
alone = train(str(method), 0, out="check", **{"algo.share": 0.0})
assert [score["value"] for score in alone.scores] == [score["value"] for score in train("local", 0).scores]

# %% The table: mean ± standard deviation over seeds, Δm against Local with its interval.
tables = fmtlbench.leaderboard(HERE / "runs")
for table in tables:
    print(table)

# %% Two seeds of two rounds say nothing. What does it take? A bench, and the noise beside the effect:
#
#   fmtlbench bench --algos local,fedavg,examples_out/method_author/part_way.py --scenarios st_mt_1 --seeds 0-4 --jobs 2
#   fmtlbench stats --noise runs
#   fmtlbench probe --algos examples_out/method_author/part_way.py
