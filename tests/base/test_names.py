"""Names that become folders: one rule, wherever a scenario, a method, a plug-in or a stored file brings one."""

from __future__ import annotations

import json
import textwrap

import pytest
import yaml
from kit import DUO

from fmtlbench import scenarios
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UsageError, one_line
from fmtlbench.base.names import LONGEST, check_name
from fmtlbench.base.registry import Registry
from fmtlbench.base.yamlfile import load_yaml
from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.config.run_config import RunConfig

BAD = {
    "a/b": "slash", "../../etc": "slash", "a\\b": "slash", "..": "dot", ".": "dot", ".hidden": "dot",
    "a\0b": "control character", "a\nb": "control character", "\x1b[31mred": "control character",
    "a\u202eb": "control character", "a\ud800b": "control character", "": "empty", "  ": "empty", " a": "blank",
    "a" * (LONGEST + 1): "longer than", "é" * LONGEST: "longer than",
}  # fmt: skip
GOOD = ["fedavg", "my-name_2", "Klinik Süd", "a.b", "a..b", "病院", "x" * LONGEST]
METHOD = """\
    from fmtlbench.algorithms import ALGORITHMS, Algorithm

    @ALGORITHMS.register({registered})
    class Mine(Algorithm):
        title, paper = "Mine", "none"

    Mine.name = {later}
"""


def method_file(folder, stem, registered, later=None):
    """A method that changes its name `later`, after it was registered."""
    file = folder / stem
    names = {"registered": ascii(registered), "later": ascii(registered if later is None else later)}
    file.write_text(textwrap.dedent(METHOD.format(**names)))
    return str(file)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_name_comes_back(name):
    assert check_name(name, "client") == name


@pytest.mark.parametrize("name", [*BAD, None, 7, ["a"]], ids=ascii)
def test_a_bad_name_is_refused_in_one_short_line(name):
    with pytest.raises(UsageError, match=r"my\.yml:3: .* cannot be the name of a client: ") as caught:
        check_name(name, "client", "my.yml:3")
    said = str(caught.value)
    assert BAD.get(name if isinstance(name, str) else None, "not text") in said
    assert said.isprintable() and len(said) < 250


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_client_ids_in_a_file_and_in_an_override(name, tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(DUO.replace("tasks: [human_parts]", f"tasks: [human_parts], id: {json.dumps(name)}"))
    line = f"{file}:5: clients.0.id: "
    if name == "a\ud800b":
        line = f"{file}"  # YAML itself has no such character
    with pytest.raises(UsageError) as caught:
        resolve("local", str(file))
    assert str(caught.value).startswith(line)
    with pytest.raises(UsageError, match=r"(?s)--set scenario\.clients\.0\.id=.*cannot be the name of a client"):
        resolve("local", "st_mt_1", overrides={"scenario.clients.0.id": name})


@pytest.mark.parametrize("stem", [".", "..", ".hidden", "a\nb", "a\x1bb", " a", "a" * 120], ids=ascii)
def test_a_scenario_s_file_name_is_its_name(stem, tmp_path, capsys):
    file = tmp_path / f"{stem}.yml"
    file.write_text(DUO)
    assert main(["show", "scenario", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "cannot be the name of a scenario" in err and err.count("\n") == 1 and err[:-1].isprintable()


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_a_method_registers_no_such_name(name, tmp_path):
    before = dict(ALGORITHMS)
    registered, renamed = method_file(tmp_path, "first.py", name), method_file(tmp_path, "second.py", "mine", name)
    for file in (registered, renamed):
        with pytest.raises(UsageError, match="cannot be the name of a") as caught:
            resolve(file, "st_mt_1")
        assert one_line(caught.value) == str(caught.value)
    assert dict(ALGORITHMS) == before


class Point:
    name, value = "theirs", "their.package:thing"

    def __init__(self, load):
        self.load = load


@pytest.mark.parametrize("name", ["../../up", "a\nb", "", ".x"], ids=ascii)
def test_an_entry_point_with_a_bad_name_is_left_out(name, monkeypatch):
    zoo = Registry("animal", "fmtlbench.cost")  # a package of which no file registers anything
    monkeypatch.setattr("pkgutil.iter_modules", lambda path: ())
    points = [Point(lambda n=n: zoo.register(n)(type("Animal", (), {}))) for n in (name, "cow")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="entry point theirs .* cannot be the name of a animal"):
        assert list(zoo) == ["cow"]


def test_a_package_s_scenarios_with_bad_names_are_left_out(tmp_path, monkeypatch):
    for stem in ("good", "a\nb", ".hidden", " blank"):
        (tmp_path / f"{stem}.yml").write_text(DUO)

    def broken():
        raise SystemExit(3)

    points = [Point(lambda: tmp_path), Point(broken)]
    monkeypatch.setattr(scenarios, "_entry_points", lambda path: points)
    with pytest.warns(UserWarning) as told:
        found = scenarios.scenario_files()
    assert {name for name, file in found.items() if file.parent == tmp_path} == {"good"}
    messages = [str(warning.message) for warning in told]
    assert sum("cannot be the name of a scenario" in message for message in messages) == 2
    assert any("does not load: SystemExit(3)" in message for message in messages)


@pytest.mark.parametrize("key", ["algorithm.name", "scenario.name", "preset", "scenario.clients.0.id"])
@pytest.mark.parametrize("name", ["../../../up", "/etc", "..", "", "a\nb"], ids=ascii)
def test_a_stored_config_cannot_lead_out_of_its_folder(key, name, tmp_path):
    tree = yaml.safe_load(resolve("fedavg", "st_mt_1").dump())
    *sections, field = key.split(".")
    node = tree
    for section in sections:
        node = node[int(section) if section.isdigit() else section]
    node[field] = name
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(tree))
    with pytest.raises(UsageError, match=rf"config\.yaml:\d+: ({key}|clients.0.id): .* cannot be the name of a"):
        RunConfig.from_tree(load_yaml(file))


def test_whatever_a_message_quotes_it_is_one_line(capsys):
    assert one_line("a\nb\r\n\x1b[1mc\0") == "a b \\x1b[1mc\\x00"
    assert main(["run", "--algo", "x\ny.py", "--scenario", "st_mt_1"]) == 2
    assert capsys.readouterr().err == "fmtlbench: --algo: no such file: x y.py\n"
