"""Files that bring a dataset, a metric, a partition or a task count by their content, and are refused once changed."""

from __future__ import annotations

import json
import sys

import pytest

import fmtlbench
from fmtlbench.cli import main
from fmtlbench.errors import FmtlbenchError, UsageError
from fmtlbench.metrics import METRICS
from fmtlbench.plugins import load_plugins
from fmtlbench.resolving import resolve

METRIC = """\
from fmtlbench.metrics import METRICS, Metric


@METRICS.register("share")
class Share(Metric):
    label, unit, higher_is_better, tasks, description = "share", "", True, ("depth",), "d"

    def update(self, prediction, target):
        self._add(pixels=(prediction > {limit}).sum())

    def _score(self, sums):
        return {value}, {{}}
"""
DATASET = """\
import numpy as np

from fmtlbench.datasets import DATASETS, Dataset


@DATASETS.register("flat")
class Flat(Dataset):
    title, description, tasks = "Flat", "nothing but ground", ("depth",)

    def list_images(self):
        return ["a", "b", "c", "d"]

    def sample(self, index, keys=None):
        image = np.full((32, 32, 3), 40 * index, np.uint8)
        whole = {"image": image, "depth": np.full((32, 32), 1.0 + index, np.float32)}
        return {key: whole[key] for key in self.check_keys(keys)}
"""
SCENARIO = (
    "description: d\npaper: p\nversion: 1\ndatasets: [flat.py]\nclients: [{dataset: flat, tasks: [depth], count: 2}]\n"
)
QUICK = {"train.batch_size": 2, "data.size.flat": [32, 32]}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "flat.py").write_text(DATASET)
    (tmp_path / "flat.yml").write_text(SCENARIO)
    (tmp_path / "share.py").write_text(METRIC.format(limit=0, value=1.0))
    return tmp_path


def run(files, **options):
    small = {"rounds": 1, "device": "cpu", "energy": False, "out": files / "runs", **QUICK}
    return fmtlbench.run("local", files / "flat.yml", **small, **options)


def test_content_counts_and_places_do_not(files, tmp_path):
    first = resolve("local", str(files / "flat.yml"), overrides=QUICK)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("flat.py", "flat.yml"):
        (moved / name).write_text((files / name).read_text())
    assert resolve("local", str(moved / "flat.yml"), overrides=QUICK).hash() == first.hash()
    (moved / "flat.py").write_text(DATASET.replace("40 * index", "50 * index"))
    assert resolve("local", str(moved / "flat.yml"), overrides=QUICK).hash() != first.hash()


def test_a_module_beside_the_file_counts_too(files):
    (files / "flat.py").write_text("from shades import STEP\n" + DATASET.replace("40 * index", "STEP * index"))
    hashes = set()
    for step in (10, 20):
        (files / "shades.py").write_text(f"STEP = {step}\n")
        hashes.add(resolve("local", str(files / "flat.yml"), overrides=QUICK).hash())
    assert len(hashes) == 2


def test_two_metrics_of_one_name_stay_apart(files, tmp_path):
    """Each config gets the one of its own file, whichever was read last."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "share.py").write_text(METRIC.format(limit=1, value=2.0))
    key = "evaluation.metrics.depth"
    one, two = (
        resolve("local", str(files / "flat.yml"), overrides={**QUICK, key: str(folder / "share.py")})
        for folder in (files, other)
    )
    assert one.evaluation.metrics == two.evaluation.metrics == {"depth": "share"} and one.hash() != two.hash()
    for config, value in ((one, 1.0), (two, 2.0), (one, 1.0)):
        load_plugins(config)
        assert METRICS["share"]()._score({})[0] == value


def test_a_changed_file_is_refused(files):
    config = resolve(
        "local", str(files / "flat.yml"), overrides={**QUICK, "evaluation.metrics.depth": str(files / "share.py")}
    )
    (files / "share.py").write_text(METRIC.format(limit=2, value=3.0))
    with pytest.raises(FmtlbenchError, match=r"share\.py: the file that brought 'metric share' has changed"):
        load_plugins(config)
    (files / "flat.py").write_text(DATASET + "# changed\n")
    with pytest.raises(FmtlbenchError, match=r"flat\.py: the file that brought dataset 'flat' has changed"):
        config.data.dataset("flat")


def test_a_finished_run_is_found_again_and_predicts(files, capsys):
    result = run(files, **{"evaluation.metrics.depth": str(files / "share.py")})
    assert run(files, **{"evaluation.metrics.depth": str(files / "share.py")}).reused
    assert {score["metric"] for score in result.scores} == {"share"}
    assert main(["predict", str(result.folder), "-o", str(files / "p"), "--device", "cpu"]) == 0
    assert len(list((files / "p").rglob("*.npy"))) == 2 * 4


def test_bench_runs_it_in_processes_of_its_own(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    sets = [word for key, value in QUICK.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    scenario = SCENARIO.replace("datasets: [flat.py]\n", "")
    (files / "flat.yml").write_text(scenario)
    argv = ["bench", "--algos", "local", "--scenarios", "./flat.yml", "--seeds", "0", "--rounds", "1", "--no-energy"]
    assert main([*argv, *sets, "--dataset-file", "flat.py", "--out", "runs", "--device", "cpu"]) == 0
    assert len(list(files.rglob("summary.json"))) == 1, capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "registers 0 datasets"),
        ("import fmtlbench.gone\n", r"flat\.py:1: ModuleNotFoundError"),
        (DATASET.replace('("depth",)', '("depht",)'), "no task 'depht'.*did you mean 'depth'"),
        (DATASET.replace('tasks = "Flat", "nothing but ground", ("depth",)', 'name2 = "Flat", "x", 1'), "has no tasks"),
        (DATASET.replace("(Dataset)", ""), "is not a subclass of fmtlbench.datasets.Dataset"),
    ],
)
def test_a_wrong_file_is_one_line(files, text, message):
    (files / "flat.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        resolve("local", str(files / "flat.yml"), overrides=QUICK)


def test_a_label_of_another_form_names_image_and_task(files):
    (files / "flat.py").write_text(DATASET.replace("np.float32)}", "np.int64)}"))
    with pytest.raises(FmtlbenchError, match=r"image [abcd]: depth: int64 \[32, 32\], expected float32 \[H, W\]"):
        run(files)


def test_no_module_of_a_file_stays_behind_under_another_name(files):
    resolve("local", str(files / "flat.yml"), overrides=QUICK)
    assert not [name for name in sys.modules if name == "flat"]
