"""What there is to run, as records: algorithms, scenarios, presets, networks, datasets and all else that has a name.

Each kind is imported when it is asked for, and nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from fnmatch import fnmatchcase
from typing import Any

from ..base.errors import UnknownNameError, nearest
from ..base.schema import plain
from ..base.words import as_typed

Record = dict[str, Any]


def catalog(kind: str, pattern: str | None = None) -> list[Record]:
    """Return a record for everything of a kind, or whose name matches a pattern of the shell; refuse one without any.

    >>> from fmtlbench.bench.catalog import catalog
    >>> [record["name"] for record in catalog("scenarios", "st_mt_*")]
    ['st_mt_1', 'st_mt_1_2c', 'st_mt_1_4c', 'st_mt_1_unseen', 'st_mt_2']
    """
    if pattern is None:
        return KINDS[kind]()
    records = SEARCHED.get(kind, KINDS[kind])()
    found = [record for record in records if fnmatchcase(record["name"], pattern)]
    if not found:
        close = nearest(pattern, [record["name"] for record in records], f"`fmtlbench list {kind}` shows what there is")
        raise UnknownNameError(f"list {kind}: no name is like {pattern!r}; {close}")
    return found


def describe_algorithm(name: str) -> Record:
    """Return all that a method, or the file of one, says of itself, and what presets start its options from."""
    from ..algorithms import ALGORITHMS
    from ..config.presets import preset_files, preset_options

    method = ALGORITHMS.resolve(name)
    given = {preset: preset_options(preset) for preset in preset_files()}
    return {
        "name": method.name,
        "title": method.title,
        "paper": method.paper,
        "about": inspect.cleandoc(inspect.getmodule(method).__doc__ or method.__doc__ or ""),
        "options": describe_options(method),
        "presets": {preset: options[method.name] for preset, options in given.items() if method.name in options},
        "roles": list(method.roles),
    }


def describe_preset(name: str) -> Record:
    """Return the values of a preset, or of the file of one, with all that it extends, and the line of each."""
    from ..base.located import locate
    from ..config.presets import list_ancestry, name_preset, read_preset
    from ..config.setting import flatten

    tree = read_preset(name)
    description = tree.pop("description", "")
    extends = [str(file) for file in list_ancestry(name)[1:]]
    record = {"name": name_preset(name), "description": description, "extends": extends, "values": tree}
    return {**record, "lines": {key: locate(tree, key) for key in flatten(tree)}}


def describe_options(method: Any) -> list[Record]:
    """Return the options of a method's class: how each is given to --set, its default, type and meaning."""
    hints = typing.get_type_hints(method.Params)
    return [
        {
            "option": f"algo.{f.name}",
            "default": _default(f),
            "type": _type(hints[f.name]),
            "meaning": f.metadata.get("doc", ""),
        }
        for f in dataclasses.fields(method.Params)
    ]


# -- the kinds ---------------------------------------------------------------------------------------------------------


def _algorithms() -> list[Record]:
    from ..algorithms import ALGORITHMS

    return [
        {"name": n, "title": c.title, "description": _first_line(c), "paper": c.paper} for n, c in ALGORITHMS.items()
    ]


def _architectures() -> list[Record]:
    from ..networks.architectures import ARCHITECTURES

    return [
        {
            "name": name,
            "title": network.title,
            "description": network.description,
            "options": _assigned(plain(network.Params())),
            "paper": network.paper,
        }
        for name, network in ARCHITECTURES.items()
    ]


def _weightings() -> list[Record]:
    from ..config.presets import default_options
    from ..weightings import WEIGHTINGS

    return [
        {
            "name": name,
            "title": weighting.title,
            "description": _first_line(weighting),
            "options": _assigned(default_options(weighting, "", {})),
            "needs": describe_needs(weighting),
            "fixed_weights": "left out" if weighting.scale_free else "multiply the losses",
            "paper": weighting.paper,
        }
        for name, weighting in WEIGHTINGS.items()
    ]


def describe_needs(weighting: type) -> str:
    """Say what a weighting is made from, and what that costs in a step of a client with m tasks."""
    needs = "gradients: m backward passes" if weighting.needs_gradients else "losses: 1 backward pass"
    return f"{needs}, 1 more forward pass" if weighting.needs_losses_again else needs


def _backbones() -> list[Record]:
    from ..networks.catalog import BACKBONES, TIMM

    return [
        {
            "name": name,
            "maps": ", ".join(spec.maps),
            "weights": "the package's" if spec.shipped else f"timm's {spec.timm.partition('.')[2]}",
        }
        for name, spec in BACKBONES.items()
    ] + [{"name": f"{TIMM}NAME", "maps": "found when it is built", "weights": "timm's"}]


def _all_backbones() -> list[Record]:
    from ..networks.catalog import TIMM, timm_names

    *listed, any_other = _backbones()
    return listed + [{**any_other, "name": TIMM + name} for name in timm_names()]


def _scenarios() -> list[Record]:
    from ..scenarios import load_scenario, scenario_files

    loaded = [load_scenario(str(path)) for path in scenario_files().values()]
    return [
        {"name": s.name, "clients": len(s.parties()), "description": s.description, "paper": s.paper} for s in loaded
    ]


def _presets() -> list[Record]:
    from ..config.presets import list_ancestry, preset_files, preset_options, read_preset

    def options(name: str) -> str:
        given = [*preset_options(name).items(), *preset_options(name, "architectures").items()]
        return "; ".join(f"{owner}: {_assigned(chosen)}" for owner, chosen in given)

    return [
        {
            "name": name,
            "description": read_preset(name).get("description", ""),
            "extends": ", ".join(file.stem for file in list_ancestry(name)[1:]),
            "options": options(name),
        }
        for name in preset_files()
    ]


def _metrics() -> list[Record]:
    from ..metrics import METRICS

    return [
        {
            "name": n,
            "label": m.label,
            "better": "up" if m.higher_is_better else "down",
            "unit": m.unit,
            "tasks": ", ".join(m.tasks),
            "description": m.description,
        }
        for n, m in METRICS.items()
    ]


def _datasets() -> list[Record]:
    from ..data.datasets import DATASETS

    return [
        {"name": d.name, "domain": d.domain, "tasks": ", ".join(d.all_tasks()), "description": d.description}
        for d in DATASETS.values()
    ]


def _tasks() -> list[Record]:
    from ..tasks import TASKS, in_columns

    return [
        {
            "name": name,
            "title": TASKS[name].title,
            "labels": type(TASKS[name].kind).__name__,
            "metric": TASKS[name].metric,
            "weight": TASKS[name].weight,
            "description": TASKS[name].description,
        }
        for name in in_columns(TASKS)
    ]


def _partitions() -> list[Record]:
    from ..data.partitions import PARTITIONS

    return [{"name": name, "description": rule.description} for name, rule in PARTITIONS.items()]


def _listeners() -> list[Record]:
    from ..listeners import LISTENERS

    return [{"name": n, "description": _first_line(c)} for n, c in LISTENERS.items()]


KINDS = {
    "algorithms": _algorithms,
    "scenarios": _scenarios,
    "presets": _presets,
    "architectures": _architectures,
    "backbones": _backbones,
    "metrics": _metrics,
    "datasets": _datasets,
    "tasks": _tasks,
    "partitions": _partitions,
    "weightings": _weightings,
    "listeners": _listeners,
}
# With a pattern these are searched instead; there are too many to list them unasked.
SEARCHED = {"backbones": _all_backbones}


def _assigned(options: Record) -> str:
    return ", ".join(f"{option}={as_typed(value)}" for option, value in options.items())


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0] if cls.__doc__ else ""


def _default(field: dataclasses.Field) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return "required" if field.default is dataclasses.MISSING else field.default


def _type(hint: Any) -> str:
    if hint is type(None):
        return "null"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(map(_type, typing.get_args(hint)))
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    return str(hint) if typing.get_args(hint) else getattr(hint, "__name__", str(hint))
