"""Several views of one example."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError, ShapeError

T = data.transforms
IMAGES, LABELS = data.make_shapes(24, size=12, channels=3)
DATASET = data.TensorDataset(IMAGES, LABELS)
AUGMENT = T.Compose([T.RandomHorizontalFlip(), T.RandomCrop(12, padding=2), T.GaussianNoise(0.05)])


@pytest.mark.book("10.61", name="wl.data.MultiView")
@pytest.mark.parametrize("views", [1, 2, 7])
def test_shape_and_one_label(views):
    dataset = data.MultiView(DATASET, AUGMENT, views)
    assert len(dataset) == len(DATASET)
    x, y = dataset[3]
    assert x.shape == (views, 12, 12, 3)
    assert x.dtype == IMAGES.dtype
    assert y == LABELS[3]
    assert np.ndim(y) == 0
    batches = list(data.DataLoader(dataset, batch_size=10))
    assert [(x.shape, y.shape) for x, y in batches] == [
        ((10, views, 12, 12, 3), (10,)),
        ((10, views, 12, 12, 3), (10,)),
        ((4, views, 12, 12, 3), (4,)),
    ]
    np.testing.assert_array_equal(np.concatenate([y.numpy() for _, y in batches]), LABELS)


@pytest.mark.book("10.61", name="wl.data.MultiView")
def test_views_are_random_augmentations_of_the_same_image():
    flips = data.MultiView(DATASET, T.RandomHorizontalFlip(), 16)
    for index in range(6):
        x, _ = flips[index]
        either = [(view == IMAGES[index]).all() for view in x], [(view == IMAGES[index][:, ::-1]).all() for view in x]
        assert all(a or b for a, b in zip(*either, strict=True))
    assert any((flips[0][0][0] != view).any() for view in flips[0][0])
    # the same draw when asked again, others in the next epoch, whoever makes them
    dataset = data.MultiView(DATASET, AUGMENT, 3)
    np.testing.assert_array_equal(dataset[5][0], dataset[5][0])
    loader = data.DataLoader(dataset, batch_size=24, seed=1)
    first, second = (next(iter(loader))[0].numpy() for _ in range(2))
    assert (first != second).any()
    again = data.DataLoader(dataset, batch_size=8, seed=1, prefetch=0)
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in again]), first)
    # a plain function makes equal views, and an example may be the image alone
    same = data.MultiView(list(IMAGES), lambda x: x[:6], 2)
    assert same[0].shape == (2, 6, 12, 3)
    assert not same.random
    np.testing.assert_array_equal(same[0][0], same[0][1])


def test_the_number_of_views_varies_between_batches():
    dataset = data.MultiView(DATASET, AUGMENT, 7)
    make = lambda: data.DataLoader(dataset, batch_size=2, batch_transform=data.RandomViews(2), shuffle=True)
    loader = make()
    counts = [x.shape[1] for _ in range(4) for x, y in loader if y.shape == (2,)]
    assert set(counts) == {2, 3, 4, 5, 6, 7}
    again = make()
    assert [x.shape[1] for _ in range(4) for x, _ in again] == counts  # the seed says which
    # weights that know nothing of the number: a mean over views of shared features
    model = wl.nn.Linear(12 * 12 * 3, 4, key=wl.random.key(0))
    for x, y in make():
        scores = model(x.reshape((*x.shape[:2], -1))).mean(axis=1)
        assert scores.shape == (len(y), 4)


def test_bad_input():
    with pytest.raises(InputError, match="views=0"):
        data.MultiView(DATASET, AUGMENT, 0)
    with pytest.raises(InputError, match="not a function"):
        data.MultiView(DATASET, None)

    def ragged(x, rng):
        return x[: rng.integers(2, 12)]

    ragged.random = True
    with pytest.raises(ShapeError, match="have the shapes"):
        data.MultiView(DATASET, ragged, 20)[0]
    with pytest.raises(InputError, match="2 views, fewer than least=3"):
        data.RandomViews(3)(np.zeros((4, 2, 5)))
