"""XLA as an engine: the table of primitives, errors, control flow, random numbers, state. Skipped without JAX.

XLA takes a second to compile a program, so each test compiles few. `python -m tools.fuzz --engine xla` tries more.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from benchmarks.workloads import WORKLOADS
from tests.engines.large_cases import agree
from tests.primitives.cases import CASES
from tools.fuzz.comparing import problem
from tools.fuzz.generation import random_case
from wonderland.core.primitive import TABLE, Aval
from wonderland.engines.engine import engine
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.inspect.on_xla import OnXLA
from wonderland.ir.stage import stage
from wonderland.primitives.composed import Composed

pytest.importorskip("jax")
program = importlib.import_module("wonderland.engines.xla.program")
for _module in pkgutil.walk_packages(wl.__path__, "wonderland."):  # primitives are declared on import
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)

Array = np.ndarray[Any, Any]
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


@pytest.fixture(autouse=True)
def compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "OPTIONS", {**program.OPTIONS, **QUICK})


def test_every_primitive_has_a_rule() -> None:
    lowering = importlib.import_module("wonderland.engines.xla.lowering")
    composed = {name for name, primitive in TABLE.items() if isinstance(primitive, Composed)}
    known = {*lowering.PLAIN, *lowering.WITH_LOWERING, *composed}
    declared = {name for name, p in TABLE.items() if p.impl.__module__.startswith("wonderland.")}
    assert declared <= known <= set(TABLE)
    assert not set(lowering.PLAIN) & set(lowering.WITH_LOWERING)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_extremes_beside_infinities_and_nan(dtype: str) -> None:
    rng = np.random.default_rng(1)
    odd = rng.choice([0.0, 1.0, np.inf, -np.inf, np.nan], (64, 64))
    x = wl.asarray(np.where(rng.random((64, 64)) < 0.1, odd, rng.normal(size=(64, 64)))).astype(dtype)

    def extremes(x: wl.Tensor) -> list[wl.Tensor]:
        return [reduce(x, axis=axis) for reduce in (wl.max, wl.min) for axis in (None, 0, 1)]

    for got, wanted in zip(on("xla", extremes, x), on("numpy", extremes, x), strict=True):
        np.testing.assert_array_equal(got.astype(float), wanted.astype(float))


@pytest.mark.parametrize("name", sorted(CASES))
def test_results_are_those_of_numpy(name: str) -> None:
    """One ordinary case and the oddest one; in one program, since compiling takes long."""
    cases = [CASES[name][0], CASES[name][-1]][: len(CASES[name])]
    built = [[np.asarray(a) for a in case.build(name)] for case in cases]

    def f(*xs: Any) -> list[Any]:
        outs, rest = [], list(xs)
        for case, args in zip(cases, built, strict=True):
            here, rest = rest[: len(args)], rest[len(args) :]
            found = TABLE[name](*here, **case.params)
            found = list(found) if TABLE[name].multiple else [found]
            outs += list(case.observe(*found)) if case.observe else found
        return outs

    flat = [a for args in built for a in args]
    staged = stage(f, [Aval(a.shape, a.dtype) for a in flat])
    arrays = [*[np.asarray(c) for c in staged.captured], *flat]
    found = engine("xla").program(staged.graph)(arrays, (), None)
    for x, y in zip(found, evaluate(staged.graph, arrays), strict=True):
        agree(np.asarray(x), y, name, 4096)


@pytest.mark.parametrize("number", range(6))
def test_random_programs(number: int) -> None:
    case = random_case(5, number)
    assert problem(case, name="xla") is None, case.snippet()


X = wl.arange(12.0).reshape(3, 4)


def on(backend: str, f: Any, *args: Any) -> Any:
    """What a function gives on an engine, or the error."""
    with wl.using_backend(backend):
        try:
            return wl.tree.map(np.asarray, wl.jit(f)(*args))
        except wl.errors.WonderlandError as error:
            return type(error), str(error).splitlines()[:2]


REFUSED = {
    "gather": (lambda x, i: x[i], X, wl.tensor([0, -4])),
    "second axis": (lambda x, i: x[i, i + 2], X, wl.tensor([0, 2])),
    "unsigned": (lambda x, i: x[i], X, wl.tensor([1, 200], dtype=wl.uint8)),
    "scatter": (lambda x, i: x.at[i].add(1.0), X, wl.tensor([0, 5])),
    "division": (lambda n: 5 // n, wl.tensor([1, 0, 2])),
    "power": (lambda n: n ** (n - 1), wl.tensor([1, 0, 2])),
    "conversion": (lambda x: (x * 1e10).astype(wl.int32), X),
    "label": (lambda x, y: wl.nn.functional.cross_entropy(x, y), X, wl.tensor([0, 1, -7])),
    "singular": (lambda x: wl.linalg.inv(x), wl.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])),
    "indefinite": (lambda x: wl.linalg.cholesky(x), -wl.eye(2)),
    "in a scan": (lambda x: wl.scan(lambda c, i: (c + x[i, 0], c), 0.0, wl.tensor([0, 1, 3, 9]))[0], X),
    "in a condition": (lambda x: wl.while_loop(lambda c: x[c, 0] < 100, lambda c: c + 1, wl.tensor(0)), X),
    "in a branch": (lambda x, i: wl.cond(i[1] > 3, lambda: x[i], lambda: x[:2]), X, wl.tensor([0, 5])),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_numpy_refuses_is_refused_with_the_same_words(which: str) -> None:
    f, *args = REFUSED[which]
    found = on("xla", f, *args)
    assert found == on("numpy", f, *args)
    assert isinstance(found, tuple)
    assert issubclass(found[0], wl.errors.WonderlandError)


def test_branches_that_are_not_taken_refuse_nothing() -> None:
    f = lambda x, i: wl.cond(i[1] > 9, lambda: x[i], lambda: x[:2])
    np.testing.assert_array_equal(on("xla", f, X, wl.tensor([0, 5])), X.numpy()[:2])


def test_of_several_values_at_one_place_the_last_stays() -> None:
    values = wl.arange(400.0).reshape(100, 4)
    f = lambda x, i: x.at[i].set(values)
    index = wl.asarray(np.random.default_rng(0).integers(0, 3, 100))
    np.testing.assert_array_equal(on("xla", f, X, index), on("numpy", f, X, index))


def test_random_bits_are_the_same() -> None:
    f = lambda key: [wl.random.randint((1001,), 0, 1 << 20, key=key), wl.random.permutation(17, key=key)]
    for x, y in zip(on("xla", f, wl.random.key(3)), on("numpy", f, wl.random.key(3)), strict=True):
        np.testing.assert_array_equal(x, y)


def test_what_is_masked_does_not_contribute_even_if_it_is_not_a_number() -> None:
    q, k, v = (wl.asarray(np.random.default_rng(i).normal(size=(2, 5, 4))) for i in range(3))
    v = v.at[:, 3].set(wl.nan).at[:, 4].set(wl.inf)
    f = wl.value_and_grad(
        lambda q, k, v: wl.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :3].sum(), (0, 1, 2)
    )
    for x, y in zip(wl.tree.leaves(on("xla", f, q, k, v)), wl.tree.leaves(on("numpy", f, q, k, v)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_rules_of_users_see_the_state_of_the_moment() -> None:
    cell = wl.nn.Parameter(wl.tensor(2.0))

    @wl.custom_jvp
    def scaled(x: Any) -> Any:
        return x * cell

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * 3.0))

    @wl.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (wl.clip(ct, -1.0, 1.0),))
    f = wl.jit(lambda x: [scaled(x).sum(), wl.grad(lambda x: (scaled(x) + 9 * clipped(x)).sum())(x)])
    with wl.using_backend("xla"):
        assert float(f(wl.ones(3))[0]) == 6.0
        cell.value = wl.tensor(5.0)
        value, gradient = f(wl.ones(3))
    assert float(value) == 15.0
    np.testing.assert_array_equal(gradient.numpy(), 4.0)


def test_python_in_a_program_gets_all_digits_and_keeps_its_errors() -> None:
    third = wl.full(3, 1 / 3, dtype=wl.float64)

    def failing(x: Any) -> Any:
        raise KeyError("mine")

    with wl.using_backend("xla"):
        f = wl.jit(lambda x: wl.pure_callback(lambda v: np.asarray(v) / 3, wl.zeros(3, dtype=wl.float64), x))
        np.testing.assert_array_equal(f(third).numpy(), (1 / 3) / 3)
        with pytest.raises(KeyError, match="mine"):
            wl.jit(lambda x: wl.pure_callback(failing, wl.zeros(3), x))(third)


SMALL: dict[str, dict[str, int]] = {
    "cnn": {"batch": 4},
    "gpt": {"batch": 2, "blocks": 1, "context": 16},
    "lstm": {"batch": 2, "steps": 8},
    "gcn": {"nodes": 50, "edges": 150},
}


@pytest.mark.parametrize("name", ["mlp_tiny", *SMALL])
def test_training_steps_have_the_losses_of_the_reference(name: str) -> None:
    losses = {}
    for backend in ("numpy", "xla"):
        wl.random.seed(0)
        with wl.using_backend(backend):
            step = WORKLOADS[name](**SMALL.get(name, {}))
            losses[backend] = [float(step()) for _ in range(3)]
    np.testing.assert_allclose(losses["xla"], losses["numpy"], rtol=1e-5)


# --- programs for machines that are not here


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_training_steps_are_exported_for_accelerators(name: str, tmp_path: Any) -> None:
    wl.random.seed(0)
    step = WORKLOADS[name](**SMALL.get(name, {}))
    made = wl.export_stablehlo(step.func, *step.args)
    assert made.platforms == ("cpu", "cuda", "tpu")
    assert "stablehlo." in made.text
    made.save(tmp_path / "step.mlir")
    assert (tmp_path / "step.mlir").read_text() == made.text


def test_what_is_exported_runs_elsewhere_with_the_same_results() -> None:
    wl.random.seed(0)
    step = WORKLOADS["mlp_tiny"]()
    made = wl.export_stablehlo(step.func, *step.args, platforms=["cpu"])
    model = step.args[0]
    check, loss, *states = made.call(*[x.numpy() for x in step.args[2:]])
    assert check == 0
    with wl.using_backend("numpy"):
        np.testing.assert_allclose(loss, step().numpy(), rtol=1e-5)
    written = [np.asarray(s) for s in states]
    for parameter in model.parameters():
        assert any(w.shape == parameter.shape and np.allclose(w, parameter.numpy(), atol=1e-6) for w in written)


def test_the_check_tells_of_an_index_out_of_range() -> None:
    made = wl.export_stablehlo(lambda x, i: x[i], X, wl.tensor([0, 1]), platforms=["cpu"])
    assert made.call(X.numpy(), np.array([2, 0]))[0] == 0
    assert made.call(X.numpy(), np.array([3, 0]))[0] > 0


def test_exporting_refuses_what_it_does_not_know() -> None:
    with pytest.raises(wl.errors.InputError, match="no platform 'abacus'"):
        wl.export_stablehlo(wl.sin, X, platforms=["abacus"])
    with pytest.raises(wl.errors.InputError, match="no platform is named"):
        wl.export_stablehlo(wl.sin, X, platforms=[])
    made = wl.export_stablehlo(wl.sin, X, platforms=["cpu"])
    with pytest.raises(wl.errors.InputError, match=r"arrays of float32\[3\]"):
        made.call(np.ones(3, np.float32))


# --- what it says of itself


def test_explain_tells_of_the_program_of_xla_and_not_of_native_code() -> None:
    f = wl.jit(lambda x, w: wl.tanh(x @ w).sum())
    args = wl.ones((64, 32)), wl.ones((32, 16))
    f(*args)  # by the native engine
    with wl.using_backend("xla"):
        with pytest.raises(wl.errors.InputError, match="has not run on devices"):
            wl.explain(f)
        told = wl.explain(f, *args)
        f(*args)
        again = wl.explain(f)
        with pytest.raises(wl.errors.InputError, match="profile=True measures the steps of native code"):
            wl.explain(f, *args, profile=True)
    assert isinstance(told, OnXLA)
    assert str(again) == str(told)
    assert not [word for word in ("arena", "NumPy computes", "GFLOP/s", "routines") if word in str(told)]
    assert told.bytes >= 4 * (64 * 32 + 32 * 16)
    assert "HloModule" in told.text
    assert told.transfers.listed == []
    for name in ("steps", "llvm", "arena_bytes", "svg"):
        with pytest.raises(AttributeError, match=f"'{name}' tells of native code"):
            getattr(told, name)
