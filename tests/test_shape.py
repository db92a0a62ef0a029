# ruff: noqa: F722, F821, UP037 - strings in annotations are patterns here, not types
"""Patterns that bind names, annotations that are checked, and the guard against accidental broadcasting."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.shape import Bool, Complex, Float, Int, Num, check, checked

X = wl.zeros((2, 5, 7, 3))


@pytest.mark.book("1.09", name="wl.shape.check")
def test_names_are_bound_to_sizes() -> None:
    assert check(X, "b h w 3") == {"b": 2, "h": 5, "w": 7}
    assert check(X, "(b, h, w, 3)") == {"b": 2, "h": 5, "w": 7}
    assert check(wl.zeros((4, 4)), "n n") == {"n": 4}
    assert check(wl.tensor(1.0), "") == {}
    assert check(wl.tensor(1.0), "()") == {}
    assert check(3.5, "") == {}
    assert check(np.zeros((2, 3)), "n d") == {"n": 2, "d": 3}


@pytest.mark.book("1.09", name="wl.shape.check")
def test_the_same_name_with_two_sizes_raises() -> None:
    with pytest.raises(wl.errors.ShapeError, match=r"\(2, 3\).*n is 3 here, but 2 before \(axis 0"):
        check(wl.zeros((2, 3)), "n n")


@pytest.mark.book("1.09", name="wl.shape.check")
def test_a_number_that_differs_raises() -> None:
    with pytest.raises(wl.errors.ShapeError, match=r"axis 3 has size 3, not 4"):
        check(X, "b h w 4")
    for pattern in ("b h w", "b h w 3 1", ""):
        with pytest.raises(wl.errors.ShapeError, match="4 axes"):
            check(X, pattern)


def test_any_size_and_any_number_of_axes() -> None:
    assert check(X, "_ _ w _") == {"w": 7}
    assert check(X, "...") == {}
    assert check(X, "b ... c") == {"b": 2, "c": 3}
    assert check(X, "... 7 c") == {"c": 3}
    assert check(X, "b h ...") == {"b": 2, "h": 5}
    assert check(X, "*batch c") == {"batch": (2, 5, 7), "c": 3}
    assert check(wl.zeros(3), "*batch c") == {"batch": (), "c": 3}
    with pytest.raises(wl.errors.ShapeError, match="at least 2"):
        check(wl.zeros(3), "a ... b")
    with pytest.raises(wl.errors.ShapeError, match="batch"):
        check(wl.zeros((2, 3)), "*batch d", wl.zeros((4, 3)), "*batch d")


def test_formulas() -> None:
    assert check(wl.zeros((4, 6)), "n h*w", h=2, w=3)["n"] == 4
    assert check(wl.zeros(8), "2*d", wl.zeros(4), "d") == {"d": 4}
    assert check(wl.zeros((3, 9)), "k k*k") == {"k": 3}
    assert check(wl.zeros((5, 4)), "n n-1") == {"n": 5}
    assert check(wl.zeros((7, 3)), "n (n-1)//2") == {"n": 7}
    with pytest.raises(wl.errors.ShapeError, match=r"size 6, but h\*w is 4"):
        check(wl.zeros((4, 6)), "n h*w", h=2, w=2)
    with pytest.raises(wl.errors.InputError, match="no value"):
        check(wl.zeros(6), "h*w")


def test_several_tensors_share_names() -> None:
    sizes = check(wl.zeros((50, 3)), "n c", wl.zeros((3, 1)), "c 1", wl.zeros((50, 1)), "n 1")
    assert sizes == {"n": 50, "c": 3}
    check(wl.zeros((3, 2)), "c o", **sizes)
    with pytest.raises(wl.errors.ShapeError, match=r"tensor 1.*c is 4 here, but 3 before"):
        check(wl.zeros((50, 3)), "n c", wl.zeros((4, 1)), "c 1")
    with pytest.raises(wl.errors.ShapeError, match="given"):
        check(wl.zeros(2), "n", n=3)


@pytest.mark.parametrize("pattern", ("b-", "*", "a..", "3.5", "a b*", "f(x)", "...a", "... *b", "a**2", "-n"))
def test_bad_patterns(pattern: str) -> None:
    with pytest.raises(wl.errors.InputError):
        check(X, pattern)


def test_bad_arguments() -> None:
    with pytest.raises(wl.errors.InputError, match="pattern"):
        check(X, ["b"])  # type: ignore[arg-type]
    with pytest.raises(wl.errors.InputError, match="no pattern"):
        check(X, "b h w c", X)
    with pytest.raises(wl.errors.DTypeError, match="list"):
        check([1, 2], "n")


@given(st.lists(st.integers(0, 4), max_size=5))
def test_every_shape_matches_its_own_pattern(shape: list[int]) -> None:
    names = [f"n{i}" for i in range(len(shape))]
    x = wl.zeros(tuple(shape))
    assert check(x, " ".join(names)) == dict(zip(names, shape, strict=True))
    assert check(x, " ".join(map(str, shape))) == {}


def test_under_transformations() -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append(check(x, "n d"))
        return (x**2).sum()

    x = wl.ones((3, 2))
    wl.grad(f)(x)
    wl.jit(f)(x)
    wl.vmap(f)(wl.ones((4, 3, 2)))
    wl.jvp(f, (x,), (x,))
    assert seen == [{"n": 3, "d": 2}] * len(seen)
    assert len(seen) >= 4
    with pytest.raises(wl.errors.ShapeError):
        wl.jit(lambda x: check(x, "n n"))(x)


# --- annotations


@checked
def scores(q: Float["*batch t d"], k: Float["*batch s d"]) -> Float["*batch t s"]:
    return wl.softmax(q @ k.mT)


@pytest.mark.book("1.09", "B2-01", name="wl.shape.checked")
def test_annotations_are_checked() -> None:
    assert scores(wl.zeros((2, 3, 4)), wl.zeros((2, 5, 4))).shape == (2, 3, 5)
    assert scores(q=wl.zeros((3, 4)), k=wl.zeros((5, 4))).shape == (3, 5)
    with pytest.raises(wl.errors.ShapeError, match=r"scores, argument k: .*d is 6 here, but 4 before"):
        scores(wl.zeros((3, 4)), wl.zeros((5, 6)))
    with pytest.raises(wl.errors.DTypeError, match="int64 is not Float"):
        scores(wl.zeros((3, 4), dtype="int64"), wl.zeros((5, 4)))
    with pytest.raises(TypeError, match="missing"):
        scores(wl.zeros((3, 4)))
    assert wl.jit(scores)(wl.zeros((3, 4)), wl.zeros((5, 4))).shape == (3, 5)
    assert scores.__name__ == "scores"


@checked
def wrong(x: Num["n"]) -> Num["n"]:
    return wl.concat([x, x])


def test_results_are_checked() -> None:
    with pytest.raises(wl.errors.ShapeError, match="wrong, result"):
        wrong(wl.ones(2))


@checked
def many(
    x: Float[wl.Tensor, "n d"],
    ids: Int[wl.Tensor, "n"] | None = None,
    mask: Bool["n"] | Float["n 1"] | None = None,
    *rest: Complex["d"],
    scale: Float[""] = 1.0,
    **named: wl.shape.Any["2*d"],
) -> tuple[Float["n"], list[Float["d"]]]:
    return x.sum(axis=1), list(x)


def test_every_kind_of_parameter() -> None:
    x = wl.ones((3, 2))
    many(x)
    many(x, wl.arange(3))
    many(x, None, wl.tensor([True, False, True]))
    many(x, None, wl.ones((3, 1)))
    many(x, None, None, wl.zeros(2, dtype="complex64"), scale=2.0, extra=wl.zeros(4))
    for arguments, named in (
        ((x, wl.arange(4)), {}),
        ((x, wl.ones(3)), {}),
        ((x, None, wl.ones(3)), {}),
        ((x, None, wl.ones((4, 1))), {}),
        ((x, None, None, wl.zeros(3, dtype="complex64")), {}),
        ((x,), {"scale": wl.ones(1)}),
        ((x,), {"extra": wl.zeros(5)}),
        (([[1.0]],), {}),
    ):
        with pytest.raises((wl.errors.ShapeError, wl.errors.DTypeError)):
            many(*arguments, **named)


def test_methods_and_tuples() -> None:
    class Model:
        @checked
        def halves(self, x: Float["n d"]) -> tuple[Float["n d//2"], Float["n d//2"]]:
            return x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]

    left, _right = Model().halves(wl.zeros((2, 4)))
    assert left.shape == (2, 2)
    with pytest.raises(wl.errors.ShapeError, match=r"result\[1\]"):
        Model().halves(wl.zeros((2, 5)))


def test_annotations_that_cannot_be_read() -> None:
    @checked
    def f(x: Missing[1]) -> None:  # type: ignore[name-defined]
        return None

    with pytest.raises(wl.errors.InputError, match="Missing"):
        f(1)
    with pytest.raises(wl.errors.InputError):
        Float["a-"]


def test_checks_of_a_whole_module() -> None:
    module = types.ModuleType("toy_model")
    code = """
from wonderland.shape import Float
import wonderland as wl
def double(x: Float["n"]) -> Float["n"]:
    return wl.concat([x, x])
class Net:
    def __call__(self, x: Float["n d"]) -> Float["n"]:
        return x
def plain(x):
    return x
"""
    exec(code, module.__dict__)
    sys.modules["toy_model"] = module
    try:
        assert module.double(wl.ones(2)).shape == (4,)
        with wl.shape.enable_checks(module):
            with pytest.raises(wl.errors.ShapeError):
                module.double(wl.ones(2))
            with pytest.raises(wl.errors.ShapeError, match=r"Net\.__call__"):
                module.Net()(wl.ones((2, 2)))
            assert module.plain(1) == 1
        assert module.double(wl.ones(2)).shape == (4,)
        checks = wl.shape.enable_checks(module)
        assert len(checks.changed) == 2
        assert wl.shape.enable_checks(module).changed == []
        checks.disable()
        assert module.double(wl.ones(2)).shape == (4,)
    finally:
        del sys.modules["toy_model"]


# --- accidental broadcasting


@pytest.mark.book("2.08", "B4-13", name="wl.shape.strict")
@pytest.mark.parametrize(
    ("left", "right"),
    (((4, 1), (4,)), ((4,), (4, 1)), ((4, 1), (3,)), ((4, 1, 1), (4,)), ((5, 5, 1), (5, 5))),
)
def test_accidental_broadcasting_is_refused(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = wl.ones(left), wl.ones(right)
    assert (x + y).shape == np.broadcast_shapes(left, right)
    for f in (
        lambda: x + y,
        lambda: x - y,
        lambda: x * y,
        lambda: wl.maximum(x, y),
        lambda: x == y,
        lambda: wl.where(x > 0, y, 0.0),
        lambda: wl.grad(lambda x: ((x - y) ** 2).sum())(x),
        lambda: wl.jvp(lambda x: x - y, (x,), (x,)),
        lambda: wl.jit(lambda x: x - y)(x),
        lambda: wl.vmap(lambda x: x - y)(wl.stack([x, x])),
        lambda: (wl.tensor(x, requires_grad=True) - y).sum().backward(),
    ):
        with wl.shape.strict(), pytest.raises(wl.errors.BroadcastError) as caught:
            f()
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)
        assert f() is not False  # and allowed again outside


@pytest.mark.book("2.08", name="wl.shape.strict")
@pytest.mark.parametrize(
    ("left", "right"),
    (
        ((4, 1), (4, 1)),
        ((4, 1), (1, 4)),
        ((8, 4), (4,)),
        ((8, 1), (1,)),
        ((8, 4), ()),
        ((1, 4), (4,)),
        ((2, 8, 4), (8, 1)),
        ((2, 8, 4), (8, 4)),
        ((0, 1), ()),
    ),
)
def test_ordinary_broadcasting_is_not(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = wl.ones(left), wl.ones(right)
    with wl.shape.strict():
        assert (x + y).shape == np.broadcast_shapes(left, right)
        gx, gy = wl.grad(lambda x, y: (x * y).sum(), argnums=(0, 1))(x, y)
        assert (gx.shape, gy.shape) == (left, right)
        assert wl.jit(lambda x, y: x * y)(x, y).shape == np.broadcast_shapes(left, right)


def test_the_rules_behind_an_operation_are_not_checked() -> None:
    """Under vmap a scalar of each example becomes (b, 1) next to a shared vector (n,): no accident."""
    y = wl.arange(3.0)
    with wl.shape.strict():
        assert wl.vmap(lambda s: s * y)(wl.ones(4)).shape == (4, 3)
        g = wl.grad(lambda s: wl.vmap(lambda s: (s * y).sum())(s).sum())(wl.ones(4))
        assert g.tolist() == [3.0] * 4
        assert wl.hessian(lambda x: (x**3 * y).sum())(wl.ones(3)).shape == (3, 3)
        value, push = wl.linearize(wl.vmap(lambda s: s * y), wl.ones(4))
        assert push(wl.ones(4)).tolist() == value.tolist()
        assert wl.jacobian(wl.vmap(lambda s: s * y))(wl.ones(4)).shape == (4, 3, 4)


def test_functions_of_the_library_work_under_strict() -> None:
    rng = np.random.default_rng(0)
    X, Y = wl.asarray(rng.normal(size=(5, 3))), wl.asarray(rng.normal(size=(4, 3)))
    v = wl.asarray(rng.normal(size=5))
    with wl.shape.strict():
        assert wl.pairwise_sq_distances(X, Y).shape == (5, 4)
        assert wl.outer(v, v).shape == (5, 5)
        assert wl.einsum("i,j->ij", v, v).shape == (5, 5)
        assert wl.softmax(X).shape == (5, 3)
        assert wl.logsumexp(v).shape == ()
        assert wl.var(X, axis=0).shape == (3,)
        assert wl.one_hot(wl.arange(3), 5).shape == (3, 5)
        assert wl.top_k(v, 2).values.shape == (2,)
        assert wl.kron(X, Y).shape == (20, 9)
        assert wl.cosine_similarity(X, X).shape == (5,)
        assert wl.isin(wl.arange(3), wl.arange(2)).shape == (3,)
        assert wl.isin(X.astype("complex64"), v.astype("complex64")).shape == (5, 3)
        assert wl.segment_mean(X, wl.tensor([0, 0, 1, 1, 1]), 2).shape == (2, 3)
        assert wl.linalg.solve(wl.eye(3), wl.ones(3)).shape == (3,)
        assert wl.grad(lambda X: wl.linalg.eigh(X.T @ X)[0].sum())(X).shape == (5, 3)


def test_strict_can_be_switched_and_nested() -> None:
    x, y = wl.ones((4, 1)), wl.ones(4)
    wl.shape.set_strict()
    try:
        with pytest.raises(wl.errors.BroadcastError):
            _ = x + y
        with wl.shape.strict(False):
            assert (x + y).shape == (4, 4)
        with pytest.raises(wl.errors.BroadcastError):
            _ = x + y
        other: list[Any] = []
        thread = threading.Thread(target=lambda: other.append((x + y).shape))
        thread.start()
        thread.join()
        assert other == [(4, 4)]  # the guard belongs to one thread
    finally:
        wl.shape.set_strict(False)
    assert (x + y).shape == (4, 4)

    @wl.shape.strict()
    def decorated() -> Any:
        return x + y

    with pytest.raises(wl.errors.BroadcastError):
        decorated()


@pytest.mark.book("4.23", "B4-13", name="wl.shape.checked")
def test_the_books_gradient_descent_with_targets_of_the_wrong_shape() -> None:
    """ls_gd with y ~ (n,): the residual broadcasts to (n, n) and w silently becomes (c, n)."""
    rng = np.random.default_rng(0)
    X, y = wl.asarray(rng.normal(size=(10, 3))), wl.asarray(rng.normal(size=10))

    def step(X: Any, y: Any, w: Any) -> Any:
        return w + 0.01 * X.T @ (y - X @ w)

    w = wl.zeros((3, 1), dtype="float64")
    assert step(X, y, w).shape == (3, 10)  # the bug
    with wl.shape.strict(), pytest.raises(wl.errors.BroadcastError):
        step(X, y, w)

    @checked
    def guarded(X: Float["n c"], y: Float["n 1"], w: Float["c 1"]) -> Float["c 1"]:
        return step(X, y, w)

    with pytest.raises(wl.errors.ShapeError, match="guarded, argument y"):
        guarded(X, y, w)
    assert guarded(X, y[:, None], w).shape == (3, 1)
