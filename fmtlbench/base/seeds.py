"""Randomness is named: one stream per purpose, so two algorithms see the same split whatever either of them draws."""

from __future__ import annotations

import hashlib

import numpy as np


def seed_of(seed: int, *names: object) -> int:
    """A 63-bit seed for one named stream, e.g. the batch order of a client in a round."""
    digest = hashlib.sha256("/".join(map(str, (seed, *names))).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int, *names: object) -> np.random.Generator:
    return np.random.default_rng(seed_of(seed, *names))
