"""A package of somebody else that brings one of everything, through entry points alone."""

from pathlib import Path

SCENARIOS = Path(__file__).parent / "scenarios"
