"""What README.md and docs/ tell people to type works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from kit import TINY
from PIL import Image
from snippets import pages_to_read

from fmtlbench.cli import build_parser
from fmtlbench.cli._request import request_from
from fmtlbench.config.resolve import resolve

ROOT = Path(__file__).parents[1]
PAGES = pages_to_read()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)


def file_of_the_guide(name: str) -> str:
    """Return the file that docs/add-your-own.md shows under this name."""
    (text,) = [block for block in blocks("docs/add-your-own.md", "python") if block.startswith(f"# {name}\n")]
    return text


def write_files_of_the_guide(folder: Path) -> None:
    """Write every file that the guides to adding one's own show, under the name in its first line."""
    for page, language in product(("docs/add-your-own.md", "docs/weightings.md"), ("python", "yaml")):
        for text in blocks(page, language):
            if name := re.match(r"# ([\w/.]+\.(?:py|yml))\n", text):
                (folder / name[1]).parent.mkdir(exist_ok=True)
                (folder / name[1]).write_text(text)


def commands() -> list[str]:
    lines = [line for page in PAGES for block in blocks(page, "") for line in block.splitlines()]
    return [line.partition("#")[0].strip() for line in lines if line.startswith("fmtlbench ")]


@pytest.mark.parametrize("command", commands())
def test_commands_parse_and_name_things_that_exist(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files_of_the_guide(tmp_path)
    (tmp_path / "my_method.py").write_text(file_of_the_guide("half_way.py"))
    args = build_parser().parse_args(shlex.split(command)[1:])
    if args.verb == "run":
        request = request_from(args)
        resolve(request.algo, request.scenario, request.preset, request.seed, overrides=request.overrides)
    elif args.verb in ("show", "list"):
        assert args.func(args) == 0


def test_there_are_commands_to_test():
    assert len(commands()) >= 8


def test_the_method_of_the_guide_runs(tmp_path, tiny_run):
    path = tmp_path / "half_way.py"
    path.write_text(file_of_the_guide("half_way.py"))
    half, none = (tiny_run(str(path), **{"algo.share": share}) for share in (0.5, 0.0))
    local = tiny_run("local")
    assert half.summary["bytes_up"] > 0
    assert [r["value"] for r in none.scores] == [r["value"] for r in local.scores]
    assert [r["value"] for r in half.scores] != [r["value"] for r in local.scores]


def test_the_network_of_the_guide_runs(tmp_path, tiny_run):
    path = tmp_path / "summed_maps.py"
    path.write_text(file_of_the_guide("summed_maps.py"))
    narrow, wide = (
        tiny_run("fedavg", rounds=2, **{"model.architecture": path, "model.options.width": n}) for n in (4, 16)
    )
    assert (
        narrow.summary["setting_text"]["architecture"] == wide.summary["setting_text"]["architecture"] == "summed_maps"
    )
    assert 0 < narrow.summary["bytes_up"] < wide.summary["bytes_up"]


@pytest.mark.parametrize("scenario", ["blobs.yml", "shades.yml", "two_robots.yml"])
def test_data_and_tasks_of_the_guide_run(scenario, tmp_path, monkeypatch):
    from fmtlbench.cli import main

    monkeypatch.chdir(tmp_path)
    write_files_of_the_guide(tmp_path)
    make_robots(tmp_path / "robots")
    small = [f"--set={key}={value}" for key, value in SMALL.items()]
    brings = ["--dataset-file", "robots/dataset.yml"] if scenario == "two_robots.yml" else []
    argv = ["run", "--algo", "fedavg", "--scenario", scenario, "--rounds", "1", "--no-energy", "--device", "cpu"]
    assert main([*argv, *brings, *small]) == 0
    [summary] = [json.loads(file.read_text()) for file in tmp_path.rglob("summary.json")]
    tasks = {"blobs.yml": {"semseg", "depth"}, "shades.yml": {"shade", "depth"}, "two_robots.yml": {"semseg", "depth"}}
    assert {score["task"] for score in summary["scores"]} == tasks[scenario]
    assert all(score["value"] is not None for score in summary["scores"] if score["primary"])


def test_the_metric_and_the_partition_of_the_guide_are_used(tmp_path, tiny_run):
    write_files_of_the_guide(tmp_path)
    scenario = tmp_path / "dark.yml"
    text = (tmp_path / "blobs.yml").read_text() + "partition: {kind: by_brightness.py}\n"
    scenario.write_text(text.replace("tasks: [semseg, depth]", "tasks: [depth]"))
    result = run_small(scenario, tmp_path, **{"evaluation.metrics.depth": str(tmp_path / "worst_error.py")})
    assert {score["metric"] for score in result.scores} == {"farErr"}
    assert result.summary["setting_text"] and "by_brightness" in (result.folder / "config.yaml").read_text()


SMALL = {"train.batch_size": 4, "data.train_samples.nyud": 8, "data.test_samples.nyud": 4, "data.size.nyud": "[32,32]"}


def run_small(scenario, folder, **options):
    import fmtlbench

    return fmtlbench.run(
        "local",
        scenario,
        rounds=1,
        device="cpu",
        energy=False,
        out=folder / "runs",
        **{"train.batch_size": 4},
        **options,
    )


def make_robots(folder: Path) -> None:
    """Make the images and labels of the guide's folder."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 3)):
        ids = [f"{split}_{number}" for number in range(count)]
        (folder / f"{split}.txt").write_text("\n".join(ids))
        for name in ids:
            for key in ("images", "semseg", "depth"):
                (folder / key).mkdir(exist_ok=True)
            Image.fromarray(rng.integers(255, size=(40, 50, 3), dtype=np.uint8)).save(folder / "images" / f"{name}.png")
            Image.fromarray(rng.integers(3, size=(40, 50), dtype=np.uint8)).save(folder / "semseg" / f"{name}.png")
            np.save(folder / "depth" / f"{name}.npy", rng.uniform(1, 5, (40, 50)).astype(np.float32))


def test_the_listener_of_the_guide_runs(tmp_path, tiny_run):
    path = tmp_path / "loss_table.py"
    path.write_text(file_of_the_guide("loss_table.py"))
    result = tiny_run("local", rounds=2, log=path)
    lines = (result.folder / "logs" / "losses.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"] and all(line.count("\t") == 2 for line in lines)


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    """As printed, on the tiny setting: only the sizes are replaced."""
    import fmtlbench
    from fmtlbench import api

    original = api.run
    small = {key: value for key, value in TINY.items() if key != "data.size"}
    small["data.train_samples"] = {"pascal": 20, "nyud": 8}
    monkeypatch.setattr(api, "run", lambda **given: original(**{**given, **small, "out": tmp_path}))
    (block,) = blocks("README.md", "python")
    exec(compile(block, "README.md", "exec"), {"fmtlbench": fmtlbench})
    assert list(tmp_path.rglob("summary.json"))


def test_the_weighting_of_the_guide_runs(tmp_path, tiny_run):
    write_files_of_the_guide(tmp_path)
    chosen = {"train.weighting": tmp_path / "hardest_task.py"}
    sharp, flat = (
        tiny_run("fedavg", rounds=1, **chosen, **{"train.weighting_options.temperature": t}) for t in (0.1, 1e6)
    )
    plain = tiny_run("fedavg", rounds=1)
    assert sharp.summary["weighting"]["options"] == {"temperature": 0.1}
    assert sharp.summary["setting"] == plain.summary["setting"]
    values = [[score["value"] for score in result.scores] for result in (sharp, flat, plain)]
    assert values[0] != values[2] and values[0] != values[1]


def test_the_table_of_weightings_is_fresh():
    import write_weightings

    page = write_weightings.PAGE.read_text(encoding="utf-8")
    assert page == write_weightings.write_page(), "python docs/write_weightings.py makes the table anew"
    assert page.count("\n| `uw` | UW |") == 1


def test_links_between_pages_exist():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def sbatch(body: str) -> str:
    (script,) = [block for block in blocks("docs/cluster.md", "bash") if body in block]
    return script


@pytest.fixture
def slurm(tmp_path):
    """`slurm(script, **variables)`: run it with stand-ins for the commands; returns what they were told."""
    (tmp_path / "fmtlbench/.venv/bin").mkdir(parents=True)
    (tmp_path / "fmtlbench/.venv/bin/activate").touch()
    (tmp_path / "bin").mkdir()
    for name, does in {
        "scontrol": "printf 'node1\\nnode2\\n'",
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; "$@"',
        "hostname": "echo 10.0.0.1 fe80::1",
        "ray": 'printf "%s\\n" "$@"',
        "fmtlbench": 'printf "%s\\n" "$@"',
    }.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def run(script, **variables):
        environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), **variables}
        done = subprocess.run(["bash"], input=script, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


@pytest.mark.parametrize("script", blocks("docs/cluster.md", "bash"))
def test_the_scripts_for_slurm_are_scripts(script):
    checked = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    first, *directives = script.splitlines()
    assert first == "#!/bin/bash" and directives[0].startswith("#SBATCH --job-name=")


def test_the_array_does_one_command_of_the_list(slurm, tmp_path):
    (tmp_path / "runs.sh").write_text(
        "#!/bin/sh\n# 2 runs\nfmtlbench run --algo local\nfmtlbench run --algo 'my fed'\n"
    )
    assert slurm(sbatch("SLURM_ARRAY_TASK_ID"), SLURM_ARRAY_TASK_ID="2") == ["run", "--algo", "my fed"]


def test_the_bench_of_a_slurm_job_is_one(slurm, tmp_path):
    job = {"ID": "123456", "NODELIST": "node[1-2]", "NUM_NODES": "2"}
    told = slurm(
        sbatch("symmetric-run"), SLURM_CPUS_PER_TASK="8", **{f"SLURM_JOB_{name}": value for name, value in job.items()}
    )
    before, after = told[: told.index("--")], told[told.index("--") + 1 :]
    assert before == ["symmetric-run", "--address", "10.0.0.1:23456", "--min-nodes", "2", "--num-cpus", "8"]
    args = build_parser().parse_args(after[1:])
    assert after[0] == "fmtlbench" and (args.hosts, args.ray_address, args.jobs) == ("ray", "10.0.0.1:23456", 16)
    assert args.out == str(tmp_path / "runs")


def test_ray_has_what_the_script_asks_for():
    symmetric = pytest.importorskip("ray.scripts.symmetric_run", reason="an older Ray, or none")
    flags = {flag for parameter in symmetric.symmetric_run.params for flag in parameter.opts}
    assert {"--address", "--min-nodes"} <= flags


def test_the_page_about_clusters_names_all_of_rays_options():
    import dataclasses

    from fmtlbench.config.ray_options import SECTION, RayOptions

    page = (ROOT / "docs/cluster.md").read_text()
    assert all(f"`{SECTION}{field.name}`" in page for field in dataclasses.fields(RayOptions))


def test_the_table_of_results_is_what_the_leaderboard_prints():
    from fmtlbench.reports.collect import collect
    from fmtlbench.reports.formats import render
    from fmtlbench.reports.leaderboard import leaderboards

    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    printed = render(leaderboards(collect([ROOT / "results" / "nano-3"])), "md")
    rows = [line for line in printed.splitlines() if line.startswith("| ") and not line.startswith(("| Method", "| :"))]
    assert len(rows) == 8
    assert [row for row in rows if row not in text] == []


def test_readme_counts_methods_and_weightings():
    from fmtlbench.algorithms import ALGORITHMS
    from fmtlbench.weightings import WEIGHTINGS

    methods, weightings = (
        sum(registry.home_of(name).startswith("fmtlbench.") for name in registry)
        for registry in (ALGORITHMS, WEIGHTINGS)
    )
    counts = f"({methods} methods × {weightings} weightings of a client's losses)"
    assert counts in (ROOT / "README.md").read_text(encoding="utf-8")
