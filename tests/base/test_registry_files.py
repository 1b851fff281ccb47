"""The registry of names, and writing that leaves the old file or the new one."""

from __future__ import annotations

import stat
import sys
import textwrap

import pytest

from fmtlbench.algorithms import ALGORITHMS
from fmtlbench.base.errors import UnknownNameError, UsageError
from fmtlbench.base.files import replace_file, write_json, write_text
from fmtlbench.base.registry import Registry


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A package of our own: two files that register, one that must not be imported."""
    package = tmp_path / "tinyzoo"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from fmtlbench.base.registry import Registry\nANIMALS = Registry('animal', 'tinyzoo')\n"
    )
    for name in ("cat", "dog"):
        (package / f"{name}.py").write_text(
            f"from . import ANIMALS\n@ANIMALS.register('{name}')\nclass {name.title()}: pass\n"
        )
    (package / "_shared.py").write_text("raise RuntimeError('a file with an underscore was imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("tinyzoo").ANIMALS
    for name in [name for name in sys.modules if name.partition(".")[0] == "tinyzoo"]:
        del sys.modules[name]


def write(path, text):
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_every_file_without_underscore_registers(zoo):
    assert list(zoo) == ["cat", "dog"] and len(zoo) == 2 and "cat" in zoo
    assert zoo["dog"].__name__ == "Dog" and zoo["dog"].name == "dog"


def test_a_name_is_looked_for_in_its_own_file_first(zoo):
    assert zoo["dog"].name == "dog" and zoo.get("dog") is zoo["dog"]
    assert "tinyzoo.dog" in sys.modules and "tinyzoo.cat" not in sys.modules
    assert "_shared" not in zoo and "a.b" not in zoo and "" not in zoo
    assert "tinyzoo.cat" in sys.modules and list(zoo) == ["cat", "dog"]


def test_a_file_that_registers_under_another_name_is_found(zoo, tmp_path):
    (tmp_path / "tinyzoo" / "birds.py").write_text("from . import ANIMALS\n@ANIMALS.register('owl')\nclass Owl: pass\n")
    assert "birds" not in zoo and zoo["owl"].name == "owl"


def test_unknown_names_suggest(zoo):
    with pytest.raises(UnknownNameError, match="--pet: no animal 'dgo'; did you mean 'dog'"):
        zoo.resolve("dgo", "--pet")
    assert "cow" not in zoo and zoo.get("cow") is None


def test_a_second_registration_of_a_name_is_refused(zoo):
    first = zoo["cat"]
    with pytest.raises(UsageError, match="animal 'cat' is registered twice"):
        zoo.register("cat")(type("Tiger", (), {}))
    assert zoo["cat"] is first


def test_an_entry_point_joins_and_a_broken_one_is_a_warning(zoo, monkeypatch):
    class Point:
        name, value = "broken", "nowhere:nothing"

        def load(self):
            raise ImportError("No module named 'nowhere'")

    class Cow(Point):
        def load(self):
            zoo.register("cow")(type("Cow", (), {}))

    asked = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: asked.append(group) or [Point(), Cow()])
    with pytest.warns(UserWarning, match="broken = nowhere:nothing does not load: No module named 'nowhere'"):
        assert list(zoo) == ["cat", "cow", "dog"]
    assert asked == ["tinyzoo"]


# -- a user's file ---------------------------------------------------------------------------------------------------


BIRD = "from tinyzoo import ANIMALS\n\n@ANIMALS.register('{name}')\nclass {cls}: pass\n"


def test_a_file_with_one_registration(zoo, tmp_path):
    file = write(tmp_path / "bird.py", BIRD.format(name="bird", cls="Bird"))
    assert zoo.resolve(file).__name__ == "Bird"
    write(tmp_path / "bird.py", BIRD.format(name="bird", cls="Eagle"))  # edited in the same session
    assert zoo.resolve(file).__name__ == "Eagle"
    copy = write(tmp_path / "bird2.py", BIRD.format(name="bird", cls="Owl"))  # tried beside the first
    assert zoo.resolve(copy).__name__ == "Owl"
    assert list(zoo) == ["cat", "dog"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "bird.py registers 0 animals, expected exactly one"),
        (BIRD.format(name="a", cls="A") + BIRD.format(name="b", cls="B"), "bird.py registers 2 animals"),
        (BIRD.format(name="a", cls="A") + BIRD.format(name="a", cls="B"), "animal 'a' is registered twice"),
        (BIRD.format(name="cat", cls="Cat"), "animal 'cat' is registered twice, by tinyzoo.cat.Cat"),
        ("x = 1\ndef f(:\n    pass\n", r"bird.py:2: invalid syntax"),
        ("x = 1\n\nimport no_such_module\n", r"bird.py:3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    return undefined\n\nf()\n", r"bird.py:2: NameError"),
    ],
)
def test_a_wrong_file_is_one_line_and_leaves_the_registry_alone(zoo, tmp_path, monkeypatch, text, message):
    before = dict(zoo)
    write(tmp_path / "bird.py", text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as caught:
        zoo.resolve("bird.py")
    assert "\n" not in str(caught.value)
    assert dict(zoo) == before


def test_a_missing_file_is_named(zoo):
    with pytest.raises(UsageError, match=r"--pet: no such file: .*nope\.py"):
        zoo.resolve("./nope.py", "--pet")


def test_the_zoo_has_no_name_twice_and_needs_no_file():
    assert {"local", "fedavg", "fedhca2"} <= set(ALGORITHMS)
    assert all(method.name == name for name, method in ALGORITHMS.items())
    assert isinstance(ALGORITHMS, Registry)


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced(tmp_path):
    file = tmp_path / "a.txt"
    for text in ("old", "new ²"):
        write_text(file, text)
        assert file.read_text(encoding="utf-8") == text
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.parametrize("exception", [OSError("disk"), KeyboardInterrupt()])
def test_a_failing_writer_leaves_the_old_content_and_no_rubbish(tmp_path, exception):
    file = tmp_path / "a.txt"
    write_text(file, "old")

    def writer(temporary):
        temporary.write_text("half")
        assert file.read_text() == "old"
        raise exception

    with pytest.raises(type(exception)):
        replace_file(file, writer)
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failing_rename_leaves_no_rubbish(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_text(tmp_path / "folder", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_json_refuses_nan_before_touching_the_file(tmp_path):
    file = tmp_path / "a.json"
    write_json(file, {"b": 1, "a": [None, "²"]})
    text = file.read_text()
    with pytest.raises(ValueError):
        write_json(file, {"x": float("nan")})
    assert file.read_text() == text and text.index('"b"') < text.index('"a"')
