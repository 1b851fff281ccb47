"""Run folders → one tidy frame."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from made_runs import DUO, score, summary, write_run

from fmtlbench.base.errors import UsageError
from fmtlbench.reports.collect import COLUMNS, DamagedRun, collect, find_runs
from fmtlbench.reports.labels import ZOO, Labels, client_groups, dataset_titles


def test_one_row_per_score_with_every_column(tmp_path):
    write_run(tmp_path, values={("nyud-multi", "depth"): 0.25}, splits=("global", "personal"))
    found = collect([tmp_path])
    frame = found.frame
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 2 * 3
    row = frame[(frame["task"] == "depth") & (frame["split"] == "personal")].iloc[0]
    assert (row["client"], row["dataset"], row["metric"], row["value"], row["unit"]) == (
        "nyud-multi", "nyud", "RMSE", 0.25, "m",
    )  # fmt: skip
    assert (row["algorithm"], row["label"], row["seed"], row["rounds"], row["version"]) == (
        "local", "Local", 0, 40, "0.1.0",
    )  # fmt: skip
    assert row["higher_is_better"] is False or row["higher_is_better"] == 0
    assert row["run"] == found.runs[0].name == f"duo/local/{found.runs[0].folder.name}"
    assert found.problems == []


def test_a_null_score_is_missing_not_zero(tmp_path):
    write_run(tmp_path, values={("nyud-multi", "depth"): None})
    frame = collect([tmp_path]).frame
    assert frame[frame["task"] == "depth"]["value"].isna().all()
    assert frame[frame["task"] != "depth"]["value"].notna().all()


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999"])
def test_a_score_that_is_no_number_is_damage(tmp_path, word):
    file = write_run(tmp_path) / "summary.json"
    file.write_text(file.read_text().replace("50.0", word, 1))
    found = collect([tmp_path])
    assert found.runs == [] and "summary.json cannot be read: " in found.problems[0]


def test_runs_are_found_at_any_depth_once_and_sorted(tmp_path):
    folders = [write_run(tmp_path / where, seed=seed) for where in ("a/b", "c") for seed in (1, 0)]
    assert find_runs([tmp_path]) == sorted(folders)
    assert find_runs([tmp_path, tmp_path / "c", folders[0]]) == sorted(folders)
    assert find_runs([folders[0]]) == [folders[0]]
    names = [run.name for run in collect([tmp_path / "a", tmp_path / "c"]).runs]
    assert len(set(names)) == 4


def test_same_relative_name_below_two_roots_stays_apart(tmp_path):
    made = summary()
    write_run(tmp_path / "one", made)
    write_run(tmp_path / "two", made)
    found = collect([tmp_path / "one", tmp_path / "two"])
    assert found.frame["run"].nunique() == 2


def test_a_folder_without_runs_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    write_run(tmp_path / "full")
    with pytest.raises(UsageError, match="empty: no run in it"):
        find_runs([tmp_path / "full", tmp_path / "empty"])
    with pytest.raises(UsageError, match="nowhere: no such folder"):
        find_runs([tmp_path / "nowhere"])


def test_unfinished_and_damaged_folders_are_problems_with_a_reason(tmp_path):
    write_run(tmp_path)
    unfinished = tmp_path / "duo" / "fedavg" / "nano-synth-s0-00000000"
    unfinished.mkdir(parents=True)
    (unfinished / "config.yaml").write_text("seed: 0\n")
    (unfinished / ".lock").touch()
    damage = {
        "half": lambda text: text[: len(text) // 2],
        "list": lambda text: "[]",
        "lacks": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "scores"}),
        "text": lambda text: text.replace("50.0", '"50.0"', 1),
        "stranger": lambda text: text.replace('"client": "nyud-multi"', '"client": "nobody"', 1),
        "shape": lambda text: json.dumps({**json.loads(text), "scores": [1, 2]}),
        "seed": lambda text: text.replace('"seed": 0', '"seed": "zero"', 1),
        "options": lambda text: text.replace('"options": {}', '"options": [1]', 1),
        "direction": lambda text: text.replace('"higher_is_better": true', '"higher_is_better": null', 1),
    }
    for name, harm in damage.items():
        file = write_run(tmp_path, algorithm=name) / "summary.json"
        file.write_text(harm(file.read_text()))
    found = collect([tmp_path])
    assert len(found.runs) == 1
    told = "\n".join(found.problems)
    assert len(found.problems) == 1 + len(damage)
    for words in (
        "not finished", "cannot be read", "expected an object, got []", "summary.json: lacks scores",
        "scores.0.value: expected a number or null, got '50.0'", "scores: ['nobody'] are not among the clients",
        "scores.0: expected an object, got 1", "seed: expected a whole number, got 'zero'",
        "options: expected an object or null, got [1]", "has no higher_is_better",
    ):  # fmt: skip
        assert words in told
    assert all(problem.scenario == "duo" for problem in found.problems)


def test_older_summaries_fall_back_and_keep_settings_apart(tmp_path):
    def older(**given):
        made = summary(**given)
        for key in ("setting", "setting_text", "numerics", "versions"):
            del made[key]
        return made

    write_run(tmp_path, older(algorithm="local"))
    write_run(tmp_path, older(algorithm="fedavg"))
    write_run(tmp_path, older(algorithm="fedper", rounds=41))
    other = older(algorithm="fedprox")
    other["data_fingerprints"] = {"nyud/train": "changed"}
    write_run(tmp_path, other)
    folder = write_run(tmp_path, older(algorithm="ditto"))
    (folder / "config.yaml").write_text("seed: 0\nalgorithm: {name: ditto}\ntrain: {lr: 1.0}\n")
    settings = {run.summary["algorithm"]: run.setting for run in collect([tmp_path]).runs}
    assert settings["local"] == settings["fedavg"]
    assert len(set(settings.values())) == 4
    assert {run.version for run in collect([tmp_path]).runs} == {"0.0.9"}  # from the manifest


def test_the_other_files_are_read_when_asked(tmp_path):
    folder = write_run(tmp_path)
    run = collect([tmp_path]).runs[0]
    assert [row["round"] for row in run.rounds()] == [1, 2]
    assert run.timing()[0]["seconds"] == {"train": 5.0}
    assert run.cost["seconds_total"] == 10.0
    assert run.manifest["config_hash"] == run.summary["config_hash"]
    (folder / "timing.jsonl").unlink()
    assert run.timing() == []
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"round": 3')  # cut short by a kill: no line yet
    assert len(run.rounds()) == 2
    (folder / "metrics.jsonl").write_text('{"round"\n')
    with pytest.raises(DamagedRun, match=r"metrics.jsonl cannot be read"):
        run.rounds()


def label(options, *others, usual=None, variant=None, title="FedProx"):
    made = [
        {"algorithm": "fedprox", "title": title, "options": each, "default_options": usual}
        for each in (options, *others)
    ]
    return Labels(made).of(made[0], variant)


def test_labels_name_what_was_not_usual():
    usual = {"shared": "all", "mu": 0.01, "weighting": "equal"}
    assert label(usual, usual=usual) == "FedProx"
    assert label({"shared": "encoder", "mu": 0.01}, usual=usual) == "FedProx-E"
    assert label({"shared": "encoder", "mu": 0.1}, usual=usual) == "FedProx-E (mu=0.1)"
    assert label({"mu": 0.12345678}, usual=usual) == "FedProx (mu=0.12345678)"  # not 0.123457
    assert label({"mu": 0.01}, usual=usual | {"mu": 0.001}) == "FedProx (mu=0.01)"  # another preset, another day
    assert label({"shared": "encoder"}, usual=usual | {"shared": "encoder"}) == "FedProx"
    assert label({"mu": 0.01, "new": True}, {"mu": 0.01, "new": False}, usual=usual) == "FedProx (new=true)"


def test_older_runs_are_labelled_by_what_they_differ_in():
    assert label({"a": 1, "b": 2}) == "FedProx"
    assert label({"a": 1, "b": True}, {"a": 1, "b": False}) == "FedProx (b=true)"
    assert label({"shared": "encoder", "mu": 0.01}) == "FedProx-E"  # whatever the others share
    assert label({"shared": "all"}, {"shared": "encoder"}) == "FedProx (shared=all)"


def test_a_published_table_s_own_variant_is_not_worth_mentioning_there():
    usual = {"variant": "cluster", "friends": 2}
    voting = {"variant": "voting", "friends": 8}
    assert label(voting, usual=usual, variant=voting) == "FedProx (friends=8)"  # numbers belong to the setting
    assert label(usual, usual=usual, variant=voting) == "FedProx (variant=cluster)"
    assert label({"shared": "encoder"}, variant={"shared": "encoder"}) == "FedProx"


def test_one_label_maker_keeps_presets_apart():
    made = [
        {"algorithm": "fedprox", "title": "FedProx", "options": {"mu": 0.01}, "default_options": {"mu": mu}}
        for mu in (0.01, 0.001)
    ]
    labels = Labels(made)
    assert [labels.of(each) for each in made] == ["FedProx", "FedProx (mu=0.01)"]


def test_datasets_are_called_as_the_summary_says():
    told = {"data": "real", "clients": [{"id": "a", "dataset": "nyud", "tasks": ["edge"]}]}
    assert dataset_titles(told) == {"nyud": "NYUD-v2"}  # of an older version
    assert dataset_titles(told | {"dataset_titles": {"nyud": "NYU Depth"}}) == {"nyud": "NYU Depth"}


def test_the_order_of_the_zoo_knows_every_method():
    from fmtlbench.algorithms import ALGORITHMS

    assert sorted(ZOO) == sorted(ALGORITHMS)


def test_alike_clients_form_a_group():
    def client(name, dataset, *tasks):
        return {"id": name, "dataset": dataset, "tasks": list(tasks)}

    groups = client_groups(
        [
            *(client(f"pascal-semseg-{i}", "pascal", "semseg") for i in (1, 2)),
            client("x", "nyud", "depth", "edge"),
            client("y", "nyud", "edge", "depth"),
            client("alone", "nyud", "edge"),
        ]
    )
    assert groups == {
        "pascal-semseg-1": "pascal-semseg", "pascal-semseg-2": "pascal-semseg",
        "x": "nyud-depth+edge", "y": "nyud-depth+edge", "alone": "alone",
    }  # fmt: skip


def test_two_versions_of_a_file_and_two_methods_of_one_title_are_told_apart(tmp_path):
    for source in ("aaaaaaaa", "bbbbbbbb"):
        folder = write_run(tmp_path, algorithm="mine", title="Mine", config_hash=source * 8)
        (folder / "config.yaml").write_text(f"algorithm: {{name: mine, source: {source}}}\n")
    write_run(tmp_path, algorithm="one", title="Twin")
    write_run(tmp_path, algorithm="two", title="Twin")
    labels = {run.label for run in collect([tmp_path]).runs}
    assert labels == {"Mine [file aaaaaa]", "Mine [file bbbbbb]", "Twin [one]", "Twin [two]"}


def test_a_real_run_is_read(tiny_run, tmp_path):
    result = tiny_run("fedavg", rounds=1)
    found = collect([tmp_path / "runs"])
    assert found.problems == []
    primary = found.frame[found.frame["primary"].astype(bool)]
    assert list(primary["value"]) == [record["value"] for record in result.scores]
    assert set(primary["group"]) == {"pascal-human_parts", "nyud-multi"}
    assert found.runs[0].label == "FedAvg"


def test_help_imports_no_pandas():
    code = (
        "import sys\nfrom fmtlbench.cli import build_parser\nbuild_parser().format_help()\n"
        "loaded = set(sys.modules) & {'pandas', 'torch', 'numpy', 'jinja2'}\nassert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_made_runs_are_shaped_like_the_engine_s(tiny_run):
    real = tiny_run("local", rounds=1).summary
    made = summary(clients=DUO)
    assert set(made) == set(real)
    assert set(made["clients"][0]) == set(real["clients"][0])
    assert set(score("c", "nyud", "depth", 1.0)) == set(next(r for r in real["scores"] if r["primary"]))
