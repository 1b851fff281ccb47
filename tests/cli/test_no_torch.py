"""What no verb loads that trains nothing: one process asks them all, those that load least first."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from made_rounds import finals, write_rounds
from made_runs import DUO, ST_MT_1, write_run
from snippets import ROOT

TORCH = ["torch", "torchvision", "timm", "codecarbon"]
HEAVY = [*TORCH, "scipy", "skimage", "numba", "matplotlib", "pandas", "rich"]
KINDS = (
    "algorithms", "scenarios", "presets", "architectures", "metrics", "datasets", "listeners", "tasks", "partitions",
    "weightings", "backbones", "backbones timm/*",
)  # fmt: skip
SMALL = "papers reproduce fedhca2_table5_mt_mt --preset nano"
# What must not be loaded after these commands, and the commands; `!` begins those that are refused.
STEPS = (
    (["importlib.metadata", "msgspec", "numpy", *HEAVY], ["--help"]),
    (["fmtlbench.algorithms.fedhca2", *HEAVY], ["show algorithm fedavg"]),
    (
        HEAVY,
        [
            "--version", "run --help", "plot --help", "list", "list --json", *(f"list {kind}" for kind in KINDS),
            "show scenario st_mt_1", "show scenario duo.yml --json", "show algorithm fedhca2",
            "show algorithm local --json", "show preset paper", "show config --algo fedavg --scenario st_mt_1",
            "!run", "!run --algo fedavg --scenario st_mt_1 --set train.lr=x",
            "bench --algos all --scenarios duo.yml --seeds 0-1 --dry-run", "completion bash",
            "runs list runs", "runs show local", "runs diff local fedavg", "runs rm fedavg --yes",
            "papers",
        ],
    ),
    (
        [*TORCH, "matplotlib", "numba"],
        [
            "papers claims",
            "leaderboard runs", "leaderboard board --fairness --format csv", "cost runs", "export runs",
            "export runs --format json -o scores.json", "papers list --audit",
            f"{SMALL} --status runs", "papers compare board --published fedhca2_table1_st_mt_1",
            "probe --algos fedavg --device cpu --dry-run",
        ],
    ),
    (
        TORCH,
        [
            "stats runs", "stats --noise runs --pair fedavg,local", "stats runs -o figures",
            "plot rounds runs/duo -o a.svg", "leaderboard runs --format html -o site",
            "show scenario st_mt_1 -o clients.png",
        ],
    ),
)  # fmt: skip


def test_no_verb_loads_what_it_does_not_need(tmp_path, scenario_file):
    for name in ("local", "fedavg", "ditto"):
        write_run(tmp_path / "board", algorithm=name, clients=ST_MT_1, scenario="st_mt_1")
        for seed in (0, 1):
            values = finals(name, seed, DUO)
            write_rounds(tmp_path / "runs", name, seed=seed, clients=DUO, scenario="duo", values=values)
    for name in ("local", "fedavg"):
        stored = next((ROOT / "results" / "nano-3" / "st_mt_1" / name).glob("nano-synth-s0-*"))
        shutil.copytree(stored, tmp_path / name)
    (tmp_path / "duo.yml").write_text(Path(scenario_file).read_text())
    code = f"""\
        import shlex, sys
        from fmtlbench.cli import main
        for unwanted, commands in {STEPS!r}:
            for command in commands:
                try:
                    code = main(shlex.split(command.lstrip("!")))
                except SystemExit as error:
                    code = error.code or 0
                assert code == 2 * command.startswith("!"), (command, code)
                loaded = [name for name in unwanted if name in sys.modules]
                assert not loaded, (command, loaded)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "scores.json").read_text()) and (tmp_path / "a.svg").exists()
