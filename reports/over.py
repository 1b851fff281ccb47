"""What rounds would take on other machines and over other lines: `fmtlbench cost --over MACHINES.yml`. No torch.

Measured: the bytes of every client and direction (`ledger` in metrics.jsonl), the seconds that every client worked
(`clients` in timing.jsonl) and the server's step, all on the machine that ran it. Imagined: each client on a machine
and a line of its own. Rounds are synchronous, so a round takes as long as the client that the server waits for:

    round = max over its clients of (download + compute × slowdown + upload + latencies) + the server's step
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, nearest, unknown
from ..base.located import locate
from ..base.schema import build, limits
from ..base.words import say_quantity
from ..base.yamlfile import load_yaml
from ..runs.records import RoundRow, TimingRow
from .collect import Collection, RunRecord
from .cost import Convention
from .table import Cell

RATES = {"kbit": 125.0, "Mbit": 125e3, "Gbit": 125e6, "kB": 1e3, "MB": 1e6, "GB": 1e9}  # bytes per second
TIMES = {"ms": 1e-3, "s": 1.0}
NOT_OF_A_ROUND = ("evaluate",)  # phases of a client: the benchmark looks at its model, no federation would
PARTS = {"seconds": "s", "compute": "s compute", "transfer": "s transfer", "server": "s server"}
SERVER = ("aggregate",)  # phases of the server: the others wait for clients, or move what is imagined to move
NOTES = (
    "imagined: every client on a machine and a line of its own, and synchronous rounds: a round is download + compute "
    "+ upload of the client that is waited for, with a latency for each direction, and the server's step",
    "measured, on the machine that ran it: bytes by client, seconds that each client worked (loading and the first "
    "batch's warm-up included, evaluation not; longer where clients shared its cores) and the server's aggregation",
    "min measured: by its wall clock, with evaluation and checkpoints; MB: 10^6 bytes, up and down, all clients",
)


# -- machines and lines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Machine:
    """The machine and the line of a client, in the words of the file; None: as the default's."""

    speed: float | None = limits(None, above=0, doc="of its machine; 0.5 needs twice the time of the one that ran it")
    up: str | None = limits(None, doc="what it sends at, such as 10Mbit or 1.25MB, per second")
    down: str | None = limits(None, doc="what it is sent at")
    latency: str | None = limits(None, doc="of a message, each way, such as 50ms")


@dataclass(frozen=True)
class MachinesFile:
    """A file that says what all clients are like, and by id what some of them are."""

    default: Machine = field(default_factory=Machine)
    clients: dict[str, Machine] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """A machine and a line in numbers: seconds for one of the machine that ran it, bytes per second, seconds."""

    slowdown: float = 1.0
    up: float = math.inf
    down: float = math.inf
    latency: float = 0.0

    def seconds_to_move(self, size: int, direction: str) -> float:
        """Return how long the bytes of one direction ("up" or "down") take; nothing where nothing is sent."""
        return self.latency + size / getattr(self, direction) if size else 0.0

    def words(self) -> str:
        """Say it in a few words."""
        up, down = (f"{say_quantity(8 * r, 'bit')}/s" if r < math.inf else "unlimited" for r in (self.up, self.down))
        return f"compute × {self.slowdown:g}, up {up}, down {down}, latency {say_quantity(self.latency, 's')}"


@dataclass(frozen=True)
class Machines:
    """What every client's machine and line are like: its own where it has one, else the default."""

    default: Profile = field(default_factory=Profile)
    own: Mapping[str, Profile] = field(default_factory=dict)  # by client id

    def of(self, client: str) -> Profile:
        """Return the profile of a client."""
        return self.own.get(client, self.default)

    def words(self) -> str:
        """Say it all in a few words."""
        return "; ".join([self.default.words(), *(f"{client}: {own.words()}" for client, own in self.own.items())])


def read_machines(path: str | Path) -> Machines:
    """Read a file of machines and lines; a value that cannot be is an error with its line."""
    data = load_yaml(path)
    said = build(MachinesFile, data)

    def over(base: Profile, machine: Machine, place: str) -> Profile:
        given: dict[str, Any] = {} if machine.speed is None else {"slowdown": 1 / machine.speed}
        for key, units in (("up", RATES), ("down", RATES), ("latency", TIMES)):
            if (text := getattr(machine, key)) is not None:
                name = f"{place}.{key}"
                given[key] = parse(text, units, f"{locate(data, name)}: {name}")
        return replace(base, **given)

    default = over(Profile(), said.default, "default")
    return Machines(default, {name: over(default, one, f"clients.{name}") for name, one in said.clients.items()})


def parse(text: str, units: Mapping[str, float], where: str) -> float:
    """Return the bytes per second of `10Mbit`, `10Mbit/s` or `1.25MB`, or the seconds of `50ms`, as the units say."""
    text = text.strip()
    bare = text.removesuffix("/s") if units is RATES else text
    unit = bare.lstrip("0123456789.+-eE ")
    try:
        value = float(bare.removesuffix(unit))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        example = "10Mbit or 1.25MB per second" if units is RATES else "50ms or 0.2s"
        raise UsageError(f"{where} {text}: expected a number with a unit, such as {example}")
    if unit not in units:
        given = f"no unit {unit!r}; {nearest(unit, units)}" if unit else f"no unit; expected one of {', '.join(units)}"
        raise UsageError(f"{where} {text}: {given}")
    if units is RATES and not value:
        raise UsageError(f"{where} {text}: expected more than 0; a client without a line cannot take part")
    return value * units[unit]


# -- rounds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImaginedRound:
    """What a round would take, in seconds: of the client that the server waits for, and of the server."""

    client: str
    compute: float
    transfer: float
    server: float

    @property
    def seconds(self) -> float:
        """Return the whole round."""
        return self.compute + self.transfer + self.server


@dataclass(frozen=True)
class ImaginedRun:
    """The rounds of a run as they would have been, or why they cannot be told."""

    rounds: tuple[ImaginedRound, ...] = ()
    why_not: str = ""

    def minutes_until(self, number: int) -> float | None:
        """Return the minutes from the beginning to the end of round `number`; None: it cannot be told."""
        return math.fsum(done.seconds for done in self.rounds[:number]) / 60 if self.rounds else None

    def mean(self, part: str) -> float | None:
        """Return the mean over rounds of one of their parts."""
        return math.fsum(getattr(done, part) for done in self.rounds) / len(self.rounds) if self.rounds else None


def imagine_run(run: RunRecord, machines: Machines) -> ImaginedRun:
    """Imagine all rounds of a run on other machines; one that the run does not tell enough of spoils all."""
    if run.summary.get("external"):
        return ImaginedRun(why_not="its predictions were made elsewhere")
    rows, timing = ({row["round"]: row for row in found} for found in (run.rounds(), run.timing()))
    clients, rounds = [client["id"] for client in run.summary["clients"]], []
    for number in range(1, run.summary["rounds"] + 1):
        row, times = rows.get(number), timing.get(number)
        if missing := find_gap(number, row, times, clients):
            return ImaginedRun(why_not=missing)
        rounds.append(imagine_round(row, times, clients, machines))
    return ImaginedRun(tuple(rounds))


def find_gap(number: int, row: RoundRow | None, timing: TimingRow | None, clients: Sequence[str]) -> str:
    """Return what the rows of a round in metrics.jsonl and timing.jsonl do not tell; "" where they tell enough."""
    for name, found in (("metrics.jsonl", row), ("timing.jsonl", timing)):
        if found is None:
            return f"round {number} is not in {name}"
    if "ledger" not in row:
        return f"round {number}: metrics.jsonl does not tell the bytes by client"
    if "clients" not in timing:
        return f"round {number}: timing.jsonl does not tell the seconds by client"
    missing = [client for client in row.get("present", clients) if client not in timing["clients"]]
    return f"round {number}: timing.jsonl does not tell how long {missing[0]} worked" if missing else ""


def imagine_round(row: RoundRow, timing: TimingRow, clients: Sequence[str], machines: Machines) -> ImaginedRound:
    """Imagine one round: those of `clients` that delivered something in it are waited for, all unless `present` is."""
    server = math.fsum(timing["seconds"].get(phase, 0.0) for phase in SERVER)
    rounds = []
    for client in row.get("present", clients):
        profile, sent = machines.of(client), row["ledger"].get(client, {})  # a method may share nothing
        transfer = sum(profile.seconds_to_move(sum(sent.get(way, {}).values()), way) for way in ("down", "up"))
        worked = math.fsum(s for phase, s in timing["clients"][client].items() if phase not in NOT_OF_A_ROUND)
        rounds.append(ImaginedRound(client, worked * profile.slowdown, transfer, server))
    return max(rounds, key=lambda done: done.seconds)


# -- a way to count cost -----------------------------------------------------------------------------------------------


def cost_over(path: str | Path, collection: Collection) -> Convention:
    """Return the way to count cost on the machines and lines of a file, for `cost_tables`; refuse unknown clients."""
    machines = read_machines(path)
    known = {client["id"] for run in collection.runs for client in run.summary["clients"]}
    for client in machines.own:
        if client not in known:
            raise unknown("client", client, sorted(known), str(path))
    imagined: dict[Path, ImaginedRun] = {}

    def of(run: RunRecord) -> ImaginedRun:
        if run.folder not in imagined:
            imagined[run.folder] = imagine_run(run, machines)
        return imagined[run.folder]

    def waited_for(runs: Sequence[RunRecord]) -> Cell:
        names = Counter(done.client for run in runs for done in of(run).rounds)
        return Cell(word="".join(f"{name} ({n} of {names.total()})" for name, n in names.most_common(1)))

    def gaps(runs: Sequence[RunRecord]) -> str:
        return "; ".join(dict.fromkeys(of(run).why_not for run in runs if of(run).why_not))

    spans = (
        ("over_minutes", "min", lambda run, at: of(run).minutes_until(at.round)),
        ("minutes", "min measured", lambda _, at: at.minutes),
        ("mb", "MB", lambda _, at: None if at.bytes is None else at.bytes / 1e6),
    )
    return Convention(
        "over",
        "what the rounds would take on other machines and lines",
        tuple(
            (f"over_{part}_per_round", title, lambda run, part=part: of(run).mean(part))
            for part, title in PARTS.items()
        ),
        (("rounds", "rounds", lambda _, at: at.round), *spans),
        (f"over {Path(path).name}: {machines.words()}", *NOTES),
        in_all=spans,
        waited_for=waited_for,
        gaps=gaps,
        power=False,
    )
