"""Which code makes numbers: what counts, what does not, and that finding it out is cheap and executes nothing."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import made_runs
import pytest
from copied_package import package  # noqa: F401  (a fixture)
from rooms import BESIDE

from fmtlbench.cli import main
from fmtlbench.config.resolve import resolve
from fmtlbench.runs import code_identity, same_code
from fmtlbench.runs.code_identity import BUILDING, DECIDING, PARTS, CodeIdentity, Sources
from fmtlbench.runs.configured_code import code_of
from fmtlbench.runs.recorded_code import code_as_today


def changed(before: CodeIdentity, after: CodeIdentity) -> list[str]:
    return [part for part in PARTS if before.parts[part] != after.parts[part]]


def identify(algo="fedprox", scenario="st_mt_1", **overrides):
    return code_of(resolve(algo, scenario, overrides=overrides), Sources())


# -- which files -------------------------------------------------------------------------------------------------------


def test_what_decides_is_there_and_what_networks_are_made_by_is_of_it():
    sources = Sources()
    assert len(sources.deciding_paths()) == len(DECIDING)
    engine = identify().files["engine"]
    assert all(any(name.startswith(start) for name in engine) for start in BUILDING)


def test_made_runs_have_the_parts_of_an_identity():
    assert made_runs.PARTS == PARTS


def test_an_identity_has_the_parts_that_a_config_chooses():
    code = identify()
    assert list(code.files["method"]) == ["algorithms/fedavg.py", "algorithms/fedprox.py"]
    assert list(code.files["network"]) == ["networks/architectures/fedhca2.py"]
    assert list(code.files["partitions"]) == ["data/partitions/equal.py"]
    assert "tasks/depth.py" in code.files["tasks"] and "tasks/occlusion.py" not in code.files["tasks"]
    assert "metrics/edges/nms.py" in code.files["metrics"] and "metrics/edge_loss.py" not in code.files["metrics"]
    assert (
        "data/datasets/synth/people.py" in code.files["datasets"]
        and "data/datasets/nyud.py" not in code.files["datasets"]
    )
    engine = code.files["engine"]
    assert {"engine/client.py", "engine/losses.py", "algorithms/_mean.py", "data/datasets/__init__.py"} <= engine.keys()
    assert not engine.keys() & {name for part in PARTS[1:] for name in code.files[part]}
    assert not any(name.startswith(("cli/", "reports/", "runs/", "cost/", "base/words")) for name in engine)
    assert all(len(sha256) == 64 for sha256 in (code.sha256, *code.parts.values()))


def test_another_metric_is_another_file():
    code = identify(**{"evaluation.metrics.edge": "edge_loss"})
    assert "metrics/edge_loss.py" in code.files["metrics"] and "metrics/odsf.py" not in code.files["metrics"]


def test_an_identity_is_a_value():
    code = identify()
    assert code == identify() and hash(code) == hash(identify()) and code != identify("fedavg")
    with pytest.raises(dataclasses.FrozenInstanceError):
        code.engine = ""


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("algorithms/fedprox.py", ["method"]),
        ("algorithms/fedavg.py", ["method"]),  # its base
        ("algorithms/fedper.py", []),  # another method
        ("algorithms/_mean.py", ["engine"]),
        ("metrics/edges/nms.py", ["metrics"]),
        ("tasks/depth.py", ["tasks"]),
        ("data/datasets/synth/rooms.py", ["datasets"]),
        ("networks/architectures/fedhca2.py", ["network"]),
        ("data/partitions/equal.py", ["partitions"]),
        ("engine/client.py", ["engine"]),
        ("engine/losses.py", ["engine"]),
        ("runs/store.py", []),
        ("base/words.py", []),
    ],
)
def test_an_edit_counts_where_the_file_is_used(package, file, parts):  # noqa: F811
    before = identify()
    package.append(file, "\nADDED = 1\n")
    assert changed(before, identify()) == parts
    assert (before.sha256 == identify().sha256) == (not parts)


def test_comments_docstrings_and_formatting_do_not_count(package):  # noqa: F811
    before = identify()
    for file in ("algorithms/fedprox.py", "engine/client.py", "metrics/miou.py"):
        text = package.file(file).read_text()
        opening, rest = text.split('"""', 2)[1:]
        package.file(file).write_text(f'# A comment.\n"""{opening} More of it."""\n\n\n{rest}\n# The end.\n')
    package.edit("algorithms/fedprox.py", "    def ", "\n\n\n    def ")
    assert identify() == before


def test_data_files_of_a_room_count_by_their_bytes_and_backups_do_not(package):  # noqa: F811
    before = identify()
    for name in ("notes.yml", "client.py~", ".hidden.py"):
        (package.file("engine") / name).write_text("x = 1\n")
    assert identify() == before
    (package.file("engine") / "table.json").write_text("{}")
    assert changed(before, identify()) == ["engine"]


def test_a_file_that_is_no_python_counts_by_its_bytes(package):  # noqa: F811
    package.append("engine/optim.py", "\ndef broken(:\n")
    before = identify()
    package.append("engine/optim.py", "# a comment\n")
    assert changed(before, identify()) == ["engine"]


def test_what_changed_is_told_by_part_and_file(package):  # noqa: F811
    before = identify()
    for file in ("algorithms/fedavg.py", "engine/client.py", "engine/run.py", "engine/losses.py", "base/seeds.py"):
        package.append(file, "\nADDED = 1\n")
    after = identify()
    told = "engine: seeds.py, client.py, losses.py and 1 more changed; method: fedavg.py changed"
    assert after.explain_change(before.parts, before.files) == told
    assert after.explain_change(before.parts, {}) == "engine changed; method changed"
    package.append("data/datasets/synth/__init__.py", "\nADDED = 1\n")
    assert identify().explain_change(after.parts, after.files) == "datasets: data/datasets/synth/__init__.py changed"


def test_code_that_another_took_the_place_of_counts_as_that(package, monkeypatch):  # noqa: F811
    before = identify()
    package.append("engine/client.py", "\nADDED = 1\n")
    after = identify()
    table = {"parts": {"engine": {before.engine: after.engine}}, "files": {"old/optim.py": "engine/optim.py"}}
    monkeypatch.setattr(same_code, "_table", lambda: table)
    assert after.find_changes(before.parts) == [] and after.explain_change(before.parts, before.files) == ""
    record = {"sha256": before.sha256, "parts": before.parts, "earlier": [None]}
    assert code_as_today(record) == {"sha256": after.sha256, "parts": after.parts, "earlier": [None]}
    assert code_as_today(after_record := {"sha256": after.sha256, "parts": after.parts}) is after_record
    assert before.find_changes(after.parts) == ["engine"]  # one way only
    assert changed(after, identify()) == []
    package.append("engine/client.py", "\nMORE = 1\n")  # what came after the table is a change
    assert identify().find_changes(before.parts) == ["engine"]
    moved = {"engine": {**after.files["engine"], "old/optim.py": "0"}}
    del moved["engine"]["engine/optim.py"]
    assert "optim.py" in identify().explain_change({**before.parts, "engine": "?"}, moved)


def test_the_table_of_codes_has_parts_that_there_are_and_files_that_lie_where_it_says():
    """Whether it still leads to today's code is not asked: a later change of the code is meant to end that."""
    table = same_code._table()
    assert set(table["parts"]) <= set(PARTS)
    root = Path(same_code.FILE).parents[1]
    for old, new in table["files"].items():
        beside = root.parent / new if new.split("/")[0] in BESIDE else root / new
        assert beside.is_file(), new
        assert not (root / old).exists(), old


# -- whose files -------------------------------------------------------------------------------------------------------

METHOD = """\
from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.algorithms.fedavg import FedAvg
from my_helper import FACTOR


@ALGORITHMS.register("mine")
class Mine(FedAvg):
    title, paper = "Mine", "none"
"""


def test_a_users_file_is_the_configs_and_what_it_imports_of_ours_counts(tmp_path, package):  # noqa: F811
    file = tmp_path / "mine.py"
    file.write_text(METHOD)
    (tmp_path / "my_helper.py").write_text("from fmtlbench.algorithms.fedper import FedPer\nFACTOR = 2\n")
    before = identify(str(file))
    assert list(before.files["method"]) == ["algorithms/fedavg.py", "algorithms/fedper.py"]
    file.write_text(METHOD + "\nADDED = 1\n")
    assert identify(str(file)) == before  # its config has another hash instead
    package.append("algorithms/fedavg.py", "\nADDED = 1\n")
    assert changed(before, identify(str(file))) == ["method"]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Two packages that are found like installed ones; importing them would fail."""
    files = {
        "alien/__init__.py": "raise RuntimeError('imported')\n",
        "alien/method.py": "from typing import TYPE_CHECKING\nimport torch\nfrom . import parts, VALUE\n"
        "from .deep.step import step\nfrom base_of_it.core import Base, unused\nfrom other_of_it import helper\n"
        "if TYPE_CHECKING:\n    from .types import Types\n\nclass Alien(Base, torch.nn.Module):\n    def later(self):\n"
        "        from .lazy import lazy\n",
        "alien/parts.py": "",
        "alien/types.py": "",
        "alien/lazy.py": "import alien.parts\n",
        "alien/unrelated.py": "",
        "alien/deep/__init__.py": "",
        "alien/deep/step.py": "from ..parts import *\nfrom fmtlbench.algorithms.local import Local\n",
        "base_of_it/__init__.py": "",
        "base_of_it/core.py": "from . import inner\n",
        "base_of_it/inner.py": "",
        "other_of_it/__init__.py": "raise RuntimeError('imported')\n",
        "alien-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: alien\nVersion: 1.0\n",
        "alien-1.0.dist-info/entry_points.txt": "[fmtlbench.algorithms]\nalien = alien.method\n",
    }
    for name, text in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def test_what_an_installed_package_brings_is_followed_and_not_imported(site):
    files = Sources().identify({"method": ["alien.method"]}).files["method"]
    assert sorted(files) == [
        "algorithms/local.py",
        "alien/__init__.py",  # VALUE is from there
        "alien/deep/step.py",
        "alien/lazy.py",
        "alien/method.py",
        "alien/parts.py",
        "base_of_it/core.py",
        "base_of_it/inner.py",
        "distribution alien",
    ]
    assert files["distribution alien"] == "1.0" and not {"alien", "base_of_it"} & sys.modules.keys()


def test_an_edit_or_another_version_of_an_installed_package_counts(site):
    before = Sources().identify({"method": ["alien.method"]})
    (site / "alien" / "unrelated.py").write_text("x = 1\n")
    assert Sources().identify({"method": ["alien.method"]}) == before
    (site / "alien" / "deep" / "step.py").write_text("x = 1\n")
    edited = Sources().identify({"method": ["alien.method"]})
    assert changed(before, edited) == ["method"]
    about = site / "alien-1.0.dist-info" / "METADATA"
    about.write_text(about.read_text().replace("Version: 1.0", "Version: 1.1"))
    newer = Sources().identify({"method": ["alien.method"]})
    assert newer.explain_change(edited.parts, edited.files) == "method: distribution alien changed"


def test_code_without_a_file_is_the_processs_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "typed_in", type(sys)("typed_in"))
    one, again = (Sources().identify({"method": ["typed_in"]}) for _ in range(2))
    assert one == again
    monkeypatch.setattr(code_identity, "TYPED", "of another process")
    assert changed(one, Sources().identify({"method": ["typed_in"]})) == ["method"]


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.fixture
def parsed(monkeypatch):
    """The files that are parsed from now on."""
    files, real = [], code_identity._parse
    monkeypatch.setattr(code_identity, "_parse", lambda file: files.append(file) or real(file))
    return files


def test_a_process_reads_its_code_once(package, parsed):  # noqa: F811
    sources, config = Sources(), resolve("fedprox", "st_mt_1")
    first = code_of(config, sources)
    count = len(parsed)
    package.append("engine/client.py", "\nADDED = 1\n")  # what runs is what was imported
    assert code_of(config, sources) == first and len(parsed) == count
    assert changed(first, code_of(config, Sources())) == ["engine"]


def test_the_engine_is_parsed_once_for_all_processes(package, parsed):  # noqa: F811
    package.append("engine/client.py", f"\nADDED = {str(package.root)!r}\n")  # contents that nobody has had
    identify()
    assert any(file.name == "client.py" for file in parsed)
    parsed.clear()
    identify()
    assert not any("engine" in file.parts for file in parsed)


@pytest.mark.parametrize("argv", [["list"], ["list", "algorithms", "--json"], ["show", "algorithm", "fedhca2"]])
def test_verbs_that_run_nothing_read_no_code(argv, monkeypatch, capsys):
    def fail(*_):
        raise AssertionError("code was read")

    monkeypatch.setattr(Sources, "_read_engine", fail)
    monkeypatch.setattr(Sources, "_read_file", fail)
    assert main(argv) == 0


def test_a_plan_reads_the_code_once_for_all_its_cells(tmp_path, monkeypatch):
    from fmtlbench.bench.grid import Flags, read_grid
    from fmtlbench.bench.plan import make_plan
    from fmtlbench.config.request import RunRequest

    read, real = [], code_identity.sha256_file
    monkeypatch.setattr(code_identity, "sha256_file", lambda file: read.append(file) or real(file))
    grid = read_grid(None, Flags("local,fedavg,fedper", "st_mt_1,st_mt_2", "0-4", rounds=2))
    plan = make_plan(grid.asked(), RunRequest("", "", out=str(tmp_path)), "cpu")
    assert len(plan.runs) == 30 and 0 < len(read) == len(set(read))
