"""Files that bring a dataset, a metric, a partition or a task count by their content, and are refused once changed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import fmtlbench
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.base.refs import Ref
from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.data.partitions import PARTITIONS
from fmtlbench.metrics import METRICS
from fmtlbench.tasks import TASKS

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

from fmtlbench.data.datasets import DATASETS, Dataset


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
        config.bring_files()
        assert METRICS["share"]()._score({})[0] == value


COUNTING = """\
from pathlib import Path

import beside

log = Path(__file__).with_name("log")
log.write_text(log.read_text() + "x" if log.exists() else "x")
"""


def test_a_file_is_executed_once_while_it_and_what_it_imports_stay_as_they_are(files):
    (files / "beside.py").write_text("ONE = 1\n")
    path = files / "share.py"
    path.write_text(COUNTING + path.read_text())
    first, metric = METRICS.bring(str(path))
    again, same = METRICS.bring(str(path))
    assert first == again and metric is same and (files / "log").read_text() == "x"
    assert str(first) == "metric share" and first.helpers.keys() == {"beside.py"} and first.is_unchanged()
    (files / "beside.py").write_text("ONE = 2\n")
    other, edited = METRICS.bring(str(path))
    assert not first.is_unchanged() and other.content != first.content and edited is not metric
    assert (files / "log").read_text() == "xx"
    assert METRICS.find_brought(first) is metric and METRICS.find_brought(other) is edited
    assert METRICS.find_brought(replace(first, sha256="0")) is None and replace(first, path="gone.py").is_missing()
    for ref, item in ((first, metric), (other, edited), (first, metric)):
        METRICS.keep(ref)
        assert METRICS["share"] is item


def test_all_that_a_config_names_is_a_ref(files):
    config = resolve(
        "local", str(files / "flat.yml"), overrides={**QUICK, "evaluation.metrics.depth": str(files / "share.py")}
    )
    metric, task = config.ref_of("metric", "share"), config.ref_of("task", "depth")
    assert metric.path == str(files / "share.py") and metric.content == config.plugins["metric share"]
    assert task == Ref("task", "depth") and not task.files and task.is_unchanged() and not task.is_missing()
    assert (config.algorithm.ref, config.model.ref) == (Ref("algorithm", "local"), Ref("architecture", "fedhca2"))


def test_a_changed_file_is_refused(files):
    config = resolve(
        "local", str(files / "flat.yml"), overrides={**QUICK, "evaluation.metrics.depth": str(files / "share.py")}
    )
    (files / "share.py").write_text(METRIC.format(limit=2, value=3.0))
    with pytest.raises(FmtlbenchError, match=r"share\.py: the file that brought 'metric share' has changed"):
        config.bring_files()
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
        (DATASET.replace("(Dataset)", ""), "is not a subclass of fmtlbench.data.datasets.Dataset"),
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


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("40 * index", "gone * index", r"flat (train|test), image [abcd]: sample failed: NameError"),
        ("return {key:", "return {} and {key:", r"flat (train|test), image [abcd]: sample gave no image"),
        ("(32, 32, 3), 40", "(32, 32), 40", r"image [abcd]: uint8 \[32, 32\], expected an image of uint8 \[H, W, 3\]"),
        ('["a", "b", "c", "d"]', '["a", "a"]', r"list_images gave .*each once"),
        ('["a", "b", "c", "d"]', "[]", r"list_images gave .*at least one"),
        ('["a", "b", "c", "d"]', "1 / 0", r"list_images failed: ZeroDivisionError"),
        (
            '["a", "b", "c", "d"]',
            "exit(0)",
            r"flat train: list_images failed: sys\.exit\(0\) is not for a hook \(.*flat\.py:",
        ),
        ("40 * index", "exit(0)", r"image [abcd]: sample failed: sys\.exit\(0\) is not for a hook \(.*flat\.py:"),
        ("1.0 + index, np.float32", "np.nan, np.float32", r"image [abcd]: depth: NaN or infinity"),
    ],
)
def test_a_readers_mistake_is_one_line(files, old, new, message):
    assert old in DATASET
    (files / "flat.py").write_text(DATASET.replace(old, new))
    with pytest.raises(FmtlbenchError, match=message):
        run(files)


def test_a_reader_that_exits_while_it_is_opened_is_one_line(files):
    (files / "flat.py").write_text(DATASET + "\n    def __init__(self, *args, **options):\n        exit(0)\n")
    with pytest.raises(
        FmtlbenchError, match=r"flat .*opening it failed: sys\.exit\(0\) is not for a hook \(.*flat\.py:"
    ):
        run(files)


@pytest.mark.parametrize(
    ("old", "hook"), [("self._add(", "exit(0) or self._add("), ("return {value}", "return exit(0), {value}")]
)
def test_a_metric_that_exits_is_one_line(files, old, hook):
    (files / "share.py").write_text(METRIC.replace(old, hook).format(limit=0, value=1.0))
    message = r"metric share failed on depth of client flat-depth-1: sys\.exit\(0\) is not for a hook \(.*share\.py:"
    with pytest.raises(FmtlbenchError, match=message):
        run(files, **{"evaluation.metrics.depth": str(files / "share.py")})


def test_a_partition_that_exits_is_one_line(files):
    (files / "turns.py").write_text(
        "from fmtlbench.data.partitions import PARTITIONS, PartitionRule\n\n\n@PARTITIONS.register('turns')\n"
        "class Turns(PartitionRule):\n    description = 'd'\n\n    def deal(self, *given):\n        exit(0)\n"
    )
    (files / "flat.yml").write_text(SCENARIO + "partition: {kind: turns.py}\n")
    with pytest.raises(FmtlbenchError, match=r"'turns': deal failed: sys\.exit\(0\) is not for a hook \(.*turns\.py:"):
        run(files)


@pytest.mark.parametrize("kind", ["flat.py", "share.py"])
def test_a_file_that_exits_while_it_is_loaded_is_one_line(files, kind):
    (files / kind).write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(UsageError, match=rf"{kind}:2: SystemExit: 0"):
        run(files, **{"evaluation.metrics.depth": str(files / "share.py")})


def test_an_edited_reader_is_not_served_from_the_cache(files, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(files / "cache"))
    assert main(["data", "cache", str(files / "flat.py")]) == 0
    first = run(files)
    (files / "flat.py").write_text(DATASET.replace("1.0 + index", "5.0 + index"))
    second = run(files)
    assert second.folder != first.folder
    trivial = [result.scores[0]["trivial"] for result in (first, second)]
    assert trivial[0] == pytest.approx(trivial[1])  # the spread is the same, the level is not
    assert second.scores[0]["value"] - first.scores[0]["value"] > 1


def test_an_edited_task_is_rendered_anew(files, monkeypatch):
    monkeypatch.setenv("FMTLBENCH_CACHE", str(files / "cache"))
    (files / "rooms.yml").write_text(
        "description: d\npaper: p\nversion: 1\nclients: [{dataset: nyud, tasks: [level.py]}]\n"
    )
    task = (
        "import numpy as np\nfrom fmtlbench.tasks import Metres\nfrom fmtlbench.tasks import TASKS, TaskSpec\n"
        'TASKS.add(TaskSpec("level", title="Level", kind=Metres(), loss="l1", metric="rmse", '
        'from_scene=lambda scene: np.where(scene["object"] > 2, {}, 1.0).astype(np.float32)))\n'
    )
    trivial = []
    for height in (2.0, 9.0):
        (files / "level.py").write_text(task.format(height))
        small = {"data.size.nyud": [32, 32], "data.train_samples.nyud": 4, "data.test_samples.nyud": 2}
        options = {"rounds": 1, "device": "cpu", "energy": False, "out": files / "runs", "train.batch_size": 2}
        result = fmtlbench.run("local", files / "rooms.yml", **options, **small)
        trivial.append(result.scores[0]["trivial"])
    assert trivial[1] == pytest.approx(8 * trivial[0], rel=1e-4)


PARTITION = 'from fmtlbench.data.partitions import PARTITIONS\n\n\n@PARTITIONS.register("x")\nclass X: pass\n'
TASK = (
    "from fmtlbench.tasks import Metres\nfrom fmtlbench.tasks import TASKS, TaskSpec\n"
    'TASKS.add(TaskSpec("x", "X", {kind}, "l1", "{metric}"))\n'
)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("metric", METRIC.format(limit=0, value=1.0).replace('("depth",)', '"depth"'), "has no tasks of type tuple"),
        ("metric", METRIC.format(limit=0, value=1.0).replace("(Metric)", ""), "is not a subclass of .*Metric"),
        ("partition", PARTITION, "is not a subclass of .*PartitionRule"),
        ("task", TASK.format(kind=3, metric="rmse"), "kind is 3, expected a LabelKind"),
        ("task", TASK.format(kind="Metres()", metric="rmze"), "did you mean 'rmse'"),
    ],
)
def test_a_wrong_metric_partition_or_task_is_told_before_anything_runs(files, kind, text, message):
    (files / "wrong.py").write_text(text)
    with pytest.raises(UsageError, match=message):
        {"metric": METRICS, "partition": PARTITIONS, "task": TASKS}[kind].take(str(files / "wrong.py"), "", {})
    assert main(["list", f"{kind}s"]) == 0  # what was refused is in no registry


@pytest.mark.parametrize(("old", "new"), [("return 1.0, {}", "return 1.0 / 0, {}"), ("return 1.0, {}", "return 1.0")])
def test_a_metric_that_fails_is_one_line(files, old, new):
    text = METRIC.format(limit=0, value=1.0)
    assert old in text
    (files / "share.py").write_text(text.replace(old, new))
    with pytest.raises(FmtlbenchError, match=r"metric share failed on depth of client flat-depth-1: \w+Error"):
        run(files, **{"evaluation.metrics.depth": str(files / "share.py")})


def test_evaluate_scores_the_listed_images_of_an_own_dataset(files, capsys):
    (files / "p").mkdir()
    for index, name in ((2, "c"), (1, "b")):
        np.save(files / "p" / f"{name}.npy", np.full((32, 32), 1.0 + index, np.float32))
    (files / "ids.txt").write_text("c\nb\n")
    argv = [
        "score",
        "--task",
        "depth",
        "--dataset",
        str(files / "flat.py"),
        "--pred",
        str(files / "p"),
        "--gt",
        str(files),
    ]
    assert main([*argv, "--ids", str(files / "ids.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == 0
    (files / "ids.txt").write_text("c\nnobody\n")
    assert main([*argv, "--ids", str(files / "ids.txt")]) == 1
    assert "missing label: nobody" in capsys.readouterr().err


def test_datasets_of_a_scenario_are_a_list(files):
    (files / "flat.yml").write_text(SCENARIO.replace("[flat.py]", "flat.py"))
    with pytest.raises(UsageError, match=r"flat\.yml:4: datasets: expected a list of files"):
        resolve("local", str(files / "flat.yml"), overrides=QUICK)


def test_no_module_of_a_file_stays_behind_under_another_name(files):
    resolve("local", str(files / "flat.yml"), overrides=QUICK)
    assert not [name for name in sys.modules if name == "flat"]
