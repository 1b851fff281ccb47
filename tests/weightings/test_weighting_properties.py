"""What holds for every registered weighting."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from weighting_toys import (
    FROM_GRADIENTS,
    FROM_LOSSES,
    SIZE,
    Client,
    Problem,
    assert_same_direction,
    make,
    shared_gradient,
)

from fmtlbench.exchange import algebra as row_algebra
from fmtlbench.weightings import WEIGHTINGS

NAMES = sorted(WEIGHTINGS)
VARIANTS = [
    *((name, {}) for name in NAMES),
    *(("mgda", {"normalization": kind}) for kind in ("l2", "loss", "loss+")),
    ("cagrad", {"rescale": False}),
    ("nash", {"max_norm": None}),
    ("nash", {"every": 3}),
    ("db", {"beta": 0.0}),
]
each_variant = pytest.mark.parametrize(
    "name, options", VARIANTS, ids=["-".join([n, *(f"{k}={v}" for k, v in o.items())]) for n, o in VARIANTS]
)
each = pytest.mark.parametrize("name", NAMES)
some = settings(max_examples=10, deadline=None, derandomize=True)


def test_all_are_there_and_say_what_they_are():
    assert len(FROM_LOSSES) >= 7 and len(FROM_GRADIENTS) >= 8
    for name, cls in WEIGHTINGS.items():
        assert cls.name == name and cls.title and cls.paper and cls.__doc__
        if cls.__module__.startswith("fmtlbench."):
            assert cls.__module__ == f"fmtlbench.weightings.{name}"
            text = sys.modules[cls.__module__].__doc__
            assert name == "equal" or ("Scale-free:" in text) == cls.scale_free


def test_listing_does_not_import_torch():
    code = (
        "import sys; from fmtlbench.weightings import WEIGHTINGS\n"
        "names = [(n, c.title, c.paper, c.Params()) for n, c in WEIGHTINGS.items()]\n"
        "assert 'uw' in WEIGHTINGS and len(names) >= 15\n"
        "print(sorted({'torch', 'numba', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# -- identical tasks -------------------------------------------------------------------------------------------------


@each_variant
@some
@given(count=st.integers(2, 4), seed=st.integers(0, 99))
def test_identical_tasks_are_trained_as_by_their_sum(name, options, count, seed):
    """Up to a positive factor, in every step: whatever is learned meanwhile must treat them alike.

    Always from the same θ, since DB-MTL also follows the gradients of earlier steps.
    """
    client = Client(name, Problem(count, seed, identical=True), **options)
    expected = shared_gradient(make("equal", count), client.problem, client.problem.start)
    for _ in range(5):
        client.theta = client.problem.start.clone()
        assert_same_direction(client.step(), expected)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(
    "name, factor",
    [
        ("equal", lambda m: 1),
        ("dwa", lambda m: 1),
        ("gradnorm", lambda m: 1),
        ("pcgrad", lambda m: 1),
        ("aligned", lambda m: 1),
        ("imtl_l", lambda m: 1),
        ("uw", lambda m: math.exp(0.5) / 2),
        ("rlw", lambda m: 1 / m),
        ("gls", lambda m: 1 / m),
        ("famo", lambda m: 1 / m),
        ("mgda", lambda m: 1 / m),
        ("imtl_g", lambda m: 1 / m),
        ("cagrad", lambda m: 1.5 / 1.25 / m),
    ],
)
def test_the_first_gradient_of_identical_tasks_has_the_documented_length(name, factor, count):
    problem = Problem(count, identical=True)
    expected = factor(count) * problem.gradients(problem.start).sum(0)
    torch.testing.assert_close(shared_gradient(make(name, count), problem, problem.start), expected)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_nash_of_identical_tasks_is_their_sum_and_may_be_clipped(count):
    problem = Problem(count, identical=True)
    total = problem.gradients(problem.start).sum(0)
    torch.testing.assert_close(shared_gradient(make("nash", count, max_norm=None), problem, problem.start), total)
    torch.testing.assert_close(shared_gradient(make("nash", count), problem, problem.start), total / total.norm())


# -- one loss times 1000 ---------------------------------------------------------------------------------------------


def settle(weighting, problem):
    """Let learned numbers come to rest at θ. They move by about the rate in a step, so a run may end before that."""
    if not weighting.parameters():
        return
    optimizer = torch.optim.Rprop(weighting.parameters(), lr=0.1)
    for _ in range(200):
        shared_gradient(weighting, problem, problem.start)
        optimizer.step()


@pytest.mark.parametrize("name", [name for name in NAMES if WEIGHTINGS[name].scale_free])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [2, 4])
def test_a_scale_free_weighting_keeps_the_direction(name, seed, count):
    """Over several steps of one path, so that what is learned and smoothed takes part.

    One path, since steps of plain gradient descent are as long as the gradients, and lengths may differ.
    """
    problems = [Problem(count, seed, factors=[factor, *[1.0] * (count - 1)]) for factor in (1.0, 1000.0)]
    weightings, theta = [make(name, count) for _ in problems], problems[0].start
    for weighting, problem in zip(weightings, problems):
        settle(weighting, problem)
    for _ in range(6):
        gradients = [shared_gradient(w, p, theta) for w, p in zip(weightings, problems)]
        assert_same_direction(*gradients, 1e-4)
        before, theta = theta, theta - 0.1 * gradients[0] / gradients[0].norm()
        for weighting, problem in zip(weightings, problems):
            weighting.after_step(problem.losses(before), lambda: problem.losses(theta))  # noqa: B023


@pytest.mark.parametrize("name", [name for name in NAMES if not WEIGHTINGS[name].scale_free])
def test_one_that_keeps_the_fixed_weights_depends_on_them(name):
    plain, scaled = Problem(3), Problem(3, factors=[1000.0, 1.0, 1.0])
    gradients = []
    for problem in (plain, scaled):
        torch.manual_seed(0)
        gradients.append(shared_gradient(make(name), problem, problem.start))
    a, b = (g / g.norm() for g in gradients)
    assert a @ b < 0.99


@pytest.mark.parametrize("name", ["uw", "imtl_l"])
def test_learned_scales_that_have_settled_forget_the_scale_of_a_loss(name):
    """At rest e^{s} L (UW: L / e^{s}) is 1 for every task: the gradient itself is Σ ∇L_t/L_t, up to UW's half.

    Not before: s starts from the same number for all tasks.
    """
    gradients = []
    for factors in ([1.0, 1.0, 1.0], [1000.0, 1.0, 0.5]):
        problem, weighting = Problem(3, factors=factors), make(name)
        settle(weighting, problem)
        gradients.append(shared_gradient(weighting, problem, problem.start))
        assert max(weighting.s.grad.abs()) < 1e-3
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-2, atol=1e-3)
    expected = (problem.gradients(problem.start) / problem.losses(problem.start)[:, None]).sum(0)
    torch.testing.assert_close(gradients[1], (0.5 if name == "uw" else 1) * expected, rtol=1e-2, atol=1e-3)


def test_nash_and_db_keep_the_gradient_itself():
    plain, scaled = Problem(4, 1), Problem(4, 1, factors=[1000.0, 1.0, 1.0, 0.01])
    for name in ("nash", "db"):
        one, other = Client(name, plain), Client(name, scaled)
        for _ in range(4):
            other.theta = one.theta.clone()
            torch.testing.assert_close(other.step(), one.step(), rtol=1e-4, atol=1e-5)
    # Unclipped, only the norm of the Gram matrix tells the two apart.
    lengths = []
    for problem in (plain, scaled):
        g = problem.gradients(problem.start).double()
        got = shared_gradient(make("nash", 4, max_norm=None), problem, problem.start)
        lengths.append(got.norm().item() / (g @ g.T).norm().item() ** 0.5)
    assert lengths == pytest.approx([2.0, 2.0], rel=1e-5)  # √m


# -- state -----------------------------------------------------------------------------------------------------------


@each_variant
def test_an_interrupted_client_goes_on_bit_by_bit(name, options):
    whole, states = Client(name, Problem(3), **options), []
    for _ in range(8):
        states.append(whole.state())
        whole.step()
    for state in states:
        resumed = Client(name, Problem(3), **options)
        parameters = [id(p) for p in resumed.weighting.parameters()]
        resumed.step()  # whatever it was before must not shine through
        resumed.load(state)
        assert [id(p) for p in resumed.weighting.parameters()] == parameters  # the optimiser holds these
        while resumed.done < whole.done:
            resumed.step()
        assert torch.equal(resumed.theta, whole.theta)
        assert resumed.weighting.weights() == whole.weighting.weights()


@each
def test_a_loaded_state_is_a_copy(name):
    client = Client(name, Problem(3))
    client.step()
    source, other = client.weighting, Client(name, Problem(3))
    other.weighting.load_state_dict(source.state_dict())
    kept = client.state()
    other.done = client.done
    for _ in range(4):
        other.step()
    tensors = client.state()[0][0]
    assert all(torch.equal(tensors[key], value) for key, value in kept[0][0].items())


@each
def test_a_wrong_state_is_refused(name):
    client = Client(name, Problem(3))
    for _ in range(7):
        client.step()
    state = client.weighting.state_dict()
    wrong = [{**state, "stranger": 1}, {"stranger": 1}]
    if state:
        wrong += [{}, {**state, next(iter(state)): "text"}, make_longer(state)]
    for each_wrong in wrong:
        fresh = make(name)
        with pytest.raises(ValueError, match=name):
            fresh.load_state_dict(each_wrong)


def make_longer(tree):
    """The state of one more task."""
    if isinstance(tree, torch.Tensor):
        return torch.cat([tree, tree[:1]]) if tree.dim() else tree
    if isinstance(tree, dict):
        return {key: make_longer(value) for key, value in tree.items()}
    if isinstance(tree, list) and isinstance(tree[0], float):
        return [*tree, tree[0]]
    return [make_longer(value) for value in tree] if isinstance(tree, list) else tree


def test_smoothed_gradients_of_another_network_are_refused():
    weighting = make("db")
    weighting.load_state_dict({"smoothed": torch.zeros(3, 5)})
    with pytest.raises(ValueError, match="3 × 12, those smoothed so far 3 × 5"):
        weighting.combine(torch.ones(3, 12), torch.ones(3))


# -- edges -----------------------------------------------------------------------------------------------------------


def cases(count):
    """Name → (gradients, losses)."""
    g = torch.Generator().manual_seed(count)
    some, losses = torch.randn(count, SIZE, generator=g), 0.5 + torch.rand(count, generator=g)
    first = torch.zeros(count)
    first[0] = 1
    signs = torch.where(torch.arange(count) % 2 == 0, 1.0, -1.0)
    one = some[:1].expand(count, -1)
    return {
        "plain": (some, losses),
        "one zero": (some * (1 - first)[:, None], losses * (1 - first)),
        "one zero gradient": (some * (1 - first)[:, None], losses),
        "all but one zero": (some * first[:, None], losses * first),
        "all zero": (torch.zeros(count, SIZE), torch.zeros(count)),
        "zero losses": (some, torch.zeros(count)),
        "opposite": (signs[:, None] * one, losses),
        "opposite, other lengths": (signs[:, None] * one * (1 + torch.arange(count))[:, None], losses),
        "identical": (one.clone(), losses),
        "parallel": (one * (1 + torch.arange(count))[:, None], losses),
        "nearly parallel": (one + 1e-6 * some, losses),
        "dependent": (torch.cat([some[1:], some[1:].sum(0, keepdim=True)]), losses),
        "huge": (1e8 * some, 1e8 * losses),
        "huge gradients": (1e8 * some, losses),
        "tiny": (1e-25 * some, 1e-25 * losses),
        "tiny gradients": (1e-25 * some, losses),
        "tiny losses": (some, 1e-25 * losses),
        "huge gradients, tiny losses": (1e8 * some, 1e-25 * losses),
        "one huge": (some * (1 + 1e8 * first)[:, None], losses * (1 + 1e8 * first)),
        "one tiny": (
            torch.where(first[:, None] > 0, 1e-25 * some, some),
            torch.where(first > 0, 1e-25 * losses, losses),
        ),
        "scales far apart": (some * torch.logspace(-25, 8, count)[:, None], losses * torch.logspace(-25, 8, count)),
    }


def take_step(weighting, gradients, losses):
    """A step on given gradients: the losses are linear in θ at θ = 0."""
    if weighting.needs_gradients:
        got = weighting.combine(gradients, losses)
    else:
        theta = torch.zeros(gradients.shape[1], requires_grad=True)
        for parameter in weighting.parameters():
            parameter.grad = None
        weighting.total(gradients @ theta + losses).backward()
        got = theta.grad
    weighting.after_step(losses, lambda: 0.9 * losses)
    return got


@each_variant
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "torch"])
def test_finite_in_finite_out(name, options, count, compiled, monkeypatch):
    """Also with inner products in single precision, as other devices take them."""
    if not compiled:
        monkeypatch.setattr(row_algebra, "_is_for_kernels", lambda *tensors: False)
    for case, (gradients, losses) in cases(count).items():
        weighting = make(name, count, **options)
        copies = gradients.clone(), losses.clone()
        for _ in range(4):
            got = take_step(weighting, gradients, losses)
            assert got.shape == (SIZE,) and got.dtype == torch.float32
            assert torch.isfinite(got).all(), case
            assert all(torch.isfinite(p.grad).all() for p in weighting.parameters()), case
            assert name == "equal" or all(map(math.isfinite, weighting.weights())), case
            weighting.end_epoch(losses)
        assert torch.equal(gradients, copies[0]) and torch.equal(losses, copies[1])


@each_variant
def test_all_gradients_of_zero_leave_the_encoder_alone(name, options):
    got = take_step(make(name, 3, **options), *cases(3)["all zero"])
    assert not got.any()


@each_variant
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_step_that_will_be_skipped_leaves_no_trace(name, options, bad):
    """An overflow under fp16: gradients are not finite, and the loss scaler skips the step."""
    clean, hit = Client(name, Problem(3), **options), Client(name, Problem(3), **options)
    for client in (clean, hit):
        client.step()
    if not hit.weighting.needs_gradients:  # nothing to keep: the total is as broken as the losses are
        broken = torch.tensor([1.0, bad, 2.0])
        hit.weighting.total(broken)
        hit.weighting.after_step(broken, lambda: broken)
        hit.weighting.after_step(torch.ones(3), lambda: broken)
    else:
        gradients = torch.ones(3, SIZE)
        gradients[1, 2] = bad
        got = hit.weighting.combine(gradients, torch.tensor([1.0, bad, 2.0]))
        assert not torch.isfinite(got[2])
        assert torch.equal(got[:2], torch.full((2,), 3.0))
        assert not any(p.grad.any() for p in hit.weighting.parameters())
        torch.testing.assert_close(
            hit.weighting.combine(torch.ones(3, SIZE), torch.tensor([1.0, bad, 2.0])), torch.full((SIZE,), 3.0)
        )
    for _ in range(3):
        clean.step()
        hit.step()
    assert torch.equal(hit.theta, clean.theta)


@pytest.mark.parametrize("name", FROM_GRADIENTS)
def test_double_precision_stays_so(name):
    gradients, losses = cases(3)["plain"]
    torch.manual_seed(0)
    single = make(name).combine(gradients, losses)
    torch.manual_seed(0)
    double = make(name).combine(gradients.double(), losses.double())
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-5)


@each
def test_weights_are_those_of_the_last_step(name):
    weighting, problem = make(name), Problem(3)
    assert weighting.weights() is None
    got = shared_gradient(weighting, problem, problem.start)
    weights = weighting.weights()
    if name == "equal":
        assert weights is None
        return
    assert len(weights) == 3 and all(type(w) is float for w in weights)
    gradients = problem.gradients(problem.start)
    if name == "db":  # factors of the smoothed gradients
        gradients = 0.1 * gradients / problem.losses(problem.start)[:, None]
    torch.testing.assert_close(torch.tensor(weights) @ gradients, got)
