"""What a summary says of the method and the setting that its scores come from."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from ..config.presets import default_options
from ..config.roles import roles
from ..config.setting import EQUAL
from ..weightings import WEIGHTINGS
from .records import ClientRecord, WeightingRecord

if TYPE_CHECKING:
    from ..config.run_config import RunConfig
    from ..exchange import Party


def describe_weighting(config: RunConfig) -> WeightingRecord | None:
    """Return how the clients of a run weigh their losses; None where they do it equally, as methods do by themselves.

    The file that brings the weighting, if it is a user's, has been read by whoever made or loaded the config.
    """
    if config.train.weighting == EQUAL:
        return None
    weighting = WEIGHTINGS[config.train.weighting]
    return {
        "name": weighting.name,
        "title": weighting.title,
        "options": config.train.weighting_options,
        "default_options": default_options(weighting, config.preset, {}),
    }


def describe_client(config: RunConfig, party: Party, relabel: Mapping[str, str], **more: Any) -> ClientRecord:
    """Return who a client is, with the rules that change its training labels; `more` is told of runs of our own."""
    record: dict[str, Any] = {
        "id": party.id,
        "dataset": party.dataset,
        "tasks": list(party.tasks),
        "samples": party.samples,
        **more,
    }
    if relabel:
        record["relabel"] = dict(relabel)
    if noise := (config.data.label_noise or {}).get(party.id):
        record["label_noise"] = noise
    return cast(ClientRecord, record)


def name_method(summary: Mapping[str, Any]) -> str:
    """Return the method of a summary or an absence as `--algo` takes it, with its weighting: `fedavg+uw`."""
    weighting = summary.get("weighting")
    return f"{summary['algorithm']}+{weighting['name']}" if weighting else summary["algorithm"]


def title_method(summary: Mapping[str, Any]) -> str:
    """Return the title of a method with that of its weighting: "FedAvg+UW"."""
    title, weighting = summary.get("title") or summary["algorithm"], summary.get("weighting")
    return f"{title}+{weighting['title']}" if weighting else title


FAULTS = (
    "data.label_noise",
    "federation.dropout",
    "federation.stragglers",
    "federation.straggler_work",
    "federation.compression",
    "federation.compression_share",
    "federation.compression_bits",
    "federation.error_feedback",
)


def _tell_faults(config: RunConfig) -> dict[str, Any]:
    """Return what is set of faults and compression, by path."""
    values = {path: attrgetter(path)(config) for path in FAULTS}
    return {path: value for path, value in values.items() if value != roles().since[path]}


def describe_setting(config: RunConfig) -> dict[str, Any]:
    """Return the keys of a summary that follow from the config alone, in the order of the file's keys."""
    when, compiled, validation = config.evaluation.when, config.train.compile, config.data.validation
    return {
        "scenario": config.scenario.name,
        "scenario_version": config.scenario.version,
        "preset": config.preset,
        "data": config.data.source,
        "seed": config.seed,
        "rounds": config.federation.rounds,
        "device": config.device,
        "config_hash": config.hash(),
        "setting": config.setting().key,
        "setting_text": {
            "architecture": config.model.architecture,
            "backbone": config.model.backbone,
            "pretrained": config.model.pretrained,
            "exchange": config.federation.exchange,
            "participation": config.federation.participation,
            "statistics": config.federation.statistics,
            "size": {domain: list(size) for domain, size in config.data.size.items()},
            "scenario_parameters": dict(config.scenario.parameters),
            **({"when": when} if when != "after_aggregation" else {}),
            **({"train.compile": True} if compiled else {}),
            **({"data.validation": validation} if validation else {}),
            **_tell_faults(config),
        },
        "departures": config.departures,
        "numerics": config.numerics,
    }
