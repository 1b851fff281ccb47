"""How long the rounds of a run would take over slow networks and on slow clients. No torch.

Measured: the bytes of every client and direction (`ledger` in metrics.jsonl), the seconds that every client worked
(`clients` in timing.jsonl) and the server's step, all on the machine that ran it. Modelled: each client on a machine
and a line of its own. Rounds are synchronous, so a round takes as long as the client that the server waits for:

    round = max over its clients of (download + compute × slowdown + upload + latencies) + the server's step
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from ..base.errors import FmtlbenchError, UsageError, nearest, unknown
from ..base.schema import build, limits, locate
from ..base.words import say_quantity
from ..base.yamlfile import load_yaml

BITS = {"kbit": 1e3 / 8, "Mbit": 1e6 / 8, "Gbit": 1e9 / 8}
RATES = {**BITS, "kB": 1e3, "MB": 1e6, "GB": 1e9}  # bytes per second
TIMES = {"ms": 1e-3, "s": 1.0}
NOT_OF_A_ROUND = ("evaluate",)  # phases of a client: the benchmark looks at its model, no federation would
SERVER = ("aggregate",)  # phases of the server: the others wait for clients, or move what the model moves


class NoRecordError(FmtlbenchError):
    """A round of which a run does not tell enough to model it."""


# -- machines and lines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Profile:
    """The machine and the line of a client.

    Args:
        slowdown: The seconds it needs for one second of the machine that ran it.
        up: Bytes per second that it sends; None: without limit.
        down: Bytes per second that it is sent; None: without limit.
        latency: Seconds that a message is under way, whatever its size.
    """

    slowdown: float = 1.0
    up: float | None = None
    down: float | None = None
    latency: float = 0.0

    def __post_init__(self) -> None:
        for name in ("slowdown", "up", "down"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise UsageError(f"{name} {value:g}: expected a number above 0")
        if not (math.isfinite(self.latency) and self.latency >= 0):
            raise UsageError(f"latency {self.latency:g}: expected seconds, 0 or more")

    def seconds_to_move(self, size: int, direction: str) -> float:
        """Return how long the bytes of one direction ("up" or "down") take; nothing where nothing is sent."""
        rate = getattr(self, direction)
        return self.latency + (0.0 if rate is None else size / rate) if size else 0.0

    def words(self) -> str:
        """Say it in a few words."""
        compute = f"compute × {self.slowdown:g}"
        if self.up is None and self.down is None:
            line = "an unlimited line"
        else:
            sides = (("up", self.up), ("down", self.down))
            line = ", ".join(f"{side} {'unlimited' if r is None else _say_rate(r)}" for side, r in sides)
        return f"{compute}, {line}, latency {say_quantity(self.latency, 's')}"


@dataclass(frozen=True)
class TimeModel:
    """What every client's machine and line are like: its own where it has one, else the default."""

    default: Profile = field(default_factory=Profile)
    own: Mapping[str, Profile] = field(default_factory=dict)  # by client id

    def of(self, client: str) -> Profile:
        """Return the profile of a client."""
        return self.own.get(client, self.default)

    def check_clients(self, known: Collection[str]) -> None:
        """Refuse profiles of clients that are not `known`; the error has the nearest ones."""
        for client in self.own:
            if client not in known:
                raise unknown("client", client, known, "time model")

    def notes(self, members: Collection[str]) -> list[str]:
        """Say what is modelled for these clients."""
        special = [f"{client}: {profile.words()}" for client, profile in self.own.items() if client in members]
        return [f"model: {self.default.words()}{'; ' if special else ''}{'; '.join(special)}"]


def parse_rate(text: str, where: str) -> float:
    """Return the bytes per second that `10Mbit`, `10Mbit/s` or `1.25MB` stand for."""
    value = _parse(text.strip().removesuffix("/s"), RATES, where, "10Mbit or 1.25MB per second")
    if value <= 0:
        raise UsageError(f"{where} {text}: expected more than 0; a client without a line cannot take part")
    return value


def parse_latency(text: str, where: str) -> float:
    """Return the seconds that `50ms` or `0.2s` stand for."""
    return _parse(text.strip(), TIMES, where, "50ms or 0.2s")


def _parse(text: str, units: Mapping[str, float], where: str, example: str) -> float:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ/ ")
    unit = text[len(digits) :].strip()
    try:
        value = float(digits)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{where} {text}: expected a number with a unit, such as {example}")
    if unit not in units:
        given = f"no unit {unit!r}; {nearest(unit, units)}" if unit else f"no unit; expected one of {', '.join(units)}"
        raise UsageError(f"{where} {text}: {given}")
    return value * units[unit]


def _say_rate(rate: float) -> str:
    return f"{say_quantity(8 * rate, 'bit')}/s"


@dataclass(frozen=True)
class GivenProfile:
    """A profile as a file says it; None: as the default, or as the flags say."""

    speed: float | None = limits(None, above=0, doc="of its machine; 0.5 needs twice the time of the one that ran it")
    up: str | None = limits(None, doc="such as 10Mbit or 1.25MB, per second")
    down: str | None = None
    latency: str | None = limits(None, doc="such as 50ms")

    def over(self, base: Profile, where: Callable[[str], str]) -> Profile:
        """Return `base` with what is given here in the place of its values; `where` says where a value was given."""
        given: dict[str, Any] = {} if self.speed is None else {"slowdown": 1 / self.speed}
        for name, parse in (("up", parse_rate), ("down", parse_rate), ("latency", parse_latency)):
            if (text := getattr(self, name)) is not None:
                given[name] = parse(text, where(name))
        return replace(base, **given)


@dataclass(frozen=True)
class ClientsFile:
    """A file that says what all clients are like, and by id what some of them are."""

    default: GivenProfile = field(default_factory=GivenProfile)
    clients: dict[str, GivenProfile] = field(default_factory=dict)


def make_model(
    file: str | Path | None = None,
    default: GivenProfile | None = None,
    slow: Mapping[str, float] | None = None,
    lines: Mapping[str, tuple[str, str]] | None = None,
    compute: float = 1.0,
) -> TimeModel:
    """Make the model that a file and flags ask for; flags take the place of what the file says.

    Args:
        file: YAML with `default` and `clients` (`ClientsFile`).
        default: What --up, --down and --latency say of clients without values of their own.
        slow: By client: the seconds it needs for one of the others, in the place of its speed.
        lines: By client: its rates up and down.
        compute: The seconds that every client needs for one of the machine that ran it, on top of its own slowdown.

    Raises:
        UsageError: A value that cannot be; of a file the message has the line.
    """
    data, origins = ({}, {}) if file is None else load_yaml(file)
    said = build(ClientsFile, {} if data is None else data, origins)

    def in_file(path: str) -> Callable[[str], str]:
        return lambda name: f"{locate(f'{path}.{name}', origins)}: {path}.{name}"

    usual = said.default.over(Profile(), in_file("default"))
    usual = (default or GivenProfile()).over(usual, "--{}".format)
    own = {client: given.over(usual, in_file(f"clients.{client}")) for client, given in said.clients.items()}
    for client, factor in (slow or {}).items():
        own[client] = replace(own.get(client, usual), slowdown=factor)
    for client, (up, down) in (lines or {}).items():
        given = GivenProfile(up=up, down=down)
        own[client] = given.over(own.get(client, usual), lambda _, client=client: f"--bandwidth {client}:")
    usual, *others = (replace(p, slowdown=p.slowdown * compute) for p in (usual, *own.values()))
    return TimeModel(usual, dict(zip(own, others)))


# -- rounds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClientTime:
    """What one client does in a round, in modelled seconds."""

    client: str
    download: float
    compute: float
    upload: float

    @property
    def seconds(self) -> float:
        """All of it, one after the other."""
        return self.download + self.compute + self.upload


@dataclass(frozen=True)
class ModelledRound:
    """How long a round would take, and the client that the server waits for in it."""

    round: int
    slowest: ClientTime
    server: float

    @property
    def seconds(self) -> float:
        """The whole round."""
        return self.slowest.seconds + self.server


def model_round(
    row: Mapping[str, Any], timing: Mapping[str, Any] | None, clients: Sequence[str], model: TimeModel
) -> ModelledRound:
    """Model one round.

    Args:
        row: The round's row of metrics.jsonl.
        timing: Its row of timing.jsonl; None: there is none.
        clients: All that take part in the run; those of them that the row calls present are waited for.
        model: Their machines and lines.

    Raises:
        NoRecordError: The rows do not tell who sent what, or how long a client worked.
    """
    where = f"round {row['round']}"
    if "ledger" not in row:
        raise NoRecordError(f"{where}: metrics.jsonl does not tell the bytes by client")
    if timing is None:
        raise NoRecordError(f"{where} is not in timing.jsonl")
    busy, seconds = timing.get("clients"), timing["seconds"]
    if busy is None:
        raise NoRecordError(f"{where}: timing.jsonl does not tell the seconds by client")
    there = row.get("present", clients)  # rows in which everybody was there do not list them
    if missing := [client for client in there if client not in busy]:
        raise NoRecordError(f"{where}: timing.jsonl does not tell how long {missing[0]} worked")
    times = [_model_client(client, row["ledger"].get(client, {}), busy[client], model.of(client)) for client in there]
    server = math.fsum(seconds.get(phase, 0.0) for phase in SERVER)
    return ModelledRound(row["round"], max(times, key=lambda time: time.seconds), server)


def _model_client(
    client: str, sent: Mapping[str, Mapping[str, int]], busy: Mapping[str, float], profile: Profile
) -> ClientTime:
    """Model what a client does in a round; of bytes that no ledger has it sent none (a method may share nothing)."""
    down, up = (profile.seconds_to_move(sum(sent.get(way, {}).values()), way) for way in ("down", "up"))
    worked = math.fsum(spent for phase, spent in busy.items() if phase not in NOT_OF_A_ROUND)
    return ClientTime(client, down, worked * profile.slowdown, up)


@dataclass(frozen=True)
class ModelledRun:
    """The rounds of a run as they would have been, or why they cannot be modelled."""

    rounds: tuple[ModelledRound, ...] = ()
    why_not: str = ""

    @cached_property
    def ends(self) -> list[float]:
        """Return when each round would have ended, in seconds since the first began."""
        return list(accumulate(done.seconds for done in self.rounds))

    def seconds_until(self, number: int) -> float | None:
        """Return when round `number` would have ended, in seconds since the first began; None: it is not modelled."""
        return self.ends[number - 1] if number <= len(self.rounds) else None


def model_run(
    rows: Sequence[Mapping[str, Any]], timing: Sequence[Mapping[str, Any]], clients: Sequence[str], model: TimeModel
) -> ModelledRun:
    """Model all rounds of a run from the rows of its metrics.jsonl and timing.jsonl; one without record spoils all."""
    if not rows:
        return ModelledRun(why_not="metrics.jsonl tells of no round")
    for number, row in enumerate(rows, start=1):
        if row["round"] != number:
            return ModelledRun(why_not=f"round {number} is not in metrics.jsonl")
    by_round = {row["round"]: row for row in timing}
    try:
        return ModelledRun(tuple(model_round(row, by_round.get(row["round"]), clients, model) for row in rows))
    except NoRecordError as error:
        return ModelledRun(why_not=str(error))
