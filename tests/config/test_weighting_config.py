"""The weighting of losses in a config: by name or file, its options, hashes, stored configs, code, requests."""

from __future__ import annotations

import json

import pytest
import yaml
from copied_package import package  # noqa: F401  (a fixture)

from fmtlbench.base.errors import UsageError
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.cli import main
from fmtlbench.config.request import RunRequest, place_beside
from fmtlbench.config.resolve import check_preset, read_method, resolve, resolve_stored, split_method
from fmtlbench.config.roles import roles
from fmtlbench.config.run_file import ask_for_run
from fmtlbench.config.setting import WEIGHTING, WEIGHTING_OPTIONS
from fmtlbench.runs.code_identity import PARTS, Sources
from fmtlbench.runs.configured_code import code_of
from fmtlbench.runs.differences import compare_runs
from fmtlbench.runs.folder import RunFolder
from fmtlbench.runs.inventory import describe_run
from fmtlbench.runs.store import format_config
from fmtlbench.runs.summary import describe_weighting
from fmtlbench.weightings import WEIGHTINGS

MINE = """\
from dataclasses import dataclass

from fmtlbench.weightings import WEIGHTINGS, Weighting


@WEIGHTINGS.register("mine")
class Mine(Weighting):
    \"\"\"The first task counts more.\"\"\"

    title, paper = "Mine", "none"

    @dataclass(frozen=True)
    class Params:
        factor: float = 2.0

    def total(self, losses):
        return losses.sum() + (self.params.factor - 1) * losses[0]
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file with a weighting; what it registers is forgotten after the test."""
    WEIGHTINGS.load()
    for name in ("_items", "_origins", "_brought"):
        monkeypatch.setattr(WEIGHTINGS, name, dict(getattr(WEIGHTINGS, name)))
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def weighed(name="gradnorm", algo="fedavg", **options):
    given = {f"{WEIGHTING_OPTIONS}.{option}": value for option, value in options.items()}
    return resolve(algo, "mt_mt", overrides={WEIGHTING: str(name), **given})


def store(folder, config):
    file = folder / "config.yaml"
    file.write_text(format_config(config))
    tree = load_yaml(file)
    tree.pop("format")
    return tree


# -- resolving ---------------------------------------------------------------------------------------------------------


def test_equal_is_what_configs_had_before():
    plain = resolve("fedavg", "mt_mt")
    assert (plain.train.weighting, plain.train.weighting_options) == (
        roles().since[WEIGHTING],
        roles().since[WEIGHTING_OPTIONS],
    )
    assert weighed("equal").hash() == plain.hash() and plain.method == "fedavg"


def test_every_option_is_written_out():
    config = weighed(alpha=2)
    assert config.train.weighting_options == {"alpha": 2.0} and config.method == "fedavg+gradnorm"
    usual = weighed()
    assert list(usual.train.weighting_options) == ["alpha"]
    assert len({config.hash(), usual.hash(), weighed("uw").hash(), resolve("fedavg", "mt_mt").hash()}) == 4


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gradnrom", {}, r"--set train\.weighting=gradnrom: no weighting 'gradnrom'; did you mean 'gradnorm'"),
        ("gradnorm", {"alhpa": 1}, r"--set train\.weighting_options\.alhpa=1: .*unknown key 'alhpa'; .*'alpha'"),
        ("gradnorm", {"alpha": "high"}, r"train\.weighting_options\.alpha: expected a finite number, got 'high'"),
        ("equal", {"alpha": 1}, r"unknown key 'alpha'"),
        ("missing.py", {}, r"--set train\.weighting=missing\.py: no such file: .*missing\.py"),
    ],
)
def test_what_there_is_not_is_refused_by_name(name, options, message):
    with pytest.raises(UsageError, match=message):
        weighed(name, **options)


def test_a_weighting_that_is_no_name_is_refused():
    with pytest.raises(UsageError, match=r"train\.weighting: expected text, got 3"):
        resolve("fedavg", "mt_mt", overrides={WEIGHTING: 3})


@pytest.mark.parametrize("name", list(WEIGHTINGS))
def test_every_registered_one_makes_a_config(name):
    config = weighed(name)
    assert config.train.weighting == name
    described = describe_weighting(config)
    assert (described is None) == (name == "equal")
    assert described is None or described["options"] == described["default_options"]


def test_departures_are_of_the_setting_alone():
    config = resolve("fedavg", "mt_mt", overrides={WEIGHTING: "uw", "train.lr": 1e-3})
    assert config.departures == {"train.lr": 1e-3}
    assert resolve("fedavg", "mt_mt", overrides={WEIGHTING: "uw"}).departures == {}


def test_it_is_no_part_of_the_setting(mine):
    plain = resolve("local", "mt_mt").setting()
    assert weighed(alpha=2).setting() == weighed("uw").setting() == weighed(mine).setting() == plain


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_counts_by_its_content(mine, tmp_path):
    config = weighed(mine, factor=3)
    assert (config.train.weighting, config.train.weighting_options) == ("mine", {"factor": 3.0})
    assert list(config.plugins) == ["weighting mine"] and config.plugin_files == {"weighting mine": str(mine)}
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "mine.py"
    moved.write_text(MINE)
    assert weighed(moved, factor=3).hash() == config.hash()
    moved.write_text(MINE + "\nADDED = 1\n")
    assert weighed(moved, factor=3).hash() != config.hash()
    config.bring_files()  # the file of the first one again
    assert WEIGHTINGS["mine"]((), ()).title == "Mine"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class Mine(Weighting)", "class Mine", "weighting 'mine' is not a subclass of fmtlbench.weightings.Weighting"),
        ('title, paper = "Mine", "none"', 'paper = "none"', 'has no title of its own; add title = "…" to the class'),
        ("    @dataclass(frozen=True)\n", "", "has a Params that is not a dataclass; add @dataclass"),
        ('register("mine")', 'register("uw")', "weighting 'uw' is registered twice"),
    ],
)
def test_a_class_that_is_not_as_it_should_be_is_refused(mine, old, new, message):
    assert old in MINE
    mine.write_text(MINE.replace(old, new))
    with pytest.raises(UsageError, match=message):
        weighed(mine)


# -- presets -----------------------------------------------------------------------------------------------------------


def test_a_preset_may_choose_one(tmp_path, mine):
    preset = tmp_path / "weighed.yml"
    preset.write_text("extends: nano\ntrain: {weighting: gradnorm, weighting_options: {alpha: 0.5}}\n")
    check_preset(str(preset))
    config = resolve("fedavg", "mt_mt", str(preset))
    assert (config.train.weighting, config.train.weighting_options) == ("gradnorm", {"alpha": 0.5})
    other = resolve("fedavg", "mt_mt", str(preset), overrides={WEIGHTING: "uw"})
    assert (other.train.weighting, other.train.weighting_options) == ("uw", {})  # its options are another one's
    preset.write_text("extends: nano\ntrain: {weighting: mine.py}\n")
    assert resolve("fedavg", "mt_mt", str(preset)).plugin_files == {"weighting mine": str(mine)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{weighting: uv}", r"weighed\.yml:2: train\.weighting: no weighting 'uv'; did you mean 'uw'"),
        ("{weighting: uw, weighting_options: {a: 1}}", r"weighed\.yml:2: train\.weighting_options\.a: unknown key 'a'"),
    ],
)
def test_a_presets_mistake_is_told_with_its_line(tmp_path, text, message):
    preset = tmp_path / "weighed.yml"
    preset.write_text(f"extends: nano\ntrain: {text}\n")
    for act in (check_preset, lambda given: resolve("fedavg", "mt_mt", given)):
        with pytest.raises(UsageError, match=message):
            act(str(preset))


# -- stored configs ----------------------------------------------------------------------------------------------------


def test_a_stored_config_is_rebuilt(tmp_path, mine):
    for config in (weighed(alpha=2), weighed(mine, factor=3), weighed("equal")):
        assert resolve_stored(store(tmp_path, config)).hash() == config.hash()


def test_overrides_of_a_stored_config_replace_weighting_and_options(tmp_path, mine):
    tree = store(tmp_path, weighed(mine, factor=3))
    other = resolve_stored(tree, overrides={WEIGHTING: "gradnorm"})
    assert other.train.weighting_options == {"alpha": WEIGHTINGS["gradnorm"].Params().alpha}
    assert not other.plugins and not other.plugin_files and other.hash() == weighed().hash()
    again = resolve_stored(tree, overrides={f"{WEIGHTING_OPTIONS}.factor": 4})
    assert again.train.weighting_options == {"factor": 4.0} and list(again.plugins) == ["weighting mine"]


def test_a_stored_config_of_before_has_equal_weights(tmp_path):
    config = resolve("fedavg", "mt_mt")
    tree = store(tmp_path, config)
    del tree["train"]["weighting"], tree["train"]["weighting_options"]
    assert resolve_stored(tree) == config


def test_a_stored_config_whose_file_changed_is_refused(tmp_path, mine):
    tree = store(tmp_path, weighed(mine))
    mine.write_text(MINE + "\nADDED = 1\n")
    with pytest.raises(UsageError, match="the file that brought 'weighting mine' has changed since"):
        resolve_stored(tree)


# -- code --------------------------------------------------------------------------------------------------------------


def changed_parts(before, after):
    return [part for part in PARTS if before.parts[part] != after.parts[part]]


def test_the_weighting_is_a_part_of_the_code(package, mine):  # noqa: F811
    plain, config = resolve("fedavg", "mt_mt"), weighed("uw")
    before = code_of(plain, Sources()), code_of(config, Sources())
    assert list(before[0].files["weighting"]) == ["weightings/equal.py"]
    assert "weightings/uw.py" in before[1].files["weighting"] and changed_parts(*before) == ["weighting"]
    assert "weightings/_base.py" in before[0].files["engine"]
    package.append("weightings/uw.py", "\nADDED = 1\n")
    after = code_of(plain, Sources()), code_of(config, Sources())
    assert after[0] == before[0] and changed_parts(before[1], after[1]) == ["weighting"]
    assert after[1].explain_change(before[1].parts, before[1].files) == "weighting: uw.py changed"
    assert code_of(weighed(mine), Sources()).files["weighting"] == {}  # the file itself is the config's


def test_code_without_that_part_is_no_other_code_for_it():
    code = code_of(resolve("fedavg", "mt_mt"), Sources())
    then = {part: sha256 for part, sha256 in code.parts.items() if part != "weighting"}
    assert code.explain_change(then, {}) == "" and code.find_changes(then) == []
    assert code.explain_change({**then, "method": "other"}, {}) == "method changed"
    assert code.explain_change({**code.parts, "weighting": "other"}, {}) == "weighting changed"


def test_two_runs_are_told_apart_by_weighting_and_not_by_its_code(tmp_path):
    folders = []
    for config in (resolve("fedavg", "mt_mt"), weighed("uw"), resolve("fedavg", "mt_mt", seed=1)):
        code = code_of(config, Sources())
        parts = code.parts
        if config.seed:  # of before the part was recorded
            parts.pop("weighting")
        folder = tmp_path / f"{config.method}-{config.seed}"
        folder.mkdir()
        (folder / "config.yaml").write_text(format_config(config))
        session = {"started": "", "versions": {}, "code": {"sha256": code.sha256, "parts": parts, "files": {}}}
        (folder / "manifest.json").write_text(json.dumps({"config_hash": "", "data": {}, "sessions": [session]}))
        folders.append(RunFolder(folder))
    plain, uw, older = folders
    told = compare_runs(plain, uw)
    assert told.config == {WEIGHTING: ("equal", "uw")} and not told.circumstances
    told = compare_runs(plain, older)
    assert told.config == {"seed": (0, 1)} and not told.circumstances


# -- METHOD+WEIGHTING --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("fedavg", ("fedavg", None)),
        ("fedavg+uw", ("fedavg", "uw")),
        ("./mine.py+uw", ("./mine.py", "uw")),
        ("fedavg+./w.py", ("fedavg", "./w.py")),
        ("mine.py+w.py", ("mine.py", "w.py")),
        ("/tmp/a+b/mine.py", ("/tmp/a+b/mine.py", None)),
        ("/tmp/a+b/mine.py+uw", ("/tmp/a+b/mine.py", "uw")),
        ("c++/mine.py", ("c++/mine.py", None)),
        ("fedvag+uw", ("fedvag", "uw")),
    ],
)
def test_a_word_is_split_at_the_plus(word, parts):
    assert split_method(word) == parts


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("fedavg+uv", r"^--algo fedavg\+uv: no weighting 'uv'; did you mean 'uw'"),
        ("fedvag+uw", r"^--algo fedvag\+uw: no algorithm 'fedvag'; did you mean 'fedavg'"),
        ("fedavg+", r"^--algo fedavg\+: no weighting ''"),
        ("fedavg+./missing.py", r"^--algo fedavg\+\./missing\.py: no such file: \./missing\.py"),
        ("fedvag+./w.py", r"no such file: fedvag\+\./w\.py, and no algorithm 'fedvag'; did you mean 'fedavg'"),
    ],
)
def test_both_parts_have_nearest_names(word, message):
    with pytest.raises(UsageError, match=message):
        RunRequest(word, "mt_mt")
    with pytest.raises(UsageError):
        read_method(word, "--algo")


def test_a_request_takes_it_as_an_override():
    request = RunRequest("fedavg+uw", "mt_mt")
    assert (request.algo, request.overrides) == ("fedavg", {WEIGHTING: "uw"})
    assert request == RunRequest("fedavg", "mt_mt", overrides={WEIGHTING: "uw"})
    assert request == RunRequest("fedavg+uw", "mt_mt", overrides={WEIGHTING: "uw"})  # twice the same
    assert request.config().method == "fedavg+uw"
    assert RunRequest.of("local+gradnorm", "mt_mt", **{f"{WEIGHTING_OPTIONS}.alpha": 1}).config().method


@pytest.mark.parametrize("overrides", [{WEIGHTING: "dwa"}, {"train": {"weighting": "dwa"}}])
def test_two_different_ones_are_refused(overrides):
    with pytest.raises(UsageError, match=r"--algo fedavg\+uw: train\.weighting=dwa is set too; give one of them"):
        RunRequest("fedavg+uw", "mt_mt", overrides=overrides)


def test_files_are_found_from_everywhere(tmp_path, monkeypatch, mine):
    monkeypatch.chdir(tmp_path)
    request = RunRequest("fedavg+mine.py", "mt_mt")
    assert request.anywhere().overrides == {WEIGHTING: str(mine)}
    assert 'train.weighting="mine.py"\'' in request.anywhere().command()
    assert place_beside("fedavg+mine.py[algo.c=1]", tmp_path) == f"fedavg+{mine}[algo.c=1]"
    assert place_beside("m.py+mine.py", tmp_path) == f"{tmp_path / 'm.py'}+{mine}"
    assert place_beside("a+b/x.yml", tmp_path) == str(tmp_path / "a+b/x.yml")


def test_a_run_file_may_say_it_and_flags_take_its_place(tmp_path, mine):
    file = tmp_path / "run.yaml"
    file.write_text("algo: fedavg+mine.py\nscenario: mt_mt\n")
    assert ask_for_run(file, {}).overrides == {WEIGHTING: str(mine)}
    assert ask_for_run(file, {}, {WEIGHTING: "dwa"}).overrides == {WEIGHTING: "dwa"}
    assert ask_for_run(file, {"algo": "local+uw"}).overrides == {WEIGHTING: "uw"}
    assert ask_for_run(file, {"algo": "local"}).overrides == {}
    file.write_text("algo: fedavg\nscenario: mt_mt\nset: {train.weighting: dwa}\n")
    assert ask_for_run(file, {"algo": "local+uw"}).overrides == {WEIGHTING: "uw"}
    file.write_text("algo: fedavg+uv\nscenario: mt_mt\n")
    with pytest.raises(UsageError, match=r"run\.yaml:1: algo fedavg\+uv: no weighting 'uv'"):
        ask_for_run(file, {})


def test_show_config_tells_it(capsys):
    assert main(["show", "config", "--algo", "fedavg+uw", "--scenario", "mt_mt"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["train"]["weighting"] == "uw"


# -- listing -----------------------------------------------------------------------------------------------------------


def test_they_are_listed(capsys):
    assert main(["list", "weightings", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert list(listed) == [name for name in WEIGHTINGS if WEIGHTINGS.home_of(name).startswith("fmtlbench.")]
    assert listed["gradnorm"]["options"] == "alpha=1.5" and listed["gradnorm"]["needs"].startswith("gradients")
    assert listed["uw"]["needs"] == "losses: 1 backward pass" and listed["equal"]["options"] == ""
    assert all(entry["title"] and entry["description"] and entry["paper"] for entry in listed.values())


def test_an_unfinished_run_is_listed_with_it(tmp_path):
    (tmp_path / "config.yaml").write_text(format_config(weighed("uw")))
    assert describe_run(tmp_path, "run").algorithm == "fedavg+uw"
    (tmp_path / "config.yaml").write_text(format_config(resolve("fedavg", "mt_mt")))
    assert describe_run(tmp_path, "run").algorithm == "fedavg"


def test_showing_a_run_tells_weighting_and_options(tmp_path, capsys):
    (tmp_path / "config.yaml").write_text(format_config(weighed(alpha=2)))
    (tmp_path / "manifest.json").write_text('{"config_hash": "", "data": {}, "sessions": []}')
    assert main(["runs", "show", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["departures"]
    assert told == {WEIGHTING: ["equal", "gradnorm"], f"{WEIGHTING_OPTIONS}.alpha": [1.5, 2.0]}
