"""Transforms as a family: contracts that all keep, composition, label safety, previews, RandAugment."""

from __future__ import annotations

import base64
import io
import pickle
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

T = wl.data.transforms

RANDOM = [
    T.RandomCrop(12, padding=2),
    T.RandomResizedCrop(12),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.RandomRotation(30),
    T.RandomTranslation(0.3),
    T.RandomZoom(),
    T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10),
    T.Brightness(0.5),
    T.Contrast(0.5),
    T.Saturation(0.5),
    T.Hue(0.2),
    T.ColorJitter(0.3, 0.3, 0.3, 0.1),
    T.RandomGrayscale(0.5),
    T.GaussianNoise(0.1, clip=True),
    T.GaussianBlur(5),
    T.Cutout(5),
    T.Cutout(5, per_channel=True),
    T.RandomErasing(0.7),
    T.RandAugment(2, 20),
]
IMAGES = np.random.default_rng(0).integers(0, 256, (8, 12, 12, 3), dtype=np.uint8)


def name_of(transform: Any) -> str:
    return type(transform).__name__


@pytest.mark.book(
    "9-25",
    "9-26",
    name=(
        "wl.data.transforms.Transform",
        "wl.data.transforms.RandomRotation",
        "wl.data.transforms.RandomHorizontalFlip",
        "wl.data.transforms.RandomZoom",
        "wl.data.transforms.Brightness",
        "wl.data.transforms.Contrast",
    ),
)
@pytest.mark.parametrize("transform", RANDOM, ids=name_of)
class TestAllRandomTransforms:
    @pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
    def test_shape_type_and_range_stay(self, transform: Any, dtype: str) -> None:
        images = IMAGES if dtype == "uint8" else (IMAGES / 255).astype(dtype)
        before = images.copy()
        result = transform(images, np.random.default_rng(0))
        assert (result.shape, result.dtype) == (images.shape, images.dtype)
        assert result.min() >= 0
        assert result.max() <= (255 if dtype == "uint8" else 1 + 1e-6)
        np.testing.assert_array_equal(images, before)  # the input is left alone
        single = transform(images[0], np.random.default_rng(0))
        assert (single.shape, single.dtype) == (images[0].shape, images.dtype)

    @pytest.mark.parametrize("dtype", ["float16", "uint16", "int32", "bool"])
    def test_other_types_and_empty_batches(self, transform: Any, dtype: str) -> None:
        copied = pickle.loads(pickle.dumps(transform))  # as workers get it
        assert copied(np.zeros((2, 12, 12, 3), dtype), 0).dtype == dtype
        assert copied(np.zeros((0, 12, 12, 3), dtype), 0).shape == (0, 12, 12, 3)

    def test_the_draw_decides(self, transform: Any) -> None:
        first, again, other = (transform(IMAGES, np.random.default_rng(seed)) for seed in (3, 3, 4))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)  # as in two epochs

    def test_a_batch_is_its_images(self, transform: Any) -> None:
        params = transform.sample_params(np.random.default_rng(1), len(IMAGES))
        batch = transform.apply(IMAGES, params)
        for i, image in enumerate(IMAGES):
            own = (
                {key: value[i : i + 1] for key, value in params.items()}
                if isinstance(params, dict)
                else tuple(value[i : i + 1] for value in params)
                if isinstance(params, tuple)
                else params[i : i + 1]
            )
            np.testing.assert_array_equal(transform.apply(image, own), batch[i])

    @pytest.mark.parametrize("dtype", ["uint8", "float32"])
    def test_neutral_parameters_change_nothing(self, transform: Any, dtype: str) -> None:
        images = IMAGES if dtype == "uint8" else (IMAGES / 255).astype(dtype)
        params = transform.neutral_params()
        if params is not None:  # else it is left out
            np.testing.assert_array_equal(transform.apply(images, params), images)
        try:
            np.testing.assert_array_equal(transform.eval()(images), images)
        finally:
            transform.train()

    def test_one_draw_for_all(self, transform: Any) -> None:
        same = np.repeat(IMAGES[:1], 6, axis=0)
        transform.per_sample = False
        try:
            result = transform(same, np.random.default_rng(2))
        finally:
            transform.per_sample = True
        alike = np.array_equal(result, np.repeat(result[:1], 6, axis=0))
        assert alike != isinstance(transform, T.GaussianNoise)  # noise differs in every pixel, whatever is drawn

    def test_bad_images(self, transform: Any) -> None:
        if not isinstance(transform, T.GaussianNoise):  # which takes arrays of any shape
            for shape in ((5,), (1, 2, 3, 4, 5), (0, 4, 3)):
                with pytest.raises(ShapeError, match="not the shape of images"):
                    transform(np.zeros(shape, np.float32), 0)
            with pytest.raises(DTypeError):
                transform(np.zeros((12, 12, 3), complex), 0)
        with pytest.raises(InputError, match="neither a seed nor a generator"):
            transform(IMAGES, "seed")


@pytest.mark.book("9-29", name=("wl.data.transforms.Compose", "wl.data.transforms.RandomRotation"))
class TestCompose:
    def test_the_box_of_the_book(self) -> None:
        images = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
        transforms = T.Compose([T.RandomHorizontalFlip(p=0.5), T.RandomRotation(10)])
        first, second = transforms(images), transforms(images)
        assert (first.shape, first.dtype) == (images.shape, images.dtype)
        assert not np.array_equal(first, second)  # each call gives another mini-batch
        wl.random.seed(7)
        again = transforms(images)
        wl.random.seed(7)
        np.testing.assert_array_equal(transforms(images), again)  # the global seed rules

    def test_in_a_loader(self) -> None:
        data = wl.data.TensorDataset(IMAGES, np.arange(8))
        pipeline = T.Compose([T.RandomHorizontalFlip(), T.ToFloat()])

        def epochs(**options: Any) -> list[list[np.ndarray]]:
            loader = wl.data.DataLoader(data, batch_size=4, **options)
            return [[np.asarray(x) for x, _ in loader] for _ in range(2)]

        for options in ({"transform": pipeline}, {"batch_transform": pipeline}):
            first, second = epochs(**options)
            assert first[0].dtype == np.float32
            assert not np.array_equal(first, second)
            np.testing.assert_array_equal(first, epochs(**options)[0])

    def test_the_first_of_a_tuple_is_transformed(self) -> None:
        x, y = T.Compose([T.RandomHorizontalFlip(1.0)])((IMAGES, np.arange(8)))
        np.testing.assert_array_equal(x, IMAGES[:, :, ::-1])
        np.testing.assert_array_equal(y, np.arange(8))

    def test_drawn_parameters_can_be_kept(self) -> None:
        pipeline = T.Compose([T.RandomRotation(20), T.ToFloat(), T.Brightness(0.5)])
        params = pipeline.sample_params(np.random.default_rng(0), 8)
        np.testing.assert_array_equal(pipeline.apply(IMAGES, params), pipeline(IMAGES, np.random.default_rng(0)))
        np.testing.assert_array_equal(pipeline.apply(IMAGES, pipeline.neutral_params()), T.ToFloat()(IMAGES))
        np.testing.assert_array_equal(pipeline.eval()(IMAGES), T.ToFloat()(IMAGES))

    def test_functions_and_flags(self) -> None:
        assert not T.Compose([T.ToFloat(), np.sqrt]).random
        np.testing.assert_allclose(T.Compose([T.ToFloat(), np.sqrt])(IMAGES), np.sqrt(IMAGES / 255), rtol=1e-6)
        with pytest.raises(InputError, match="not a transform"):
            T.Compose([3])  # type: ignore[list-item]


@pytest.mark.book("9-30", name="wl.data.transforms.RandomHorizontalFlip")
def test_each_image_of_a_batch_has_its_own_draw() -> None:
    images = np.zeros((1000, 1, 2, 1), np.uint8)
    images[:, :, 1] = 1
    flipped = T.RandomHorizontalFlip(0.5)(images, 0)[:, 0, 0, 0]
    assert 0.45 < flipped.mean() < 0.55
    together = {T.RandomHorizontalFlip(0.5, per_sample=False)(images, seed)[:, 0, 0, 0].mean() for seed in range(20)}
    assert together == {0.0, 1.0}  # all or none, as in torchvision


@pytest.mark.book(
    "9-28",
    "A8-03",
    name=("wl.data.transforms.check_label_safety", "wl.data.transforms.preview", "wl.data.transforms.Compose"),
)
class TestLabelSafety:
    def test_flips_of_digits_are_flagged(self) -> None:
        pipeline = T.Compose(
            [T.RandomVerticalFlip(), T.RandomHorizontalFlip(), T.RandomRotation(10), T.GaussianNoise()]
        )
        found = T.check_label_safety(pipeline, "digits")
        assert [(unsafe.transform, unsafe.change) for unsafe in found] == [
            ("RandomVerticalFlip", "vertical_flip"),
            ("RandomHorizontalFlip", "horizontal_flip"),
        ]
        assert "a 9" in found[0].reason
        assert T.check_label_safety(pipeline, "photographs") == []
        assert [u.change for u in T.check_label_safety(T.RandomRotation(180), "digits")] == ["large_rotation"]
        assert [u.change for u in T.check_label_safety(T.RandomHorizontalFlip(), "text")] == ["horizontal_flip"]
        assert T.check_label_safety(T.RandomVerticalFlip(), "digits", allow=["vertical_flip"]) == []
        assert [u.change for u in T.check_label_safety(T.RandAugment(), "colors")] == ["color"]

    def test_lists(self) -> None:
        flip = T.RandomVerticalFlip()
        assert T.check_label_safety(flip, allow=["noise"])[0].reason == "not among the allowed changes"
        assert T.check_label_safety(flip, allow=["vertical_flip"]) == []
        assert T.check_label_safety(flip, "photographs", deny=["vertical_flip"])[0].reason == "denied"
        with pytest.raises(InputError, match="RandomVerticalFlip makes the change 'vertical_flip': a 6"):
            T.check_label_safety(flip, "digits", strict=True)
        with pytest.raises(InputError, match="'vertical_flip', which is denied"):
            T.Compose([T.ToFloat(), flip], deny=["vertical_flip"])
        with pytest.raises(InputError, match="no task 'cats'"):
            T.check_label_safety(flip, "cats")

    def test_a_turned_six_is_nearer_to_the_nines(self) -> None:
        x, y = wl.data.digits().arrays
        six, nine = x[y == 6].mean(axis=0), x[y == 9].mean(axis=0)
        turned = T.RandomRotation((180, 180))(six)
        assert ((turned - nine) ** 2).sum() < ((turned - six) ** 2).sum()

    def test_labels_stay(self) -> None:
        data = wl.data.TensorDataset(IMAGES, np.arange(8))
        loader = wl.data.DataLoader(data, batch_size=8, transform=T.RandomRotation(10))
        assert next(iter(loader))[1].tolist() == list(range(8))

    def test_previews_show_original_and_draws(self) -> None:
        pillow = pytest.importorskip("PIL.Image")
        grid = T.preview_grid(IMAGES[:2], T.RandomHorizontalFlip(1.0), samples=3, gap=2)
        assert grid.shape == (2 * 14 - 2, 4 * 14 - 2, 3)
        np.testing.assert_array_equal(grid[:12, :12], IMAGES[0])
        np.testing.assert_array_equal(grid[14:26, 42:54], IMAGES[1][:, ::-1])
        assert (grid[12:14] == 255).all()
        text = T.preview(IMAGES[:2], T.RandomHorizontalFlip(1.0), samples=3)
        data = base64.b64decode(text.partition("base64,")[2].partition('"')[0])
        picture = np.asarray(pillow.open(io.BytesIO(data)))
        np.testing.assert_array_equal(picture, T.preview_grid(IMAGES[:2], T.RandomHorizontalFlip(1.0), samples=3))
        grey = np.linspace(0, 1, 6).reshape(2, 3)
        picture = np.asarray(pillow.open(io.BytesIO(T.png_bytes(grey))))
        np.testing.assert_array_equal(picture, np.rint(grey * 255))
        with pytest.raises(ShapeError):
            T.png_bytes(np.zeros((2, 2, 2)))
        with pytest.raises(ShapeError):
            T.preview_grid(np.zeros((0, 2, 2, 1)), T.RandomHorizontalFlip())


@pytest.mark.book("9-27", name="wl.data.transforms.RandAugment")
class TestRandAugment:
    def test_n_different_operations_are_applied(self, monkeypatch: pytest.MonkeyPatch) -> None:
        applied: list[str] = []
        for name, operation in list(T.RandAugment.operations.items()):

            def run(x: np.ndarray, s: np.ndarray, name: str = name) -> np.ndarray:
                applied.extend([name] * len(x))
                np.testing.assert_allclose(abs(s), 0.5)  # the same magnitude for all
                return x

            monkeypatch.setitem(T.RandAugment.operations, name, operation._replace(run=run))
        allowed = ("rotate", "brightness", "shear_x")
        for seed in range(10):
            applied.clear()
            T.RandAugment(2, 15, ops=allowed)(IMAGES[0], seed)
            assert len(applied) == len(set(applied)) == 2
            assert set(applied) <= set(allowed)
        applied.clear()
        T.RandAugment(3, 15)(IMAGES, 0)
        assert len(applied) == 3 * len(IMAGES)
        assert len(set(applied)) > 3  # each image draws its own
        applied.clear()
        T.RandAugment(3, 15, per_sample=False)(IMAGES, 0)
        assert len(set(applied)) == 3  # one draw for the mini-batch, as in the book

    @pytest.mark.parametrize("op", list(T.RandAugment.operations))
    @pytest.mark.parametrize("dtype", ["uint8", "float32"])
    def test_magnitude_zero_is_the_identity(self, op: str, dtype: str) -> None:
        images = IMAGES if dtype == "uint8" else (IMAGES / 255).astype(dtype)
        np.testing.assert_allclose(T.RandAugment(1, 0, ops=[op])(images, 0), images, atol=1e-6)
        if op != "identity":
            assert not np.array_equal(T.RandAugment(1, 30, ops=[op])(images, 0), images)

    def test_operations_that_pillow_has(self) -> None:
        ops = pytest.importorskip("PIL.ImageOps")
        from PIL import Image

        def with_strength(op: str, strength: float) -> np.ndarray:
            return T.RandAugment.operations[op].run(IMAGES[:1], np.array([strength]))[0]

        picture = Image.fromarray(IMAGES[0])
        np.testing.assert_array_equal(with_strength("posterize", 0.5), np.asarray(ops.posterize(picture, 6)))
        threshold = 255 * 0.6  # 153; Pillow inverts from the threshold on
        np.testing.assert_array_equal(
            with_strength("solarize", 0.4), np.asarray(ops.solarize(picture, int(threshold) + 1))
        )
        # 0.3 of 12 pixels to the right: 4 columns are new
        moved = with_strength("translate_x", 1.0)
        np.testing.assert_array_equal(moved[:, 4:], IMAGES[0][:, :-4])
        assert not moved[:, :4].any()

    def test_bad_settings(self) -> None:
        for options in (
            {"n": 4, "ops": ["rotate"]},
            {"magnitude": 31},
            {"ops": ["x"]},
            {"ops": ["rotate"] * 2},
            {"n": -1},
        ):
            with pytest.raises(InputError, match="RandAugment"):
                T.RandAugment(**options)


def test_settings_are_checked() -> None:
    bad: list[Any] = [
        lambda: T.RandomHorizontalFlip(1.5),
        lambda: T.RandomRotation((20, 10)),
        lambda: T.RandomRotation(-5),
        lambda: T.RandomTranslation(1.5),
        lambda: T.RandomZoom((0.0, 1.0)),
        lambda: T.RandomAffine(shear=90),
        lambda: T.RandomRotation(5, interpolation="cubic"),
        lambda: T.Brightness((-1, 1)),
        lambda: T.Hue(0.7),
        lambda: T.GaussianBlur(4),
        lambda: T.GaussianNoise(-1),
        lambda: T.Normalize(0.0, 0.0),
        lambda: T.ToFloat("int32"),
        lambda: T.Pad((1, 2, 3)),
        lambda: T.Pad(1, mode="x"),
        lambda: T.Resize((1, 2, 3)),
        lambda: T.Resize(0),
        lambda: T.Grayscale(2),
        lambda: T.RandomErasing(scale=(0.5, 1.5)),
        lambda: T.Cutout(-1),
    ]
    for make in bad:
        with pytest.raises((InputError, DTypeError)):
            make()
