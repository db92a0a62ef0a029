"""Checkpoints: the same gradients to the last bit, less memory, more computation, and state that changes once."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array, same, same_array
from tests.transforms.counting import operations
from wonderland import errors, nn
from wonderland.core.cell import Cell


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32))


def block(W: Any, x: Any) -> Any:
    """A residual block in which values are used several times."""
    h = wl.tanh(x @ W)
    centred = h - h.mean(axis=-1, keepdims=True)
    return x + centred * wl.sigmoid(x @ W) + wl.sin(h) * 0.1


def chain(weights: Any, x: Any, wrap: Any = lambda f: f) -> Any:
    f = wrap(block)
    for W in weights:
        x = f(W, x)
    return (x**2).mean()


WEIGHTS = [numbers(8, 8, seed=i) * 0.3 for i in range(4)]
X = numbers(5, 8, seed=9)


@pytest.mark.book("6-40", "B6-13", "A3-19", name="wl.checkpoint")
def test_gradients_are_identical_to_the_bit() -> None:
    expected = wl.value_and_grad(chain, (0, 1))(WEIGHTS, X)

    def checkpointed(weights: Any, x: Any) -> Any:
        return chain(weights, x, wl.checkpoint)

    same(wl.value_and_grad(checkpointed, (0, 1))(WEIGHTS, X), expected)
    same(wl.jit(wl.value_and_grad(checkpointed, (0, 1)))(WEIGHTS, X), expected)
    same(wl.value_and_grad(wl.jit(checkpointed), (0, 1))(WEIGHTS, X), expected)
    same(wl.value_and_grad(wl.checkpoint(chain), (0, 1))(WEIGHTS, X), expected)
    nested = wl.checkpoint(lambda weights, x: chain(weights, x, wl.checkpoint))
    same(wl.value_and_grad(nested, (0, 1))(WEIGHTS, X), expected)


def test_other_transformations() -> None:
    f = wl.checkpoint(block)
    W, x = WEIGHTS[0].astype(wl.float64), X.astype(wl.float64)
    tangents = (numbers(8, 8, seed=3).astype(wl.float64), x)
    for g, expected in (
        (f, block),
        (lambda W, x: wl.jvp(f, (W, x), tangents), lambda W, x: wl.jvp(block, (W, x), tangents)),
        (lambda W, x: wl.linearize(f, W, x)[1](*tangents), lambda W, x: wl.linearize(block, W, x)[1](*tangents)),
        (wl.vmap(f, in_axes=(None, 0)), wl.vmap(block, in_axes=(None, 0))),
    ):
        for run in (g, wl.jit(g)):
            for a, b in zip(wl.tree.leaves(run(W, x)), wl.tree.leaves(expected(W, x)), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
    per_example = wl.vmap(wl.grad(lambda W, x: f(W, x).sum()), in_axes=(None, 0))
    expected = wl.vmap(wl.grad(lambda W, x: block(W, x).sum()), in_axes=(None, 0))
    np.testing.assert_allclose(per_example(W, x), expected(W, x), rtol=1e-12)
    np.testing.assert_allclose(wl.jit(per_example)(W, x), expected(W, x), rtol=1e-12)
    wl.check_grads(lambda W, x: wl.sin(f(W[:2, :2], x[:1, :2])).sum(), (W, x), order=3, rtol=1e-4, atol=1e-5)


def test_the_imperative_style_and_modules() -> None:
    model = nn.Sequential(nn.Linear(8, 8), wl.tanh, nn.Linear(8, 1))

    def loss(model: Any, x: Any) -> Any:
        return model(x).sum()

    expected = wl.grad(loss)(model, X)
    same(wl.grad(wl.checkpoint(loss))(model, X), expected)
    same(wl.grad(lambda model, x: wl.checkpoint(model)(x).sum())(model, X), expected)
    wl.checkpoint(loss)(model, X).backward()
    for path, parameter in model.named_parameters():
        close_array(parameter.grad, expected[path])


def test_static_arguments() -> None:
    def power(x: Any, n: int) -> Any:
        for _ in range(n):
            x = wl.sin(x)
        return x

    f = wl.checkpoint(power, static_argnums=1)
    same_array(wl.grad(f)(1.0, 3), wl.grad(power)(1.0, 3))
    with pytest.raises(errors.TraceError, match="traced for checkpoint"):
        wl.grad(wl.checkpoint(power))(1.0, 3)


# --- how much is computed


def evaluations(blocks: Any, name: str) -> int:
    """How often the blocks run in the forward and backward pass of a composition, counted by the operation in them."""
    with operations() as counted:
        wl.grad(lambda x: blocks(x).sum())(wl.ones(3))
    return counted[name]


@pytest.mark.book("6-42", "B6-13", name="wl.checkpoint")
def test_figure_6_1_costs_five_quarters() -> None:
    """Four blocks, of which the outputs of 1, 2 and 4 are stored: block 3 runs again."""
    first, second, third, fourth = [wl.sin] * 4
    assert evaluations(lambda x: fourth(third(second(first(x)))), "sin") == 4
    stored = wl.checkpoint(lambda h: fourth(third(h)))  # keeps its input, the output of block 2
    assert evaluations(lambda x: stored(second(first(x))), "sin") == 5  # 5 / 4 = 1.25
    # with only the input kept, all blocks run again; the last one only if its own result is needed
    assert evaluations(wl.checkpoint(lambda x: fourth(third(second(first(x))))), "sin") == 7
    assert evaluations(wl.checkpoint(lambda x: wl.tanh(wl.tanh(wl.tanh(wl.tanh(x))))), "tanh") == 8  # 8 / 4 = 2


@pytest.mark.parametrize("segments", [1, 2, 4, 8, [0, 3], [2, 5]])
def test_blocks_run_twice_at_most(segments: Any) -> None:
    f = wl.checkpoint_sequential([wl.tanh] * 8, segments)
    assert evaluations(f, "tanh") == 16
    expected = wl.grad(lambda x: wl.checkpoint_sequential([wl.tanh] * 8, 8)(x).sum())(wl.ones(3))
    same(wl.grad(lambda x: f(x).sum())(wl.ones(3)), expected)


def test_nothing_is_computed_again_without_a_backward_pass() -> None:
    f = wl.checkpoint(lambda x: wl.sin(wl.sin(x)))
    with operations() as counted:
        f(wl.ones(3))
    assert counted["sin"] == 2
    with operations() as counted:
        wl.jvp(f, (wl.ones(3),), (wl.ones(3),))
    assert counted["sin"] == counted["cos"] == 2


# --- how much is kept


def deep(length: int) -> Any:
    def run(x: Any) -> Any:
        for _ in range(length):
            x = wl.sin(x)
        return x

    return run


@pytest.mark.book("6-39", "A3-19", name="wl.saved")
def test_kept_bytes_grow_with_depth_and_shrink_with_checkpoints() -> None:
    x = wl.ones(1000)
    kept = {n: wl.saved(lambda x, n=n: deep(n)(x).sum(), x).bytes for n in (8, 16, 32)}
    assert kept == {n: n * x.nbytes for n in (8, 16, 32)}
    assert wl.saved(lambda x: wl.checkpoint(deep(32))(x).sum(), x).bytes == 0  # only the argument
    parts = wl.checkpoint_sequential([wl.sin] * 16, 4)
    assert wl.saved(lambda x: parts(x).sum(), x).bytes == 3 * x.nbytes  # the values between the four segments
    with wl.no_grad():
        y = deep(32)(wl.ones(3).requires_grad_())
    assert y.grad_fn is None


def peak(f: Any, x: Any) -> float:
    """The most memory held at one time while f(x) runs, in units of x."""
    f(x)
    tracemalloc.start()
    f(x)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / x.nbytes


@pytest.mark.book("6-40", "B6-13", name="wl.checkpoint_sequential")
@pytest.mark.parametrize("compiled", [False, True])
@wl.using_backend("numpy")  # native code keeps its values in an arena, which is planned and not allocated anew
def test_memory_is_linear_without_and_a_square_root_with_checkpoints(compiled: bool) -> None:
    x = wl.ones(50_000)
    for length in (16, 64):
        plain = wl.grad(lambda x, n=length: deep(n)(x).sum())
        parts = wl.checkpoint_sequential([wl.sin] * length)
        sparse = wl.grad(lambda x, f=parts: f(x).sum())
        if compiled:
            plain, sparse = wl.jit(plain), wl.jit(sparse)  # type: ignore[assignment]
        assert length <= peak(plain, x) <= length + 6
        assert peak(sparse, x) <= 2 * math.sqrt(length) + 6


def test_second_derivatives_keep_less_too() -> None:
    x = wl.ones(50_000)

    def curvature(f: Any) -> Any:
        slope = wl.grad(lambda x: f(x).sum())
        return wl.grad(lambda x: (slope(x) ** 2).sum())

    expected = curvature(deep(36))(x)
    sparse = curvature(wl.checkpoint_sequential([wl.sin] * 36))
    np.testing.assert_allclose(sparse(x), expected, rtol=1e-5)
    assert peak(sparse, x) < 0.3 * peak(curvature(deep(36)), x)


# --- random numbers and state


class Dropout(nn.Module):
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.stream = wl.random.Stream(3)

    def forward(self, x: Any) -> Any:
        keep = wl.random.uniform(x.shape, key=self.stream) >= self.rate
        return wl.where(keep, x / (1 - self.rate), 0.0)


class Statistics(nn.Module):
    """Batch normalisation without its parameters: the running mean is updated in the forward pass."""

    def __init__(self, size: int) -> None:
        self.mean = nn.Buffer(wl.zeros(size))
        self.steps = nn.Buffer(0)

    def forward(self, x: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * x.mean(axis=0)
        self.steps = self.steps + 1  # type: ignore[assignment]
        return x - x.mean(axis=0)


@pytest.mark.book("6-41", name="wl.checkpoint")
@pytest.mark.parametrize("compiled", [False, True])
def test_the_same_random_numbers_and_one_update_of_state(compiled: bool) -> None:
    def model() -> Any:
        wl.random.seed(0)
        return nn.Sequential(nn.Linear(8, 8), Statistics(8), wl.tanh, Dropout(0.5), nn.Linear(8, 1))

    def run(model: Any, wrap: Any) -> list[Any]:
        f = wl.value_and_grad(lambda model, x: (wrap(model)(x) ** 2).sum())
        step = wl.jit(f) if compiled else f
        return [step(model, X) for _ in range(3)]

    plain, sparse = model(), model()
    same(run(sparse, wl.checkpoint), run(plain, lambda f: f))
    same(sparse.state_dict(), plain.state_dict())
    assert sparse[1].steps.item() == 3
    same(sparse[3].stream.value, plain[3].stream.value)


@pytest.mark.book("6-41", name="wl.checkpoint")
def test_a_counter_counts_once_per_forward_pass() -> None:
    count = Cell(wl.tensor(0))

    @wl.checkpoint
    def f(x: Any) -> Any:
        count.assign(count + 1)
        return wl.sin(x) * count

    for i in range(1, 4):
        slope = wl.grad(f)(0.5)
        assert count.item() == i
        assert slope.item() == pytest.approx(math.cos(0.5) * i, rel=1e-6)
    wl.vjp(f, 0.5)
    assert count.item() == 4


def test_the_global_stream_inside_a_checkpoint() -> None:
    def f(x: Any) -> Any:
        return (x * wl.random.normal(x.shape)).sum()

    wl.random.seed(5)
    expected = [wl.grad(f)(wl.ones(3)) for _ in range(2)]
    wl.random.seed(5)
    same([wl.grad(wl.checkpoint(f))(wl.ones(3)) for _ in range(2)], expected)


# --- checkpoint_sequential


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16])
@wl.using_backend("numpy")  # a long chain makes any difference in rounding large
def test_any_number_of_functions_and_segments(n: int) -> None:
    functions = [lambda x, k=k: wl.sin(x) * (k + 1) for k in range(n)]

    def composed(x: Any) -> Any:
        for f in functions:
            x = f(x)
        return x

    x = numbers(4)
    expected = wl.grad(lambda x: composed(x).sum())(x)
    for segments in (None, *range(1, n + 1), list(range(0, n, 2))):
        f = wl.checkpoint_sequential(functions, segments)
        same(f(x), composed(x))
        same(wl.grad(lambda x, f=f: f(x).sum())(x), expected)


def test_modules_can_be_the_blocks() -> None:
    blocks = [nn.Linear(8, 8) for _ in range(4)]
    f = wl.checkpoint_sequential(blocks, 2)
    model = nn.Sequential(*blocks)
    expected = wl.grad(lambda model, x: model(x).sum())(model, X)
    found = wl.grad(lambda model, x: f(x).sum())(model, X)
    same(found, expected)


@pytest.mark.parametrize(
    ("functions", "segments", "word"),
    [([], None, "no function"), ([wl.sin], 2, "2 segments"), ([wl.sin], 0, "0 segments"), ([wl.sin] * 3, [4], "4")],
)
def test_bad_segments(functions: Any, segments: Any, word: str) -> None:
    with pytest.raises(errors.InputError, match=word):
        wl.checkpoint_sequential(functions, segments)


def test_checkpoints_in_any_order_with_jit_and_vmap() -> None:
    wrappers = {"checkpoint": wl.checkpoint, "jit": wl.jit, "none": lambda f: f}
    x = numbers(3).astype(wl.float64)
    f = lambda x: wl.sin(x) * wl.exp(x)
    expected = wl.grad(lambda x: f(f(x)).sum())(x)
    for inner, outer in itertools.product(wrappers, wrappers):
        inside = wrappers[inner](f)  # type: ignore[operator]
        g = wrappers[outer](lambda x, h=inside: h(h(x)))  # type: ignore[operator]
        np.testing.assert_allclose(wl.grad(lambda x, g=g: g(x).sum())(x), expected, rtol=1e-13)
        np.testing.assert_allclose(wl.grad(lambda x, g=g: wl.vmap(g)(x).sum())(x), expected, rtol=1e-13)
