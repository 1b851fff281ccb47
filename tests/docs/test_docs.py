"""What README.md and docs/ tell people to type works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess

import pytest
from kit import QUICK, as_flags, rows_of
from robots import write_robots
from rooms import ROOT
from snippets import pages_to_read, read_blocks, read_file, write_files

import fmtlbench
from fmtlbench.cli import build_parser, main
from fmtlbench.cli._request import request_from
from fmtlbench.config.resolve import resolve

PAGES = pages_to_read()


GUIDE = "docs/add-your-own.md"
SMALL = {"train.batch_size": 4, "data.train_samples.nyud": 8, "data.test_samples.nyud": 4, "data.size.nyud": [32, 32]}


def blocks(page: str, language: str) -> list[str]:
    return [block.text for block in read_blocks(page) if block.language == language]


def commands() -> list[str]:
    texts = [(ROOT / page).read_text() for page in PAGES]
    lines = [
        line
        for text in texts
        for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S)
        for line in block.splitlines()
    ]
    return [line.partition("#")[0].strip() for line in lines if line.startswith("fmtlbench ")]


@pytest.fixture
def guide(tmp_path, monkeypatch):
    """A folder to be in, with every file that the guides to adding one's own show."""
    monkeypatch.chdir(tmp_path)
    for page in (GUIDE, "docs/weightings.md"):
        write_files(page, tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def parser():
    return build_parser()


@pytest.mark.parametrize("command", commands())
def test_commands_parse_and_name_things_that_exist(command, guide, parser):
    (guide / "my_method.py").write_text(read_file(GUIDE, "half_way.py"))
    args = parser.parse_args(shlex.split(command)[1:])
    if args.verb == "run":
        request = request_from(args)
        resolve(request.algo, request.scenario, request.preset, request.seed, overrides=request.overrides)
    elif args.verb in ("show", "list"):
        assert args.func(args) == 0


def test_there_are_commands_to_test():
    assert len(commands()) >= 8


def test_the_method_of_the_guide_runs(guide, tiny_run):
    half, none = (tiny_run(str(guide / "half_way.py"), **{"algo.share": share}) for share in (0.5, 0.0))
    local = tiny_run("local")
    assert half.summary["bytes_up"] > 0
    assert [r["value"] for r in none.scores] == [r["value"] for r in local.scores]
    assert [r["value"] for r in half.scores] != [r["value"] for r in local.scores]


def test_the_method_with_hooks_on_the_client_runs(guide, tiny_run):
    """Its clients are sent the mean from the second round on, judge it, and tell what they did."""
    rows = rows_of(tiny_run(str(guide / "choosy.py")))
    for number, row in enumerate(rows):
        for name, entry in row["ledger"].items():
            sent = {"extra": entry["up"]["encoder"]} if number else {}
            assert (entry["up"]["extra"], entry["down"]) == (4, sent)
            assert isinstance(row["algorithm"]["took"][name], bool)
    assert not any(rows[0]["algorithm"]["took"].values())


def test_the_network_of_the_guide_runs(guide, tiny_run):
    chosen = {"model.architecture": guide / "summed_maps.py"}
    narrow, wide = (tiny_run("fedavg", rounds=2, **chosen, **{"model.options.width": n}) for n in (4, 16))
    assert {run.summary["setting_text"]["architecture"] for run in (narrow, wide)} == {"summed_maps"}
    assert 0 < narrow.summary["bytes_up"] < wide.summary["bytes_up"]


@pytest.mark.parametrize("scenario", ["blobs.yml", "shades.yml", "two_robots.yml"])
def test_data_and_tasks_of_the_guide_run(scenario, guide):
    write_robots(guide, train=8, test=3)
    brings = ["--dataset-file", "robots/dataset.yml"] if scenario == "two_robots.yml" else []
    argv = ["run", "--algo", "fedavg", "--scenario", scenario, "--rounds", "1", "--no-energy", "--device", "cpu"]
    assert main([*argv, *brings, *as_flags(SMALL)]) == 0
    [summary] = [json.loads(file.read_text()) for file in guide.rglob("summary.json")]
    tasks = {"blobs.yml": {"semseg", "depth"}, "shades.yml": {"shade", "depth"}, "two_robots.yml": {"semseg", "depth"}}
    assert {score["task"] for score in summary["scores"]} == tasks[scenario]
    assert all(score["value"] is not None for score in summary["scores"] if score["primary"])


def test_the_metric_and_the_partition_of_the_guide_are_used(guide):
    scenario = guide / "dark.yml"
    text = (guide / "blobs.yml").read_text() + "partition: {kind: by_brightness.py}\n"
    scenario.write_text(text.replace("tasks: [semseg, depth]", "tasks: [depth]"))
    options = {"train.batch_size": 4, "evaluation.metrics.depth": str(guide / "worst_error.py")}
    result = fmtlbench.run("local", scenario, rounds=1, device="cpu", energy=False, out=guide / "runs", **options)
    assert {score["metric"] for score in result.scores} == {"farErr"}
    assert result.summary["setting_text"] and "by_brightness" in (result.folder / "config.yaml").read_text()


def test_the_listener_of_the_guide_runs(guide, tiny_run):
    result = tiny_run("local", rounds=2, log=guide / "loss_table.py")
    lines = (result.folder / "logs" / "losses.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1", "2"] and all(line.count("\t") == 2 for line in lines)


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    """As printed, on the tiny setting: only the sizes are replaced."""
    from fmtlbench import api

    original = api.run
    small = {**QUICK, "data.train_samples": {"pascal": 20, "nyud": 8}}
    monkeypatch.setattr(api, "run", lambda **given: original(**{**given, **small, "out": tmp_path}))
    (block,) = blocks("README.md", "python")
    exec(compile(block, "README.md", "exec"), {"fmtlbench": fmtlbench})
    assert list(tmp_path.rglob("summary.json"))


def test_the_weighting_of_the_guide_runs(guide, tiny_run):
    chosen = {"train.weighting": guide / "hardest_task.py"}
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
