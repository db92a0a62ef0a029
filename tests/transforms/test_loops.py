"""Loops: eager, traced, differentiated and batched, against the same loops written out."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations
from wonderland import errors
from wonderland.core.cell import Cell

F64 = wl.float64


def close(a: Any, b: Any, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    left, right = wl.tree.flatten(a), wl.tree.flatten(b)
    assert left[1] == right[1]
    for x, y in zip(left[0], right[0], strict=True):
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


class Program(NamedTuple):
    """A loop, the same written out, and arguments for both."""

    loop: Any
    written_out: Any
    args: tuple[Any, ...]


def _rnn(reverse: bool) -> Program:
    def cell(W: Any, U: Any, b: Any, h: Any, x: Any) -> Any:
        return wl.tanh(h @ W + x @ U + b)

    def loop(W: Any, U: Any, b: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            new = cell(W, U, b, h, x)
            return new, {"h": new, "both": (h * new).sum()}

        return wl.scan(step, h, xs, reverse=reverse)

    def written_out(W: Any, U: Any, b: Any, h: Any, xs: Any) -> Any:
        hs, both = [], []
        for x in reversed(list(xs)) if reverse else xs:
            new = cell(W, U, b, h, x)
            hs.append(new)
            both.append((h * new).sum())
            h = new
        order = slice(None, None, -1) if reverse else slice(None)
        return h, {"h": wl.stack(hs[order]), "both": wl.stack(both[order])}

    return Program(loop, written_out, (numbers(3, 3), numbers(2, 3), numbers(3), numbers(3, seed=1), numbers(4, 2)))


def _trees() -> Program:
    """A tree as carry: some parts are integers, and one only picks up a derivative on the way."""

    def step(a: Any, carry: Any, x: Any) -> Any:
        i, (u, v) = carry["i"], carry["uv"]
        return {"i": i + 1, "uv": (wl.sin(v) + a, u * x["s"] + i.astype(F64))}, (None, [u * x["k"]])

    def loop(a: Any, xs: Any) -> Any:
        start = {"i": wl.tensor(0), "uv": (wl.tensor(0.5, dtype=F64), wl.tensor(1.0, dtype=F64))}
        carry, ys = wl.scan(lambda c, x: step(a, c, x), start, {"s": xs, "k": wl.arange(4)})
        return carry, ys

    def written_out(a: Any, xs: Any) -> Any:
        carry: Any = {"i": wl.tensor(0), "uv": (wl.tensor(0.5, dtype=F64), wl.tensor(1.0, dtype=F64))}
        ys = []
        for k, x in enumerate(xs):
            carry, (_, (y,)) = step(a, carry, {"s": x, "k": wl.tensor(k)})
            ys.append(y)
        return carry, (None, [wl.stack(ys)])

    return Program(loop, written_out, (wl.tensor(0.3, dtype=F64), numbers(4)))


def _no_sequences() -> Program:
    def loop(a: Any, x: Any) -> Any:
        return wl.scan(lambda c, none: (wl.sin(a * c), c), x, None, length=3)

    def written_out(a: Any, x: Any) -> Any:
        ys = []
        for _ in range(3):
            ys.append(x)
            x = wl.sin(a * x)
        return x, wl.stack(ys)

    return Program(loop, written_out, (wl.tensor(1.3, dtype=F64), numbers(2)))


def _nested() -> Program:
    def loop(a: Any, xs: Any) -> Any:
        def outer(c: Any, row: Any) -> Any:
            inner, ys = wl.scan(lambda d, x: (wl.tanh(d * a + x * c), d), c, row)
            return wl.sin(inner), ys.sum()

        return wl.scan(outer, a, xs)

    def written_out(a: Any, xs: Any) -> Any:
        c, ys = a, []
        for row in xs:
            d, total = c, 0.0
            for x in row:
                total = total + d
                d = wl.tanh(d * a + x * c)
            c = wl.sin(d)
            ys.append(total)
        return c, wl.stack(ys)

    return Program(loop, written_out, (wl.tensor(0.7, dtype=F64), numbers(3, 2)))


def _branches_inside() -> Program:
    """A scan inside a branch inside a scan."""

    def loop(a: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            new = wl.cond(
                x > 0,
                lambda c: wl.scan(lambda d, _: (wl.sin(d) * a, None), c, None, length=2)[0],
                lambda c: c * x,
                c,
            )
            return new, new

        return wl.scan(step, a, xs)

    def written_out(a: Any, xs: Any) -> Any:
        c, ys = a, []
        for x in xs:
            if x > 0:
                for _ in range(2):
                    c = wl.sin(c) * a
            else:
                c = c * x
            ys.append(c)
        return c, wl.stack(ys)

    return Program(loop, written_out, (wl.tensor(0.9, dtype=F64), wl.tensor([0.5, -0.7, 1.0, -1.5], dtype=F64)))


def _map() -> Program:
    def loop(a: Any, xs: Any) -> Any:
        return wl.map(lambda x: {"y": wl.sin(x) * a}, xs)

    def written_out(a: Any, xs: Any) -> Any:
        return {"y": wl.stack([wl.sin(x) * a for x in xs])}

    return Program(loop, written_out, (numbers(2), numbers(3, 2)))


def _fori() -> Program:
    def loop(a: Any, x: Any) -> Any:
        return wl.fori_loop(2, 5, lambda i, c: wl.sin(c * a) + i.astype(F64), x)

    def written_out(a: Any, x: Any) -> Any:
        for i in range(2, 5):
            x = wl.sin(x * a) + float(i)
        return x

    return Program(loop, written_out, (wl.tensor(0.5, dtype=F64), numbers(2)))


PROGRAMS = {
    "rnn": _rnn(False),
    "reverse": _rnn(True),
    "trees": _trees(),
    "no sequences": _no_sequences(),
    "nested": _nested(),
    "branches inside": _branches_inside(),
    "map": _map(),
    "fori": _fori(),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


def floats(tree: Any) -> list[Any]:
    return [leaf for leaf in wl.tree.leaves(tree) if leaf.dtype == F64]


def total(f: Any) -> Any:
    """The sum of the sines of all results: a scalar function."""
    return lambda *args: sum(wl.sin(leaf).sum() for leaf in floats(f(*args)))


def test_values(program: Program) -> None:
    expected = program.written_out(*program.args)
    close(program.loop(*program.args), expected)
    close(wl.jit(program.loop)(*program.args), expected)


def test_gradients(program: Program) -> None:
    every = tuple(range(len(program.args)))
    expected = wl.grad(total(program.written_out), every)(*program.args)
    loop = total(program.loop)
    close(wl.grad(loop, every)(*program.args), expected)
    close(wl.grad(wl.jit(loop), every)(*program.args), expected)
    close(wl.jit(wl.grad(loop, every))(*program.args), expected)


def test_gradients_with_respect_to_one_argument(program: Program) -> None:
    for i in range(len(program.args)):
        expected = wl.grad(total(program.written_out), i)(*program.args)
        close(wl.jit(wl.grad(total(program.loop), i))(*program.args), expected)


def test_forward_mode(program: Program) -> None:
    tangents = tuple(numbers(*a.shape, seed=i + 7) for i, a in enumerate(program.args))
    expected = wl.jvp(program.written_out, program.args, tangents)
    close(wl.jit(lambda *args: wl.jvp(program.loop, args, tangents))(*program.args), expected)
    close(wl.jvp(wl.jit(program.loop), program.args, tangents), expected)
    _, push = wl.linearize(wl.jit(program.loop), *program.args)
    for scale in (1.0, -2.0):  # the linear function can be used again
        close(
            push(*[scale * t for t in tangents]), wl.tree.map(lambda t, s=scale: (s * t).astype(t.dtype), expected[1])
        )


def test_pull_back_twice(program: Program) -> None:
    expected, pull = wl.vjp(program.written_out, *program.args)
    found, pull_traced = wl.vjp(wl.jit(program.loop), *program.args)
    close(found, expected)
    for seed in (1, 2):
        cts = wl.tree.map(lambda v, s=seed: numbers(*v.shape, seed=s) if v.dtype == F64 else wl.zeros_like(v), expected)
        close(pull_traced(cts), pull(cts))


def test_finite_differences_and_second_order(program: Program) -> None:
    wl.check_grads(wl.jit(total(program.loop)), program.args, order=2, rtol=1e-5, atol=1e-6)


def test_second_derivatives(program: Program) -> None:
    def curvature(f: Any) -> Any:
        slope = wl.grad(total(f))
        return wl.grad(lambda *args: wl.sin(slope(*args)).sum())

    expected = curvature(program.written_out)(*program.args)
    close(curvature(wl.jit(program.loop))(*program.args), expected, rtol=1e-10)
    close(wl.jit(curvature(program.loop))(*program.args), expected, rtol=1e-10)


def batches(program: Program, which: tuple[bool, ...]) -> tuple[Any, ...]:
    """The arguments, with three examples of those that are chosen."""
    return tuple(wl.stack([a, 0.5 * a, -a]) if on else a for a, on in zip(program.args, which, strict=True))


def one_by_one(f: Any, args: tuple[Any, ...], which: tuple[bool, ...]) -> Any:
    results = [f(*[a[i] if on else a for a, on in zip(args, which, strict=True)]) for i in range(3)]
    return wl.tree.map(lambda *parts: wl.stack(parts), *results)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_combination_of_batched_arguments(name: str) -> None:
    program = PROGRAMS[name]
    for which in itertools.product([False, True], repeat=len(program.args)):
        if not any(which):
            continue
        args, axes = batches(program, which), tuple(0 if on else None for on in which)
        expected = one_by_one(program.written_out, args, which)
        close(wl.vmap(program.loop, in_axes=axes)(*args), expected)
        if all(which) or sum(which) == 1:
            close(wl.jit(wl.vmap(program.loop, in_axes=axes))(*args), expected)
            close(wl.vmap(wl.jit(program.loop), in_axes=axes)(*args), expected)


def test_gradients_of_batches_and_batches_of_gradients(program: Program) -> None:
    which = (False,) + (True,) * (len(program.args) - 1)
    args, axes = batches(program, which), tuple(0 if on else None for on in which)
    per_example = one_by_one(wl.grad(total(program.written_out)), args, which)
    gradient = wl.vmap(wl.grad(total(program.loop)), in_axes=axes)
    close(gradient(*args), per_example)
    close(wl.jit(gradient)(*args), per_example)
    summed = wl.grad(lambda *args: wl.vmap(total(program.loop), in_axes=axes)(*args).sum())
    close(summed(*args), per_example.sum(axis=0))
    close(wl.jit(summed)(*args), per_example.sum(axis=0))


def test_the_imperative_style(program: Program) -> None:
    expected = wl.grad(total(program.written_out))(*program.args)
    for f in (program.loop, wl.jit(program.loop)):
        x = wl.tensor(np.asarray(program.args[0])).requires_grad_()
        total(f)(x, *program.args[1:]).backward()
        assert x.grad is not None
        close(x.grad, expected)


def test_complex_numbers() -> None:
    a, z = wl.tensor(0.7 - 0.2j, dtype=wl.complex128), wl.tensor([0.3 + 0.4j, -0.2 + 1j], dtype=wl.complex128)

    def f(a: Any, z: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return wl.exp(c * a) * x + wl.cond(wl.abs(x) > 0.7, lambda c: c * c, wl.conj, c), None

        c, _ = wl.scan(step, a, z)
        return wl.abs(c) ** 2 + c.real

    expected = wl.grad(f, (0, 1))(a, z)
    close(wl.jit(wl.grad(f, (0, 1)))(a, z), expected)
    close(wl.grad(wl.jit(f), (0, 1))(a, z), expected)
    wl.check_grads(wl.jit(f), (a, z), order=2, dtype=None)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_other_precisions_are_kept(dtype: str) -> None:
    x = wl.tensor([0.5, 1.0, 2.0]).astype(dtype)
    f = wl.grad(lambda x: wl.scan(lambda c, e: (wl.sin(c) * e, c), x[0], x)[0])
    eager, compiled = f(x), wl.jit(f)(x)
    assert eager.dtype == compiled.dtype == x.dtype
    assert eager.tolist() == compiled.tolist()


def test_carries_without_derivative() -> None:
    def f(x: Any) -> Any:
        return wl.scan(lambda c, e: ((c[0] | (e > 2), c[1] + 1), c), (wl.tensor(False), 0), x)

    x = wl.tensor([[1.0, 3.0, 1.0], [0.0, 0.0, 0.0]])
    (flag, count), _ = wl.jit(wl.vmap(f))(x)
    assert flag.tolist() == [True, False]
    assert count.tolist() == [3, 3]
    assert wl.jit(wl.grad(lambda x: f(x)[0][1].astype(wl.float32) * x.sum()))(x[0]).tolist() == [3.0, 3.0, 3.0]


# --- lengths and errors


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_any_length(length: int, compiled: bool) -> None:
    def f(a: Any, xs: Any) -> Any:
        return wl.scan(lambda c, x: (c * a + x, (c, wl.stack([x, c]))), wl.tensor(1.0, dtype=F64), xs)

    a, xs = wl.tensor(0.5, dtype=F64), numbers(length)
    run = wl.jit(f) if compiled else f
    last, (before, pairs) = run(a, xs)
    expected = 1.0
    for i in range(length):
        assert before[i].item() == pytest.approx(expected, rel=1e-14)
        expected = expected * 0.5 + xs[i].item()
    assert last.item() == pytest.approx(expected, rel=1e-14)
    assert pairs.shape == (length, 2)
    assert before.dtype == F64
    slope = wl.grad(lambda a, xs: sum(leaf.sum() for leaf in wl.tree.leaves(f(a, xs))), (0, 1))
    found = (wl.jit(slope) if compiled else slope)(a, xs)
    assert found[1].shape == (length,)
    if length:
        wl.check_grads(run, (a, xs), order=2)
    else:
        assert found[0].item() == 0.0
    batch = wl.vmap(run, in_axes=(0, None))(wl.stack([a, 2 * a]), xs)
    assert batch[1][1].shape == (2, length, 2)


def both(f: Any, *args: Any) -> list[Any]:
    return [lambda: f(*args), lambda: wl.jit(f)(*args)]


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: wl.scan(lambda c, e: (c.astype(F64), None), x[0], x), errors.TreeError, ["float32[]", "float64[]"]),
        (lambda x: wl.scan(lambda c, e: (x, None), x[0], x), errors.TreeError, ["float32[]", "float32[3]"]),
        (lambda x: wl.scan(lambda c, e: ((c, c), None), x[0], x), errors.TreeError, ["structures"]),
        (lambda x: wl.scan(lambda c, e: c, x[0], x), errors.TreeError, ["pair"]),
        (lambda x: wl.scan(lambda c, e: (c, e), x[0], (x, x[:2])), errors.ShapeError, ["2", "3"]),
        (lambda x: wl.scan(lambda c, e: (c, e), x, None), errors.ShapeError, ["length"]),
        (lambda x: wl.scan(lambda c, e: (c, e), x, x, length=2), errors.ShapeError, ["2", "3"]),
        (lambda x: wl.scan(lambda c, e: (c, e), x, 1.0), errors.ShapeError, ["first axis"]),
        (lambda x: wl.scan(lambda c, e: (c, e), x, None, length=-1), errors.InputError, ["-1"]),
        (lambda x: wl.while_loop(lambda c: c > 0, lambda c: c, x), errors.DTypeError, ["bool[3]"]),
        (lambda x: wl.while_loop(lambda c: c.sum(), lambda c: c, x), errors.DTypeError, ["float32[]"]),
        (lambda x: wl.while_loop(lambda c: "yes", lambda c: c, x), errors.DTypeError, ["str"]),  # type: ignore[arg-type, return-value]
        (lambda x: wl.while_loop(lambda c: c.sum() < 9, lambda c: c.astype(F64), x), errors.TreeError, ["float64"]),
        (lambda x: wl.fori_loop(0, x[0], lambda i, c: c, 0), errors.DTypeError, ["float32"]),
        (lambda x: wl.scan(lambda c, e: (c, e), wl.nn.Linear(2, 2), x), errors.TreeError, ["Linear"]),
    ],
)
def test_bad_loops_say_what_is_wrong(f: Any, error: Any, words: list[str]) -> None:
    for run in both(f, wl.ones(3)):
        with pytest.raises(error) as caught:
            run()
        for word in words:
            assert word in str(caught.value)


def test_steps_that_differ_in_structure_are_refused() -> None:
    flip = iter([True, False])
    with pytest.raises(errors.TreeError, match="two steps"):
        wl.scan(lambda c, _: (c, (c, c) if next(flip) else c), 0.0, None, length=2)


# --- while and fori


def collatz(n: Any) -> Any:
    def step(state: Any) -> Any:
        n, count = state
        return wl.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return wl.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]


def test_while_loops_run_as_long_as_needed() -> None:
    expected = {1: 0, 6: 8, 7: 16, 27: 111}
    compiled = wl.jit(collatz)
    for n, steps in expected.items():
        assert collatz(wl.tensor(n)).item() == steps
        assert compiled(wl.tensor(n)).item() == steps
    n = wl.tensor(list(expected))  # type: ignore[assignment]
    for f in (wl.vmap(collatz), wl.jit(wl.vmap(collatz)), wl.vmap(compiled)):
        assert f(n).tolist() == list(expected.values())


def newton(a: Any, x: Any) -> Any:
    """The square root of a."""
    return wl.while_loop(lambda x: wl.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), x)


def test_derivatives_of_while_loops() -> None:
    a, x = wl.tensor(2.0, dtype=F64), wl.tensor(1.0, dtype=F64)
    slope = 0.5 / np.sqrt(2.0)
    zero = wl.tensor(0.0, dtype=F64)
    one = wl.tensor(1.0, dtype=F64)
    for f in (newton, wl.jit(newton)):
        value, tangent = wl.jvp(f, (a, x), (one, zero))
        assert value.item() == pytest.approx(np.sqrt(2.0), rel=1e-12)
        assert tangent.item() == pytest.approx(slope, rel=1e-6)
    assert wl.jit(lambda a: wl.jvp(lambda a: newton(a, x), (a,), (one,))[1])(a).item() == pytest.approx(slope, rel=1e-6)
    assert wl.grad(newton)(a, x).item() == pytest.approx(slope, rel=1e-6)  # eagerly it is a Python loop
    for f in (wl.jit(wl.grad(newton)), wl.grad(wl.jit(newton))):
        with pytest.raises(errors.GradientError, match=r"wl\.scan"):
            f(a, x)
    twice = wl.jvp(lambda a: wl.jvp(lambda a: wl.jit(newton)(a, x), (a,), (one,))[1], (a,), (one,))[1]
    assert twice.item() == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-3)


def test_a_while_loop_without_derivative_does_not_disturb_reverse_mode() -> None:
    def f(x: Any) -> Any:
        n = wl.while_loop(lambda n: n < 5, lambda n: n + 1, 0)
        limit = wl.while_loop(lambda v: v < 3.0, lambda v: v + wl.stop_gradient(x) * 0 + 1.0, wl.tensor(0.0))
        return x**2 * n.astype(wl.float32) + limit

    assert wl.jit(wl.grad(f))(wl.tensor(3.0)).item() == 30.0


@pytest.mark.parametrize("which", [w for w in itertools.product([False, True], repeat=2) if any(w)])
def test_batches_of_while_loops(which: tuple[bool, bool]) -> None:
    args = (wl.tensor([2.0, 9.0, 100.0], dtype=F64), wl.tensor([1.0, 5.0, 0.3], dtype=F64))
    chosen = tuple(a if on else a[1] for a, on in zip(args, which, strict=True))
    axes = tuple(0 if on else None for on in which)
    expected = np.broadcast_to(np.sqrt(np.asarray(chosen[0])), (3,))
    for f in (wl.vmap(newton, axes), wl.jit(wl.vmap(newton, axes)), wl.vmap(wl.jit(newton), axes)):
        np.testing.assert_allclose(f(*chosen), expected, rtol=1e-11)
    tangents = wl.vmap(lambda a, x: wl.jvp(lambda a: newton(a, x), (a,), (wl.ones_like(a),))[1], axes)
    np.testing.assert_allclose(tangents(*chosen), 0.5 / expected, rtol=1e-5)


def test_examples_that_stop_together_are_not_masked() -> None:
    def f(x: Any, n: Any) -> Any:
        return wl.fori_loop(0, n, lambda i, c: c * 2, x)

    graph = wl.make_graph(wl.vmap(f, in_axes=(0, None)))(wl.ones(3), wl.tensor(4))
    assert "where" not in str(graph)
    assert "where" in str(wl.make_graph(wl.vmap(f))(wl.ones(3), wl.tensor([1, 2, 3])))
    assert wl.vmap(f)(wl.ones(3), wl.tensor([1, 2, 3])).tolist() == [2.0, 4.0, 8.0]


def test_bounds_of_fori_loops_can_be_traced() -> None:
    def f(lower: Any, upper: Any) -> Any:
        return wl.fori_loop(lower, upper, lambda i, c: c + i, 0)

    compiled = wl.jit(f)
    for bounds in ((0, 5), (3, 7), (4, 4), (5, 1), (-2, 2)):
        assert f(*bounds).item() == compiled(*bounds).item() == sum(range(*bounds))
    assert compiled.traces == 1
    assert f(wl.tensor(1, dtype=wl.int32), wl.tensor(4)).item() == 6
    half = wl.jit(lambda n: wl.fori_loop(0, n, lambda i, c: c * 0.5, wl.tensor(1.0, dtype=F64)))
    assert half(3).item() == 0.125


# --- state


class Counter(wl.nn.Module):
    def __init__(self) -> None:
        self.count = wl.nn.Buffer(wl.tensor(0.0))

    def forward(self, x: Any) -> Any:
        self.count = self.count + x
        return self.count * 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("read_before", [False, True])
def test_state_that_a_body_writes_travels_through_the_loop(compiled: bool, read_before: bool) -> None:
    model = Counter()

    def f(x: Any) -> Any:
        first = model.count + 0 if read_before else 0
        _, scanned = wl.scan(lambda c, e: (c, model(e)), 0, x)
        repeated = wl.while_loop(lambda i: i < 2, lambda i: i + model(1.0).astype(wl.int64) * 0 + 1, 0)
        mapped = wl.map(lambda row: wl.scan(lambda c, e: (c, model(e)), 0, row)[1], wl.stack([x, x]))
        return first, scanned, repeated, mapped

    run = wl.jit(f) if compiled else f
    for start in (0.0, 26.0):
        _, scanned, _, mapped = run(wl.tensor([1.0, 3.0, 4.0]))
        np.testing.assert_array_equal(scanned, 2 * (start + np.array([1.0, 4.0, 8.0])))
        np.testing.assert_array_equal(mapped[1], 2 * (start + 18.0 + np.array([1.0, 4.0, 8.0])))
        assert model.count.item() == start + 26.0
    assert type(model.count.value) is wl.Tensor


@pytest.mark.parametrize("compiled", [False, True])
def test_a_condition_may_read_what_the_body_writes(compiled: bool) -> None:
    limit = Cell(wl.tensor(0))

    def f(x: Any) -> Any:
        def step(c: Any) -> Any:
            limit.assign(limit + 1)
            return c * 2

        return wl.while_loop(lambda c: limit < 4, step, x)

    assert (wl.jit(f) if compiled else f)(1.0).item() == 16.0
    assert limit.item() == 4


def test_a_condition_may_not_write() -> None:
    cell = Cell(wl.tensor(0))

    def test(c: Any) -> Any:
        cell.assign(cell + 1)
        return c < 3

    with pytest.raises(errors.TraceError, match="changes state"):
        wl.jit(lambda x: wl.while_loop(test, lambda c: c + 1, x))(0)
    assert cell.item() == 0


def test_modules_made_inside_a_body_do_not_escape() -> None:
    kept = []

    def step(c: Any, _: Any) -> Any:
        kept.append(Cell(c))
        return c, None

    with pytest.raises(errors.TraceError, match="outlives"):
        wl.jit(lambda x: wl.scan(step, x, None, length=2))(1.0)


def test_random_numbers_differ_from_step_to_step() -> None:
    def f(x: Any) -> Any:
        return wl.scan(lambda c, e: (c + wl.random.normal(()), wl.random.normal((2,))), x, None, length=4)

    wl.random.seed(1)
    eager = f(wl.tensor(0.0)), wl.random.normal(())
    wl.random.seed(1)
    compiled = wl.jit(f)(wl.tensor(0.0)), wl.random.normal(())
    close(compiled, eager, rtol=1e-6)
    draws = np.asarray(eager[0][1])
    assert len(np.unique(draws)) == draws.size


def test_random_streams_are_shared_by_a_batch_also_inside_loops() -> None:
    def f(x: Any) -> Any:
        total, _ = wl.scan(lambda c, e: (c + x * wl.random.normal(()), None), wl.tensor(0.0), None, length=3)
        return total + wl.jit(lambda y: y * wl.random.normal(()))(x)

    wl.random.seed(2)
    one = f(wl.tensor(2.0))
    wl.random.seed(2)
    for run in (wl.vmap(f), wl.jit(wl.vmap(f))):
        wl.random.seed(2)
        np.testing.assert_allclose(run(wl.tensor([2.0, 4.0])), [one.item(), 2 * one.item()], rtol=1e-6)


# --- what a loop costs


def stacked(graph: Any, length: int) -> list[Any]:
    """The shapes that the scans of a graph stack, one row per step."""
    found = []
    for equation in graph.equations:
        if equation.primitive.name in ("scan", "linear_scan"):
            carry = equation.params["carry"]
            found += [v.shape for v in equation.outputs[carry:]]
        for inner in equation.params.values():
            if hasattr(inner, "equations"):
                found += stacked(inner, length)
    return found


def test_residuals_of_constants_are_not_stacked() -> None:
    W, xs = numbers(5, 5), numbers(7, 5)

    def f(W: Any, h: Any, xs: Any) -> Any:
        step = lambda h, x: (wl.tanh(h @ wl.exp(W).T + x), None)
        return wl.scan(step, h, xs)[0].sum()

    graph = wl.make_graph(wl.grad(f))(W, xs[0], xs)
    assert stacked(graph, 7)
    assert all(shape != (7, 5, 5) for shape in stacked(graph, 7))
    wl.check_grads(wl.jit(f), (W, xs[0], xs))


def test_a_value_that_is_needed_twice_is_stacked_once() -> None:
    def f(h: Any, xs: Any) -> Any:
        return wl.scan(lambda h, x: (wl.sin(h) * x + wl.sin(h) * 2, None), h, xs)[0]

    graph = wl.make_graph(wl.grad(f))(wl.tensor(0.1), wl.ones(7))
    assert len(stacked(graph, 7)) == 1  # the cosine of h; x is there


def test_adjoints_that_nobody_wants_are_not_computed() -> None:
    W, xs = numbers(3, 3), numbers(4, 3)

    def f(W: Any, xs: Any) -> Any:
        return wl.scan(lambda h, x: (wl.tanh(x @ W + h), None), xs[0], xs)[0].sum()

    with operations() as one:
        wl.jit(wl.grad(f))(W, xs)
    with operations() as two:
        wl.jit(wl.grad(f, (0, 1)))(W, xs)
    assert one["matmul"] < two["matmul"]


def test_the_body_is_traced_once_and_runs_as_often_as_needed() -> None:
    traced = []

    def step(c: Any, x: Any) -> Any:
        traced.append(1)
        return wl.sin(c) + x, None

    f = wl.jit(lambda xs: wl.scan(step, wl.tensor(0.0), xs)[0])
    with operations() as counted:
        f(wl.ones(50))
    assert len(traced) == 1
    assert counted["sin"] == 50
    with operations() as counted:
        wl.grad(f)(wl.ones(50))
    assert counted["sin"] == counted["cos"] == 50


def test_forward_mode_runs_the_loop_once() -> None:
    f = wl.jit(lambda x: wl.scan(lambda c, _: (wl.sin(c), None), x, None, length=10)[0])
    with operations() as counted:
        wl.jvp(f, (wl.tensor(1.0),), (wl.tensor(1.0),))
    assert counted["sin"] == counted["cos"] == 10


def test_derived_graphs_are_made_once() -> None:
    f = wl.jit(
        lambda a, x: wl.scan(lambda c, _: (wl.cond(c.sum() > 0, wl.sin, wl.cos, c) * a, None), x, None, length=3)[
            0
        ].sum()
    )
    a, x = numbers(2), numbers(2, seed=3)

    def graphs() -> int:
        import gc

        from wonderland.ir import Graph

        return sum(type(o) is Graph for o in gc.get_objects())

    for g in (wl.grad(f), lambda a, x: wl.jvp(f, (a, x), (a, x)), wl.vmap(f)):
        args = (wl.stack([a, a]), wl.stack([x, x])) if g.__name__.startswith("vmap") else (a, x)
        g(*args)
        before = graphs()
        g(*args)
        assert graphs() == before
