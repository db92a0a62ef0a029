"""Counted costs against closed forms: what the book says about time and memory."""

from __future__ import annotations

import math
from typing import Any

import pytest

import wonderland as wl
from wonderland import Tensor


def spec(*shape: int) -> wl.ShapeDtype:
    return wl.ShapeDtype(shape, wl.float32)


def mlp(weights: list[Tensor], x: Tensor) -> Tensor:
    for w in weights:
        x = wl.tanh(x @ w)
    return (x**2).sum()


@pytest.mark.book("2.30", name="wl.count")
@pytest.mark.parametrize(("a", "b", "c"), [(2, 3, 5), (7, 1, 4), (16, 32, 8)])
def test_matmul_costs_abc_multiply_adds_and_the_space_of_its_result(a: int, b: int, c: int) -> None:
    cost = wl.count(lambda x, y: x @ y, spec(a, b), spec(b, c))
    assert cost.multiply_adds == a * b * c
    assert cost.peak_bytes == 4 * (a * b + b * c + a * c)
    assert cost.operations == {"matmul": 1}


@pytest.mark.book("2.31", name="wl.count")
def test_the_slope_of_matmul_in_log_log_is_three() -> None:
    small, large = (wl.count(lambda x, y: x @ y, spec(n, n), spec(n, n)).multiply_adds for n in (8, 64))
    assert math.log(large / small) / math.log(64 / 8) == pytest.approx(3.0, abs=1e-12)


@pytest.mark.book("2.34", name=("wl.explain", "wl.count"))
def test_the_profiler_tells_what_each_step_takes() -> None:
    """Time, bytes and multiply-adds of every step; the steps' times add up to no more than the call's."""
    told = {}
    for n in (32, 128):
        x = wl.ones((n, n))
        told[n] = wl.explain(lambda x: (x @ x, wl.sort(wl.exp(x) + 1, axis=1)), x, profile=True)
    for n, report in told.items():
        assert report.times is not None
        assert len(report.steps) > 1
        assert all(line.seconds is not None and line.seconds > 0 and line.bytes > 0 for line in report.steps)
        assert 0 < sum(line.seconds or 0 for line in report.steps) == report.seconds <= report.times.seconds
        assert report.multiply_adds == sum(line.multiply_adds for line in report.steps) >= n**3
    product, other = ([max(r.steps, key=f) for r in told.values()] for f in (_work, lambda line: -_work(line)))
    assert product[0].intensity * 3.5 < product[1].intensity  # grows with n,
    assert other[0].intensity == pytest.approx(other[1].intensity, rel=0.1)  # and here it does not


def _work(line: Any) -> float:
    return float(line.intensity)


@pytest.mark.book("2.34", name="wl.count")
def test_intensity_grows_with_size_for_matmul_and_not_for_elementwise() -> None:
    matmul = [wl.count(lambda x, y: x @ y, spec(n, n), spec(n, n)).intensity for n in (16, 64, 256)]
    added = [wl.count(lambda x, y: x + y, spec(n, n), spec(n, n)).intensity for n in (16, 64, 256)]
    assert matmul[0] < matmul[1] < matmul[2]
    assert added[0] == added[1] == added[2] == pytest.approx(1 / 12)


@pytest.mark.book("6-38", "S-05", "B6-12", name="wl.count")
def test_backward_costs_at_most_three_forwards_and_grows_linearly_with_depth() -> None:
    def costs(depth: int) -> tuple[int, int]:
        weights = [spec(32, 32)] * depth
        forward = wl.count(mlp, weights, spec(16, 32)).multiply_adds
        both = wl.count(wl.value_and_grad(mlp), weights, spec(16, 32)).multiply_adds
        return forward, both - forward

    (f4, b4), (f8, b8), (f16, b16) = costs(4), costs(8), costs(16)
    assert b4 <= 3 * f4
    assert b16 <= 3 * f16
    assert b16 - b8 == 2 * (b8 - b4)  # slope 1 in the depth
    assert f16 - f8 == 2 * (f8 - f4)


@pytest.mark.book("6-32", "B6-08", name="wl.count")
def test_tangent_matrices_cost_quadratically_in_the_batch_and_adjoints_linearly() -> None:
    """One step of forward mode multiplies the (nd, nd) Jacobian of a layer by the (nd, p) tangent of its weights."""
    d, p = 3, 5

    def forward_step(jacobian: Tensor, tangent: Tensor) -> Tensor:
        return jacobian @ tangent

    def reverse_step(w: Tensor, adjoint: Tensor) -> Tensor:
        return adjoint @ w.T

    forward = [wl.count(forward_step, spec(n * d, n * d), spec(n * d, p)).multiply_adds for n in (4, 8)]
    reverse = [wl.count(reverse_step, spec(d, d), spec(n, d)).multiply_adds for n in (4, 8)]
    assert forward[1] == 4 * forward[0]
    assert reverse[1] == 2 * reverse[0]


@pytest.mark.book("6-31", name="wl.jvp")
def test_forward_mode_needs_the_memory_of_the_program_whatever_its_depth() -> None:
    def chain(depth: int) -> Any:
        def f(x: Tensor) -> Tensor:
            for _ in range(depth):
                x = wl.sin(x)
            return x

        return lambda x: wl.jvp(f, (x,), (x,))

    peaks = {depth: wl.count(chain(depth), spec(1000)).peak_bytes for depth in (4, 16, 64)}
    assert peaks[4] == peaks[16] == peaks[64]


@pytest.mark.book("6-39", "A3-19", "2.78", name="wl.saved")
def test_reverse_mode_keeps_one_value_per_layer_and_nothing_without_a_derivative() -> None:
    def chain(depth: int) -> Any:
        def f(x: Tensor) -> Tensor:
            for _ in range(depth):
                x = wl.sin(x)
            return x.sum()

        return f

    x = wl.ones(100)
    assert [wl.saved(chain(n), x).bytes for n in (1, 5, 10)] == [400, 2000, 4000]
    assert wl.saved(lambda x: (wl.stop_gradient(wl.sin(x)) * x).sum(), x).bytes == 400


@pytest.mark.book("6-39", name="wl.no_grad")
def test_nothing_is_recorded_under_no_grad() -> None:
    x = wl.ones(3).requires_grad_()
    with wl.no_grad():
        assert wl.sin(x).grad_fn is None


@pytest.mark.book("6-10", "6-11", name="wl.eval_shape")
def test_the_jacobian_of_a_batched_layer_has_the_batch_squared() -> None:
    n, c = 128, 1024
    w = spec(c, c)
    shape = wl.eval_shape(lambda x, w: wl.vjp(lambda x: x @ w, x)[0], spec(n, c), w).shape
    entries = math.prod(shape) * n * c
    assert entries == (n * c) ** 2
    assert entries * 4 == 64 * 2**30  # 64 GiB in float32, against 131,072 numbers of an adjoint
    with pytest.raises(wl.errors.SizeError):
        wl.zeros((n * c, n * c, 100))


@pytest.mark.book("6-49", "2.59", "B6-16", name="wl.vjp")
def test_the_weight_vjp_never_makes_the_rank_three_jacobian() -> None:
    size = 4096

    def pull(w: Tensor, x: Tensor, v: Tensor) -> Any:
        return wl.vjp(lambda w: w @ x, w)[1](v)

    peak = wl.count(pull, spec(size, size), spec(size), spec(size)).peak_bytes
    assert peak < 3 * 4 * size * size  # the matrix, its adjoint, and vectors


@pytest.mark.book("6-46", "6-44", name="wl.grad")
def test_the_first_layer_needs_no_input_vjp() -> None:
    weights = [wl.ones((4, 4))] * 3
    counted = wl.count(wl.grad(mlp), weights, wl.ones((2, 4))).operations["matmul"]
    assert counted == 3 + 3 + 2  # forward, one weight adjoint each, and input adjoints of all but the first


def test_loops_count_their_body_as_often_as_it_runs() -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        return wl.scan(lambda c, _: (c @ w, None), x, length=10)[0]

    assert wl.count(f, spec(2, 3), spec(3, 3)).multiply_adds == 10 * 2 * 3 * 3


def test_a_branch_costs_its_dearest_side() -> None:
    def f(x: Tensor) -> Tensor:
        return wl.cond(x.sum() > 0, lambda x: x @ x, lambda x: x, x)

    assert wl.count(f, spec(5, 5)).multiply_adds >= 125


def test_views_move_no_bytes_and_keep_their_base_alive() -> None:
    cost = wl.count(lambda x: wl.sin(x).T.reshape(-1) + 1, spec(10, 10))
    assert cost.bytes == 400 + 400 + 400 + 4 + 400  # sin, then the addition
    assert cost.peak_bytes == 3 * 400


def test_the_report_is_readable() -> None:
    text = str(wl.count(wl.grad(lambda x: wl.sin(x).sum()), spec(1000)))
    assert "multiply-adds" in text
    assert "cos 1" in text
    assert "total" in str(wl.saved(lambda x: wl.sin(x).sum(), wl.ones(3)))
