"""A shared encoder of a few numbers with quadratic losses, and a client that trains it as the engine does."""

from __future__ import annotations

import json

import torch

from fmtlbench.engine.state_trees import join_tree, split_tree
from fmtlbench.weightings import WEIGHTINGS

SIZE = 12
FROM_LOSSES = sorted(name for name, cls in WEIGHTINGS.items() if not cls.needs_gradients)
FROM_GRADIENTS = sorted(name for name, cls in WEIGHTINGS.items() if cls.needs_gradients)


def make(name, count=3, **options):
    cls = WEIGHTINGS[name]
    return cls(cls.Params(**options), [f"task{t}" for t in range(count)])


class Problem:
    """L_t(θ) = factor_t · (½ Σ_k h_tk (θ_k − c_tk)² + 0.1)."""

    def __init__(self, count, seed=0, factors=None, identical=False):
        g = torch.Generator().manual_seed(seed)
        self.h = 0.2 + torch.rand(count, SIZE, generator=g)
        self.c = torch.randn(count, SIZE, generator=g)
        self.start = torch.randn(SIZE, generator=g)
        if identical:
            self.h[:], self.c[:] = self.h[0].clone(), self.c[0].clone()
        self.factors = torch.ones(count) if factors is None else torch.tensor(factors)

    def losses(self, theta):
        return self.factors * ((self.h * (theta - self.c).square()).sum(1) / 2 + 0.1)

    def gradients(self, theta):
        return self.factors[:, None] * self.h * (theta.detach() - self.c)


def shared_gradient(weighting, problem, theta):
    """The gradient of the encoder in one step, as the engine makes it; `parameters()` get theirs."""
    theta = theta.detach().requires_grad_()
    losses = problem.losses(theta)
    for parameter in weighting.parameters():
        parameter.grad = None
    if weighting.needs_gradients:
        return weighting.combine(problem.gradients(theta), losses.detach())
    weighting.total(losses).backward()
    return theta.grad


class Client:
    """θ by gradient descent and the weighting's parameters by Adam: steps, epochs of three, a checkpoint."""

    def __init__(self, name, problem, **options):
        self.problem = problem
        self.weighting = make(name, len(problem.factors), **options)
        self.theta = problem.start.clone()
        parameters = self.weighting.parameters()
        self.optimizer = torch.optim.Adam(parameters, lr=0.05) if parameters else None
        self.done = 0

    def step(self):
        torch.manual_seed(self.done)  # as the engine does at the start of a round
        before = self.problem.losses(self.theta)
        gradient = shared_gradient(self.weighting, self.problem, self.theta)
        self.theta = self.theta - 0.02 * gradient
        if self.optimizer is not None:
            self.optimizer.step()
        self.weighting.after_step(before, lambda: self.problem.losses(self.theta))
        self.done += 1
        if self.done % 3 == 0:
            self.weighting.end_epoch(self.problem.losses(self.theta))
        return gradient

    def state(self):
        """What a checkpoint keeps, through the engine's own trees and JSON."""
        tensors, skeleton = split_tree({"theta": self.theta, "weighting": self.weighting.state_dict()})
        kept = {key: value.clone() for key, value in tensors.items()}, json.dumps(skeleton)
        optimizer = None if self.optimizer is None else self.optimizer.state_dict()
        copied = None if optimizer is None else torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, optimizer)
        return kept, copied, self.done

    def load(self, state):
        (tensors, skeleton), optimizer, self.done = state
        tree = join_tree(tensors, json.loads(skeleton))
        self.theta = tree["theta"]
        self.weighting.load_state_dict(tree["weighting"])
        if optimizer is not None:
            self.optimizer.load_state_dict(optimizer)


def assert_same_direction(got, expected, tolerance=1e-5):
    got, expected = got.double(), expected.double()
    assert got.norm() > 0 and expected.norm() > 0
    torch.testing.assert_close(got / got.norm(), expected / expected.norm(), atol=tolerance, rtol=tolerance)
