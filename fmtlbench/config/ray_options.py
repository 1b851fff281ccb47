"""How the clients of a run are spread over a Ray cluster: `--set ray.…`, which moves no number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.errors import UsageError
from ..base.located import Tree
from ..base.schema import build, limits, plain

SECTION = "ray."  # of `--set`: how runs are spread, which moves no number and is no part of a config


@dataclass(frozen=True)
class RayOptions:
    """How the clients of a run are spread over a cluster."""

    workers: int | None = limits(None, low=1, high=4096, doc="processes with clients; null = as many as find a place")
    cpus_per_client: float = limits(1.0, above=0, high=1024, doc="that a process needs, whose clients take turns")
    gpus_per_client: float = limits(
        1.0, above=0, high=64, doc="likewise, where the device is cuda; 0.5 = two share one"
    )
    # Ray counts in tenths of a thousandth of a byte, in 64 bits: more than this overflows and is placed anywhere.
    memory_gb: float | None = limits(
        None, above=0, high=1e5, doc="of a process; null = reckoned from its clients' networks"
    )
    object_store_gb: float | None = limits(None, above=0.08, doc="of a cluster that is started here; null = Ray's own")
    patience: float = limits(300.0, above=0, high=86_400, doc="seconds in which a process must find a place and start")
    retries: int = limits(3, low=0, high=1000, doc="how often a client is brought back in one step of a round")


def check_ray_device(name: str, flag: str = "--executor ray") -> None:
    """Refuse the number of a card where a cluster chooses the card; `flag` asked for the cluster."""
    if name.startswith("cuda:"):
        raise UsageError(f"--device {name}: with {flag} the cluster chooses the card; --device cuda")


def ray_options(overrides: Mapping[str, Any]) -> RayOptions:
    """Read the `ray.…` values among overrides."""
    given = {key.removeprefix(SECTION): plain(value) for key, value in overrides.items() if key.startswith(SECTION)}
    flags = {key: f"--set ray.{key}={value}" for key, value in given.items()}
    return build(RayOptions, Tree(given, places=flags), "ray")
