"""CTC: the sum over all alignments against their enumeration, its slopes, and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

F = wl.nn.functional
rng = np.random.default_rng(0)
TARGETS = [(), (1,), (1, 1), (1, 2), (2, 1, 2), (2, 2, 2), (1, 2, 2, 1), (1, 2, 1, 2, 1)]


def collapsed(path, blank):
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def alignments(frames, classes, target, blank):
    """All paths that mean the target, (n, frames)."""
    paths = itertools.product(range(classes), repeat=frames)
    return np.array([path for path in paths if collapsed(path, blank) == target], int).reshape(-1, frames)


def enumerated(log_p, target, blank):
    """The loss and its slopes, by adding up what every alignment has."""
    frames, classes = log_p.shape
    paths = alignments(frames, classes, target, blank)
    terms = log_p[np.arange(frames), paths].sum(axis=1)  # of an empty list: nothing
    loss = -special.logsumexp(terms) if len(terms) else np.inf
    slopes = np.zeros_like(log_p)
    for path, term in zip(paths, terms, strict=True):
        slopes[np.arange(frames), path] -= np.exp(term + loss)
    return loss, slopes


def drawn(*shape):
    return special.log_softmax(rng.normal(size=shape) * 2, axis=-1)


@pytest.mark.book("11.52", name="wl.nn.functional.ctc_loss")
@pytest.mark.parametrize("blank", [0, 1, 2])
@pytest.mark.parametrize("frames", [1, 2, 3, 4, 5])
def test_the_sum_over_all_alignments(frames, blank):
    log_p = drawn(frames, 3)
    others = [k for k in range(3) if k != blank]
    for target in TARGETS:
        target = tuple(others[k - 1] for k in target)
        loss, slopes = enumerated(log_p, target, blank)
        f = lambda x, y=target: F.ctc_loss(x, np.array(y, int), frames, len(y), blank, reduction="none")
        value, slope = wl.value_and_grad(f)(wl.asarray(log_p))
        np.testing.assert_allclose(value, loss, rtol=1e-12)
        np.testing.assert_allclose(slope, slopes, atol=1e-12)
        needed = len(target) + sum(a == b for a, b in itertools.pairwise(target))  # frames: a blank between equal ones
        assert np.isinf(loss) == (needed > frames)


@pytest.mark.book("11.52", name="wl.nn.functional.ctc_loss")
def test_probabilities_of_all_transcriptions_sum_to_one():
    log_p = wl.asarray(drawn(4, 3))
    targets = [y for n in range(5) for y in itertools.product((1, 2), repeat=n)]
    losses = [F.ctc_loss(log_p, np.array(y, int), 4, len(y), reduction="none").item() for y in targets]
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, rel=1e-12)


T, N, C = 7, 5, 4
LOGITS = rng.normal(size=(T, N, C))
PADDED = np.array([[1, 2, 2], [3, -100, -100], [0, 0, 0], [1, 1, 1], [3, 1, 99]])
FRAMES, SIZES = np.array([7, 5, 6, 4, 0]), np.array([3, 1, 0, 3, 2])  # the last two are impossible
IN_A_ROW = np.concatenate([row[:n] for row, n in zip(PADDED, SIZES, strict=True)])


def losses(logits, targets=PADDED, frames=FRAMES, sizes=SIZES, **settings):
    return F.ctc_loss(F.log_softmax(logits), targets, frames, sizes, **settings)


@pytest.mark.book("11.52", name=("wl.nn.functional.ctc_loss", "wl.nn.CTCLoss"))
def test_a_batch_is_its_rows():
    each = losses(LOGITS, reduction="none").numpy()
    for n in range(N):
        alone = losses(LOGITS[: FRAMES[n], n], PADDED[n, : SIZES[n]], FRAMES[n], SIZES[n], reduction="none")
        assert alone.shape == ()
        np.testing.assert_allclose(alone, each[n], rtol=1e-12)
    assert np.isinf(each).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(losses(LOGITS, IN_A_ROW, reduction="none"), each, rtol=1e-12)
    log_p = F.log_softmax(LOGITS)
    assert np.isinf(wl.nn.CTCLoss()(log_p, PADDED, FRAMES, SIZES))
    zeros = wl.nn.CTCLoss(zero_infinity=True, reduction="none")(log_p, PADDED, FRAMES, SIZES).numpy()
    np.testing.assert_allclose(zeros, np.where(np.isinf(each), 0, each), rtol=1e-12)
    mean = (zeros / np.maximum(SIZES, 1)).mean()  # as in PyTorch
    np.testing.assert_allclose(losses(LOGITS, zero_infinity=True), mean, rtol=1e-12)
    np.testing.assert_allclose(losses(LOGITS, zero_infinity=True, reduction="sum"), zeros.sum(), rtol=1e-12)


@pytest.mark.book("11.52", name="wl.nn.functional.ctc_loss")
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_the_impossible_has_no_slope(zero_infinity):
    f = lambda x: losses(x, zero_infinity=zero_infinity, reduction="sum")
    slope = wl.grad(f)(wl.asarray(LOGITS)).numpy()
    assert np.isfinite(slope).all()
    assert not slope[:, 3:].any()
    for n in range(3):
        assert slope[: FRAMES[n], n].any(axis=-1).all()
        assert not slope[FRAMES[n] :, n].any()
    curved = wl.hvp(f, wl.asarray(LOGITS), wl.ones_like(wl.asarray(LOGITS)))
    assert np.isfinite(np.asarray(wl.tree.leaves(curved)[-1])).all()
    # classes of probability 0, and padded frames of NaN
    log_p = F.log_softmax(LOGITS).numpy().copy()
    log_p[:, :, 3] = -np.inf
    log_p[5:, 1] = np.nan
    value, slope = wl.value_and_grad(lambda x: F.ctc_loss(x, PADDED, FRAMES, SIZES, reduction="none").sum())(
        wl.asarray(log_p)
    )
    assert np.isinf(value)
    assert np.isfinite(slope).all()
    assert not slope[:, 1].numpy().any()  # its only label has probability 0
    assert slope[:, 0].numpy().any()


@pytest.mark.book("11.52", name="wl.nn.functional.ctc_loss")
def test_slopes_of_both_modes_and_orders():
    x = wl.asarray(LOGITS[:, :3])
    f = lambda x: losses(x, PADDED[:3], FRAMES[:3], SIZES[:3])
    wl.check_grads(f, x)
    g = lambda x: F.ctc_loss(x, PADDED[:3], FRAMES[:3], SIZES[:3], reduction="sum")
    wl.check_grads(g, F.log_softmax(x), order=2)


def test_compiled_and_batched():
    x = wl.asarray(LOGITS)
    args = (wl.asarray(PADDED), wl.asarray(FRAMES), wl.asarray(SIZES))
    both = lambda x, *args: wl.value_and_grad(losses)(x, *args, zero_infinity=True)
    value, slope = both(x, *args)
    for targets in (args[0], wl.asarray(IN_A_ROW)):
        compiled = wl.jit(both)(x, targets, *args[1:])
        np.testing.assert_allclose(compiled[0], value, rtol=1e-12)
        np.testing.assert_allclose(compiled[1], slope, atol=1e-12)
    each = lambda x, *args: losses(x, *args, reduction="none")
    np.testing.assert_allclose(wl.vmap(each, in_axes=(1, 0, 0, 0))(x, *args), each(x, *args), rtol=1e-12)
    assert not wl.explain(wl.jit(both), x, *args).fallbacks


def test_precisions():
    exact = losses(LOGITS, reduction="none").numpy()
    single = losses(LOGITS.astype(np.float32), reduction="none")
    assert single.dtype == wl.float32
    np.testing.assert_allclose(single, exact, rtol=1e-5)
    half = losses(wl.asarray(LOGITS).astype(wl.bfloat16), reduction="none")
    assert half.dtype == wl.bfloat16
    np.testing.assert_allclose(half.astype(wl.float64), exact, rtol=3e-2)
    # two thousand frames: the probability itself is 0 in floating point
    long = np.full((2000, 1, 30), -np.log(30.0), np.float32)
    loss, slope = wl.jit(wl.value_and_grad(lambda x: F.ctc_loss(x, [[5, 6, 6]], [2000], [3])))(wl.asarray(long))
    assert np.isfinite(loss)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope.numpy().sum(axis=-1), -1 / 3, rtol=1e-3)


def test_what_is_not_a_number_is_not_hidden():
    bad = LOGITS.copy()
    bad[2, 0, 1] = np.nan
    for zero_infinity in (False, True):
        found = losses(bad, reduction="none", zero_infinity=zero_infinity).numpy()
        assert np.isnan(found).tolist() == [True, False, False, False, False]


def test_nothing_at_all():
    nothing = F.ctc_loss(np.zeros((0, 2, 3)), [[1], [1]], [0, 0], [0, 1], reduction="none")
    assert nothing.tolist() == [0.0, np.inf]  # nothing stands for nothing
    assert F.ctc_loss(np.zeros((3, 2, 3)), [], [3, 3], [0, 0], reduction="none").tolist() == [0.0, 0.0]
    for dtype in (np.uint8, np.int32):
        sizes = SIZES.astype(dtype)
        np.testing.assert_array_equal(losses(LOGITS, sizes=sizes, reduction="none"), losses(LOGITS, reduction="none"))


def test_it_learns_where_the_labels_are():
    """Frames of noise with three events: their order is told, their places are not."""
    places, labels = np.array([[3, 9, 14], [1, 7, 12], [5, 8, 17], [2, 11, 15]]), np.array([[1, 2, 1], [2, 2, 1]] * 2)
    x = 0.1 * np.random.default_rng(0).normal(size=(20, 4, 3))
    for row, (where, what) in enumerate(zip(places, labels, strict=True)):
        x[where, row, what] += 1.0
    model = wl.nn.Linear(3, 3, key=wl.random.key(0))
    optimizer = wl.optim.Adam(model, lr=0.1)
    inputs = wl.asarray(x.astype(np.float32))

    @wl.jit
    def step(model, optimizer):
        loss, grads = wl.value_and_grad(
            lambda m: F.ctc_loss(F.log_softmax(m(inputs)), labels, np.full(4, 20), np.full(4, 3))
        )(model)
        optimizer.step(grads)
        return loss

    for _ in range(150):
        loss = step(model, optimizer)
    assert float(loss) < 0.1
    assert [row.tolist() for row in wl.generation.ctc_greedy(model(inputs))] == labels.tolist()


@pytest.mark.parametrize(
    "args, settings, error, match",
    [
        ((np.zeros(3), [1], [1], [1]), {}, ShapeError, "time first"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4], [1, 1]), {}, ShapeError, "input_lengths of shape"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4, 4], [1]), {}, ShapeError, "target_lengths of shape"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4, 5], [1, 1]), {}, InputError, "an input length is 5"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4, 4], [1, 2]), {}, InputError, "a target length is 2"),
        ((np.zeros((4, 2, 3)), [1, 1, 1], [4, 4], [1, 1]), {}, ShapeError, "3 targets in a row"),
        ((np.zeros((4, 2, 3)), [[1]], [4, 4], [1, 1]), {}, ShapeError, "targets of shape"),
        ((np.zeros((4, 2, 3)), [[1], [3]], [4, 4], [1, 1]), {}, InputError, "a target is 3"),
        ((np.zeros((4, 2, 3)), [[1], [0]], [4, 4], [1, 1]), {}, InputError, "a target is 0"),
        ((np.zeros((4, 2, 3)), [[1], [-1]], [4, 4], [1, 1]), {}, InputError, "a target is -1"),
        ((np.zeros((4, 2, 3)), [[1.0], [2.0]], [4, 4], [1, 1]), {}, DTypeError, "targets of float"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4, 4], [1, 1]), {"blank": 3}, InputError, "blank=3 of 3 classes"),
        ((np.zeros((4, 2, 3)), [[1], [1]], [4, 4], [1, 1]), {"reduction": "max"}, InputError, "reduction='max'"),
    ],
)
def test_bad_input(args, settings, error, match):
    with pytest.raises(error, match=match):
        F.ctc_loss(*args, **settings)


@pytest.mark.parametrize("label", [3, -1])
def test_bad_classes_are_found_by_compiled_code(label):
    compiled = wl.jit(F.ctc_loss)
    args = (wl.zeros((4, 1, 3)), wl.tensor([[label, 7]]), wl.tensor([4]))
    with pytest.raises(IndexOutOfRange):
        compiled(*args, wl.tensor([1])).numpy()
    assert float(compiled(*args, wl.tensor([0]))) == 0.0  # beyond the length anything may be
