"""Small tasks with arrays, of the kind that one learns NumPy with, solved without a loop."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.book("2.80", name="wl.Tensor")


def test_a_vector_with_one_value_set() -> None:
    assert wl.zeros(10).at[4].set(1.0).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_reverse_and_reshape() -> None:
    assert wl.arange(5)[::-1].tolist() == [4, 3, 2, 1, 0]
    assert wl.arange(9).reshape(3, 3).tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_positions_of_what_is_not_zero() -> None:
    assert wl.nonzero(wl.tensor([1, 2, 0, 0, 4, 0]))[0].tolist() == [0, 1, 4]


def test_ones_at_the_border_and_zeros_inside() -> None:
    framed = wl.ones((4, 5)).at[1:-1, 1:-1].set(0.0)
    assert framed.sum().item() == 20 - 6
    padded = wl.pad(wl.zeros((2, 3)), 1, constant_values=1.0)
    assert wl.array_equal(framed, padded)


def test_a_checkerboard_in_two_ways() -> None:
    board = wl.zeros((8, 8), dtype="int64").at[1::2, ::2].set(1).at[::2, 1::2].set(1)
    assert wl.array_equal(board, wl.tile(wl.tensor([[0, 1], [1, 0]]), (4, 4)))
    rows, columns = wl.meshgrid(wl.arange(8), wl.arange(8), indexing="ij")
    assert wl.array_equal(board, (rows + columns) % 2)


def test_numbers_below_the_diagonal() -> None:
    assert wl.diag(wl.arange(1, 5), -1).tolist() == np.diag(1 + np.arange(4), k=-1).tolist()


def test_normalise_to_the_unit_interval() -> None:
    X = wl.asarray(RNG.normal(size=(5, 5)))
    scaled = (X - X.min()) / (X.max() - X.min())
    assert scaled.min().item() == 0
    assert scaled.max().item() == 1


def test_negate_between_three_and_eight() -> None:
    x = wl.arange(11)
    flipped = wl.where((x > 3) & (x < 8), -x, x)
    assert flipped.tolist() == [0, 1, 2, 3, -4, -5, -6, -7, 8, 9, 10]


def test_subtract_the_mean_of_each_row() -> None:
    X = wl.asarray(RNG.normal(size=(4, 6)))
    centred = X - X.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(centred.sum(axis=1).numpy(), np.zeros(4), atol=1e-12)


def test_sort_rows_by_one_column() -> None:
    X = wl.asarray(RNG.integers(0, 9, size=(5, 3)))
    ordered = X[wl.argsort(X[:, 1])]
    assert bool((wl.diff(ordered[:, 1]) >= 0).all())


def test_the_closest_element() -> None:
    x = wl.asarray(RNG.uniform(size=50))
    closest = x[wl.argmin(wl.abs(x - 0.5))]
    assert closest.item() == min(x.tolist(), key=lambda v: abs(v - 0.5))


def test_swap_two_rows() -> None:
    X = wl.arange(6).reshape(3, 2)
    assert X[wl.tensor([1, 0, 2])].tolist() == [[2, 3], [0, 1], [4, 5]]
    assert X.at[wl.tensor([0, 1])].set(X[wl.tensor([1, 0])]).tolist() == [[2, 3], [0, 1], [4, 5]]


def test_a_gaussian_on_a_grid() -> None:
    x, y = wl.meshgrid(wl.linspace(-1, 1, 11), wl.linspace(-1, 1, 11))
    bump = wl.exp(-(x**2 + y**2) / 2)
    assert bump[5, 5].item() == 1
    np.testing.assert_allclose(bump.numpy(), bump.T.numpy(), rtol=1e-6)


def test_count_how_often_each_number_occurs() -> None:
    x = RNG.integers(0, 6, size=100)
    counts = wl.segment_sum(wl.ones(100, dtype="int64"), x, 6)
    assert counts.tolist() == np.bincount(x, minlength=6).tolist()
    most = wl.unique_counts(x)
    assert most.values[wl.argmax(most.counts)].item() == np.bincount(x).argmax()


def test_accumulate_at_repeated_positions() -> None:
    values, places = wl.tensor([1.0, 2.0, 3.0, 4.0]), wl.tensor([0, 2, 2, 0])
    assert wl.zeros(3).at[places].add(values).tolist() == [5, 0, 5]


def test_sliding_windows() -> None:
    x = wl.arange(7)
    windows = x[wl.arange(5)[:, None] + wl.arange(3)[None, :]]
    assert windows.tolist() == [[i, i + 1, i + 2] for i in range(5)]
    means = windows.mean(axis=1)
    assert means.tolist() == [1, 2, 3, 4, 5]


def test_blocks_of_an_image_summed() -> None:
    X = wl.arange(64).reshape(8, 8)
    sums = wl.reduce(X, "(h a) (w b) -> h w", "sum", a=4, b=4)
    assert sums.tolist() == X.numpy().reshape(2, 4, 2, 4).sum(axis=(1, 3)).tolist()


def test_a_step_of_the_game_of_life() -> None:
    glider = wl.zeros((6, 6), dtype="int64").at[wl.tensor([0, 1, 2, 2, 2]), wl.tensor([1, 2, 0, 1, 2])].set(1)

    def step(world: wl.Tensor) -> wl.Tensor:
        around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        neighbours = wl.stack([wl.roll(world, shift, axis=(0, 1)) for shift in around]).sum(axis=0)
        return ((neighbours == 3) | ((world == 1) & (neighbours == 2))).astype("int64")

    world = glider
    for _ in range(4):
        world = step(world)
    assert wl.array_equal(world, wl.roll(glider, (1, 1), axis=(0, 1)))  # after four steps it has moved


def test_distances_between_all_pairs_of_points() -> None:
    points = wl.asarray(RNG.normal(size=(10, 2)))
    differences = points[:, None, :] - points[None, :, :]
    loop = wl.sqrt((differences**2).sum(axis=-1))
    np.testing.assert_allclose(wl.sqrt(wl.pairwise_sq_distances(points, points)).numpy(), loop.numpy(), atol=1e-7)


def test_the_rank_and_a_product_of_many_matrices() -> None:
    M, V = RNG.normal(size=(10, 4, 4)), RNG.normal(size=(10, 4, 1))
    assert wl.einsum("pij,pjk->ik", M, V).shape == (4, 1)
    np.testing.assert_allclose(wl.einsum("pij,pjk->ik", M, V).numpy(), np.tensordot(M, V, axes=[[0, 2], [0, 1]]))  # type: ignore[call-overload]
    low = wl.outer(wl.arange(4.0), wl.ones(5))
    assert wl.linalg.matrix_rank(low).item() == 1


@pytest.mark.book("2.81", name="wl.vmap")
def test_functions_of_one_example_become_functions_of_many() -> None:
    w, X = wl.asarray(RNG.normal(size=3)), wl.asarray(RNG.normal(size=(5, 3)))
    f = lambda w, x: wl.tanh(wl.dot(w, x)) ** 2
    values = wl.vmap(f, in_axes=(None, 0))(w, X)
    gradients = wl.vmap(wl.grad(f), in_axes=(None, 0))(w, X)
    assert gradients.shape == (5, 3)
    for i in range(5):
        np.testing.assert_allclose(values[i].numpy(), f(w, X[i]).numpy())
        np.testing.assert_allclose(gradients[i].numpy(), wl.grad(f)(w, X[i]).numpy())
