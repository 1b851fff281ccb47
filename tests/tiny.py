"""Former names of kit.py, for tests that are being written; goes."""

from kit import DUO as SCENARIO
from kit import THREE, TINY, TOY, TWINS, make_federation

__all__ = ["SCENARIO", "THREE", "TINY", "TOY", "TWINS", "make_federation"]
