"""`fmtlbench list`: what there is to run. Never imports torch."""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase

from ..base.errors import UnknownNameError, nearest
from ..base.schema import plain


def _algorithms() -> list[dict]:
    from ..algorithms import ALGORITHMS

    return [
        {"name": n, "title": c.title, "description": _first_line(c), "paper": c.paper} for n, c in ALGORITHMS.items()
    ]


def _architectures() -> list[dict]:
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


def _weightings() -> list[dict]:
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


def _backbones() -> list[dict]:
    from ..networks.catalog import BACKBONES, TIMM

    return [
        {
            "name": name,
            "maps": ", ".join(spec.maps),
            "weights": "the package's" if spec.shipped else f"timm's {spec.timm.partition('.')[2]}",
        }
        for name, spec in BACKBONES.items()
    ] + [{"name": f"{TIMM}NAME", "maps": "found when it is built", "weights": "timm's"}]


def _all_backbones() -> list[dict]:
    from ..networks.catalog import TIMM, timm_names

    *listed, any_other = _backbones()
    return listed + [{**any_other, "name": TIMM + name} for name in timm_names()]


def _scenarios() -> list[dict]:
    from ..scenarios import load_scenario, scenario_files

    loaded = [load_scenario(str(path)) for path in scenario_files().values()]
    return [
        {"name": s.name, "clients": len(s.parties()), "description": s.description, "paper": s.paper} for s in loaded
    ]


def _presets() -> list[dict]:
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


def _metrics() -> list[dict]:
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


def _datasets() -> list[dict]:
    from ..data.datasets import DATASETS

    return [
        {"name": d.name, "domain": d.domain, "tasks": ", ".join(d.all_tasks()), "description": d.description}
        for d in DATASETS.values()
    ]


def _tasks() -> list[dict]:
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


def _partitions() -> list[dict]:
    from ..data.partitions import PARTITIONS

    return [{"name": name, "description": rule.description} for name, rule in PARTITIONS.items()]


def _listeners() -> list[dict]:
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


def add(verbs) -> None:
    parser = verbs.add_parser("list", help=f"what there is: {', '.join(KINDS)}")
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS), help="one kind only; default: all")
    parser.add_argument("pattern", nargs="?", help="only names like this one, e.g. backbones 'timm/convnext*'")
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    if args.pattern is None:
        listing = {kind: KINDS[kind]() for kind in ([args.kind] if args.kind else KINDS)}
    else:
        listing = {args.kind: _search(args.kind, args.pattern)}
    if args.json:
        print(json.dumps(listing[args.kind] if args.kind else listing, indent=2, ensure_ascii=False))
        return 0
    from ._tables import print_records

    for kind, records in listing.items():
        print_records(records, title=kind)
    return 0


def _search(kind: str, pattern: str) -> list[dict]:
    """Return the records whose names match a pattern of the shell; refuse one that matches none."""
    records = SEARCHED.get(kind, KINDS[kind])()
    found = [record for record in records if fnmatchcase(record["name"], pattern)]
    if not found:
        close = nearest(pattern, [record["name"] for record in records], f"`fmtlbench list {kind}` shows what there is")
        raise UnknownNameError(f"list {kind}: no name is like {pattern!r}; {close}")
    return found


def _assigned(options: dict) -> str:
    from ._tables import as_typed

    return ", ".join(f"{option}={as_typed(value)}" for option, value in options.items())


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().splitlines()[0] if cls.__doc__ else ""
