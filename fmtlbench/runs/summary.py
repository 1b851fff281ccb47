"""What a summary says of the setting that its scores come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..config import RunConfig


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
        },
        "departures": config.departures,
        "numerics": config.numerics,
    }
