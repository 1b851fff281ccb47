"""Probes: scenarios where it is known beforehand which methods must do better than which.

What is measured is a method's gain: Δm in percent of each client against the same client of `local` of the same seed,
as the mean over clients or the worst of them. An expectation compares it with another method's gain. In a family of
settings it compares the gain at the last value of a parameter with that at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..base.errors import nearest

# The roles that a method's class may name (`Algorithm.roles`); they decide what is expected of the method.
ROLES = {
    "shares": "learns from other clients",
    "averages": "gives everybody the same parameters, whatever their tasks",
    "personal": "keeps so much of a client's own that strangers do not harm it",
    "clusters": "finds out which clients resemble each other",
    "conflict_averse": "settles updates that oppose each other",
}


@dataclass(frozen=True)
class Expectation:
    """What methods with one of the roles `who` must show: a difference `above` or `below` a number of points."""

    who: tuple[str, ...]
    above: float | None = None
    below: float | None = None
    than: str = "local"  # the method that is compared with
    over: Literal["mean", "worst"] = "mean"
    clients: tuple[str, ...] = ()  # those that count; none named: all
    # gain: points of Δm. groups: the adjusted Rand index between the groups a method reports and those that the file
    # makes by `relabel`, mean over the second half of the rounds; no other method is compared with.
    measure: Literal["gain", "groups"] = "gain"

    @property
    def bound(self) -> float:
        return self.above if self.above is not None else self.below

    def words(self, titles: Mapping[str, str], family: Mapping[str, Sequence[float]]) -> str:
        """Describe the expectation in one line; `titles` name the methods, `family` is the probe's."""
        sign = f"{'>' if self.above is not None else '<'} {self.bound:g}"
        if self.measure == "groups":
            return f"planted groups found: adjusted Rand index {sign}"
        what = "Δm" if self.over == "mean" else "Δm of the worst client"
        what += f" of {', '.join(self.clients)}" if self.clients else ""
        for parameter, values in family.items():
            return f"{what} with {parameter} = {values[-1]:g} less that with {values[0]:g} {sign}"
        return f"{what} against {titles.get(self.than, self.than)} {sign}"


@dataclass(frozen=True)
class Probe:
    """The question a scenario asks, and the answers that are known."""

    question: str
    expect: tuple[Expectation, ...]
    # A family: one parameter of the scenario and the values it takes; then a gain is that of the last value less that
    # of the first.
    family: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def parameter(self) -> str | None:
        """The parameter of a family."""
        return next(iter(self.family), None)


def check_probe(
    probe: Probe, clients: Sequence[str], parameters: Mapping[str, Any], complain: Callable[[str, str], Exception]
) -> None:
    """Check what the types of a probe's fields do not; `complain` makes the error."""
    if not probe.expect:
        raise complain("probe.expect", "expected at least one expectation")
    if len(probe.family) > 1:
        raise complain("probe.family", f"expected one parameter, got {', '.join(probe.family)}")
    for name, values in probe.family.items():
        if name not in parameters:
            raise complain(f"probe.family.{name}", f"no such parameter; {nearest(name, parameters)}")
        if len(set(values)) < max(2, len(values)):
            raise complain(f"probe.family.{name}", f"expected two or more different values, got {list(values)}")
    for i, expectation in enumerate(probe.expect):
        where = f"probe.expect.{i}"
        if not expectation.who:
            raise complain(f"{where}.who", f"expected roles: {', '.join(ROLES)}")
        for role in expectation.who:
            if role not in ROLES:
                raise complain(f"{where}.who", f"no role {role!r}; {nearest(role, ROLES)}")
        if (expectation.above is None) == (expectation.below is None):
            raise complain(where, "expected either above or below, a number of points")
        for client in expectation.clients:
            if client not in clients:
                raise complain(f"{where}.clients", f"no client {client!r}; {nearest(client, clients)}")
        if probe.family and (expectation.than != "local" or expectation.measure != "gain"):
            raise complain(where, "a family compares a method's gain over local with itself; leave than and measure")
