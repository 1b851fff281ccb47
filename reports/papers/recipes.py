"""How the papers' tables and figures are made: which runs each of them needs, read from published/recipes.yml."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from typing import Any

from ...base.errors import unknown
from ...base.yamlfile import load_yaml
from ..labels import option_text, read_label, write_label
from .published import FOLDER, Published, fits, load_published, paper_setting, papers, table_names

SCORES, DELTAS, COST, NETWORKS = "scores", "deltas", "cost", "networks"


@dataclass(frozen=True, eq=False)
class Wanted:
    """Runs of one method in one setting, for every seed; two that ask for the same are equal."""

    label: str  # the method as tables call it, with its options: "PCGrad-E", "FedHCA² (c=0.2)"
    scenario: str
    overrides: Mapping[str, Any] = field(default_factory=dict)  # of the config, as `--set` takes them

    @cached_property
    def key(self) -> str:
        return json.dumps([self.label, self.scenario, dict(self.overrides)], sort_keys=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def method(self) -> str:
        """Return the title of the method."""
        return read_label(self.label)[0]

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of the method that are not the preset's."""
        return read_label(self.label)[1]

    @property
    def full_label(self) -> str:
        """Return the label with the options that are among the overrides: those of a sweep."""
        own = {key.removeprefix("algo."): v for key, v in self.overrides.items() if key.startswith("algo.")}
        return write_label(self.method, {**self.options, **own})


@dataclass(frozen=True)
class Recipe:
    """One table or figure of a paper. `kind`: how a table's cells are made, or what a figure draws."""

    name: str
    kind: str
    paper: str
    place: str  # "Table 1", "Figure 4"
    title: str
    entry: Mapping[str, Any]  # from recipes.yml
    table: Published | None = None  # None: a figure

    @property
    def is_figure(self) -> bool:
        return self.table is None

    @property
    def source(self) -> str:
        return f"{papers()[self.paper]}, {self.place}"

    @property
    def preset(self) -> str:
        """Return the paper's own preset."""
        return paper_setting(self.paper)["preset"]

    @property
    def habits(self) -> Mapping[str, Any]:
        """Return what holds for all recipes of the paper."""
        return _index()["papers"][self.paper.removesuffix("_supp")]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.table.notes if self.table else tuple(self.entry.get("notes", ()))

    @property
    def spread(self) -> str:
        """Return what ± is over where the paper prints it."""
        return self.habits.get("spread", "seeds")

    @property
    def target(self) -> Wanted | None:
        """Return the runs that every Δ of the paper is against; None: a row of the table."""
        entry = self.habits.get("target")
        return Wanted(entry["method"], entry["scenario"], entry["set"]) if entry else None

    @cached_property
    def cells(self) -> dict[tuple[int, str], Wanted]:
        """Return the runs of a table's row and, where columns are methods, column; else the column is ""."""
        if self.table is None or self.kind == NETWORKS:
            return {}
        found = {}
        for number, row in enumerate(self.table.rows):
            for column in self.table.columns if self.kind == DELTAS else [""]:
                found[number, column] = self._asked(self.table, row, column)
        return found

    def row(self, row: Mapping[str, str]) -> Wanted:
        """Return what a row of the table asks for."""
        assert self.table is not None, self.name
        return self._asked(self.table, row)

    def split(self, row: Mapping[str, str]) -> str:
        """Return the test images that a row with Δ for cells is about."""
        splits = self.entry["splits"]
        return splits[row[splits["by"]]]

    def reference(self, number: int) -> Wanted | None:
        """Return the runs that Δ of a row is against; None where the table has none."""
        assert self.table is not None, self.name
        if not self.table.deltas:
            return None
        if "row" in self.table.entry.get("reference", {}):
            table, base = self.table.reference_row(self.table.rows[number])
            return load_recipe(table.name).row(base)
        return self.target

    @cached_property
    def lines(self) -> list[Wanted]:
        """Return the runs that a figure shows, in its order."""
        found = list(self._rows()) + list(self._runs())
        return list(dict.fromkeys(found))

    @cached_property
    def wanted(self) -> list[Wanted]:
        """Return all runs that the recipe needs, each once: what it shows, then what that is compared with."""
        shown = self.lines if self.is_figure else list(self.cells.values())
        return list(dict.fromkeys([*shown, *self._compared()]))

    def _compared(self) -> Iterator[Wanted]:
        if self.table is not None:
            bases = [self.reference(number) for number, _ in self.cells]
        elif self.entry.get("delta"):
            recipe = load_recipe(self.entry["rows"]["table"])
            bases = [recipe.reference(number) for number, _ in recipe.cells]
        else:
            bases = []
        yield from (base for base in bases if base is not None)

    def _rows(self) -> Iterator[Wanted]:
        """Yield the runs of the table's rows that a figure shows."""
        rows = self.entry.get("rows")
        if not rows:
            return
        recipe = load_recipe(rows["table"])
        assert recipe.table is not None
        for (number, _), asked in recipe.cells.items():
            if fits(recipe.table.rows[number], rows.get("only", {})):
                yield asked

    def _runs(self) -> Iterator[Wanted]:
        """Yield the runs that a figure asks for by itself, with every value of a sweep."""
        for run in self.entry.get("runs", ()):
            each = run.get("each", {})
            for values in product(*each.values()):
                overrides = {**run.get("set", {}), **dict(zip(each, values))}
                yield Wanted(run["method"], run["scenario"], overrides)

    def _asked(self, table: Published, row: Mapping[str, str], column: str = "") -> Wanted:
        """Return the runs of a row; `column` is the method where a table's columns are methods."""
        label = table.name_label(column) if column else table.label(row)
        overrides = {f"model.{key}": value for key, value in table.row_model(row).items()}
        if parameter := table.entry.get("parameters"):
            overrides[f"scenario.{parameter}"] = int(row[parameter])
        for head, meanings in self.entry.get("set", {}).items():
            overrides |= meanings[row[head]]
        overrides |= self.habits.get("networks", {}).get(overrides.get("model.backbone"), {})
        return Wanted(label, table.scenario(row), overrides)

    def _public_code(self) -> Mapping[str, Any]:
        """Return what public code does to methods; nothing for a recipe about what only the paper's text has."""
        return self.habits.get("public_code", {}) if self.entry.get("public_code", True) else {}

    def say_public_code(self) -> str:
        """Say which methods are run as the public code does; "" where that is the same thing."""
        told = []
        for method in dict.fromkeys(asked.method for asked in self.wanted):
            if entry := self._public_code().get(method):
                options = ", ".join(f"{key}={option_text(value)}" for key, value in entry.get("options", {}).items())
                told.append(f"{method}: {' '.join(filter(None, (entry.get('method'), options)))}")
        return f"methods as the public code ran them ({'; '.join(told)})" if told else ""

    def as_public_code(self, asked: Wanted) -> Wanted:
        """Return the same as the public code ran it that made the paper's numbers."""
        told = self._public_code().get(asked.method)
        if not told:
            return asked
        overrides = {**{f"algo.{k}": v for k, v in told.get("options", {}).items()}, **asked.overrides}
        label = asked.label.replace(asked.method, told.get("method", asked.method), 1)
        return Wanted(label, asked.scenario, overrides)


@cache
def _index() -> dict[str, Any]:
    return load_yaml(FOLDER / "recipes.yml")


def stand_ins() -> Mapping[str, str]:
    """Return which small backbone takes the place of a paper's."""
    return _index()["stand_ins"]


def recipe_names() -> list[str]:
    """List all recipes, paper by paper, tables before figures."""
    everything = [*table_names(), *_index()["figures"]]
    papers = list(dict.fromkeys(load_recipe(name).paper for name in everything))
    return sorted(everything, key=lambda name: papers.index(load_recipe(name).paper))


@cache
def load_recipe(name: str) -> Recipe:
    """Load one recipe; an unknown name raises with the nearest ones."""
    figures = _index()["figures"]
    if name in figures:
        entry = figures[name]
        return Recipe(name, entry["draws"], entry["paper"], entry["figure"], entry["title"], entry)
    if name not in table_names():
        raise unknown("recipe", name, [*table_names(), *figures])
    table, entry = load_published(name), _index()["tables"].get(name, {})
    kind = entry.get("kind", SCORES)
    return Recipe(name, kind, table.entry["paper"], table.entry["table"], table.title, entry, table)
