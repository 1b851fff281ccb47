"""cost.json: a run's rows added up, and the few lines about it at the end of a run. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base.words import inflect, say_bytes, say_count, say_measured_time, say_quantity

Rows = Sequence[Mapping[str, Any]]


def make_bill(rows: Rows, repeated: Rows, tail: Mapping[str, Any], bytes_up: int, bytes_down: int) -> dict[str, Any]:
    """Add up what the rounds of a run took, and beside it what was spent on rounds that had to be made again.

    Args:
        rows: timing.jsonl.
        repeated: repeated.jsonl: rows of rounds that a kill threw away, or that did not come to their end.
        tail: What was spent after the last row.
        bytes_up: Of the run's rounds; bytes are counted, so those of repeated rounds are not added.
        bytes_down: Likewise.
    """
    phases, busy = _phases([*rows, tail]), _phases(rows, "busy")
    total = sum(phases.values())
    setup = sum(row.get("setup") or 0.0 for row in [*rows, tail, *repeated])
    energy = _energy(rows, tail)
    again = _repeated(repeated)
    spent = {"seconds": total + setup + again["seconds"] if again else total + setup}
    for key in ("kwh", "co2e_g"):
        known = [part[key] for part in (energy, again) if part and part[key] is not None]
        spent[key] = sum(known) if known else None
    return {
        "seconds": phases,
        "seconds_total": total,
        "busy": busy,
        "setup_seconds": setup,
        "energy": energy,
        "bytes_up": bytes_up,
        "bytes_down": bytes_down,
        "memory": _memory([*rows, tail]),
        "repeated": again,
        "spent": spent,
    }


def _phases(rows: Iterable[Mapping[str, Any]], clock: str = "seconds") -> dict[str, float]:
    phases: dict[str, float] = {}
    for row in rows:
        for name, seconds in (row.get(clock) or {}).items():
            phases[name] = phases.get(name, 0.0) + seconds
    return phases


def _energy(rows: Rows, tail: Mapping[str, Any]) -> dict[str, Any]:
    everything = [*rows, tail]
    measured = [row["energy"] for row in everything if row.get("energy")]
    missing = [row["round"] for row in rows if not row.get("energy")]
    why = next((row["energy_reason"] for row in everything if row.get("energy_reason")), "not recorded")
    if not measured:
        nothing = dict.fromkeys(("kwh", "co2e_g", "source", "how", "country", "region", "g_per_kwh", "power_w"))
        return {**nothing, "reason": why}
    last = measured[-1]
    parts = last["parts"]
    how: dict[str, list[str]] = {}
    for energy in measured:
        for part, words in energy["how"].items():
            if words not in how.setdefault(part, []):
                how[part].append(words)
    real = {part for part, words in how.items() if all(w.startswith("measured") for w in words)}
    places = list(dict.fromkeys((e["country"], e["region"], e["g_per_kwh"]) for e in measured))
    country, region, g_per_kwh = places[0] if len(places) == 1 else ("several", None, None)
    share = sum(parts[part] for part in real) / last["kwh"] if last["kwh"] else 0.0
    return {
        "kwh": last["kwh"],
        "co2e_g": last["co2e_g"],
        "source": "measured" if real == set(parts) else "estimated",  # one estimated part makes the sum an estimate
        "measured_share": round(share, 4),
        "how": "; ".join(f"{part} {' or '.join(words)}" for part, words in how.items()),
        "parts": {
            part: {
                "kwh": parts[part],
                "source": "measured" if part in real else "estimated",
                "how": " or ".join(words.partition(": ")[2] for words in how[part]),
            }
            for part in parts
        },
        "country": country,
        "region": region,
        "g_per_kwh": g_per_kwh,
        "power_w": last["kwh"] * 3.6e6 / last["seconds"] if last["seconds"] else None,
        "reason": f"not measured in {_rounds(missing)}: {why}" if missing else None,
    }


def _repeated(rows: Rows) -> dict[str, Any] | None:
    if not rows:
        return None
    energies = [row["energy"]["round"] for row in rows if row.get("energy")]
    return {
        "rounds": len(rows),
        "seconds": sum(_phases(rows).values()),
        "kwh": sum(e["kwh"] for e in energies) if energies else None,
        "co2e_g": sum(e["co2e_g"] for e in energies) if energies else None,
        "bytes_up": sum(row.get("bytes_up", 0) for row in rows),
        "bytes_down": sum(row.get("bytes_down", 0) for row in rows),
    }


def _memory(rows: Iterable[Mapping[str, Any]]) -> dict[str, int | None]:
    peaks = [row["memory"] for row in rows if row.get("memory")]
    return {
        place: max((p[place] for p in peaks if p.get(place) is not None), default=None)
        for place in ("process", "device")
    }


def _rounds(numbers: Sequence[int]) -> str:
    """Name rounds: [1, 2, 3, 7] → "rounds 1–3, 7"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    text = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in spans)
    return f"{inflect('round', len(numbers))} {text}"


# -- in words --------------------------------------------------------------------------------------------------------


def bill_lines(cost: Mapping[str, Any]) -> list[str]:
    """Return the bill for people; only what the file has."""
    lines = []
    phases = cost.get("seconds") or {}
    if phases:
        lines.append(f"time    {say_measured_time(cost['seconds_total'])} by the clock: {_listed(phases)}")
    if busy := cost.get("busy"):
        lines.append(f"        clients worked {say_measured_time(sum(busy.values()))} in all: {_listed(busy)}")
    if {"bytes_up", "bytes_down"} <= cost.keys():
        lines.append(f"traffic {say_bytes(cost['bytes_up'])} up, {say_bytes(cost['bytes_down'])} down")
    if energy := cost.get("energy"):
        lines += _energy_lines(energy)
    again = cost.get("repeated")
    if again:
        joules = "" if again["kwh"] is None else f" and {say_quantity(again['kwh'] * 1000, 'Wh')}"
        lost = f"{say_count(again['rounds'], 'round')} cut off before the end"
        lines.append(f"again   {say_measured_time(again['seconds'])}{joules} more went into {lost}")
    return lines


def _listed(phases: Mapping[str, float]) -> str:
    shown = sorted((name for name in phases if phases[name] >= 0.0005), key=phases.get, reverse=True)
    return ", ".join(f"{name} {say_measured_time(phases[name])}" for name in shown)


def _energy_lines(energy: Mapping[str, Any]) -> list[str]:
    if energy.get("kwh") is None:
        return [f"energy  unknown: {energy.get('reason') or 'no reason recorded'}"]
    text = f"energy  {say_quantity(energy['kwh'] * 1000, 'Wh')}, {say_quantity(energy['co2e_g'], 'g')} CO₂e"
    if energy.get("g_per_kwh") is not None:
        where = energy.get("country") or "world average; --country sets another"
        where += f", {energy['region']}" if energy.get("region") else ""
        text += f" at {energy['g_per_kwh']:.0f} g/kWh ({where})"
    lines = [text]
    if energy.get("how"):
        lines.append(f"        {energy['how']}")
    if energy.get("reason"):
        lines.append(f"        {energy['reason']}")
    return lines
