"""What presets, scenarios and methods say in this installation, for reports, which read stored runs only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..config.setting import Setting


class Installed:
    """What `reports.papers.compare` asks of the presets and scenarios that are installed."""

    def preset_options(self, preset: str, method: str) -> Mapping[str, Any]:
        """Return the options that a preset gives a method; none where it is not installed."""
        from ..config.presets import preset_files, preset_options

        return preset_options(preset).get(method, {}) if preset in preset_files() else {}

    def scenario_parameters(self, scenario: str) -> Mapping[str, Any]:
        """Return the numbers that a scenario leaves open, with their defaults."""
        from ..scenarios import load_scenario

        return load_scenario(scenario).parameters

    def preset_setting(self, scenario: str, preset: str, overrides: Mapping[str, Any]) -> Setting:
        """Return the setting of a scenario under a preset."""
        from ..config.resolve import resolve_setting

        return resolve_setting(scenario, preset, overrides=overrides)


def method_titles() -> dict[str, str]:
    """Return what tables call the installed methods, by name."""
    from ..algorithms import ALGORITHMS

    return {name: ALGORITHMS.resolve(name).title for name in ALGORITHMS}
