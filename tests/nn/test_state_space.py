"""Linear state-space models: four modes that agree, diagonal forms, scans, eigenvalues that stay inside the disc."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from benchmarks.streaming import power_times
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.nn.state_space.modes import MODES

RNG = np.random.default_rng(0)


def matrices(e: int = 5, c: int = 3, o: int = 2, radius: float = 0.9) -> Any:
    A = RNG.normal(size=(e, e))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    return [A, RNG.normal(size=(e, c)), RNG.normal(size=(o, e)), RNG.normal(size=(o, c))]


def loop(A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One sequence (n, c), as the book writes it."""
    s, out = np.zeros(len(A)), []
    for token in x:
        s = A @ s + B @ token
        out.append(C @ s + D @ token)
    return np.stack(out)


def layers(dtype: str = "float32") -> dict[str, Any]:
    key = wl.random.key(3)
    return {
        "dense": nn.LinearSSM(4, 6, 3, dtype=dtype, key=key),
        "hippo": nn.LinearSSM(4, 6, 3, init="hippo", dtype=dtype, key=key),
        "real": nn.DiagonalSSM(4, 6, 3, complex=False, dtype=dtype, key=key),
        "complex": nn.DiagonalSSM(4, 6, 3, dtype=dtype, key=key),
        "without D": nn.DiagonalSSM(4, 6, 3, skip=False, dtype=dtype, key=key),
        "lru": nn.LRU(4, 6, 3, dtype=dtype, key=key),
    }


# --- the recurrence


@pytest.mark.book("13.36", name="wl.nn.LinearSSM")
def test_a_linear_recurrence_is_the_books_and_linear() -> None:
    half = nn.LinearSSM.from_matrices([[0.5]], [[1.0]], [[1.0]])
    np.testing.assert_array_equal(half(wl.ones((6, 1)))[:, 0], [1, 1.5, 1.75, 1.875, 1.9375, 1.96875])
    A, B, C, D = matrices()
    layer, x, y = nn.LinearSSM.from_matrices(A, B, C, D), RNG.normal(size=(7, 3)), RNG.normal(size=(7, 3))
    np.testing.assert_allclose(layer(x), loop(A, B, C, D, x), atol=1e-13)
    np.testing.assert_allclose(layer(2.5 * x - 3 * y), 2.5 * layer(x) - 3 * layer(y), atol=1e-12)
    layer = nn.LinearSSM(3, 16, 2)
    assert layer.num_parameters() == 16 * 16 + 16 * 3 + 2 * 16 + 2 * 3
    assert nn.LinearSSM(3, 16, 2, skip=False).num_parameters() == 16 * 16 + 16 * 3 + 2 * 16


@pytest.mark.book("13.37", name="wl.nn.SSMBlock")
def test_a_stack_of_pure_systems_is_a_linear_map_and_one_of_blocks_is_not() -> None:
    n, c = 5, 3
    pure = nn.Sequential(nn.LinearSSM(c, 4, c, dtype="float64"), nn.LinearSSM(c, 6, c, dtype="float64"))
    matrix = np.asarray(wl.jacobian(lambda x: pure(x.reshape((n, c))).reshape(-1))(wl.zeros(n * c, dtype="float64")))
    x = RNG.normal(size=n * c)
    np.testing.assert_allclose(np.asarray(pure(x.reshape(n, c))).reshape(-1), matrix @ x, atol=1e-12)
    # its product with a further one is again one matrix, and its elements depend on the distance alone
    blocks = matrix.reshape(n, c, n, c)
    for i in range(1, n):
        np.testing.assert_allclose(blocks[i, :, i - 1], blocks[1, :, 0], atol=1e-12)
    for feed_forward in ("glu", "mlp"):
        block = nn.SSMBlock(nn.LRU(c, 4, c, dtype="float64"), c, feed_forward, norm=None, dtype="float64")
        twice = np.asarray(block(2 * x.reshape(n, c)))
        assert np.abs(twice - 2 * np.asarray(block(x.reshape(n, c)))).max() > 1e-3
    # normalization is not linear either, but without MLP and norm nothing is left that is not
    block = nn.SSMBlock(nn.LRU(c, 4, c, dtype="float64"), c, None, norm=None, dtype="float64")
    np.testing.assert_allclose(block(2 * x.reshape(n, c)), 2 * block(x.reshape(n, c)), atol=1e-12)


@pytest.mark.book("13.40", "13.41", "13.42", "13.50", name="wl.nn.TimeInvariantSSM")
@pytest.mark.parametrize("name", [*layers()])
def test_four_modes_agree(name: str) -> None:
    layer, x = layers("float64")[name], wl.tensor(RNG.normal(size=(2, 9, 4)))
    wanted = np.asarray(layer(x, mode="recurrence"))
    run = wl.jit(lambda layer, x, mode: layer(x, mode=mode), static_argnums=2)
    gradient = wl.grad(lambda layer, x, mode: wl.sum(layer(x, mode=mode) ** 2))
    slopes = gradient(layer, x, "recurrence")
    for mode in MODES:
        for found in (layer(x, mode=mode), run(layer, x, mode)):
            np.testing.assert_allclose(found, wanted, atol=1e-12, err_msg=mode)
        for path, slope in gradient(layer, x, mode).items():
            np.testing.assert_allclose(slope, slopes[path], rtol=1e-9, atol=1e-10, err_msg=f"{mode} {path}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["dense", "real", "lru"])
def test_modes_know_a_start_and_padding(name: str, mode: str) -> None:
    layer, x = layers("float64")[name], wl.tensor(RNG.normal(size=(3, 9, 4)))
    layer.mode = mode
    gaps = RNG.random((3, 9)) > 0.4
    found = layer(wl.where(gaps[..., None], x, np.nan), token_mask=gaps)
    for i in range(3):
        alone = layer(x[i][np.flatnonzero(gaps[i])], mode="recurrence")
        np.testing.assert_allclose(np.asarray(found)[i][gaps[i]], alone, atol=1e-12)
        assert not np.asarray(found)[i][~gaps[i]].any()
    nn.assert_reads_on(layer, x, tolerance=1e-11)
    nn.assert_cache_reorders(layer, x, tolerance=1e-11)
    nn.assert_padding_ignored(layer, x, tolerance=1e-11)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [*layers()])
def test_they_keep_every_promise(name: str, compiled: bool) -> None:
    x = wl.tensor(RNG.normal(size=(3, 6, 4)).astype(np.float32))
    nn.assert_sequence_layer(layers()[name], x, compiled=compiled)


def test_the_rule() -> None:
    layer = nn.LRU(4, 6, 3)
    assert [layer.rule(n) for n in (1, 64, 65)] == ["recurrence", "recurrence", "scan"]
    chosen = []
    wl.jit(lambda x: chosen.append(layer.rule(1000)) or x)(wl.ones(1))
    assert chosen == ["recurrence"]
    x = wl.tensor(RNG.normal(size=(1, 100, 4)).astype(np.float32))
    np.testing.assert_array_equal(layer(x), layer(x, mode="scan"))
    with pytest.raises(InputError, match=r"mode='fft'"):
        layer(x, mode="fft")


@pytest.mark.parametrize("name", [*layers()])
def test_no_tokens_and_half_precision(name: str) -> None:
    layer = layers()[name]
    assert layer(wl.zeros((2, 0, 4))).shape == (2, 0, 3)
    assert layer(wl.zeros((0, 5, 4))).shape == (0, 5, 3)
    y, cache = layer.extend(wl.zeros((2, 0, 4)), None)
    assert y.shape == (2, 0, 3)
    assert cache.lengths.tolist() == [0, 0]
    if name != "hippo":
        half = layer.astype("bfloat16")
        x = wl.tensor(RNG.normal(size=(2, 5, 4)).astype(np.float32))
        assert np.isfinite(np.asarray(half(wl.astype(x, "bfloat16"))).astype(np.float32)).all()


# --- convolution


@pytest.mark.book("13.40", "13.41", name="wl.nn.ssm_kernel")
def test_the_kernel_is_powers_with_the_present_last() -> None:
    A, B, *_ = matrices()
    kernel, x = np.asarray(nn.ssm_kernel(A, B, 6)), RNG.normal(size=(6, 3))
    assert kernel.shape == (6, 5, 3)
    for i in range(6):
        np.testing.assert_allclose(kernel[i], np.linalg.matrix_power(A, 5 - i) @ B, atol=1e-13)
    # a causal convolution with n - 1 zeros in front, and the closed form
    states = np.asarray(nn.functional.conv1d(x, kernel.transpose(0, 2, 1), padding=[(5, 0)]))
    s = np.zeros(5)
    for i in range(6):
        s = A @ s + B @ x[i]
        closed = sum(np.linalg.matrix_power(A, i - j) @ B @ x[j] for j in range(i + 1))
        np.testing.assert_allclose(states[i], s, atol=1e-12)
        np.testing.assert_allclose(closed, s, atol=2e-14)
    layer = nn.LinearSSM.from_matrices(*matrices())
    np.testing.assert_array_equal(layer.ssm_kernel(4), nn.ssm_kernel(layer.A, layer.B, 4))
    diagonal = np.array([0.5, -0.2])
    np.testing.assert_allclose(
        nn.ssm_kernel(diagonal, B[:2], 4), nn.ssm_kernel(np.diag(diagonal), B[:2], 4), atol=1e-15
    )


@pytest.mark.book("13.42", name="wl.nn.functional.long_conv")
def test_spectra_need_zeros_at_the_end() -> None:
    n = 32
    kernel = 0.9 ** np.arange(n)
    x = np.random.default_rng(1).normal(size=n)
    wanted = np.array([sum(kernel[i - j] * x[j] for j in range(i + 1)) for i in range(n)])
    found = nn.functional.long_conv(wl.tensor(x[:, None]), wl.tensor(kernel[:, None]))[:, 0]
    np.testing.assert_allclose(found, wanted, atol=5e-15)
    circular = np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(kernel), n=n)
    assert np.abs(circular - wanted).max() > 0.5
    wl.check_grads(nn.functional.long_conv, (wl.tensor(x[:8, None]), wl.tensor(kernel[:8, None])))


# --- scans


def text(n: int) -> tuple[wl.Tensor, wl.Tensor]:
    """The letters 0, 1, 2, ... as numbers of base 16, and 16 to the power of their count."""
    return wl.arange(n) % 16, wl.full(n, 16, dtype="int64")


@pytest.mark.book("13.43", name="wl.associative_scan")
@pytest.mark.parametrize("n", [1, 2, 6, 7, 16])
def test_prefixes_are_those_of_a_loop(n: int) -> None:
    x = wl.tensor(RNG.normal(size=(n, 2, 2)))
    operators = {
        "+": lambda a, b: a + b,
        "*": lambda a, b: a * b,
        "max": wl.maximum,
        "matmul": lambda a, b: a @ b,
    }
    for name, f in operators.items():
        for reverse in (False, True):
            found, order = wl.associative_scan(f, x, reverse=reverse), range(n)[:: -1 if reverse else 1]
            total = None
            for i in order:
                total = x[i] if total is None else f(x[i], total) if reverse else f(total, x[i])
                np.testing.assert_allclose(found[i], total, rtol=1e-12, atol=1e-12, err_msg=name)
        moved = wl.associative_scan(f if name != "matmul" else operators["+"], wl.moveaxis(x, 0, 2), axis=2)
        if name != "matmul":
            np.testing.assert_allclose(wl.moveaxis(moved, 2, 0), wl.associative_scan(f, x), rtol=1e-12)
    # letters that are put behind one another: their order shows
    join = lambda a, b: (a[0] * b[1] + b[0], a[1] * b[1])
    words, _ = wl.associative_scan(join, text(n))
    letters = "0123456789abcdef"[:n]
    for i, word in enumerate(np.asarray(words)):
        assert f"{int(word) % 2**64:0{i + 1}x}" == letters[: i + 1]
    _, last = wl.scan(lambda s, e: (join(s, e),) * 2, (wl.tensor(0), wl.tensor(1)), text(n))
    np.testing.assert_array_equal(last[0], words)
    wl.check_grads(lambda x: wl.associative_scan(lambda a, b: a @ b, x), (x / 2,))


@pytest.mark.book("13.44", "13.45", name="wl.nn.scan_trace")
def test_the_worked_example_level_by_level() -> None:
    trace = nn.scan_trace(6)
    names = {(1, 2): "s1", (3, 4): "s2", (5, 6): "s3", (1, 4): "o1"}
    shown = [[tuple(names.get(run, f"x{run[1]}") for run in pair) for pair in level] for level in trace.levels]
    assert shown == [
        [("x1", "x2"), ("x3", "x4"), ("x5", "x6")],
        [("s1", "x3"), ("s1", "s2")],
        [("o1", "x5"), ("o1", "s3")],
    ]
    assert (trace.work, trace.depth, trace.threads) == (7, 3, 3)
    assert str(trace).startswith("6 elements: 7 applications in 3 levels")
    for n in (1, 2, 6, 7, 16, 100, 1000):
        trace = nn.scan_trace(n)
        assert n - 1 <= trace.work < 2 * n
        assert math.ceil(math.log2(n)) <= trace.depth <= max(2 * math.ceil(math.log2(n)) - 1, 0)


@pytest.mark.book("13.46", "13.47", "13.50", name="wl.nn.ssm_scan")
def test_the_operator_of_a_system() -> None:
    A, B, *_ = matrices()
    x = RNG.normal(size=(7, 3))
    powers, states = nn.ssm_scan(A, x @ B.T)
    s = np.zeros(5)
    for i in range(7):
        s = A @ s + B @ x[i]
        np.testing.assert_allclose(powers[i], np.linalg.matrix_power(A, i + 1), atol=1e-13)
        np.testing.assert_allclose(states[i], s, atol=1e-13)
    p, q, r = [(wl.tensor(RNG.normal(size=(5, 5))), wl.tensor(RNG.normal(size=5))) for _ in range(3)]
    left, right = nn.ssm_combine(nn.ssm_combine(p, q), r), nn.ssm_combine(p, nn.ssm_combine(q, r))
    for one, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    there, back = nn.ssm_combine(p, q), nn.ssm_combine(q, p)
    assert max(float(wl.max(wl.abs(one - other))) for one, other in zip(there, back, strict=True)) > 1
    # matrices that vary are as associative
    A_t = RNG.normal(size=(7, 5, 5)) / 3
    _, varying = nn.ssm_scan(A_t, x @ B.T)
    s = np.zeros(5)
    for i in range(7):
        s = A_t[i] @ s + B @ x[i]
    np.testing.assert_allclose(varying[-1], s, atol=1e-13)
    # a diagonal is elementwise
    decay = RNG.uniform(-0.9, 0.9, size=5)
    for one, other in zip(nn.ssm_scan(decay, x @ B.T), nn.ssm_scan(np.diag(decay), x @ B.T), strict=True):
        wide = np.asarray(other)
        np.testing.assert_allclose(one, wide if wide.ndim == 2 else np.einsum("nee->ne", wide), atol=1e-13)
    with pytest.raises(ShapeError, match="ssm_scan"):
        nn.ssm_scan(np.ones((3, 5)), x @ B.T)


@pytest.mark.book("13.47", name=["wl.nn.ssm_combine", "benchmarks/streaming.py"])
def test_a_dense_product_costs_the_cube_of_the_state_and_a_diagonal_one_the_state() -> None:
    """The n of the printed O(n^3) is the size of the state; in the length both are linear."""

    def work(e: int, n: int, diagonal: bool) -> int:
        A = wl.ones(e) if diagonal else wl.ones((e, e))
        return wl.count(nn.ssm_scan, A, wl.ones((n, e))).multiply_adds

    assert 6 < work(32, 16, False) / work(16, 16, False) < 9
    assert 1.8 < work(16, 64, False) / work(16, 32, False) < 2.3
    x = np.ones((16, 32))
    assert [part.shape for part in nn.ssm_scan(np.ones(32), x)] == [(16, 32), (16, 32)]
    timed = power_times((2, 3), rounds=1)
    assert set(timed) == {(kind, e) for kind in ("dense", "diagonal") for e in (2, 3)}
    assert min(timed.values()) > 0


# --- diagonal forms


@pytest.mark.book("13.48", name="wl.nn.diagonalize")
def test_diagonalization() -> None:
    A = matrices()[0]
    found = nn.diagonalize(A)
    np.testing.assert_allclose(found.P * found.eigenvalues @ found.P_inverse, A, atol=1e-13)
    np.testing.assert_allclose(found.power(7), np.linalg.matrix_power(A, 7), atol=1e-13)
    with pytest.raises(InputError, match=r"no basis of eigenvectors.*eigenvalues 1, 1"):
        nn.diagonalize([[1.0, 1.0], [0.0, 1.0]])
    turn = RNG.normal(size=(3, 3))
    jordan = np.array([[0.5, 1, 0], [0, 0.5, 0], [0, 0, 0.2]])
    with pytest.raises(InputError, match="no basis"):
        nn.diagonalize(turn @ jordan @ np.linalg.inv(turn))
    with pytest.warns(nn.DiagonalizationWarning, match=r"condition number 2e\+05"):
        nn.diagonalize([[1.0, 1.0], [0.0, 1.00001]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.diagonalize(np.eye(3))  # equal eigenvalues alone are no trouble
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        nn.diagonalize(np.ones((2, 3)))
    with pytest.raises(InputError, match="not finite"):
        nn.diagonalize([[np.nan]])


@pytest.mark.book("13.49", name="wl.nn.DiagonalSSM")
def test_a_dense_system_in_a_basis_of_eigenvectors() -> None:
    A, B, C, D = matrices()
    x = RNG.normal(size=(20, 3))
    wanted = loop(A, B, C, D, x)
    layer = nn.DiagonalSSM.from_dense(A, B, C, D)
    np.testing.assert_allclose(layer(x), wanted, atol=1e-12)
    found = nn.diagonalize(A)
    np.testing.assert_allclose(layer.B, found.P_inverse @ B, atol=1e-14)
    np.testing.assert_allclose(layer.C, C @ found.P, atol=1e-14)
    printed = nn.DiagonalSSM.from_eigenvalues(found.eigenvalues, found.P @ B, C @ found.P, D)  # the book's P B
    assert np.abs(np.asarray(printed(x)) - wanted).max() > 1


@pytest.mark.book("13.51", name="wl.nn.DiagonalSSM.from_dense")
def test_complex_numbers() -> None:
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    B, C = RNG.normal(size=(2, 1)), RNG.normal(size=(1, 2))
    layer = nn.DiagonalSSM.from_dense(turn, B, C)
    np.testing.assert_allclose(np.sort_complex(np.asarray(layer.eigenvalues)), [-1j, 1j], atol=1e-14)
    tokens = RNG.normal(size=(1, 50, 1))
    out = np.asarray(layer.states(wl.tensor(tokens)) @ layer.C.mT)
    assert np.abs(out.imag).max() < 1e-12  # conjugate pairs
    np.testing.assert_allclose(out.real[0], loop(turn, B, C, np.zeros((1, 1)), tokens[0]), atol=1e-12)
    layer, x = nn.LRU(2, 3, 2, dtype="float64", key=wl.random.key(0)), wl.tensor(RNG.normal(size=(1, 5, 2)))
    paths = [path for path, _ in layer.named_parameters()]

    def value(*parts: wl.Tensor) -> wl.Tensor:
        return nn.functional_call(layer, dict(zip(paths, parts, strict=True)), x)

    wl.check_grads(value, tuple(layer.state_dict()[path] for path in paths))
    # and of the complex numbers themselves
    decay = wl.tensor([0.5 + 0.3j, -0.2 + 0.7j])
    inputs = wl.tensor(RNG.normal(size=(5, 2)) + 1j * RNG.normal(size=(5, 2)))
    wl.check_grads(lambda a, b: nn.functional.linear_recurrence(a, b, axis=0), (wl.astype(decay, "complex128"), inputs))


@pytest.mark.book("13.52", name="wl.nn.DiagonalSSM")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvalues_stay_inside_whatever_the_parameters_are(dtype: str) -> None:
    values = np.array([-1e4, -700, -80, -20, -1, 0, 1, 5, 90, 1e4])
    for layer in (nn.LRU(2, 10, 2, dtype=dtype), nn.DiagonalSSM(2, 10, 2, complex=False, dtype=dtype)):
        layer.nu.assign(wl.tensor(values.astype(dtype)))
        sizes = np.abs(np.asarray(layer.eigenvalues))
        assert (sizes < 1).all()
        slopes = wl.grad(lambda layer: wl.sum(layer(wl.ones((1, 3, 2), dtype=dtype)) ** 2))(layer)
        assert all(np.isfinite(np.asarray(slope)).all() for slope in slopes.values())
    # after steps of an optimizer that only wants it to grow
    layer = nn.LRU(2, 10, 2, dtype=dtype)
    optimizer = wl.optim.SGD(layer, lr=100.0)
    for _ in range(20):
        optimizer.step(wl.grad(lambda layer: -wl.sum(wl.abs(layer.eigenvalues)))(layer))
    assert (np.abs(np.asarray(layer.eigenvalues)) < 1).all()
    states = wl.jit(lambda layer, x: layer.states(x))(layer, wl.ones((1, 10_000, 2), dtype=dtype))
    assert np.isfinite(np.asarray(states)).all()


@pytest.mark.book("13.52", name="wl.nn.DiagonalSSM.from_eigenvalues")
def test_eigenvalues_outside_the_disc_are_named() -> None:
    B, C = np.ones((3, 1)), np.ones((1, 3))
    with pytest.raises(InputError, match=r"outside the unit disc: 1\.5, -2 \(the largest modulus is 2\)"):
        nn.DiagonalSSM.from_eigenvalues([0.5, 1.5, -2.0], B, C)
    with pytest.raises(InputError, match=r"LRU: .* outside the unit disc: 1\.5\+0j, -2\+0j"):
        nn.LRU.from_eigenvalues([0.5, 1.5, -2.0], B, C)
    with pytest.raises(InputError, match=r"outside the unit disc: 1\+1j"):
        nn.DiagonalSSM.from_eigenvalues([0.5, 1 + 1j, 0.1], B, C)
    with pytest.raises(InputError, match=r"outside the unit disc: 1\.1"):
        nn.LinearSSM.from_matrices(np.diag([1.1, 0.5, 0.5]), B, C)
    with pytest.raises(InputError, match=r"outside the unit disc: 1\.1"):
        nn.DiagonalSSM.from_dense(np.diag([1.1, 0.5, 0.2]), B, C)
    with pytest.raises(InputError, match="outside the unit disc: nan"):
        nn.DiagonalSSM.from_eigenvalues([0.5, np.nan, 0.1], B, C)
    with pytest.raises(InputError, match=r"r_min=0.9, r_max=0.5"):
        nn.LRU(2, 3, 2, r_min=0.9, r_max=0.5)
    with pytest.raises(ShapeError, match=r"B \(e, c\)"):
        nn.DiagonalSSM.from_eigenvalues([0.5, 0.1], B, C)
    with pytest.raises(ShapeError, match=r"A \(e, e\)"):
        nn.LinearSSM.from_matrices(np.eye(2), B, C)


# --- the linear recurrent unit


@pytest.mark.book("13.39", "13.53", name="wl.nn.LRU")
def test_the_unit_starts_on_a_ring_with_states_of_variance_one() -> None:
    layer = nn.LRU(4, 2000, 3, r_min=0.4, r_max=0.9, max_phase=0.5, key=wl.random.key(0))
    values = np.asarray(layer.eigenvalues)
    size, angle = np.abs(values), np.angle(values)
    assert size.min() >= 0.4 - 1e-6
    assert size.max() <= 0.9 + 1e-6
    assert angle.min() >= -1e-6
    assert angle.max() <= 0.5 + 1e-6
    # uniform in area: the squares of the moduli are uniform
    assert abs(np.mean((size**2 - 0.16) / (0.81 - 0.16)) - 0.5) < 0.03
    np.testing.assert_allclose(np.exp(np.asarray(layer.gamma_log)), np.sqrt(1 - size**2), rtol=2e-5)
    assert layer.num_parameters() == 3 * 2000 + 2 * 2000 * 4 + 2 * 3 * 2000 + 3 * 4
    layer = nn.LRU(16, 64, 2, r_min=0.5, r_max=0.98, dtype="float64", key=wl.random.key(1))
    x = wl.random.normal((4, 3000, 16), key=wl.random.key(2), dtype="float64")
    late = np.asarray(wl.jit(lambda layer, x: layer.states(x))(layer, x))[:, 500:]
    assert abs(np.mean(np.abs(late) ** 2) - 1) < 0.15
    # it is a diagonal system of complex numbers whose inputs are scaled
    same = nn.DiagonalSSM.from_eigenvalues(layer.eigenvalues, layer.input_matrix(), layer.C, layer.D)
    np.testing.assert_allclose(layer(x[:, :20]), same(x[:, :20]), atol=1e-12)
    again = nn.LRU.from_eigenvalues(layer.eigenvalues, layer.input_matrix(), layer.C, layer.D)
    np.testing.assert_allclose(layer(x[:, :20]), again(x[:, :20]), atol=1e-12)


@pytest.mark.book("13.38", name="wl.nn.hippo_legs")
def test_hippo() -> None:
    A, B = (np.asarray(part) for part in nn.hippo_legs(8, dtype="float64"))
    assert (np.triu(A, 1) == 0).all()
    np.testing.assert_array_equal(np.diag(A), -np.arange(1.0, 9))
    np.testing.assert_allclose(A[3, 1], -math.sqrt(7 * 3))
    np.testing.assert_allclose(B, np.sqrt(2 * np.arange(8) + 1))
    values, P, inputs, V = (np.asarray(part) for part in nn.hippo_normal(8, dtype="float64"))
    np.testing.assert_allclose(V @ V.conj().T, np.eye(8), atol=1e-13)
    np.testing.assert_allclose(V @ (np.diag(values) - np.outer(P, P.conj())) @ V.conj().T, A, atol=1e-12)
    np.testing.assert_allclose(V @ inputs, B, atol=1e-13)
    # the state holds the Legendre coefficients of the past: of a line, t over [0, T], there are two
    n, steps = 4, 4000
    s: Any = np.zeros(n)
    A, B = A[:n, :n], B[:n]
    for k in range(1, steps + 1):  # ds/dt = (A s + B x)/t, by implicit steps
        s = np.linalg.solve(np.eye(n) - A / k, s + B / k * (k / steps))
    np.testing.assert_allclose(s, [0.5, 0.5 / math.sqrt(3), 0, 0], atol=2e-3)
