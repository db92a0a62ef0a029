"""`wl.debug`: the operation that made a NaN or an infinity is named, and no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.core.context import current
from wonderland.errors import NonFiniteError

INF = float("inf")


def line_of(error: BaseException) -> str:
    """The user's line that a message shows."""
    return next(line for line in str(error).splitlines() if line.startswith("  at: "))


def caught(f: Callable[..., Any], *args: Any, **options: Any) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as info, wl.debug.nans(**options):
        f(*args)
    return info.value


# --- what makes them, forward

MAKERS = {
    "log of 0": (lambda: wl.log(wl.tensor([1.0, 0.0])), "log", "-inf", "1 of 2 elements"),
    "log of -1": (lambda: wl.log(wl.tensor([-1.0, 2.0, -3.0])), "log", "NaN", "2 of 3 elements"),
    "0/0": (lambda: wl.zeros(2) / wl.zeros(2), "divide", "NaN", "2 of 2 elements"),
    "1/0": (lambda: 1 / wl.zeros(()), "divide", "inf", "1 of 1 elements"),
    "0/0 and 1/0": (lambda: wl.tensor([0.0, 1.0]) / wl.zeros(2), "divide", "NaN and inf", "2 of 2 elements"),
    "overflow of exp": (lambda: wl.exp(wl.tensor(1000.0)), "exp", "inf", "1 of 1 elements"),
    "overflow of a product": (lambda: wl.tensor(1e30) * 1e30, "multiply", "inf", "1 of 1 elements"),
    "overflow of a sum": (lambda: wl.full(3, 3e38).sum(), "sum", "inf", "1 of 1 elements"),
    "overflow of a conversion": (
        lambda: wl.tensor(1e300, dtype=wl.float64).astype(wl.float32),
        "astype",
        "inf",
        "",
    ),
    "overflow in bfloat16": (lambda: wl.tensor(3e38, dtype=wl.bfloat16) * 10, "multiply", "inf", ""),
    "root of -1": (lambda: wl.sqrt(wl.tensor(-1.0)), "sqrt", "NaN", ""),
    "complex 1/0": (lambda: wl.ones(1, dtype=wl.complex64) / 0, "divide", "NaN and inf", ""),
    "inf - inf": (lambda: wl.tensor([INF]) - wl.tensor([INF]), "subtract", "NaN", ""),
    "matrix product": (
        lambda: wl.full((2, 2), 1e30) @ wl.full((2, 2), 1e30),
        "matmul",
        "inf",
        "4 of 4 elements",
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_forward(name: str) -> None:
    f, operation, kinds, count = MAKERS[name]
    error = caught(f)
    assert error.phase == "forward pass"
    assert f"made {kinds} in the forward pass" in str(error)
    assert count in str(error)
    assert "  try: " in str(error)
    assert f"test_debug.py:{f.__code__.co_firstlineno} in <lambda>" in line_of(error)
    assert error.operation == operation


def test_message_shows_what_the_operation_received() -> None:
    text = str(caught(lambda: wl.tensor([1.0, 2.0]) / wl.tensor([4.0, 0.0])))
    assert "divide of float32[2] from 1 to 2 and float32[2] from 0 to 4" in text


def test_with_inf_off_only_nan_counts() -> None:
    with wl.debug.nans(inf=False):
        x = wl.log(wl.zeros(2))  # -inf
    assert caught(lambda: x - x, inf=False).operation == "subtract"


# --- what only passes them on


def test_passing_on_is_not_making() -> None:
    bad = wl.tensor([wl.nan, INF, 1.0])
    with wl.debug.nans():
        for f in (
            wl.exp,
            lambda x: x + 1,
            lambda x: x.sum(),
            lambda x: wl.maximum(x, 0.0),
            wl.sort,
            wl.cumulative_sum,
        ):
            f(bad)
            wl.jit(f)(bad)
        wl.grad(lambda x: (x * x).sum())(bad)
        wl.jit(wl.grad(lambda x: (x * x).sum()))(bad)


def test_elementwise_operations_are_judged_element_by_element() -> None:
    """A NaN in the data does not hide that another element made one."""
    with wl.debug.nans():
        wl.log(wl.tensor([wl.nan, 1.0]))
    assert "1 of 2 elements" in str(caught(lambda: wl.log(wl.tensor([wl.nan, -1.0]))))


def test_other_operations_are_judged_as_a_whole() -> None:
    with wl.debug.nans():
        wl.cumulative_sum(wl.tensor([wl.nan, 1.0]))
        wl.tensor([[INF, 1.0]]) @ wl.ones((2, 2))


def test_infinite_constants_and_masks_are_meant() -> None:
    mask = wl.tensor([True, False, True])
    scores = wl.tensor([1.0, 2.0, 3.0])

    def attention(x: wl.Tensor) -> wl.Tensor:
        return wl.softmax(wl.where(mask, x, -INF))

    with wl.debug.nans():
        assert wl.full(3, -INF)[0] == -INF
        assert wl.zeros(3).at[1].set(INF)[1] == INF
        assert (wl.maximum(scores, -INF) == scores).all()
        for f in (attention, wl.jit(attention), wl.vmap(lambda x: wl.where(x > 0, x, -INF))):
            f(scores)
        wl.grad(lambda x: attention(x)[0])(scores)
        wl.jit(wl.grad(lambda x: attention(x)[0]))(scores)


@pytest.mark.parametrize("entries", [[-INF, 1.0, 2.0], [-INF, -INF]], ids=["some masked", "all masked"])
@pytest.mark.parametrize("f", [wl.softmax, wl.logsumexp, wl.log_softmax], ids=lambda f: f.__name__)
def test_masked_softmax_and_relatives(f: Callable[..., wl.Tensor], entries: list[float]) -> None:
    x = wl.tensor(entries)
    finite = lambda x: wl.where(wl.isfinite(f(x)), f(x), 0.0).sum()
    with wl.debug.nans():
        f(x)
        wl.grad(finite)(x)
        wl.jit(wl.grad(finite))(x)


EDGES = [0.0, 1.0, -1.0, 1e-30, 80.0, -80.0, 1e4]
UNARY = """
    abs acos asin asinh atan ceil cos cosh exp expm1 floor log1p reciprocal relu round sigmoid sign
    sin sinh softmax log_softmax softplus log_sigmoid sqrt square tan tanh norm sq_norm normalize
    logsumexp mean var std prod max min cumulative_sum cumulative_prod erf erfc trunc
"""
BINARY = "add subtract multiply maximum minimum hypot atan2 logaddexp pow xlogy remainder cosine_similarity"


def finite(tree: Any) -> bool:
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in wl.tree.leaves(tree))


@pytest.mark.parametrize("name", (UNARY + BINARY).split())
def test_no_false_alarm(name: str) -> None:
    """Where value and gradient are finite, nothing on the way to them is reported."""
    f = getattr(wl, name)
    pairs = [(a, b) for a in EDGES for b in EDGES] if name in BINARY.split() else [(a,) for a in EDGES]
    total = lambda *args: f(*args).sum()
    gradient = wl.grad(total, argnums=(0, 1) if name in BINARY.split() else 0)
    for values in pairs:
        args = [wl.tensor([v, 1.0] if name in UNARY.split() else [v]) for v in values]
        if finite(f(*args)) and finite(gradient(*args)):
            with wl.debug.nans():
                f(*args)
                gradient(*args)


# --- backward


def slope(x: wl.Tensor) -> wl.Tensor:
    return wl.sqrt(x).sum()  # the line of sqrt


ZERO = wl.tensor([4.0, 0.0])
BACKWARD: dict[str, Callable[[], Any]] = {
    "grad": lambda: wl.grad(slope)(ZERO),
    "value_and_grad": lambda: wl.value_and_grad(slope)(ZERO),
    "vjp": lambda: wl.vjp(slope, ZERO)[1](wl.tensor(1.0)),
    "jit of grad": lambda: wl.jit(wl.grad(slope))(ZERO),
    "grad of jit": lambda: wl.grad(wl.jit(slope))(ZERO),
    "jit of grad of jit": lambda: wl.jit(wl.grad(wl.jit(slope)))(ZERO),
    "vmap of grad": lambda: wl.vmap(wl.grad(lambda x: slope(x)))(ZERO),
    "grad of vmap": lambda: wl.grad(lambda x: wl.vmap(slope)(x).sum())(ZERO),
    "checkpoint": lambda: wl.grad(wl.checkpoint(slope))(ZERO),
    "scan": lambda: wl.grad(lambda x: wl.scan(lambda c, x: (c + slope(x), None), 0.0, x)[0])(ZERO),
    "jit of scan": lambda: wl.jit(wl.grad(lambda x: wl.scan(lambda c, x: (c + slope(x), None), 0.0, x)[0]))(ZERO),
    "cond": lambda: wl.jit(wl.grad(lambda x: wl.cond(x.sum() > 0, slope, lambda x: x.sum(), x)))(ZERO),
    "hessian": lambda: wl.grad(lambda x: wl.grad(slope)(x).sum())(ZERO),
    "backward": lambda: slope(wl.tensor([4.0, 0.0]).requires_grad_()).backward(),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_slope_of_the_root_at_zero(name: str) -> None:
    """The infinite slope is found in the backward pass and shown with the line of the forward pass."""
    error = caught(BACKWARD[name])
    assert error.operation == "sqrt"
    assert error.phase == "backward pass, derivative of sqrt"
    assert "sqrt: the derivative of sqrt made inf in the backward pass: 1 of" in str(error)
    assert "# the line of sqrt" in line_of(error)


def test_forward_mode() -> None:
    for f in (slope, wl.jit(slope)):
        error = caught(lambda f=f: wl.jvp(f, (ZERO,), (wl.ones(2),)))
        assert (error.operation, error.phase) == ("sqrt", "forward-mode pass, derivative of sqrt")
        assert "# the line of sqrt" in line_of(error)


def test_a_nan_of_the_backward_walk() -> None:
    """The adjoint overflows although the forward pass and all local derivatives are finite."""

    def f(x: wl.Tensor) -> wl.Tensor:
        y = 1e30 * x  # the line of the product
        return (1e30 * y * 1e-30).sum()

    def shifted(x: wl.Tensor) -> wl.Tensor:
        return f(x) * 1e10

    for run in (wl.grad(shifted), wl.jit(wl.grad(shifted)), wl.grad(wl.jit(shifted))):
        error = caught(run, wl.tensor([1e-35]))
        assert error.phase == "backward pass, derivative of multiply"
        assert "the line of the product" in line_of(error)

    def imperative() -> None:
        shifted(wl.tensor([1e-35]).requires_grad_()).backward()

    assert "the line of the product" in line_of(caught(imperative))


def test_traces_made_before_are_as_good() -> None:
    f = wl.jit(wl.grad(slope))
    f(wl.ones(2))
    error = caught(f, ZERO)
    assert f.traces == 1
    assert "# the line of sqrt" in line_of(error)
    assert error.phase == "backward pass, derivative of sqrt"


def test_custom_rules_point_to_their_own_lines() -> None:
    @wl.custom_vjp
    def identity(x: wl.Tensor) -> wl.Tensor:
        return 1 * x

    def backward(residuals: None, ct: wl.Tensor) -> tuple[wl.Tensor]:
        return (ct / wl.zeros_like(ct),)  # the line of the rule

    identity.defvjp(lambda x: (1 * x, None), backward)
    for f in (wl.grad(identity), wl.jit(wl.grad(identity)), wl.grad(wl.jit(identity))):
        error = caught(f, wl.tensor(2.0))
        assert "# the line of the rule" in line_of(error)
        assert "backward pass" in error.phase

    @wl.custom_jvp
    def square(x: wl.Tensor) -> wl.Tensor:
        return x * x

    @square.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return square(*primals), tangents[0] * wl.log(0 * primals[0])  # the line of the jvp rule

    error = caught(wl.grad(square), wl.tensor(2.0))
    assert "# the line of the jvp rule" in line_of(error)
    assert error.phase == "backward pass, derivative of square"


# --- modules


class Inverse(nn.Module):
    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return 1 / x  # the line of the module


class Root(nn.Module):
    def __init__(self) -> None:
        self.scale = nn.Parameter(wl.zeros(2))

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return wl.sqrt(self.scale) * x  # the line of the root


class Block(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        self.layers = list(layers)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def test_module_path_forward() -> None:
    model = Block(Block(), Block(Block(), Inverse()))
    loss = lambda model, x: model(x).sum()
    for run in (loss, wl.jit(loss), wl.grad(loss, argnums=1), wl.jit(wl.grad(loss, argnums=1))):
        error = caught(run, model, wl.zeros(2))
        assert "  in module: layers.1.layers.1 (Inverse)" in str(error)
        assert "# the line of the module" in line_of(error)
        assert error.operation == "divide"


def test_module_path_backward() -> None:
    model = Block(Block(Root()))
    loss = lambda model, x: model(x).sum()
    for run in (wl.grad(loss), wl.jit(wl.grad(loss)), wl.grad(wl.jit(loss))):
        error = caught(run, model, wl.ones(2))
        assert "  in module: layers.0.layers.0 (Root)" in str(error)
        assert error.phase == "backward pass, derivative of sqrt"
        assert "# the line of the root" in line_of(error)

    def imperative() -> None:
        model(wl.ones(2)).sum().backward()

    error = caught(imperative)
    assert "  in module: layers.0.layers.0 (Root)" in str(error)
    assert "# the line of the root" in line_of(error)


def test_module_path_follows_changes_of_the_model() -> None:
    inverse = Inverse()
    model = Block(Block(), inverse)
    assert "layers.1 (Inverse)" in str(caught(model, wl.zeros(1)))
    model.layers = [Block(), Block(), inverse]
    assert "layers.2 (Inverse)" in str(caught(model, wl.zeros(1)))
    model.layers.insert(0, Inverse())  # a plain list tells nobody
    assert "layers.0 (Inverse)" in str(caught(model, wl.zeros(1)))


# --- what came in from outside


def test_inputs() -> None:
    data = wl.tensor([1.0, wl.nan, 3.0])
    f = lambda x: wl.exp(2 * x).sum()
    for run in (f, wl.jit(f), wl.grad(f)):
        error = caught(run, data, inputs=True)
        assert "received a NaN that came in from outside (1 of 3 elements of float32[3])" in str(error)
        assert "check_finite" in str(error)
        assert error.operation == "multiply"
    with wl.debug.nans(inputs=True):
        wl.softmax(wl.tensor([-INF, 0.0]))  # infinities are how masks are written


# --- switching on and off


def test_state_is_put_back() -> None:
    assert current().plain
    with wl.debug.nans():
        outer = current().settings.debug
        with wl.debug.nans(inf=False):
            wl.log(wl.zeros(1))
        assert current().settings.debug is outer
        assert not current().plain
    assert current().settings.debug is None
    assert current().plain
    caught(lambda: wl.log(wl.zeros(1)))
    assert current().plain
    wl.log(wl.zeros(1))


def test_decorator() -> None:
    @wl.debug.nans()
    def f(x: wl.Tensor, depth: int) -> wl.Tensor:
        return f(x, depth - 1) if depth else wl.log(x)

    assert f(wl.tensor(1.0), 3) == 0
    with pytest.raises(NonFiniteError, match=r"test_debug\.py:\d+ in f: "):
        f(wl.tensor(0.0), 3)
    assert current().settings.debug is None
    with pytest.raises(wl.errors.InputError, match="parentheses"):
        wl.debug.nans(lambda x: x)  # type: ignore[arg-type]


@pytest.fixture
def enabled() -> Iterator[None]:
    wl.debug.enable_nans()
    yield
    wl.debug.disable_nans()


@pytest.mark.usefixtures("enabled")
def test_enable_and_disable() -> None:
    with pytest.raises(NonFiniteError):
        wl.log(wl.zeros(1))
    wl.debug.disable_nans()
    wl.log(wl.zeros(1))


def test_other_threads_are_not_concerned() -> None:
    results: list[Any] = []
    with wl.debug.nans():
        thread = threading.Thread(target=lambda: results.append(wl.log(wl.zeros(1))))
        thread.start()
        thread.join()
    assert results[0] == -INF


def test_inside_a_traced_function_it_says_where_it_belongs() -> None:
    @wl.jit
    def f(x: wl.Tensor) -> wl.Tensor:
        with wl.debug.nans():
            return wl.log(x)

    with pytest.raises(wl.errors.TraceError, match="around the call of the jitted function"):
        f(wl.ones(1))


def test_results_are_the_same() -> None:
    x = wl.linspace(0.5, 2.0, 7)
    f = lambda x: (wl.log(x) * wl.sin(x)).sum()
    plain = wl.value_and_grad(f)(x), wl.jit(wl.hessian(f))(x)
    with wl.debug.nans():
        watched = wl.value_and_grad(f)(x), wl.jit(wl.hessian(f))(x)
    for a, b in zip(wl.tree.leaves(plain), wl.tree.leaves(watched), strict=True):
        close_array(a, b)  # what is watched under jit is computed by NumPy


# --- check_finite


def test_check_finite_returns_what_it_receives() -> None:
    tree = {"x": wl.ones(2), "n": wl.arange(3), "names": ["a", None], "y": np.zeros(2), "z": 1.5}
    assert wl.debug.check_finite(tree) is tree
    model = nn.Linear(2, 3)
    assert wl.debug.check_finite(model, "model") is model


@pytest.mark.parametrize(
    "tree, text",
    [
        ({"a": [1.0, wl.tensor([[0.0, wl.nan]])]}, r"batch\.a\.1 has NaN \(1 of 2 .* the first at \[0, 1\]"),
        (wl.tensor([INF, -INF]), r"batch has inf and -inf \(2 of 2"),
        (np.float64("nan"), r"batch has NaN \(1 of 1 elements of float64\[\]\)"),
        (float("inf"), r"batch has inf"),
        (wl.tensor([1j * INF]), r"batch has (NaN and )?inf"),
    ],
)  # fmt: skip
def test_check_finite_names_the_leaf(tree: Any, text: str) -> None:
    with pytest.raises(NonFiniteError, match=text):
        wl.debug.check_finite(tree, "batch")


def test_check_finite_of_a_module_names_the_parameter() -> None:
    model = nn.Sequential(nn.Linear(2, 3))
    model[0].bias = wl.tensor([0.0, INF, 0.0])
    with pytest.raises(NonFiniteError, match=r"model\.0\.bias has inf"):
        wl.debug.check_finite(model, "model")


def test_check_finite_inside_transformations() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        wl.debug.check_finite(wl.log(x), "log")
        return x

    wl.grad(f)(wl.tensor(1.0))
    with pytest.raises(NonFiniteError, match="log has -inf"):
        wl.grad(f)(wl.tensor(0.0))
    with pytest.raises(wl.errors.TraceError):
        wl.jit(f)(wl.tensor(1.0))


def test_infinities_that_only_change_their_shape_are_no_finding() -> None:
    x = wl.full((2, 3), INF)
    with wl.debug.nans():
        assert x.reshape(6).shape == (6,)
        assert wl.broadcast_to(x, (4, 2, 3)).shape == (4, 2, 3)
        assert x.astype(wl.float64).dtype == wl.float64
