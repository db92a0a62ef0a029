"""One test for all rules of all primitives: it walks the table of primitives with the cases of cases.py.

The oracles are independent of the rules: central differences for the JVP, a projection for the transpose, a
Python loop for batching, float64 for the narrower types.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.primitives.cases import CARRY_GRAPHS, CASES, NEED_AXES
from tests.primitives.makers import Array, Case
from wonderland.core.primitive import LINEAR, TABLE, Primitive, aval_of
from wonderland.errors import DTypeError, GradientError
from wonderland.inspect.checking import GradientCheckError

for _module in pkgutil.walk_packages(wl.__path__, "wonderland."):  # primitives are declared on import
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)

PAIRS = [(name, case) for name in sorted(CASES) for case in CASES[name]]
DIFFERENTIABLE = [(name, case) for name, case in PAIRS if case.differentiable(case.build(name))]
# a narrow type and the complex type of its precision
NARROW = {wl.float32: wl.complex64, wl.float16: None, wl.bfloat16: None}


def parametrize(pairs: list[tuple[str, Case]]) -> Any:
    return pytest.mark.parametrize("name, case", [pytest.param(n, c, id=f"{n}-{c.label}") for n, c in pairs])


each_case = parametrize(PAIRS)
each_differentiable = parametrize(DIFFERENTIABLE)
each_shown_by_differences = parametrize([(n, c) for n, c in DIFFERENTIABLE if c.differences])


def run(name: str, args: Any, params: dict[str, Any]) -> list[wl.Tensor]:
    """The results of a primitive as a list."""
    primitive = TABLE[name]
    out = primitive(*[wl.asarray(a) for a in args], **params)
    return list(out) if primitive.multiple else [out]


def function_of(name: str, case: Case, args: list[Array]) -> tuple[Any, tuple[wl.Tensor, ...]]:
    """The primitive as a function of the arguments that are differentiated, and their values."""
    wrt = case.differentiable(args)

    def f(*varied: Any) -> list[wl.Tensor]:
        full: list[Any] = [wl.asarray(a) for a in args]
        for i, value in zip(wrt, varied, strict=True):
            full[i] = value
        out = TABLE[name](*full, **case.params)
        outs = list(out) if TABLE[name].multiple else [out]
        return list(case.observe(*outs)) if case.observe else outs

    return f, tuple(wl.asarray(args[i]) for i in wrt)


def numbers(x: Any) -> Array:
    """In the widest type of its kind, for comparisons."""
    x = np.asarray(x)
    return x.astype({"c": np.complex128, "b": np.int64, "i": np.int64, "u": np.int64}.get(x.dtype.kind, np.float64))


def random_like(rng: np.random.Generator, x: Any) -> Array:
    drawn: Any = rng.normal(size=x.shape)
    if x.dtype.kind == "c":
        drawn = drawn + 1j * rng.normal(size=x.shape)
    return np.asarray(drawn).astype(x.dtype)


# --- coverage


@pytest.mark.book("6-45", name="wonderland.core.primitive.TABLE")
def test_every_primitive_has_cases() -> None:
    missing = sorted(set(TABLE) - set(CASES) - CARRY_GRAPHS)
    assert not missing, f"add cases to tests/primitives/cases.py for {', '.join(missing)}"
    unknown = sorted((set(CASES) | CARRY_GRAPHS | NEED_AXES) - set(TABLE))
    assert not unknown, f"there are cases for {', '.join(unknown)}, which are no primitives"


def test_every_primitive_has_an_empty_and_a_0d_case() -> None:
    def sizes(name: str) -> list[tuple[int, ...]]:
        shapes = [a.shape for case in CASES[name] for a in case.build(name)]
        return shapes + [o.shape for case in CASES[name] for o in run(name, case.build(name), case.params)]

    no_empty = [name for name in CASES if not any(0 in shape for shape in sizes(name))]
    no_scalar = [name for name in CASES if name not in NEED_AXES and () not in sizes(name)]
    assert not no_empty, f"no case with an empty axis for {', '.join(no_empty)}"
    assert not no_scalar, f"no 0-d case for {', '.join(no_scalar)}"


@pytest.mark.book("6-45", "B6-01")
def test_every_linear_argument_has_a_transpose_and_every_primitive_a_batching_rule() -> None:
    for name, primitive in TABLE.items():
        if name in CARRY_GRAPHS:
            continue
        assert primitive.batch is not None, f"{name} has no batching rule"
        if not callable(primitive.jvp):
            for i, rule in enumerate(primitive.jvp):
                if rule is LINEAR and not callable(primitive.transpose):
                    assert primitive.transpose[i] is not None, f"{name} has no transpose for argument {i}"


# --- the rules, one by one


@each_case
def test_abstract_agrees_with_value(name: str, case: Case) -> None:
    args = case.build(name)
    before = [a.copy() for a in args]
    outs = run(name, args, case.params)
    aval = TABLE[name].abstract(*[aval_of(wl.asarray(a)) for a in args], **case.params)
    avals = list(aval) if TABLE[name].multiple else [aval]
    assert [(o.shape, o.dtype) for o in outs] == [(a.shape, a.dtype) for a in avals]
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"{name} writes into its argument")


@pytest.mark.book("6-03", "6-21", "B6-01", "A3-34")
@each_shown_by_differences
def test_jvp_agrees_with_central_differences(name: str, case: Case) -> None:
    f, at = function_of(name, case, case.build(name))
    wl.check_grads(f, at, modes=("forward",))


@pytest.mark.book("6-47", "6-51", "B6-14", "A3-23")
@each_differentiable
def test_transpose_agrees_with_jvp_by_projection(name: str, case: Case) -> None:
    """Re <v, J t> = Re <J^T v, t> for random t and v."""
    f, at = function_of(name, case, case.build(name))
    rng = np.random.default_rng(1)
    tangents = tuple(wl.asarray(random_like(rng, x)) for x in at)
    values, pushed = wl.jvp(f, at, tangents)
    floating = [o.dtype.kind in "fcV" for o in values]
    adjoints = [
        wl.asarray(random_like(rng, o)) if on else wl.zeros_like(o) for o, on in zip(values, floating, strict=True)
    ]
    pulled = wl.vjp(f, *at)[1](adjoints)
    for x, ct in zip(at, pulled, strict=True):
        assert (ct.shape, ct.dtype) == (x.shape, x.dtype)
    for value, tangent in zip(values, pushed, strict=True):
        assert (tangent.shape, tangent.dtype) == (value.shape, value.dtype)
    there = [numbers(v) * numbers(t) for v, t, on in zip(adjoints, pushed, floating, strict=True) if on]
    back = [numbers(ct) * numbers(t) for ct, t in zip(pulled, tangents, strict=True)]
    scale = sum(float(np.sum(np.abs(term))) for term in there + back)
    exact = all(o.dtype in (wl.float64, wl.complex128) for o, on in zip(values, floating, strict=True) if on)
    difference = sum(float(np.sum(term.real)) for term in there) - sum(float(np.sum(term.real)) for term in back)
    assert abs(difference) <= (1e-11 if exact else 1e-2) * max(1.0, scale)


@each_case
def test_batching_agrees_with_a_loop(name: str, case: Case) -> None:
    draws = [case.build(name, draw) for draw in range(3)]
    count = len(case.args)
    choices = list(itertools.product((True, False), repeat=count))
    if count > 6:  # of a thousand choices some, and those of the first two arguments alone
        choices = choices[::37] + [on for on in choices if not any(on[2:])]
    for mapped in choices:
        if not any(mapped):
            continue
        args = [np.stack([d[i] for d in draws]) if on else draws[0][i] for i, on in enumerate(mapped)]
        batched = wl.vmap(lambda *xs: run(name, xs, case.params), in_axes=tuple(0 if on else None for on in mapped))(
            *[wl.asarray(a) for a in args]
        )
        loop = [run(name, [d[i] if on else draws[0][i] for i, on in enumerate(mapped)], case.params) for d in draws]
        for k, got in enumerate(batched):
            want = np.stack([np.asarray(outs[k]) for outs in loop])
            assert (got.shape, got.dtype) == (want.shape, want.dtype), f"mapped: {mapped}"
            np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-11, atol=1e-12, err_msg=f"mapped: {mapped}")


@pytest.mark.book("6-61")
@each_shown_by_differences
def test_second_order(name: str, case: Case) -> None:
    f, at = function_of(name, case, case.build(name))
    wl.check_grads(f, at, order=2)


def narrow_cases() -> list[Any]:
    return [
        pytest.param(name, case, dtype, id=f"{name}-{case.label}-{dtype}")
        for name, case in DIFFERENTIABLE
        for dtype, complex_dtype in NARROW.items()
        if "dtype" not in case.params  # which says what the result is
        and (complex_dtype or not any(a.dtype.kind == "c" for a in case.build(name)))
    ]


@pytest.mark.parametrize("name, case, dtype", narrow_cases())
def test_dtype_is_kept(name: str, case: Case, dtype: Any) -> None:
    wide = case.build(name)
    narrow = {"c": NARROW[dtype], "f": dtype}
    args = [a.astype(narrow.get(a.dtype.kind, a.dtype)) for a in wide]
    try:
        aval = TABLE[name].abstract(*[aval_of(wl.asarray(a)) for a in args], **case.params)
    except DTypeError:
        pytest.skip(f"{name} does not take {dtype}")
    avals = list(aval) if TABLE[name].multiple else [aval]
    outs = run(name, args, case.params)
    assert [o.dtype for o in outs] == [a.dtype for a in avals]
    rounded = [a.astype(w.dtype) for a, w in zip(args, wide, strict=True)]
    f, at = function_of(name, case, args)
    g, exactly_at = function_of(name, case, rounded)
    tolerance = 40 * float(wl.finfo(dtype).eps)
    for got, want in zip(f(*at), g(*exactly_at), strict=True):
        scale = max(1.0, float(np.max(np.abs(numbers(want)), initial=0)))
        assert np.max(np.abs(numbers(got) - numbers(want)), initial=0) <= tolerance * scale
    values, pull = wl.vjp(f, *at)
    ones = [wl.ones_like(v) for v in values]
    for x, ct in zip(at, pull(ones), strict=True):
        assert (ct.shape, ct.dtype) == (x.shape, x.dtype)
    pushed = wl.jvp(f, at, tuple(wl.ones_like(x) for x in at))[1]
    assert [t.dtype for t in pushed] == [v.dtype for v in values]


def not_contiguous(x: Array) -> Array:
    """The same values in Fortran order, in every second place, backwards."""
    if x.ndim == 0:
        return np.stack([x, x, x])[1]
    wide = np.zeros([2 * n for n in x.shape], x.dtype, order="F")
    view = wide[tuple(slice(None, None, -2) for _ in x.shape)]
    view[...] = x
    return view


@each_case
def test_arguments_need_not_be_contiguous(name: str, case: Case) -> None:
    args = case.build(name)
    strided = [not_contiguous(a) for a in args]
    assert all(not a.flags.c_contiguous for a in strided if a.size > 1)
    for got, want in zip(run(name, strided, case.params), run(name, args, case.params), strict=True):
        np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-12, atol=1e-13)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)


@pytest.mark.parametrize("name", ["stop_gradient", "floor", "ceil", "trunc", "round", "sign"])
def test_derivative_is_zero(name: str) -> None:
    value, tangent = wl.jvp(lambda x: TABLE[name](x), (wl.tensor([0.3, -1.7]),), (wl.ones(2),))
    np.testing.assert_array_equal(tangent, [0.0, 0.0])
    assert tangent.dtype == value.dtype
    np.testing.assert_array_equal(wl.vjp(lambda x: TABLE[name](x), wl.ones(2))[1](wl.ones(2))[0], [0.0, 0.0])


@pytest.mark.book("6-05", name="wl.custom_vjp")
def test_primitives_without_a_derivative_say_so() -> None:
    with pytest.raises(GradientError, match="nextafter: has no derivative with respect to argument 0"):
        wl.grad(lambda x: wl.nextafter(x, 1.0))(0.5)
    with pytest.raises(GradientError, match="which has no gradient"):
        wl.grad(wl.argmax)(wl.tensor([1.0, 2.0]))


# --- the oracles can fail


def broken(name: str, **changes: Any) -> Primitive:
    """A primitive with a mistake in one rule, outside the table."""
    good = TABLE[name]
    rules: dict[str, Any] = {"jvp": good.jvp, "transpose": good.transpose, "batch": good.batch} | changes
    wrong = Primitive(f"wrong {name}", good.impl, good.abstract, **rules)
    del TABLE[wrong.name]
    return wrong


@pytest.mark.book("6-21")
def test_a_wrong_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = CASES["sin"][0]
    wrong_jvp = broken("sin", jvp=(lambda t, out, x: t * wl.cos(x) * 1.0001,))
    monkeypatch.setitem(TABLE, "sin", wrong_jvp)
    with pytest.raises(GradientCheckError, match=r"forward mode is wrong at output 0\[\d, \d\]"):
        test_jvp_agrees_with_central_differences("sin", matrix)

    three = CASES["transpose"][0]
    swapped = lambda ct, x, axes: TABLE["reshape"](ct, shape=x.shape)
    wrong_transpose = broken("transpose", transpose=(swapped,))
    monkeypatch.setitem(TABLE, "transpose", wrong_transpose)
    with pytest.raises(AssertionError):
        test_transpose_agrees_with_jvp_by_projection("transpose", three)

    wrong_batch = broken("sum", batch=lambda args, batched, axes: TABLE["sum"](args[0], axes=(0,)))
    monkeypatch.setitem(TABLE, "sum", wrong_batch)
    with pytest.raises(AssertionError):
        test_batching_agrees_with_a_loop("sum", CASES["sum"][2])

    wrong_second = broken("sin", jvp=(lambda t, out, x: t * wl.stop_gradient(wl.cos(x)),))
    monkeypatch.setitem(TABLE, "sin", wrong_second)
    test_jvp_agrees_with_central_differences("sin", matrix)
    with pytest.raises(GradientCheckError, match="order 2"):
        test_second_order("sin", matrix)
