"""Runs asked for by a file: the words of the flags, or the config.yaml of an earlier run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from kit import TOY

from fmtlbench import cli
from fmtlbench.base.errors import FmtlbenchError, UsageError
from fmtlbench.config.resolve import resolve, resolve_stored
from fmtlbench.config.run_config import NUMERICS_VERSION
from fmtlbench.config.run_file import ask_for_run
from fmtlbench.config.stored import read_config
from fmtlbench.runs.store import format_config

METHOD = """\
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.fedavg import FedAvg


@ALGORITHMS.register("mine")
class Mine(FedAvg):
    title, paper = "Mine", "none"
"""

METRIC = """\
from fmtlbench.metrics import METRICS
from fmtlbench.metrics.rmse import RMSE


@METRICS.register("far")
class Far(RMSE):
    label = "far"
"""


@pytest.fixture
def written(tmp_path):
    def write(text, name="run.yaml"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write


@pytest.fixture
def stored(tmp_path):
    """The config.yaml of a run, and its config."""

    def store(algo="fedprox", scenario="st_mt_1", change=lambda tree: None, **given):
        config = resolve(algo, scenario, **given)
        tree = yaml.safe_load(format_config(config))
        change(tree)
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump(tree))
        return file, config

    return store


# -- the words of the flags --------------------------------------------------------------------------------------------


def test_a_file_has_the_words_of_the_flags(written):
    file = written(
        "algo: fedprox\nscenario: st_mt_1\npreset: probe\nseed: 3\nrounds: 4\nset: {algo.mu: 0.5, train.lr: 1e-3}\n"
        "out: elsewhere\ndevice: cpu\nlog: json_lines\nsave-predictions: true\nenergy: false\n"
    )
    request = ask_for_run(file, {})
    assert (request.algo, request.preset, request.seed, request.rounds) == ("fedprox", "probe", 3, 4)
    assert (request.out, request.device, request.log, request.energy) == ("elsewhere", "cpu", ("json_lines",), False)
    assert request.save_predictions and request.overrides == {"algo.mu": 0.5, "train.lr": 1e-3}
    assert request.config().federation.rounds == 4


def test_what_is_given_beside_it_takes_its_place(written):
    file = written("algo: fedprox\nscenario: st_mt_1\nseed: 3\nrounds: 4\nset: {algo.mu: 0.5, train.lr: 1e-3}\n")
    request = ask_for_run(file, {"seed": 1, "algo": "fedavg"}, {"train.lr": 2e-3})
    assert (request.algo, request.seed, request.overrides) == ("fedavg", 1, {"algo.mu": 0.5, "train.lr": 2e-3})
    assert ask_for_run(file, {}, {"federation.rounds": 9}).config().federation.rounds == 9
    file = written("algo: fedprox\nscenario: st_mt_1\nset: {federation.rounds: 4}\n")
    assert ask_for_run(file, {"rounds": 9}).config().federation.rounds == 9


def test_files_that_it_names_lie_beside_it(written, tmp_path, monkeypatch, scenario_file):
    shutil.copy(scenario_file, tmp_path / "own.yml")
    (tmp_path / "mine.py").write_text(METHOD)
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "small.yml").write_text("extends: nano\nfederation: {rounds: 2}\n")
    (tmp_path / "far.py").write_text(METRIC)
    text = "algo: mine.py\nscenario: own.yml\npreset: small.yml\nset: {{model.architecture: toy.py, {}}}\n"
    file = written(text.format("evaluation.metrics.depth: far.py"))
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    config = ask_for_run(Path("..") / file.name, {}).config()
    assert (config.algorithm.name, config.scenario.name, config.preset) == ("mine", "own", "small")
    assert config.model.architecture == "toy" and config.federation.rounds == 2
    assert config.evaluation.metrics["depth"] == "far"
    written(text.format("evaluation.metrics: {depth: far.py}"))
    assert ask_for_run(Path("..") / file.name, {}).config().hash() == config.hash()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("alg: fedavg\nscenario: st_mt_1\n", [":1: alg: unknown key 'alg'", "'algo'"]),
        ("algo: fedavg\nscenario: st_mt_1\nseed: one\n", [":3: seed: expected a whole number"]),
        ("algo: fedavg\nscenario: st_mt_1\nset: 5\n", [":3: set: expected a mapping"]),
        ("algo: fedavg\nscenario: st_mt_1\ndata-root: 5\n", [":3: data_root: expected text"]),
        ("algorithm: fedavg\nscenario: st_mt_1\n", [":1: algorithm: unknown key", "did you mean 'algo'?"]),
        ("algo: fedavg\nscenario: st_mt_1\ndata-root: a\ndata_root: b\n", [":4: data_root: is given twice"]),
        ("algo: fedavg\nscenario: st_mt_1\nreuse: anyy\n", [":3: reuse: no reuse 'anyy'; did you mean 'any'"]),
        ("algo: fedavg\nscenario: st_mt_1\nkeep: las\n", [":3: keep: no way to keep", "mean 'last'"]),
        ("algo: fedavg\nscenario: st_mt_1\nexecutor: rai\n", [":3: executor: no executor 'rai'"]),
        ("algo: fedavg\nscenario: st_mt_1\nset: {train.lrr: 1}\n", [":3: train.lrr=1: train.lrr: unknown key"]),
        ("scenario: st_mt_1\nalgo: fedavgg\n", [":2: algo: no algorithm 'fedavgg'; did you mean 'fedavg'"]),
        ("scenario: st_mt_1\nalgo: no.py\n", [":2: algo: no such file: "]),
        ("algo: fedavg\nscenario: st_mt_11\n", [":2: scenario: no scenario 'st_mt_11'; did you mean 'st_mt_1'"]),
        ("algo: fedavg\nscenario: no.yml\n", [":2: scenario: no such file: "]),
        ("algo: fedavg\nscenario: st_mt_1\npreset: nanoo\n", [":3: preset: no preset 'nanoo'; did you mean 'nano'"]),
        ("algo: fedavg\nscenario: st_mt_1\nseed: -1\n", [":3: seed -1: expected a whole number"]),
        ("algo: fedavg\nscenario: st_mt_1\nrounds: 0\n", [":3: rounds 0: expected a whole number"]),
        ("algo: fedavg\nscenario: st_mt_1\ndata-root: d\n", [":3: data-root d: preset 'nano' uses the embedded data"]),
        ("scenario: st_mt_1\n", ["which method? --algo NAME"]),
        ("algo: fedavg\n", ["which scenario? --scenario NAME"]),
        ("- fedavg\n", [":1: expected the words of flags"]),
        ("algo: [fedavg\n", ["not valid YAML"]),
        ("", ["which method?"]),
        ("algo: &a [*a]\n", ["an alias inside its own anchor"]),
        (f"algo: {'x' * 300_000}\n", ["larger than 256 kB"]),
    ],
)
def test_mistakes_are_named_with_their_line(written, text, parts):
    file = written(text)
    with pytest.raises(UsageError) as caught:
        ask_for_run(file, {}).config()
    assert str(caught.value).startswith(str(file)) and all(part in str(caught.value) for part in parts)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("device: gpu", "device gpu: expected auto"),
        ("log: nobody", "log: no listener 'nobody'"),
        ("country: XX", "country XX: no such three-letter"),
        ("keep: none\nexecutor: serial\nray-address: auto", "ray-address auto: is for --executor ray"),
    ],
)
def test_mistakes_that_only_a_run_finds_are_named_with_their_line_too(written, capsys, line, message):
    file = written(f"algo: fedavg\nscenario: st_mt_1\n{line}\n")
    assert cli.main(["run", "--config", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"fmtlbench: {file}:{3 + line.count(chr(10))}: {message}")


def test_a_flag_that_is_typed_is_named_itself(written):
    file = written("algo: fedavg\nscenario: st_mt_1\nseed: 1\n")
    for given, message in (({"algo": "fedavgg"}, "--algo: no algorithm"), ({"seed": -1}, "--seed -1: expected")):
        with pytest.raises(UsageError, match=f"^{message}"):
            ask_for_run(file, given).config()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        ask_for_run(tmp_path / "none.yaml", {})


# -- stored configs ----------------------------------------------------------------------------------------------------


def test_a_stored_config_gives_the_same_config_and_hash(stored):
    overrides = {"algo.mu": 0.5, "model.architecture": "md", "evaluation.metric_options.miou.absent": "zero"}
    file, config = stored(scenario="iid1_sdmt", seed=5, overrides={**overrides, "scenario.clients": 3})
    request = ask_for_run(file, {})
    assert request.config() == config and request.config().hash() == config.hash()
    assert (request.seed, request.device, request.algo) == (5, "cpu", "fedprox")


def test_values_may_be_changed_but_not_method_scenario_and_preset(stored):
    file, config = stored(seed=5)
    changed = ask_for_run(file, {"seed": 6, "rounds": 2}, {"train.lr": 0.5, "algo.mu": 2.0}).config()
    assert (changed.seed, changed.federation.rounds, changed.train.lr) == (6, 2, 0.5)
    assert changed.algorithm.options["mu"] == 2 and changed.preset == config.preset
    typed = resolve("fedprox", "st_mt_1", seed=6, overrides={"federation.rounds": 2, "train.lr": 0.5, "algo.mu": 2.0})
    assert changed.hash() == typed.hash()
    assert ask_for_run(file, {}, {"model.architecture": "md"}).config().model.architecture == "md"
    for name in ("algo", "scenario", "preset"):
        with pytest.raises(UsageError, match=f"--{name} nano: .* is the config of a run"):
            ask_for_run(file, {name: "nano"})
    for overrides, message in (
        ({"scenario.clients": 3}, "the scenario of a stored config is as it was"),
        ({"train.lrr": 3}, "--set train.lrr=3: train.lrr: unknown key"),
        ({"seed": 3}, "the seed is given by --seed"),
    ):
        with pytest.raises(UsageError, match=message):
            ask_for_run(file, {}, overrides).config()


def test_departures_of_a_changed_config_are_those_of_the_same_run_typed_anew(stored, tmp_path):
    mine = tmp_path / "mine.yml"
    mine.write_text("extends: nano\ntrain: {lr: 5e-3}\n")
    for preset, usual in (("nano", 1.2e-2), (str(mine), 5e-3)):
        rounds = resolve("fedprox", "st_mt_1", preset).federation.rounds
        file, _ = stored(preset=preset, overrides={"federation.rounds": 2, "train.lr": 0.5, "train.batch_size": 4})
        back = ask_for_run(file, {"rounds": rounds}, {"train.lr": usual, "train.weight_decay": 0.25}).config()
        assert back.departures == {"train.batch_size": 4, "train.weight_decay": 0.25}


def test_departures_from_a_preset_that_has_changed_keep_what_was_recorded(stored, tmp_path):
    mine = tmp_path / "mine.yml"
    mine.write_text("extends: nano\ntrain: {lr: 5e-3}\n")
    file, _ = stored(preset=str(mine), overrides={"federation.rounds": 2, "train.batch_size": 4})
    mine.write_text("extends: nano\ntrain: {lr: 6e-3}\n")
    changed = ask_for_run(file, {"rounds": 3}, {"train.lr": 0.5}).config()
    assert changed.departures == {"federation.rounds": 3, "train.batch_size": 4, "train.lr": 0.5}


def test_a_config_of_the_first_format_is_read(stored):
    def older(tree):
        del tree["format"], tree["plugins"], tree["plugin_files"], tree["preset_file"], tree["data"]["validation"]

    file, config = stored(change=older)
    assert ask_for_run(file, {}).config().hash() == config.hash()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: tree.update(numerics=NUMERICS_VERSION - 1), "numerics: the run was made by version"),
        (lambda tree: tree["train"].update(lrr=1), "train.lrr: unknown key 'lrr'; did you mean 'lr'"),
        (lambda tree: tree["algorithm"]["options"].update(muu=1), "algo.muu: unknown key 'muu'"),
        (
            lambda tree: tree["algorithm"]["options"].pop("mu"),
            "cannot rebuild the config: algorithm.options.mu was None",
        ),
        (lambda tree: tree["algorithm"].update(name="fedproxx"), "no algorithm 'fedproxx'; did you mean 'fedprox'"),
        (lambda tree: tree["train"].update(lr=-1), "train.lr: expected more than 0"),
        (lambda tree: tree.update(preset="../x"), "cannot be the name of a preset"),
        (lambda tree: tree.update(format=99), "newer than this version's"),
        (lambda tree: tree["model"].update(weights_sha256="0" * 64), "expected 0000"),
    ],
)
def test_what_cannot_be_rebuilt_is_refused(stored, change, message):
    file, _ = stored(change=change)
    with pytest.raises(FmtlbenchError, match=message):
        ask_for_run(file, {}).config()


def test_a_users_files_must_be_as_they_were(stored, tmp_path):
    method, network = tmp_path / "mine.py", tmp_path / "toy.py"
    method.write_text(METHOD)
    network.write_text(TOY)
    file, config = stored(str(method), overrides={"model.architecture": str(network)})
    assert ask_for_run(file, {}).config() == config
    network.write_text(TOY + "\n# edited\n")
    with pytest.raises(UsageError, match=r"model\.architecture: .*toy.py or a module beside it has changed since"):
        ask_for_run(file, {}).config()
    network.write_text(TOY)
    method.unlink()
    with pytest.raises(UsageError, match=r"algorithm: .*mine.py is not there any more, so the run cannot be rebuilt"):
        ask_for_run(file, {}).config()


def test_a_users_metric_and_dataset_must_be_as_they_were(stored, tmp_path):
    metric = tmp_path / "far.py"
    metric.write_text(METRIC)
    file, config = stored(overrides={"evaluation.metrics.depth": str(metric)})
    assert ask_for_run(file, {}).config().hash() == config.hash()
    metric.write_text(metric.read_text() + "# edited\n")
    with pytest.raises(UsageError, match=r"the run cannot be rebuilt: .*far.py.* has changed since"):
        ask_for_run(file, {}).config()


def test_the_words_of_a_command_line_name_the_file(stored):
    from fmtlbench.cli._request import request_from

    file, _ = stored()
    request = ask_for_run(file, {"seed": 4, "out": "there"}, {"train.lr": 0.5})
    words = request.to_argv()
    assert words[:2] == ["--config", str(file)] and not {"--algo", "--scenario", "--preset"} & set(words)
    assert request_from(cli.build_parser().parse_args(["run", *words])) == request
    assert Path(request.anywhere().stored).is_absolute()


# -- the verbs ---------------------------------------------------------------------------------------------------------


def test_show_config_prints_what_run_takes_back(capsys, tmp_path):
    words = ["--algo", "fedhca2", "--scenario", "iid1_sdmt", "--seed", "2", "--set", "algo.c=0.2", "--device", "cpu"]
    assert cli.main(["show", "config", *words]) == 0
    text = capsys.readouterr().out
    config = resolve("fedhca2", "iid1_sdmt", seed=2, overrides={"algo.c": 0.2})
    assert text.startswith(f"# {config.folder().as_posix()}\n")
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert ask_for_run(file, {}).config().hash() == config.hash()
    assert cli.main(["show", "config", "--config", str(file)]) == 0
    assert capsys.readouterr().out == text


def test_run_needs_a_method_from_somewhere(capsys):
    assert cli.main(["run", "--scenario", "st_mt_1"]) == 2
    assert "which method? --algo NAME (fmtlbench list algorithms), or --config FILE" in capsys.readouterr().err


def test_a_run_by_file_is_the_run_by_flags(tiny_run, tmp_path, scenario_file):
    import fmtlbench

    first = tiny_run("fedavg", rounds=1)
    again = fmtlbench.run(config=first.folder / "config.yaml", out=tmp_path / "runs")
    assert again.reused and again.folder == first.folder
    with pytest.raises(UsageError, match="which method"):
        fmtlbench.run(scenario=scenario_file)


def test_a_stored_config_is_asked_for_again_with_its_own_seed(tmp_path):
    stored = tmp_path / "config.yaml"
    stored.write_text(format_config(resolve("fedavg", "st_mt_1", seed=3)))
    assert ask_for_run(stored, {}).config().seed == 3
    assert resolve_stored(read_config(stored)).seed == 3
    assert ask_for_run(stored, {"seed": 0}).config().seed == 0
