"""Where the electricity comes from. Only the carbon figure depends on it, so it is no part of a run's config.

The tables are codecarbon's, read as files: importing the package takes longer than starting a run.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import UsageError, nearest
from ..base.settings_file import config_path, read_user_config

VARIABLES = ("FMTLBENCH_COUNTRY", "FMTLBENCH_REGION")
NORDIC = {"SWE": "SE", "NOR": "NO", "FIN": "FI"}  # bidding zones begin with these letters


@dataclass(frozen=True)
class Place:
    """A country by its three-letter code and perhaps a region of it; neither: the world."""

    country: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        if self.country is None:
            return "world average"
        return f"{self.country}, {self.region}" if self.region else self.country


def resolve_place(country: str | None = None, region: str | None = None) -> Place:
    """Return the caller's choice, else the environment's, else the user's config file's, else the world average.

    The first of them that names a country or region decides both.

    Raises:
        UsageError: A country or region the tables do not have.
    """
    if country or region:
        return _checked(country, region, "--country", "--region")
    country, region = (os.environ.get(name) for name in VARIABLES)
    if country or region:
        return _checked(country, region, *VARIABLES)
    user = read_user_config()
    if user.country or user.region:
        return _checked(user.country, user.region, f"{config_path()}: country", f"{config_path()}: region")
    return Place()


def _checked(country: str | None, region: str | None, country_name: str, region_name: str) -> Place:
    if not country:
        raise UsageError(f"{region_name} {region}: a region needs its country ({country_name}, three letters)")
    known = countries()
    code = country.strip().upper()
    if known and code not in known:
        raise UsageError(
            f"{country_name} {country}: no such three-letter country code; {_near_country(country, known)}"
        )
    if not region:
        return Place(code)
    parts, wanted = regions(code), " ".join(region.lower().split())
    if not parts:
        raise UsageError(f"{region_name} {region}: no regional figures for {code}, give the country alone")
    if wanted not in parts:
        raise UsageError(f"{region_name} {region}: no such region of {code}; {nearest(wanted, parts)}")
    return Place(code, wanted)


def _near_country(given: str, known: Mapping[str, str]) -> str:
    """Find the country that two letters or a name mean, which people give instead of a code."""
    text = given.strip().lower()
    named = [code for code, name in known.items() if name.lower() == text]
    begins = [code for code, name in known.items() if len(text) > 3 and name.lower().startswith(text)]
    if found := named or begins:
        return "did you mean " + " or ".join(f"{code} ({known[code]})" for code in found[:3]) + "?"
    hint = nearest(given.strip().upper(), known)
    return hint if hint.startswith("did you mean") else "three letters such as DEU, FRA, CHN or USA"


# -- tables ----------------------------------------------------------------------------------------------------------


def countries() -> dict[str, str]:
    """Return code → name; {} where the tables are not at hand."""
    return {code: entry.get("country_name", code) for code, entry in _table("global_energy_mix.json").items()}


def regions(country: str) -> list[str]:
    """Return the regions of a country that have figures of their own."""
    if country == "USA":
        return [name for name in _table("2023/usa_emissions.json") if not name.startswith("_")]
    if country == "CAN":
        return [name for name in _table("2023/canada_energy_mix.json") if not name.startswith("_")]
    if country == "CHN":
        return [
            name for p in _table("2023/china_provincial_emissions.json").get("data", {}).values() for name in p["names"]
        ]
    if country in NORDIC:
        zones = _table("nordic_emissions.json").get("data", {})
        return [zone.lower() for zone in zones if zone.startswith(NORDIC[country])]
    return []


def _table(name: str) -> dict[str, Any]:
    found = importlib.util.find_spec("codecarbon")
    if found is None or not found.origin:
        return {}
    try:
        return json.loads((Path(found.origin).parent / "data" / "private_infra" / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # another layout: the country is then taken as given, and checked by the tracker
        return {}
