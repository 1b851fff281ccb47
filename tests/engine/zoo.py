"""What is asked of methods end to end: options with which what they carry from round to round counts in few rounds."""

from __future__ import annotations

from kit import SMALLER, TINY, make_federation

# One of the three clients is missing in every round.
SOMETIMES = {"federation.participation": 0.67}
STRONG = {
    "ditto": {"algo.lam": 0.5},
    "fedamp": {"algo.lam": 0.5},
    "apfl": {"algo.alpha_lr": 0.05},
    "feddyn": {"algo.alpha": 0.5},
    "pfedme": {"algo.inner_steps": 2, "algo.eta": 0.02},
    "scaffold": {"algo.server_lr": 0.8},
    "fedala": {"algo.max_passes": 2, "algo.eta": 10.0},
    "fedatlas": {"algo.k": 2},
    "fedfomo": {"algo.models": 2, "algo.epsilon": 0.5},
    "ifca": {"algo.sigma": 0.3, "algo.batches": 1},
    "mas": {"algo.merge": 0.4, "algo.unknown": "mean"},
}
# Methods of which more travels than rows, or which keep more on their clients than models: their bytes are asked in
# files of their own.
ELSEWHERE = {
    "test_zoo_clients.py": ("apfl", "feddyn", "pfedme", "scaffold"),
    "test_zoo_adopting.py": ("fedala", "fedatlas", "fedfomo", "ifca"),
    "test_zoo_mas.py": ("mas",),
}


def federation_of(algo, scenario, **overrides):
    """A federation of four rounds with few images."""
    return make_federation(algo, scenario, **{**TINY, **SMALLER, "federation.rounds": 4, **overrides})


def values(result):
    return [record["value"] for record in result.scores]


def noted_rounds(federation):
    """A list to which every round is added that a federation's method is given from now on."""
    seen, aggregate = [], federation.algorithm.aggregate
    federation.algorithm.aggregate = lambda rnd: (seen.append(rnd), aggregate(rnd))[1]
    return seen
