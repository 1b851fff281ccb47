"""Theorem 1 of FedHCA² (supplement, section A): what training one shared encoder adds to averaging independent ones.

With ĝ_i^(m) the gradient of task i on mini-batch m at the common start θ⁰, η the learning rate and M steps, eq. 43 says

    E[Δθ_MTL − N Δθ̃_FL] = η²/2 Σ_{p≠q} Σ_{i<j} ∇⟨ĝ_i^(p), ĝ_j^(q)⟩ + O(η³).

- MTL steps along the *sum* of the task gradients (eq. 7), FL averages N clients (eq. 27): the paper drops the 1/N of
  eq. 30 ("the optimizer scales η"), so the difference is taken to N times the average's change. Unscaled, the two
  differ at first order already.
- Mini-batches p and q are different ones, of different tasks i < j, each unordered pair of tasks once, each ordered
  pair of mini-batches: N(N−1)/2 · M(M−1) terms.
- E is over the order of the mini-batches within an epoch, the same for all tasks; for one given order only eq. 34
  holds, η² Σ_{k<m} Σ_{i≠j} Ĥ_i^(m) ĝ_j^(k). Here all M! orders are tried, so the expectation is exact.
- The sign is plus: descent in MTL climbs the inner products, that is, reduces conflict.
- The paper looks at the encoder alone. Decoders that train too drift alike in MTL and FL up to O(η²), so the theorem
  still holds for the encoder; tested both ways.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from toys import make

from fmtlbench.exchange import Owner, Party, Round, Rows, TensorSlice

M = 3  # iterations, each with its mini-batch
RATES = [2.0**-k for k in range(5, 10)]
WIDTH, INPUTS, BATCH = 4, 3, 5


class Problem:
    """Tanh features shared by tasks: regressions and a classification, smooth, in double precision."""

    def __init__(self, tasks=2, seed=0, same_batches=False):
        draw = torch.Generator().manual_seed(seed)
        normal = lambda *shape: torch.randn(*shape, generator=draw, dtype=torch.float64)
        self.tasks = tasks
        self.encoder = normal(WIDTH * INPUTS)
        self.decoders = [normal(WIDTH) for _ in range(tasks)]
        self.x = normal(M, BATCH, INPUTS)
        self.y = normal(tasks, M, BATCH)
        if same_batches:
            self.x[:], self.y[:] = self.x[:1].clone(), self.y[:, :1].clone()

    def loss(self, task, batch, encoder, decoder):
        z = torch.tanh(self.x[batch] @ encoder.view(INPUTS, WIDTH)) @ decoder
        if task == 1:  # logistic
            return torch.nn.functional.softplus(-z * self.y[task, batch].sign()).mean()
        return 0.5 * (z - self.y[task, batch]).square().mean()

    def gradients(self, task, batch, encoder, decoder):
        encoder, decoder = encoder.detach().requires_grad_(), decoder.detach().requires_grad_()
        return torch.autograd.grad(self.loss(task, batch, encoder, decoder), (encoder, decoder))


def descend(problem, tasks, order, rate, decoders_train):
    """The encoder after one step per mini-batch in `order` along the sum of the gradients of `tasks` (eqs. 7, 17)."""
    encoder, decoders = problem.encoder, list(problem.decoders)
    for batch in order:
        gradients = {i: problem.gradients(i, batch, encoder, decoders[i]) for i in tasks}
        encoder = encoder - rate * sum(g for g, _ in gradients.values())
        if decoders_train:
            for i, (_, g) in gradients.items():
                decoders[i] = decoders[i] - rate * g
    return encoder


def difference(problem, order, rate, decoders_train=False, scale=None):
    """Δθ_MTL − N Δθ̃_FL for one order of the mini-batches, the average being the registered FedAvg's."""
    everyone = range(problem.tasks)
    shared = descend(problem, everyone, order, rate, decoders_train) - problem.encoder
    after = torch.stack([descend(problem, [i], order, rate, decoders_train) for i in everyone])
    parties = tuple(Party(i, f"c{i}", "toy", (f"task{i}",), 1) for i in everyone)
    layout = (TensorSlice("weight", "encoder", 0, after.shape[1]),)
    rows = Rows(tuple(Owner(i) for i in everyone), problem.encoder.expand_as(after), after, layout)
    averaged = make("fedavg", parties, shared="encoder").aggregate(Round(0, parties, encoder=rows))["encoder"][0]
    return shared - (problem.tasks if scale is None else scale) * (averaged - problem.encoder)


def expected_difference(problem, rate, **options):
    """The exact expectation over the order of the mini-batches."""
    orders = list(permutations(range(M)))
    return sum(difference(problem, order, rate, **options) for order in orders) / len(orders)


def extra_term(problem, pairs=None):
    """Σ_{p≠q} Σ_{i<j} ∇⟨ĝ_i^(p), ĝ_j^(q)⟩ at θ⁰, by differentiating the inner products themselves (eq. 43)."""
    encoder = problem.encoder.clone().requires_grad_()
    g = {
        (i, p): torch.autograd.grad(problem.loss(i, p, encoder, problem.decoders[i]), encoder, create_graph=True)[0]
        for i in range(problem.tasks)
        for p in range(M)
    }
    pairs = list(permutations(range(M), 2)) if pairs is None else pairs
    inner = sum(g[i, p] @ g[j, q] for i, j in combinations(range(problem.tasks), 2) for p, q in pairs)
    return torch.autograd.grad(inner, encoder)[0]


def ordered_term(problem, order):
    """Σ_{k<m} Σ_{i≠j} Ĥ_i^(m) ĝ_j^(k) for one order of the mini-batches (eq. 34)."""
    encoder, total = problem.encoder.clone().requires_grad_(), 0
    for later, m in enumerate(order):
        for i in range(problem.tasks):
            own = torch.autograd.grad(problem.loss(i, m, encoder, problem.decoders[i]), encoder, create_graph=True)[0]
            others = [j for j in range(problem.tasks) if j != i]
            earlier = [
                problem.gradients(j, k, problem.encoder, problem.decoders[j])[0] for j in others for k in order[:later]
            ]
            if earlier:
                total = total + torch.autograd.grad(own @ sum(earlier), encoder)[0]
    return total


def observed_order(remainder):
    """The power of η with which the remainder shrinks, at every halving of the rate."""
    errors = np.array([remainder(rate).norm().item() for rate in RATES])
    assert errors.min() > 1e-13, "so small that rounding decides"
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize("decoders_train", [False, True], ids=["decoders fixed", "decoders train"])
@pytest.mark.parametrize("tasks", [2, 3])
def test_the_difference_is_the_gradient_of_the_inner_products(tasks, decoders_train):
    problem = Problem(tasks)
    term = extra_term(problem)
    orders = observed_order(
        lambda rate: expected_difference(problem, rate, decoders_train=decoders_train) - rate**2 / 2 * term
    )
    assert orders.min() >= 2.8  # error/η² falls linearly
    # And the term is no trifle: it is the larger part of the difference even at the largest of the rates.
    exact = expected_difference(problem, RATES[0], decoders_train=decoders_train)
    assert (exact - RATES[0] ** 2 / 2 * term).norm() < 0.5 * exact.norm()


@pytest.mark.parametrize("coefficient", [0.0, 0.25, 0.45, 0.55, 1.0, -0.5])
def test_no_other_coefficient_or_sign_will_do(coefficient):
    problem = Problem()
    term = extra_term(problem)
    orders = observed_order(lambda rate: expected_difference(problem, rate) - coefficient * rate**2 * term)
    assert orders[-2:].max() < 2.3  # a second-order remainder is left


def test_only_different_mini_batches_of_different_tasks_enter():
    problem = Problem()
    everything = extra_term(problem, pairs=[(p, q) for p in range(M) for q in range(M)])
    orders = observed_order(lambda rate: expected_difference(problem, rate) - rate**2 / 2 * everything)
    assert orders[-2:].max() < 2.3


def test_without_the_factor_n_they_differ_at_first_order():
    problem = Problem()
    orders = observed_order(lambda rate: expected_difference(problem, rate, scale=1))
    assert abs(orders[-1] - 1) < 0.1


@pytest.mark.parametrize("order", list(permutations(range(M))))
def test_a_given_order_of_the_mini_batches_follows_equation_34(order):
    problem = Problem(tasks=3)
    exact, symmetric = ordered_term(problem, order), extra_term(problem)
    assert observed_order(lambda rate: difference(problem, order, rate) - rate**2 * exact).min() >= 2.8
    # The expectation in the theorem is needed: for this order alone eq. 43 is off at second order.
    assert observed_order(lambda rate: difference(problem, order, rate) - rate**2 / 2 * symmetric)[-2:].max() < 2.3


def test_the_expectation_of_equation_34_is_equation_43():
    problem = Problem(tasks=3)
    orders = list(permutations(range(M)))
    mean = sum(ordered_term(problem, order) for order in orders) / len(orders)
    torch.testing.assert_close(mean, extra_term(problem) / 2, rtol=1e-10, atol=1e-12)


def test_full_batches_need_no_expectation():
    problem = Problem(same_batches=True)
    # All M(M−1) pairs are alike: η²/2 · M(M−1) ∇⟨ĝ_1, ĝ_2⟩.
    term = M * (M - 1) * extra_term(problem, pairs=[(0, 1)])
    torch.testing.assert_close(term, extra_term(problem))
    orders = observed_order(lambda rate: difference(problem, range(M), rate) - rate**2 / 2 * term)
    assert orders.min() >= 2.8
