"""Presets as files of one's own: what they inherit, how they are called, and what in them counts."""

from __future__ import annotations

import json

import pytest

from fmtlbench import cli
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError
from fmtlbench.base.located import locate
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.bench.plan import make_plan
from fmtlbench.config.presets import default_options, identify_preset, list_ancestry, preset_files, read_preset
from fmtlbench.config.request import RunRequest
from fmtlbench.config.resolve import resolve, resolve_without_method


@pytest.fixture
def preset(tmp_path):
    def write(text, name="mine.yml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return str(file)

    return write


def test_a_file_changes_what_it_says_and_inherits_the_rest(preset):
    file = preset("extends: nano\ntrain: {lr: 5e-3}\ndata: {size: {nyud: [32, 64]}}\n")
    config, nano = resolve("fedavg", "st_mt_1", file), resolve("fedavg", "st_mt_1")
    assert config.preset == "mine" and config.train.lr == 5e-3 and config.train.batch_size == nano.train.batch_size
    assert config.data.size == {"nyud": (32, 64), "pascal": (64, 64)}
    assert config.folder().name.startswith("mine-synth-s0-")


def test_files_may_extend_each_other_beside_themselves(preset):
    preset(
        "extends: nano\ndescription: small\ntrain: {lr: 1e-3, batch_size: 4, warmup_epochs: {nyud: 1, pascal: 1}}\n",
        "low.yml",
    )
    file = preset("extends: low.yml\ntrain: {lr: 2e-3, warmup_epochs: 2}\n")
    tree = read_preset(file)
    assert (tree["train"]["lr"], tree["train"]["batch_size"], tree["train"]["warmup_epochs"]) == (2e-3, 4, 2)
    assert locate(tree, "train.lr").endswith("mine.yml:2") and locate(tree, "train.batch_size").endswith("low.yml:3")
    assert tree["train"]["warmup_epochs"] == 2 and locate(tree, "train.warmup_epochs.nyud").endswith("mine.yml:2")
    assert "description" not in tree
    assert [path.stem for path in list_ancestry(file)] == ["mine", "low", "nano"]


def test_a_preset_need_not_extend_another(preset):
    file = preset(preset_files()["nano"].read_text(encoding="utf-8"))
    assert resolve("fedavg", "st_mt_1", file).train == resolve("fedavg", "st_mt_1").train


def test_circles_are_refused_with_the_chain(preset):
    preset("extends: b.yml\n", "a.yml")
    preset("extends: c.yml\n", "b.yml")
    file = preset("extends: a.yml\n", "c.yml")
    with pytest.raises(UsageError, match=r"in a circle: .*c\.yml → .*a\.yml → .*b\.yml → .*c\.yml$"):
        read_preset(file)
    with pytest.raises(UsageError, match="in a circle"):
        read_preset(preset("extends: self.yml\n", "self.yml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: nanoo\n", "mine.yml:1: extends: no preset 'nanoo'; did you mean 'nano'"),
        ("extends: none.yml\n", "mine.yml:1: extends: no such file: "),
        ("extends: [nano]\n", "mine.yml:1: extends: expected a preset's name or file"),
        ("extends: nano\ntrian: {}\n", "mine.yml:2: no section of presets 'trian'; did you mean 'train'"),
        ("extends: nano\nnumerics: 1\n", "mine.yml:2: no section of presets 'numerics'"),
        ("extends: nano\nseed: 1\n", "mine.yml:2: no section of presets 'seed'"),
        ("extends: nano\ntrain: 5\n", "mine.yml:2: train: expected a mapping"),
        ("extends: nano\ntrain: {lrr: 5}\n", "mine.yml:2: train.lrr: unknown key 'lrr'"),
        ("extends: nano\nmodel: {code: {}}\n", "mine.yml:2: model.code: is filled in by itself"),
        ("extends: nano\ndescription: [a]\n", "mine.yml:2: description: expected text"),
        ("- nano\n", "mine.yml:1: expected the sections of a preset"),
        ("train: {lr: 1}\n", "missing key"),
        (
            "extends: nano\ndata:\n  train_samples: {1: 3, pascal: 4}\n",
            "mine.yml:3: expected text as a key, got the int '1'; in quotes it is text",
        ),
        ("extends: &a [*a]\n", "an alias inside its own anchor"),
    ],
)
def test_mistakes_are_named_with_their_line(preset, text, message):
    with pytest.raises(UsageError) as caught:
        resolve("fedavg", "st_mt_1", preset(text))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_names_follow_the_rule_for_names_and_are_not_the_packages(preset, tmp_path):
    with pytest.raises(UsageError, match="'nano' is the name of an installed preset"):
        read_preset(preset("extends: probe\n", "nano.yml"))
    with pytest.raises(UsageError, match="cannot be the name of a preset"):
        read_preset(preset("extends: nano\n", " x.yml"))
    with pytest.raises(UsageError, match=r"no such file: .*; an installed preset is given by its name"):
        read_preset(str(tmp_path / "none.yml"))


def test_content_counts_and_comments_do_not(preset):
    first = resolve("fedavg", "st_mt_1", preset("extends: nano\ntrain: {lr: 5e-3}\n"))
    again = resolve("fedavg", "st_mt_1", preset("# a remark\ndescription: my own\ntrain: {lr: 0.005}\nextends: nano\n"))
    assert again.hash() == first.hash()
    # Only an option of a method differs, which no setting has: the runs must not share a table all the same.
    text = "extends: nano\nalgorithms: {{fedprox: {{mu: {}}}}}\n"
    one, other = (resolve("fedprox", "st_mt_1", preset(text.format(mu))) for mu in (0.1, 0.5))
    assert one.preset == other.preset == "mine" and one.setting() != other.setting()
    assert identify_preset("nano") is None and resolve("fedavg", "st_mt_1").preset_file.sha256 is None


def test_the_options_that_it_gives_are_the_usual_ones_even_if_it_is_gone(preset, tmp_path):
    file = preset("extends: nano\nalgorithms: {fedprox: {mu: 0.5}}\n")
    config = resolve("fedprox", "st_mt_1", file)
    assert config.algorithm.options["mu"] == 0.5 and config.preset_options == {"mu": 0.5}
    assert default_options(ALGORITHMS["fedprox"], file)["mu"] == 0.5
    (tmp_path / "mine.yml").unlink()
    assert default_options(ALGORITHMS["fedprox"], config.preset, config.preset_options)["mu"] == 0.5
    assert default_options(ALGORITHMS["fedprox"], "mine")["mu"] == 0.01  # an old run of a preset nobody has


def test_files_that_it_names_lie_beside_it(preset, tmp_path, monkeypatch):
    from kit import TOY

    preset(TOY, "folder/toy.py")
    file = preset("extends: nano\nmodel: {architecture: toy.py}\n", "folder/mine.yml")
    monkeypatch.chdir(tmp_path)
    assert resolve("fedavg", "st_mt_1", "folder/mine.yml").model.architecture == "toy"
    copy = preset("extends: nano\nmodel: {architecture: ../folder/toy.py}\n", "other/mine.yml")
    one, other = (resolve("fedavg", "st_mt_1", each).model.ref for each in (copy, file))
    assert one.sha256 == other.sha256 and one.is_unchanged()


def test_a_bench_takes_files_as_presets(preset, tmp_path):
    file = preset("extends: nano\ntrain: {lr: 5e-3}\n")
    grid = read_grid(None, Flags("fedavg", "st_mt_1", "0", f"nano,{file}"))
    plan = make_plan(grid.asked(), RunRequest("", "", out=tmp_path / "runs"), "cpu")
    assert sorted({column for _, column in plan.cells}) == ["st_mt_1 (mine)", "st_mt_1 (nano)"]
    words = plan.runs[-1].request.anywhere().to_argv()
    assert words[words.index("--preset") + 1] == file
    twin = preset("extends: nano\n", "other/mine.yml")
    with pytest.raises(UsageError, match="have one name; call one file differently"):
        read_grid(None, Flags("fedavg", "st_mt_1", "0", f"{twin},{file}"))
    (tmp_path / "grid.yml").write_text("algos: fedavg\nscenarios: st_mt_1\npreset: mine.yml\n")
    assert read_grid(tmp_path / "grid.yml", Flags()).presets == (file,)


def test_show_and_list(preset, capsys):
    file = preset("extends: nano\ndescription: my own\ntrain: {lr: 5e-3}\n")
    assert cli.main(["show", "preset", file]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mine: my own\nextends ") and f"train.lr\t0.005\t{file}:3" in out
    assert "train.batch_size\t16\t" in out
    assert cli.main(["show", "preset", file, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["values"]["train"]["lr"] == 0.005 and record["lines"]["train.lr"] == f"{file}:3"
    assert record["extends"][0].endswith("nano.yml")
    assert cli.main(["show", "preset", "nano"]) == 0 and "extends" not in capsys.readouterr().out
    assert cli.main(["list", "presets", "--json"]) == 0
    assert all(one["extends"] == "" for one in json.loads(capsys.readouterr().out))
    assert resolve_without_method("st_mt_1", file).preset == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train: {lrr: 5}", "mine.yml:2: train.lrr: unknown key 'lrr'; did you mean 'lr'"),
        ("train: {lr: -1}", "mine.yml:2: train.lr: expected more than 0"),
        ("data: {size: {nyud: 5}}", "mine.yml:2: data.size.nyud: expected a list"),
        ("checkpoint_every: no", "mine.yml:2: checkpoint_every: expected a whole number"),
        ("algorithms: {fedprx: {mu: 1}}", "mine.yml:2: algorithms: no algorithm 'fedprx'; did you mean 'fedprox'"),
        ("algorithms: {fedprox: {muu: 1}}", "mine.yml:2: algorithms.fedprox.muu: unknown key 'muu'"),
        ("architectures: {tc: {task_step: joint}}", "mine.yml:2: architectures.tc.task_step: unknown key"),
    ],
)
def test_show_refuses_what_no_run_accepts(preset, capsys, text, message):
    assert cli.main(["show", "preset", preset(f"extends: nano\n{text}\n")]) == 2
    assert message in capsys.readouterr().err


def test_show_doubts_a_dataset_that_only_a_scenario_could_bring(preset, capsys):
    file = preset("data: {size: {nyudd: [32, 64], default: [64, 64]}}\n")
    assert cli.main(["show", "preset", file]) == 0
    doubts = capsys.readouterr().err
    assert f"{file}:1: data.size.nyudd: no dataset 'nyudd' unless the scenario brings it; did you mean 'nyud'" in doubts
    assert "default" not in doubts


@pytest.mark.parametrize("name", preset_files())
def test_show_accepts_every_installed_preset(capsys, name):
    assert cli.main(["show", "preset", name]) == 0
    assert capsys.readouterr().err == ""
