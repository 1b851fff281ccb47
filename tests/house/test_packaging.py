"""What is released: one version everywhere, complete lists of packages, and a set-up that asks for what was tested."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rooms import BESIDE, PACKAGE, ROOT

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings it
    import tomli as tomllib

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, SETUPTOOLS = PYPROJECT["project"], PYPROJECT["tool"]["setuptools"]
OWN = (PACKAGE, *BESIDE)
# A constraint needs a version that exists there, so each line says for which Python it was made.
CONSTRAINTS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def files_of_the_project(*suffixes: str) -> list[Path]:
    """Files that are ours, not those of environments and builds."""
    folders = (*OWN, ".ci", "benchmarks", "docs", "examples", "tests")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return [path for path in found if path.suffix in suffixes and "__pycache__" not in path.parts]


def test_the_list_of_packages_is_complete():
    modules = set()
    for folder in OWN:
        for path in (ROOT / folder).rglob("__init__.py"):
            name = ".".join(path.parent.relative_to(ROOT).parts)
            modules.add(name if folder == PACKAGE else f"{PACKAGE}.{name}")
    assert set(SETUPTOOLS["packages"]) == modules and len(SETUPTOOLS["packages"]) == len(modules)


def test_packages_lie_where_the_list_says():
    folders = SETUPTOOLS["package-dir"]
    for name in SETUPTOOLS["packages"]:
        inside, _, rest = name.partition(".")
        place = folders.get(name) or "/".join([inside, *rest.split(".")]) if rest else inside
        assert (ROOT / place / "__init__.py").is_file(), name


def test_every_file_beside_the_modules_is_installed():
    folders = SETUPTOOLS["package-dir"]
    named = set()
    for package, patterns in SETUPTOOLS["package-data"].items():
        place = ROOT / folders.get(package, package.replace(".", "/"))
        named |= {path for pattern in patterns for path in place.glob(pattern)}
    there = {path for folder in OWN for path in (ROOT / folder).rglob("*") if path.is_file() and path.name[0] != "."}
    data = {path for path in there if path.suffix != ".py" and "__pycache__" not in path.parts}
    assert data - named == set()


def test_the_source_is_of_the_oldest_python_it_asks_for():
    oldest = (3, 10)
    assert PROJECT["requires-python"] == ">={}.{}".format(*oldest)
    for path in files_of_the_project(".py"):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=oldest)


def test_classifiers_name_versions_that_are_allowed():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert named and all(SpecifierSet(PROJECT["requires-python"]).contains(version) for version in named)


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert citation["version"] == PROJECT["version"] == headings[0]


def test_the_citation_has_what_its_format_needs():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["title"] == PROJECT["name"] and citation["license"] == PROJECT["license"]
    assert citation["message"] and citation["authors"] == [{"name": PROJECT["authors"][0]["name"]}]


def test_forms_for_issues_are_forms():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = sorted(path for path in folder.glob("*.yml") if path.name != "config.yml")
    assert len(forms) == 3
    for path in forms:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"], path.name
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert ids and len(set(ids)) == len(ids), path.name
        for field in form["body"]:
            assert field["type"] in ("markdown", "input", "textarea", "dropdown", "checkboxes"), path.name
            assert field["attributes"].get("value" if field["type"] == "markdown" else "label"), path.name
            assert field["type"] != "dropdown" or field["attributes"]["options"], path.name
    assert (ROOT / ".github" / "pull_request_template.md").is_file()


def test_constraints_hold_every_direct_dependency():
    listed = {line.name.lower().replace("_", "-"): line for line in CONSTRAINTS}
    extras = PROJECT["optional-dependencies"]
    asked = [Requirement(line) for line in (*PROJECT["dependencies"], *extras["dev"])]
    asked += [Requirement(line) for name in ("ray", "tensorboard", "tsne", "wandb") for line in extras[name]]
    for requirement in asked:
        if requirement.name != PROJECT["name"]:
            [pin] = listed[requirement.name].specifier
            assert requirement.specifier.contains(pin.version), requirement.name


def test_constraints_fit_any_build_of_torch():
    for line in CONSTRAINTS:
        [pin] = line.specifier
        assert pin.operator == "==" and "+" not in pin.version, line
        assert str(line.marker) == 'python_version == "3.11"', line
        assert not re.match(r"nvidia-|cuda-|triton", line.name), line


def commands_of(*words: str) -> str:
    if shutil.which("make") is None:
        pytest.skip("no make")
    done = subprocess.run(["make", "--dry-run", "--always-make", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def pip_calls(*words: str) -> list[str]:
    return [line for line in commands_of(*words).splitlines() if "pip" in line and " install " in line]


def test_setup_is_one_call_with_the_tested_versions():
    [call] = pip_calls("setup")
    assert call.endswith('--constraint constraints.txt --editable ".[dev]"') and "index-url" not in call


def test_setup_looks_for_torch_in_the_index_that_is_given():
    [call] = pip_calls("setup", "TORCH_INDEX=https://index.example/cpu")
    assert '--extra-index-url "https://index.example/cpu" --constraint constraints.txt' in call
    assert " --index-url" not in call  # pip's own settings hold for everything else


def test_the_newest_versions_have_an_environment_of_their_own():
    assert "--constraint" not in pip_calls("setup", "CONSTRAINTS=")[0]
    text = commands_of("newest")
    assert "--constraint" not in text and ".venv/bin" not in text
    for command in ("python -m pip check", "fmtlbench --version", "fmtlbench run"):
        assert f".venv-newest/bin/{command}" in text
    assert "--rounds 2" in text
