"""Every weighting against its formula, written out here with vectors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from weighting_toys import SIZE, Client, Problem, assert_same_direction, make, shared_gradient

from fmtlbench.base.errors import UsageError
from fmtlbench.base.schema import build
from fmtlbench.weightings import WEIGHTINGS
from fmtlbench.weightings.pcgrad import draw_orders


def vectors(count, seed=0, size=SIZE):
    """Gradients with losses, both double."""
    rng = np.random.default_rng([seed, count])
    return rng.normal(size=(count, size)) * rng.uniform(0.5, 3, size=(count, 1)), rng.uniform(0.5, 2, size=count)


def combine(weighting, gradients, losses):
    return weighting.combine(torch.from_numpy(gradients), torch.from_numpy(losses)).numpy()


def softmax(values):
    powers = np.exp(np.asarray(values) - np.max(values))
    return powers / powers.sum()


seeds = pytest.mark.parametrize("seed", range(4))
counts = pytest.mark.parametrize("count", [2, 3, 4])


# -- from losses -----------------------------------------------------------------------------------------------------


@counts
def test_uw(count):
    weighting = make("uw", count)
    assert weighting.s.tolist() == [-0.5] * count
    weighting.s.data = torch.linspace(-1, 2, count)
    losses = torch.linspace(0.3, 5, count, requires_grad=True)
    total, s = weighting.total(losses), weighting.s.detach()
    assert total.item() == pytest.approx((losses / (2 * s.exp()) + s / 2).sum().item(), rel=1e-6)
    total.backward()
    torch.testing.assert_close(losses.grad, 1 / (2 * s.exp()))
    torch.testing.assert_close(weighting.s.grad, 0.5 - losses.detach() / (2 * s.exp()))
    assert weighting.weights() == pytest.approx((1 / (2 * s.exp())).tolist())


@counts
def test_imtl_l(count):
    weighting = make("imtl_l", count)
    assert weighting.s.tolist() == [0.0] * count
    weighting.s.data = torch.linspace(-1, 2, count)
    losses = torch.linspace(0.3, 5, count, requires_grad=True)
    total, s = weighting.total(losses), weighting.s.detach()
    assert total.item() == pytest.approx((s.exp() * losses - s).sum().item(), rel=1e-6)
    total.backward()
    torch.testing.assert_close(losses.grad, s.exp())
    torch.testing.assert_close(weighting.s.grad, s.exp() * losses.detach() - 1)


def test_dwa_by_epochs():
    means = np.array([[4.0, 2.0, 1.0], [3.0, 2.0, 0.2], [1.0, 2.5, 0.1], [1.0, 0.5, 0.3]])
    for temperature in (2.0, 0.5):
        weighting, losses = make("dwa", temperature=temperature), torch.tensor([1.0, 10.0, 100.0], requires_grad=True)
        for epoch in range(5):
            expected = np.ones(3)  # in the first two epochs
            if epoch >= 2:
                expected = 3 * softmax(means[epoch - 1] / means[epoch - 2] / temperature)
            for _ in range(2):  # the same in all steps of an epoch
                total = weighting.total(losses)
                (gradient,) = torch.autograd.grad(total, losses)
                np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)
                assert total.item() == pytest.approx(float(expected @ losses.detach().numpy()), rel=1e-6)
            assert sum(weighting.weights()) == pytest.approx(3)
            if epoch < 4:
                weighting.end_epoch(torch.from_numpy(means[epoch]))


def test_dwa_without_a_ratio():
    weighting = make("dwa")
    for mean in ([0.0, 1.0, 1.0], [1.0, math.inf, 1.0]):
        weighting.end_epoch(torch.tensor(mean))
    weighting.total(torch.ones(3))
    assert weighting.weights() == pytest.approx([1, 1, 1])


def test_rlw_draws_from_the_global_generator():
    def draw():
        weighting = make("rlw", 4)
        weighting.total(torch.ones(4))
        return weighting.weights()

    torch.manual_seed(3)
    first = [draw() for _ in range(400)]
    torch.manual_seed(3)
    expected = torch.randn(4).softmax(0)
    torch.manual_seed(3)
    assert [draw() for _ in range(400)] == first
    assert first[0] == expected.tolist() and first[0] != first[1]
    np.testing.assert_allclose(np.sum(first, 1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.mean(first, 0), 0.25, atol=0.03)
    losses = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    weighting = make("rlw", 4)
    weighting.total(losses).backward()
    assert losses.grad.tolist() == weighting.weights()


@counts
def test_gls(count):
    losses = torch.linspace(0.3, 5, count, dtype=torch.float64, requires_grad=True)
    total = make("gls", count).total(losses)
    values = losses.detach().numpy()
    mean = np.prod(values) ** (1 / count)
    assert total.item() == pytest.approx(mean)
    total.backward()
    np.testing.assert_allclose(losses.grad.numpy(), mean / (count * values))


def test_famo_by_hand():
    """The loss of the step, then Adam on w, with L2 decay in the gradient and bias corrections."""
    lr, decay, m = 0.1, 0.02, 3
    weighting = make("famo", m, lr=lr, decay=decay)
    rng = np.random.default_rng(0)
    w, mean, square = np.zeros(m), np.zeros(m), np.zeros(m)
    for step in range(1, 12):
        before, after = rng.uniform(0.1, 3, size=(2, m))
        z, d, later = softmax(w), before + 1e-8, after + 1e-8
        c = (z / d).sum()
        losses = torch.tensor(before, requires_grad=True)
        total = weighting.total(losses)
        total.backward()
        assert total.item() == pytest.approx((z * np.log(d)).sum() / c, rel=1e-5)
        np.testing.assert_allclose(losses.grad.numpy(), z / d / c, rtol=1e-5)
        np.testing.assert_allclose(weighting.weights(), z / d / c, rtol=1e-5)
        asked = []
        weighting.after_step(losses.detach(), lambda: asked.append(1) or torch.from_numpy(after))  # noqa: B023
        assert asked == [1]
        jacobian = np.diag(z) - np.outer(z, z)
        gradient = jacobian.T @ (np.log(d) - np.log(later)) + decay * w
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        w = w - lr * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        np.testing.assert_allclose(weighting.w.detach().numpy(), w, rtol=1e-4, atol=1e-6)
    assert WEIGHTINGS["famo"].needs_losses_again and (make("famo").params.lr, make("famo").params.decay) == (
        0.025,
        1e-3,
    )


def test_famo_gives_more_weight_to_the_task_that_falls_behind():
    weighting = make("famo", 2)
    for _ in range(50):
        weighting.total(torch.ones(2))
        weighting.after_step(torch.ones(2), lambda: torch.tensor([0.5, 0.99]))
    weighting.total(torch.ones(2))
    assert weighting.weights()[1] > 0.7


# -- GradNorm --------------------------------------------------------------------------------------------------------


@counts
@pytest.mark.parametrize("alpha", [1.5, 0.0, 0.5])
def test_gradnorm_by_autograd(count, alpha):
    weighting = make("gradnorm", count, alpha=alpha)
    first = vectors(count, 0)
    for seed in range(3):  # before the end of the first epoch: the sum of the gradients, and nothing is learned
        gradients, losses = vectors(count, seed)
        np.testing.assert_allclose(combine(weighting, gradients, losses), gradients.sum(0))
        assert not weighting.s.grad.any()
    weighting.end_epoch(torch.ones(count))
    for seed in range(3, 9):
        gradients, losses = vectors(count, seed)
        weighting.s.data = torch.linspace(-1, 1, count) * seed / 3
        got = combine(weighting, gradients, losses)
        s = weighting.s.detach().double().requires_grad_()
        w = count * s.softmax(0)
        norms = (w[:, None] * torch.from_numpy(gradients)).norm(dim=1)
        ratio = torch.from_numpy(losses / first[1])
        target = norms.mean() * (ratio / ratio.mean()) ** alpha
        (norms - target.detach()).abs().sum().backward()
        torch.testing.assert_close(weighting.s.grad, s.grad.float(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got, (w.detach()[:, None] * torch.from_numpy(gradients)).sum(0).numpy(), rtol=1e-6)


def test_gradnorm_evens_out_the_lengths():
    """With α = 0 all weighted gradients shall be equally long: Adam gets there."""
    gradients, losses = vectors(3)
    gradients[0] *= 5
    weighting = make("gradnorm", alpha=0.0)
    weighting.end_epoch(torch.ones(3))
    optimizer = torch.optim.Adam(weighting.parameters(), lr=0.01)
    for _ in range(800):
        combine(weighting, gradients, losses)
        optimizer.step()
    lengths = np.array(weighting.weights()) * np.linalg.norm(gradients, axis=1)
    assert lengths.max() / lengths.min() < 1.1 and sum(weighting.weights()) == pytest.approx(3)


# -- MGDA ------------------------------------------------------------------------------------------------------------


@seeds
def test_mgda_of_two(seed):
    (g, h), losses = vectors(2, seed)
    gradients = np.stack([g, h])
    share = np.clip(h @ (h - g) / ((g - h) @ (g - h)), 0, 1)
    np.testing.assert_allclose(combine(make("mgda", 2), gradients, losses), share * g + (1 - share) * h, atol=1e-6)


@seeds
def test_mgda_of_three_on_a_grid(seed):
    gradients, losses = vectors(3, seed, size=4)
    got = combine(make("mgda"), gradients, losses)
    grid = [(a, b, 300 - a - b) for a in range(301) for b in range(301 - a)]
    lengths = np.linalg.norm(np.array(grid) / 300 @ gradients, axis=1)
    assert lengths.min() * 0.98 - 1e-3 <= np.linalg.norm(got) <= lengths.min() + 1e-6


DIVISORS = {
    "none": lambda g, losses: np.ones(len(g)),
    "l2": lambda g, losses: np.linalg.norm(g, axis=1),
    "loss": lambda g, losses: losses,
    "loss+": lambda g, losses: losses * np.linalg.norm(g, axis=1),
}


@seeds
@counts
@pytest.mark.parametrize("kind", DIVISORS)
def test_mgda_is_the_shortest_and_hurts_nobody(kind, count, seed):
    """The optimality conditions: ⟨g_t, g⟩ ≥ ‖g‖² for the divided gradients, with equality where λ_t > 0."""
    gradients, losses = vectors(count, seed, size=5)
    weighting = make("mgda", count, normalization=kind)
    got = combine(weighting, gradients, losses)
    divisor = DIVISORS[kind](gradients, losses)
    divided, lam = gradients / divisor[:, None], np.array(weighting.weights()) * divisor
    assert lam.min() >= 0 and lam.sum() == pytest.approx(1)
    np.testing.assert_allclose(got, lam @ divided, atol=1e-9)
    gains, square = divided @ got, got @ got
    scale = (divided**2).sum(1).max()
    assert gains.min() >= square - 1e-6 * scale
    assert np.abs((gains - square) * lam).max() <= 1e-6 * scale


def test_mgda_leaves_out_a_task_without_a_gradient():
    gradients, losses = vectors(3)
    gradients[1] = 0
    for kind in DIVISORS:
        weighting, pair = make("mgda", normalization=kind), make("mgda", 2, normalization=kind)
        expected = combine(pair, gradients[[0, 2]], losses[[0, 2]])
        np.testing.assert_allclose(combine(weighting, gradients, losses), expected)
        assert weighting.weights()[1] == 0


# -- PCGrad and CAGrad -----------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_pcgrad_on_vectors(count, seed):
    gradients, losses = vectors(count, seed, size=3)  # few dimensions: many conflicts
    torch.manual_seed(seed)
    got = combine(make("pcgrad", count), gradients, losses)
    torch.manual_seed(seed)
    total = np.zeros(3)
    for t, order in enumerate(draw_orders(count)):
        assert sorted([t, *order]) == list(range(count))
        p = gradients[t].copy()
        for k in order:
            if (inner := p @ gradients[k]) < 0:
                p -= inner / (gradients[k] @ gradients[k]) * gradients[k]
        total += p
    np.testing.assert_allclose(got, total, atol=1e-9)


def test_pcgrad_orders():
    """All orders come up, from the global generator."""
    torch.manual_seed(0)
    drawn = [draw_orders(4) for _ in range(300)]
    for t in range(4):
        others = [k for k in range(4) if k != t]
        assert {tuple(orders[t].tolist()) for orders in drawn} == set(itertools.permutations(others))
    torch.manual_seed(0)
    assert np.array_equal(draw_orders(4), drawn[0])
    state = torch.get_rng_state()
    draw_orders(4)
    assert not torch.equal(torch.get_rng_state(), state)


def test_pcgrad_without_a_conflict_is_the_sum():
    gradients, losses = vectors(4)
    np.testing.assert_allclose(combine(make("pcgrad", 4), np.abs(gradients), losses), np.abs(gradients).sum(0))


@seeds
@counts
@pytest.mark.parametrize("c", [0.5, 0.2, 1.0])
def test_cagrad_on_vectors(c, count, seed):
    gradients, losses = vectors(count, seed)
    mean = gradients.mean(0)
    radius = c * np.linalg.norm(mean)

    def objective(w):
        return w @ gradients @ mean + radius * np.linalg.norm(w @ gradients)

    bounds, simplex = [(0, 1)] * count, {"type": "eq", "fun": lambda w: w.sum() - 1}
    starts = [np.full(count, 1 / count), *(0.9 * np.eye(count) + 0.1 / count)]
    found = [minimize(objective, w, bounds=bounds, constraints=simplex, options={"ftol": 1e-14}) for w in starts]
    toward = min(found, key=lambda result: result.fun).x @ gradients
    expected = mean + radius / np.linalg.norm(toward) * toward
    got = combine(make("cagrad", count, c=c, rescale=False), gradients, losses)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=2e-3)
    assert np.linalg.norm(got - mean) == pytest.approx(radius, rel=1e-6)
    assert (gradients @ got).min() >= (gradients @ expected).min() - 1e-6  # the worst-off task
    np.testing.assert_allclose(combine(make("cagrad", count, c=c), gradients, losses), got / (1 + c * c), rtol=1e-6)


def test_cagrad_without_a_radius_is_the_mean():
    gradients, losses = vectors(4)
    np.testing.assert_allclose(combine(make("cagrad", 4, c=0.0), gradients, losses), gradients.mean(0))


# -- IMTL-G ----------------------------------------------------------------------------------------------------------


@seeds
@counts
def test_imtl_g_is_the_papers_closed_form(count, seed):
    gradients, losses = vectors(count, seed, size=6)
    units = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    differences, unit_differences = gradients[0] - gradients[1:], units[0] - units[1:]
    alpha = gradients[0] @ unit_differences.T @ np.linalg.inv(differences @ unit_differences.T)
    alpha = np.array([1 - alpha.sum(), *alpha])
    weighting = make("imtl_g", count)
    got = combine(weighting, gradients, losses)
    np.testing.assert_allclose(weighting.weights(), alpha, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(units @ got, np.full(count, units[0] @ got), atol=1e-8)


def test_imtl_g_where_the_system_is_degenerate():
    gradients, losses = vectors(3)
    weighting, g = make("imtl_g"), gradients[0]
    combine(weighting, np.stack([g, g, g]), losses)
    assert weighting.weights() == pytest.approx([1 / 3] * 3)
    combine(weighting, np.stack([g, 2 * g, 4 * g]), losses)  # parallel: every task adds the same vector
    assert weighting.weights() == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    # Two of three are identical: the third is as much as the other two.
    pair = np.stack([g, g, gradients[1]])
    got, units = combine(weighting, pair, losses), pair / np.linalg.norm(pair, axis=1, keepdims=True)
    assert weighting.weights()[0] == pytest.approx(weighting.weights()[1])
    np.testing.assert_allclose(units @ got, np.full(3, units[0] @ got))
    # Only 0 has equal projections onto opposite gradients.
    for case in ([g, -2 * g, gradients[1]], [gradients[1], -g, 3 * g]):
        np.testing.assert_allclose(combine(weighting, np.stack(case), losses), 0, atol=1e-9)
        assert sum(weighting.weights()) == pytest.approx(1)
    combine(weighting, np.stack([g, 0 * g, gradients[1]]), losses)
    three = weighting.weights()
    combine(two := make("imtl_g", 2), np.stack([g, gradients[1]]), losses[:2])
    assert three == pytest.approx([two.weights()[0], 0, two.weights()[1]])


def test_imtl_g_without_a_solution_takes_unit_gradients():
    """x = C⁻¹1 of one task is negative, and with a certain length of its gradient the weights cannot sum to 1."""
    units = np.array([[1.0, 0.0], [math.cos(0.3), math.sin(0.3)]])
    middle = units.sum(0) / np.linalg.norm(units.sum(0))
    units = np.stack([*(np.append(u, 0) for u in units), np.append(middle, 0.05)])
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    x = np.linalg.solve(units @ units.T, np.ones(3))
    assert x.min() < 0 < x.max()
    lengths = np.ones(3)
    negative = x.argmin()
    lengths[negative] = -x[negative] / np.delete(x, negative).sum()
    weighting = make("imtl_g")
    combine(weighting, units * lengths[:, None], np.ones(3))
    assert weighting.weights() == pytest.approx(1 / lengths / (1 / lengths).sum())
    # On either side of it the formula holds, and its vector turns round.
    sides = [combine(weighting, units * np.where(lengths == 1, 1, f * lengths)[:, None], np.ones(3)) for f in (0.5, 2)]
    assert_same_direction(*(torch.from_numpy(side) * sign for side, sign in zip(sides, (-1, 1))))


# -- Nash, Aligned, DB -----------------------------------------------------------------------------------------------


@seeds
@counts
def test_nash_is_stationary(count, seed):
    gradients, losses = vectors(count, seed, size=5)
    weighting = make("nash", count, max_norm=None)
    got = combine(weighting, gradients, losses)
    gram = gradients @ gradients.T
    scaled, alpha = gram / np.linalg.norm(gram), np.array(weighting.weights())
    assert alpha.min() > 0
    np.testing.assert_allclose(scaled @ alpha, 1 / alpha, rtol=1e-6)
    # No other step of that length has a larger sum of logarithms of the gains.
    rng, value = np.random.default_rng(seed), np.log(gradients @ got).sum()
    for _ in range(200):
        other = got + rng.normal(size=5) * rng.uniform(0, 0.5) * np.linalg.norm(got)
        gains = gradients @ other * (np.linalg.norm(got) / np.linalg.norm(other))
        assert gains.min() <= 0 or np.log(gains).sum() <= value + 1e-6


def test_nash_clips_the_length():
    gradients, losses = vectors(3)
    free = combine(make("nash", max_norm=None), gradients, losses)
    length = np.linalg.norm(free)
    for limit in (0.5, 1.0, 0.9 * length, 2 * length):
        clipped = combine(make("nash", max_norm=limit), gradients, losses)
        np.testing.assert_allclose(clipped, free * min(1, limit / length), rtol=1e-6)


def test_nash_bargains_every_so_many_steps():
    weighting = make("nash", every=3, max_norm=None)
    seen = []
    for seed in range(7):
        gradients, losses = vectors(3, seed)
        got = combine(weighting, gradients, losses)
        np.testing.assert_allclose(got, np.array(weighting.weights()) @ gradients)
        seen.append(weighting.weights())
    assert seen[0] == seen[1] == seen[2] != seen[3] == seen[4] == seen[5] != seen[6]


def test_nash_of_opposite_gradients_goes_nowhere():
    g = vectors(2)[0][0]
    got = combine(make("nash", 2, max_norm=None), np.stack([g, -3 * g]), np.ones(2))
    assert np.linalg.norm(got) < 1e-6 * np.linalg.norm(g)


@pytest.mark.parametrize("angle", [1e-4, 1e-2, 1.0, math.pi - 1e-2, math.pi - 2e-3])
def test_nash_of_two_is_the_bisector(angle):
    """Of two gradients both get the same: C y = 1/y has y_1 = y_2 = (1 + cos)^{−1/2}."""
    pair = np.array([[3.0, 0.0], [math.cos(angle), math.sin(angle)]])
    weighting = make("nash", 2, max_norm=None)
    combine(weighting, pair, np.ones(2))
    shares = np.array(weighting.weights()) * np.linalg.norm(pair, axis=1)
    scale = np.linalg.norm(pair @ pair.T) ** 0.5
    np.testing.assert_allclose(shares, scale / math.sqrt(1 + math.cos(angle)), rtol=1e-5)


@seeds
@counts
def test_aligned_has_condition_one(count, seed):
    gradients, losses = vectors(count, seed)
    left, values, right = np.linalg.svd(gradients, full_matrices=False)
    aligned = values.min() * left @ right  # B G: the same singular vectors, all singular values the smallest
    np.testing.assert_allclose(combine(make("aligned", count), gradients, losses), aligned.sum(0), rtol=1e-6, atol=1e-9)


def test_aligned_by_its_formula_and_rank():
    gradients, losses = vectors(3)
    dependent = np.stack([gradients[0], gradients[1], gradients[0] - 2 * gradients[1]])
    for case in (dependent, gradients * [[1], [1], [1e-5]]):  # both of rank two, as far as float32 tells
        values, v = np.linalg.eigh(case @ case.T)
        values, v = values[1:], v[:, 1:]
        b = np.sqrt(values[0]) * v @ np.diag(values**-0.5) @ v.T
        weighting = make("aligned")
        combine(weighting, case, losses)
        np.testing.assert_allclose(weighting.weights(), b @ np.ones(3), rtol=1e-6)
    orthogonal = np.eye(3) * [[1], [2], [4]]
    np.testing.assert_allclose(combine(make("aligned"), orthogonal, losses), [1, 1, 1])


@pytest.mark.parametrize("beta", [0.9, 0.5, 0.0])
def test_db_by_hand(beta):
    weighting, smoothed = make("db", beta=beta), np.zeros((3, SIZE))
    for seed in range(6):
        gradients, losses = vectors(3, seed)
        got = combine(weighting, gradients, losses)
        smoothed = beta * smoothed + (1 - beta) * gradients / losses[:, None]
        lengths = np.linalg.norm(smoothed, axis=1)
        factors = lengths.max() / lengths
        np.testing.assert_allclose(got, factors @ smoothed, rtol=1e-6)
        np.testing.assert_allclose(weighting.weights(), factors, rtol=1e-6)
        np.testing.assert_allclose(weighting.state_dict()["smoothed"].numpy(), smoothed, rtol=1e-9)


def test_db_without_a_logarithm_adds_nothing():
    gradients, losses = vectors(3)
    weighting = make("db", beta=0.5)
    combine(weighting, gradients, losses)
    before = weighting.state_dict()["smoothed"].clone()
    combine(weighting, gradients, losses * [1, 0, 1])
    np.testing.assert_allclose(weighting.state_dict()["smoothed"][1], before[1] / 2)


# -- options, and that they train ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, options",
    [
        ("dwa", {"temperature": 0}),
        ("gradnorm", {"alpha": -1}),
        ("mgda", {"normalization": "l1"}),
        ("cagrad", {"c": -0.1}),
        ("nash", {"max_norm": 0}),
        ("nash", {"every": 0}),
        ("db", {"beta": 1}),
        ("famo", {"lr": 0}),
        ("famo", {"decay": -1}),
        ("uw", {"start": 0}),
    ],
)
def test_options_have_limits(name, options):
    with pytest.raises(UsageError, match=next(iter(options))):
        build(WEIGHTINGS[name].Params, options)


def test_null_turns_clipping_off():
    assert build(WEIGHTINGS["nash"].Params, {"max_norm": None}).max_norm is None


@pytest.mark.parametrize("name", sorted(WEIGHTINGS))
def test_every_weighting_trains(name):
    """The largest loss relative to its start falls; no formula has its sign wrong."""
    client = Client(name, Problem(3, 2))
    before = client.problem.losses(client.theta).sum()
    for _ in range(60):
        client.step()
    assert client.problem.losses(client.theta).sum() < 0.9 * before
    assert shared_gradient(client.weighting, client.problem, client.theta).isfinite().all()
