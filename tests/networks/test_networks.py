"""A network is one file: by name, by path, with options of its own, and what happens to wrong ones."""

from __future__ import annotations

import dataclasses
import json
import textwrap

import pytest
import yaml
from kit import TOY

from fmtlbench.base.errors import FmtlbenchError, RefusedError, UsageError
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.bench.asked_runs import label_of
from fmtlbench.bench.grid import Flags, read_grid
from fmtlbench.cli import main
from fmtlbench.config.request import RunRequest
from fmtlbench.config.resolve import resolve, resolve_setting
from fmtlbench.config.run_config import ModelConfig, RunConfig
from fmtlbench.config.setting import Setting
from fmtlbench.engine.admit import admit
from fmtlbench.engine.client_models import build_model
from fmtlbench.exchange.hooks import MethodError
from fmtlbench.inference.stored_run import StoredRun
from fmtlbench.networks.architectures import ARCHITECTURES, Architecture
from fmtlbench.networks.network import network_of

OUTPUTS = {"depth": 1, "edge": 1}


@pytest.fixture
def toy(tmp_path):
    """Write the toy network, with something put in its place, to a file."""

    def write(old="", new="", name="toy.py"):
        assert old in TOY
        path = tmp_path / name
        path.write_text(TOY.replace(old, new) if old else TOY + textwrap.dedent(new))
        return path

    return write


def chosen(file, **options):
    return {"model.architecture": str(file), **{f"model.options.{name}": value for name, value in options.items()}}


def one_line(error) -> str:
    text = str(error.value)
    assert "\n" not in text and len(text) < 500
    return text


# -- the registry ------------------------------------------------------------------------------------------------------


def test_the_registry_has_the_papers_networks():
    assert set(ARCHITECTURES) == {"fedhca2", "md", "tc", "matfl"}
    for name, network in ARCHITECTURES.items():
        assert network.name == name and issubclass(network, Architecture)
        assert all(vars(network)[text] for text in ("title", "description", "paper"))
    assert [name for name, network in ARCHITECTURES.items() if network.one_decoder] == ["tc"]


def test_networks_are_listed(capsys):
    assert main(["list", "architectures"]) == 0
    out = capsys.readouterr().out
    assert "task_steps=joint" in out and "DeepLab" in out


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UsageError, match=r"^--set model.architecture=fedhca: no architecture 'fedhca'; .*'fedhca2'"):
        resolve("local", "st_mt_1", overrides={"model.architecture": "fedhca"})
    with pytest.raises(UsageError, match=r"--set model.architecture=./no.py: no such file: no.py"):
        resolve("local", "st_mt_1", overrides={"model.architecture": "./no.py"})
    with pytest.raises(UsageError, match=r"model.architecture: expected text, got 5"):
        resolve("local", "st_mt_1", overrides={"model.architecture": 5})


# -- a file ------------------------------------------------------------------------------------------------------------


def test_a_file_runs_and_tables_have_its_name(toy, tiny_run):
    file = toy()
    result = tiny_run("fedavg", rounds=2, **chosen(file, width=4))
    assert result.summary["setting_text"]["architecture"] == "toy" and result.summary["bytes_up"] > 0
    config = yaml.safe_load((result.folder / "config.yaml").read_text())["model"]
    assert (config["architecture"], config["options"], config["code"]["file"]) == ("toy", {"width": 4}, str(file))
    assert str(file) not in (result.folder / "summary.json").read_text()
    wider = tiny_run("fedavg", rounds=2, **chosen(file))
    assert wider.folder != result.folder and wider.summary["bytes_up"] > result.summary["bytes_up"]
    again = tiny_run("fedavg", rounds=2, **chosen(file, width=4))
    assert again.reused


def test_content_is_part_of_the_hash_and_the_path_is_not(toy, tmp_path):
    first = resolve("local", "st_mt_1", overrides=chosen(toy()))
    assert len(first.model.code.source) == 64 and first.model.code.helpers == {}
    copied = resolve("local", "st_mt_1", overrides=chosen(toy(name="copy.py")))
    assert copied.hash() == first.hash() and copied.setting() == first.setting()
    edited = resolve("local", "st_mt_1", overrides=chosen(toy(new="# edited\n")))
    assert edited.hash() != first.hash() and edited.setting() != first.setting()
    assert edited.setting().apart_from(["architecture"]) == resolve_setting("st_mt_1").apart_from(["architecture"])


def test_modules_beside_the_file_are_part_of_it(toy, tmp_path):
    helper = tmp_path / "wide.py"
    helper.write_text("WIDTH = 8\n")
    file = toy("from torch import nn\n", "from torch import nn\nfrom wide import WIDTH\n")
    first = resolve("local", "st_mt_1", overrides=chosen(file))
    assert list(first.model.code.helpers) == ["wide.py"]
    helper.write_text("WIDTH = 9\n")
    assert resolve("local", "st_mt_1", overrides=chosen(file)).hash() != first.hash()


def test_a_method_file_may_still_import_in_its_hooks(toy, tmp_path, tiny_run):
    method = tmp_path / "method" / "mine.py"
    method.parent.mkdir()
    (method.parent / "beside.py").write_text("KINDS = ('encoder',)\n")
    method.write_text(
        "from fmtlbench.algorithms import ALGORITHMS, Algorithm\n\n\n"
        '@ALGORITHMS.register("mine")\nclass Mine(Algorithm):\n    title, paper = "Mine", "none"\n\n'
        "    def shared(self, index):\n        from beside import KINDS\n\n        return KINDS\n"
    )
    result = tiny_run(str(method), rounds=1, **chosen(toy()))
    assert result.summary["bytes_up"] > 0


def test_a_stored_run_needs_its_network_as_it_was(toy, tiny_run):
    file = toy()
    result = tiny_run("local", rounds=1, **chosen(file))
    assert StoredRun(result.folder).config.model.architecture == "toy"
    file.write_text(TOY + "# edited\n")
    with pytest.raises(FmtlbenchError, match=r"its network .*toy\.py is not there, or not as it was") as error:
        StoredRun(result.folder)
    one_line(error)


def test_a_process_elsewhere_sees_that_the_file_is_another(toy):
    from fmtlbench.networks import network as networks

    file = toy()
    model = resolve("local", "st_mt_1", overrides=chosen(file)).model
    ARCHITECTURES._brought.clear()
    networks._networks.clear()  # as in a process that has not resolved the config
    assert network_of(model).name == "toy"
    ARCHITECTURES._brought.clear()
    networks._networks.clear()
    file.write_text(TOY + "# edited\n")
    with pytest.raises(FmtlbenchError, match=r"model.architecture: .*toy\.py is not there, or not as it was"):
        network_of(model)


@pytest.mark.parametrize(("change", "words"), [("edit", "not as it was when the run began"), ("remove", "not there")])
def test_a_worker_refuses_a_file_that_is_another_on_its_machine(toy, change, words):
    pytest.importorskip("ray")
    from fmtlbench.engine.factory import ClientFactory
    from fmtlbench.engine.ray.worker import Home, Worker
    from fmtlbench.runs.session import versions

    file = toy()
    factory = ClientFactory(resolve("local", "st_mt_1", overrides=chosen(file)), "cpu")
    if change == "edit":
        file.write_text(TOY + "# edited\n")
    else:
        file.unlink()
    failure = Worker(factory, Home(0, "here", 1, versions(), None), "here", None).open()
    assert failure.wrong_usage and f"model.architecture {file}: {words} on a machine of the cluster" in failure.text


def test_commands_find_the_file_from_anywhere(toy, tmp_path, monkeypatch):
    toy()
    monkeypatch.chdir(tmp_path)
    request = RunRequest("local", "st_mt_1", overrides={"model.architecture": "./toy.py", "train.lr": 0.1})
    assert request.anywhere().overrides == {"model.architecture": str(tmp_path / "toy.py"), "train.lr": 0.1}
    assert RunRequest("local", "st_mt_1", overrides={"model.architecture": "md"}).anywhere().overrides == {
        "model.architecture": "md"
    }


def test_a_grid_file_names_networks_that_lie_beside_it(toy, tmp_path):
    toy()
    grid = tmp_path / "grid.yml"
    grid.write_text(
        "algos: fedavg\nscenarios: st_mt_1\nset: {model.architecture: ./toy.py}\n"
        "variants:\n  - {algo: local, set: {model.architecture: ./toy.py, model.options.width: 4}}\n"
    )
    found = read_grid(grid, Flags())
    plain, variant = found.methods
    assert plain.overrides == {"model.architecture": str(tmp_path / "toy.py")}
    assert variant.label == "local[model.architecture=toy,model.options.width=4]"
    assert variant.overrides["model.architecture"] == str(tmp_path / "toy.py")
    assert label_of("fedavg", {"train.lr": 0.1}) == "fedavg[train.lr=0.1]"


def test_show_network_takes_a_file(toy, capsys):
    file, width = toy(), 4
    flags = ["--scenario", "mt_mt", "--set", f"model.architecture={file}", "--set", f"model.options.width={width}"]
    assert main(["show", "network", "nano", *flags, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)[0]
    assert record["architecture"] == "toy" and record["parameters"]["head"] > 0 and record["flops_per_image"] > 0
    assert main(["show", "network", "nano", *flags]) == 0
    assert "toy, resnet_nano" in capsys.readouterr().out


# -- wrong files -------------------------------------------------------------------------------------------------------

REGISTERED = '@ARCHITECTURES.register("toy")\n'
BUILT = "return PerTaskNet(encoder, decoders, heads)"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (REGISTERED, "", r"toy\.py registers 0 architectures, expected exactly one"),
        (
            "class Toy(Architecture)",
            "class Toy",
            r"Toy is not a subclass of .*\.Architecture",
        ),
        ('"toy")', '"tc")', "architecture 'tc' is registered twice"),
        ('title, description, paper = "Toy"', 'title, describes, paper = "Toy"', "Toy has no description of its own"),
        ('title, description, paper = "Toy"', "title, description, paper = 5", "Toy.title: expected text, got 5"),
        ("    @dataclass(frozen=True)\n", "", r"Toy\.Params is not a dataclass"),
        ("    title,", '    maps = "al"\n    title,', r"Toy\.maps: no maps 'al'; did you mean 'all'"),
        ("from torch import nn\n", "from torch import nm\n", r"toy\.py:3: ImportError"),
        ("from torch import nn\n", "raise SystemExit(3)\n", r"toy\.py:3: SystemExit"),
    ],
)
def test_a_wrong_file_is_told_when_the_config_is_made(toy, old, new, words):
    before = dict(ARCHITECTURES)
    with pytest.raises(UsageError, match=words) as error:
        resolve("local", "st_mt_1", overrides=chosen(toy(old, new)))
    assert "toy" in one_line(error) and dict(ARCHITECTURES) == before


NO_PARTS = "net = PerTaskNet(encoder, decoders, heads)\n        net.extra = nn.Linear(1, 1)\n        return net"
STRETCHED = (
    "net = PerTaskNet(encoder, decoders, heads)\n        net.decode = lambda maps, task, size: maps[-1]\n        "
    "return net"
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (BUILT, "return decoders", r"toy\.build returned a dict, expected a fmtlbench\.networks\.net\.DenseNet"),
        (BUILT, "", r"toy\.build returned None, expected a fmtlbench\.networks\.net\.DenseNet"),
        (BUILT, "return 1 / 0", r"toy\.build failed: ZeroDivisionError.*toy\.py:"),
        (BUILT, "exit(3)", r"toy\.build failed: sys\.exit\(3\) is not for a hook"),
        (BUILT, "return PerTaskNet(nn.Identity(), decoders, heads)", r"toy\.build .*another encoder"),
        ("for task in outputs}", "for task in list(outputs)[:1]}", r"toy\.build .*for \['depth'\], expected \['depth'"),
        (BUILT, NO_PARTS, r"toy\.parts has extra\.weight in 0 parts, expected it in one"),
        (BUILT, STRETCHED, r"toy\.decode gives \(1, 128, 2, 2\) for 'depth', expected a tensor of shape \(1, 1, 64"),
        ("super().forward(maps[-1])", "super().forward(maps[9])", r"toy\.forward failed: IndexError.*toy\.py:"),
        ("    title,", "    one_decoder = True\n    title,", r"toy\.parts has a decoder of 'depth', expected None"),
    ],
)
def test_a_wrong_network_is_told_when_it_is_built(toy, old, new, words):
    model = resolve("local", "st_mt_1", overrides=chosen(toy(old, new))).model
    with pytest.raises(MethodError, match=words) as error:
        build_model(model, (64, 64), OUTPUTS, seed=0)
    one_line(error)


@pytest.mark.parametrize("steps", ["None", "[tasks[:1]]", "[tasks, tasks]", "[()]", "tasks"])
def test_wrong_steps_are_told(toy, steps):
    file = toy()
    file.write_text(TOY + f"\n    def task_steps(self, tasks):\n        return {steps}\n")
    model = resolve("local", "st_mt_1", overrides=chosen(file)).model
    with pytest.raises(MethodError, match=r"toy\.task_steps returned .*expected each task in one tuple"):
        network_of(model).task_steps(("depth", "edge"))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ('"needs more rounds"', RefusedError, r"model\.architecture.*: toy: needs more rounds"),
        ("5", MethodError, r"toy\.refuses returned 5, expected a text or None"),
        ("1 / 0", MethodError, r"toy\.refuses failed: ZeroDivisionError"),
    ],
)
def test_a_network_may_refuse_a_config(toy, answer, error, words):
    file = toy()
    file.write_text(TOY + f"\n    @classmethod\n    def refuses(cls, params, config):\n        return {answer}\n")
    config = resolve("local", "st_mt_1", overrides=chosen(file))
    with pytest.raises(error, match=words):
        admit(config)


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"widht": 4}, r"--set model\.options\.widht=4: .*unknown key 'widht'; did you mean 'width'"),
        ({"width": 0}, r"--set model\.options\.width=0: .*expected at least 1, got 0"),
        ({"width": "wide"}, r"model\.options\.width: expected a whole number, got 'wide'"),
    ],
)
def test_options_are_checked_like_a_methods(toy, options, words):
    with pytest.raises(UsageError, match=words):
        resolve("local", "st_mt_1", overrides=chosen(toy(), **options))


def test_what_identifies_a_file_cannot_be_set():
    with pytest.raises(UsageError, match=r"--set model\.code\.source=abc: is filled in by itself"):
        resolve("local", "st_mt_1", overrides={"model.code.source": "abc"})


def test_a_preset_gives_options_to_the_network_they_are_of():
    md, tc = (
        resolve("local", "iid1_sdmt", "fmtl-bench", overrides={"model.architecture": name}) for name in ("md", "tc")
    )
    assert (md.model.options, tc.model.options) == ({}, {"task_steps": "sequential"})
    assert resolve("local", "iid1_sdmt", overrides={"model.architecture": "tc"}).model.options == {
        "task_steps": "joint"
    }


# -- what was train.tc -------------------------------------------------------------------------------------------------

# (preset, scenario, network, its option) → hash of the config with seed 0, recorded when the option was train.tc.
RECORDED = {
    ("nano", "st_mt_1", "fedhca2", None): "67fa1ec6e86b7c5beab6f04561456c9046a4807461ced7f5a3bcae50899ed6e2",
    ("nano", "iid1_sdmt", "tc", None): "11d1c792713dabfaf2fc021df67ae7df240ecae253cee8ae02b1386213aa67ff",
    ("nano", "iid1_sdmt", "tc", "public"): "2eb6a6762172674eb352b3202c90914a6f70db7126ba149c98033fa1cd6f394d",
    ("fmtl-bench", "iid1_sdmt", "md", None): "e91c85335a5d46f529eaf8db748f6293ca94a5039290b89b1367076752a5ca56",
    ("fmtl-bench", "iid1_sdmt", "tc", None): "6073634cab1dce8e1970db5d216dc3cbad51deacd74271e4f940870dca33c9af",
    ("fmtl-bench", "iid1_sdmt", "tc", "joint"): "9f198acb36908535a8d13e1d961ea926c59694815fa4d226503c47e9a8c305e5",
    ("mat-fl", "st_mt_1", "matfl", None): "1b29f5bf514e6955413b943a1c4a95bb7e2562b8bc18ff99af8c358cc6a150e1",
}


@pytest.mark.parametrize(("preset", "scenario", "network", "steps"), RECORDED)
def test_hashes_are_those_of_before(preset, scenario, network, steps):
    small = {"model.backbone": "resnet18", "model.pretrained": False} if network == "matfl" else {}
    option = {"model.options.task_steps": steps} if steps else {}
    config = resolve("local", scenario, preset, overrides={"model.architecture": network, **small, **option})
    assert config.hash() == RECORDED[preset, scenario, network, steps]


def old_tree(config: RunConfig, steps: str) -> dict:
    """Return what the config.yaml of an older version had."""
    tree = yaml.safe_load(config.dump())
    del tree["model"]["options"], tree["model"]["code"]
    tree["train"]["tc"] = steps
    return tree


@pytest.mark.parametrize("steps", ["joint", "sequential", "public"])
def test_an_older_config_is_read_as_what_it_was(tmp_path, steps):
    config = resolve("local", "iid1_sdmt", overrides={"model.architecture": "tc", "model.options.task_steps": steps})
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(old_tree(config, steps)))
    again = RunConfig.from_tree(load_yaml(file))
    assert again == config and again.hash() == config.hash()
    assert Setting.of(old_tree(config, steps)) == config.setting()
    assert config.setting().value("model.options.task_steps") == steps


@pytest.mark.parametrize(("preset", "steps"), [("nano", "joint"), ("fmtl-bench", "sequential")])
def test_an_older_config_of_another_network_is_read_too(tmp_path, preset, steps):
    config = resolve("local", "iid1_sdmt", preset, overrides={"model.architecture": "md"})
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(old_tree(config, steps)))
    again = RunConfig.from_tree(load_yaml(file))
    assert again == config and again.model.options == {}
    assert Setting.of(old_tree(config, steps)) == config.setting()


def test_differences_have_the_names_of_now():
    one, other = (
        resolve("local", "iid1_sdmt", overrides={"model.architecture": "tc", "model.options.task_steps": steps})
        for steps in ("joint", "public")
    )
    assert one.setting().differences(other.setting()) == {"model.options.task_steps": ("joint", "public")}
    assert one.setting().apart_from(["architecture"]) == other.setting().apart_from(["architecture"])
    assert one.setting().apart_from(["train"]) != other.setting()


def test_the_old_place_is_refused_with_the_new_one():
    with pytest.raises(
        UsageError, match=r"^--set train\.tc=joint: train\.tc is model\.options\.task_steps now.*model.architecture=tc$"
    ):
        resolve("local", "st_mt_1", overrides={"train.tc": "joint"})


def test_a_config_without_options_has_the_defaults():
    model = ModelConfig("tc", "resnet_nano", False)
    assert network_of(model).task_steps(("depth", "edge")) == [("depth", "edge")]
    one_by_one = network_of(dataclasses.replace(model, options={"task_steps": "public"}))
    assert one_by_one.task_steps(("depth", "edge")) == [("depth",), ("edge",)] and one_by_one.adds_up_gradients


def test_a_stored_name_is_never_executed_as_a_file(toy, tmp_path, monkeypatch):
    toy()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UsageError, match=r"model\.architecture: no architecture 'toy\.py'; valid: fedhca2, matfl, md, tc"
    ):
        network_of(ModelConfig("toy.py", "resnet_nano", False))


def test_a_damaged_preset_of_a_stored_config_breaks_no_table():
    assert Setting.of({"preset": ["nano"], "model": {"options": {}}}).value("train.tc") == "joint"
