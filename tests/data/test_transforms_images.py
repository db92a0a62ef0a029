"""What each transform of images computes, against NumPy, SciPy, Pillow and colorsys."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

T = wl.data.transforms
RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (11, 14, 3), dtype=np.uint8)
SQUARE = RNG.standard_normal((9, 9, 2))


def rotated(image: np.ndarray, degrees: float, **options: Any) -> np.ndarray:
    return T.RandomRotation((degrees, degrees), **options)(image)


@pytest.mark.book("9-26", name=("wl.data.transforms.RandomRotation", "wl.data.transforms.RandomHorizontalFlip"))
class TestFlipsAndQuarterTurns:
    def test_twice_is_the_identity(self) -> None:
        for flip in (T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0)):
            np.testing.assert_array_equal(flip(flip(IMAGE)), IMAGE)
        np.testing.assert_array_equal(T.RandomHorizontalFlip(1.0)(IMAGE), np.fliplr(IMAGE))
        np.testing.assert_array_equal(T.RandomVerticalFlip(1.0)(IMAGE), np.flipud(IMAGE))
        np.testing.assert_array_equal(T.RandomHorizontalFlip(0.0)(IMAGE), IMAGE)

    @pytest.mark.parametrize("size", [8, 9])
    @pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
    def test_quarter_turns_are_exact(self, size: int, interpolation: str) -> None:
        image = RNG.standard_normal((size, size, 2))
        for turns in range(-4, 5):
            turned = rotated(image, 90 * turns, interpolation=interpolation)
            np.testing.assert_array_equal(turned, np.rot90(image, turns))
        four = image
        for _ in range(4):
            four = rotated(four, 90, interpolation=interpolation)
        np.testing.assert_array_equal(four, image)

    def test_half_turns_of_any_shape(self) -> None:
        np.testing.assert_array_equal(rotated(IMAGE, 180), IMAGE[::-1, ::-1])
        np.testing.assert_array_equal(rotated(IMAGE, 0), IMAGE)


@pytest.mark.book("9-25", name="wl.data.transforms.RandomRotation")
class TestWarps:
    @pytest.mark.parametrize("degrees", [-73.0, -20.0, 5.0, 20.0, 120.0])
    def test_rotation_is_scipy_s(self, degrees: float) -> None:
        expected = ndimage.rotate(SQUARE, degrees, order=1, reshape=False, mode="grid-constant", cval=0.5)
        np.testing.assert_allclose(rotated(SQUARE, degrees, fill=0.5), expected, atol=1e-12)

    def test_affine_is_scipy_s(self) -> None:
        image = RNG.standard_normal((10, 13, 1))
        degrees, scale, shear, shift = 17.0, 1.3, 8.0, np.array([2.0, -3.0])
        angle, slope = np.deg2rad(degrees), np.tan(np.deg2rad(shear))
        # forward, on (row, column): shear columns, scale, turn counter-clockwise (rows go down)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        forward = turn @ (scale * np.array([[1, 0], [slope, 1]]))
        inverse, middle = np.linalg.inv(forward), (np.array([10, 13]) - 1) / 2
        expected = ndimage.affine_transform(
            image[..., 0], inverse, middle - inverse @ (middle + shift), order=1, mode="grid-constant"
        )
        params = {
            "degrees": np.array([degrees]),
            "scale": np.array([scale]),
            "shear": np.array([shear]),
            "translate": (shift / [10, 13])[None],
        }
        np.testing.assert_allclose(T.RandomAffine(30).apply(image, params)[..., 0], expected, atol=1e-12)

    def test_ranges_of_the_draws(self) -> None:
        affine = T.RandomAffine(20, (0.1, 0.2), (0.5, 2.0), (0, 5))
        params = affine.sample_params(np.random.default_rng(0), 4000)
        for values, (low, high) in (
            (params["degrees"], (-20, 20)),
            (params["scale"], (0.5, 2)),
            (params["shear"], (0, 5)),
            (params["translate"][:, 0], (-0.1, 0.1)),
            (params["translate"][:, 1], (-0.2, 0.2)),
        ):
            assert low <= values.min() < low + 0.02 * (high - low)
            assert high - 0.02 * (high - low) < values.max() <= high
        assert params["degrees"].std() == pytest.approx(40 / np.sqrt(12), rel=0.03)

    def test_shift_by_whole_pixels(self) -> None:
        image = np.arange(1, 26, dtype=np.float32).reshape(5, 5)
        params = T.RandomTranslation(0.5).neutral_params() | {"translate": np.array([[0.4, -0.2]])}
        moved = T.RandomTranslation(0.5, fill=-1).apply(image, params)
        np.testing.assert_array_equal(moved[2:, :-1], image[:-2, 1:])
        assert (moved[:2] == -1).all()
        assert (moved[:, -1] == -1).all()

    def test_zoom(self) -> None:
        image = np.pad(np.full((4, 4), 2.0), 2)
        assert (T.RandomZoom((2.0, 2.0), interpolation="nearest")(image) == 2).all()
        small = T.RandomZoom((0.5, 0.5))(np.ones((8, 8)))
        np.testing.assert_array_equal(small[2:6, 2:6], 1)
        assert small.sum() == pytest.approx(16)

    def test_large_batches_in_parts(self) -> None:
        images = RNG.random((3, 200, 500, 1)).astype(np.float32)  # each is more than is computed at once
        params = T.RandomRotation(30).sample_params(np.random.default_rng(0), 3)
        result = T.RandomRotation(30).apply(images, params)
        for image, degrees, found in zip(images, params["degrees"], result, strict=True):
            np.testing.assert_array_equal(rotated(image, degrees), found)


class TestSizes:
    @pytest.mark.parametrize("size", [(5, 7), (22, 28), (11, 14), (6, 30), (1, 1)])
    def test_resize_is_pillow_s(self, size: tuple[int, int]) -> None:
        pillow = pytest.importorskip("PIL.Image")
        channel = (IMAGE[..., 0] / 255).astype(np.float32)
        expected = pillow.fromarray(channel).resize(size[::-1], pillow.Resampling.BILINEAR)
        np.testing.assert_allclose(T.Resize(size)(channel), np.asarray(expected), atol=1e-6)
        nearest = pillow.fromarray(IMAGE).resize(size[::-1], pillow.Resampling.NEAREST)
        np.testing.assert_array_equal(T.Resize(size, "nearest")(IMAGE), np.asarray(nearest))
        bytes_ = pillow.fromarray(IMAGE).resize(size[::-1], pillow.Resampling.BILINEAR)
        assert abs(T.Resize(size)(IMAGE).astype(int) - np.asarray(bytes_)).max() <= 1  # Pillow rounds twice

    def test_without_antialias_only_neighbours_count(self) -> None:
        row = np.array([[0.0, 1.0, 10.0, 20.0, 5.0, 7.0]])
        # the middles of the new pixels lie at 1 and 4
        np.testing.assert_allclose(T.Resize((1, 2), antialias=False)(row), [[1.0, 5.0]])
        same = T.Resize((11, 14))(IMAGE)
        np.testing.assert_array_equal(same, IMAGE)

    def test_random_resized_crop(self) -> None:
        crop = T.RandomResizedCrop((6, 8), scale=(0.3, 0.5), ratio=(0.9, 1.1))
        params = {"scale": np.array([36 / 154]), "ratio": np.ones(1), "place": np.array([[0.999, 0.5]])}
        # a part of 6 x 6 at the bottom, in the middle of the 9 places from left to right
        np.testing.assert_array_equal(crop.apply(IMAGE, params), T.Resize((6, 8))(IMAGE[5:11, 4:10]))
        assert crop(IMAGE[None].repeat(3, axis=0), 0).shape == (3, 6, 8, 3)
        np.testing.assert_array_equal(crop.eval()(IMAGE), T.Resize((6, 8))(IMAGE))

    def test_crops_and_borders(self) -> None:
        np.testing.assert_array_equal(T.CenterCrop((5, 4))(IMAGE), IMAGE[3:8, 5:9])
        padded = T.Pad((1, 2, 3, 4), fill=9)(IMAGE)
        np.testing.assert_array_equal(padded, np.pad(IMAGE, ((1, 2), (3, 4), (0, 0)), constant_values=9))
        np.testing.assert_array_equal(
            T.Pad((1, 2), mode="reflect")(IMAGE), np.pad(IMAGE, ((1, 1), (2, 2), (0, 0)), "reflect")
        )
        with pytest.raises(ShapeError, match="12 x 4 from images of 11 x 14"):
            T.CenterCrop((12, 4))(IMAGE)

    def test_every_place_of_a_crop_is_equally_likely(self) -> None:
        image = np.arange(12).reshape(3, 4, 1)
        crops = T.RandomCrop(2)(np.repeat(image[None], 6000, axis=0), 0)
        corners, counts = np.unique(crops[:, 0, 0, 0], return_counts=True)
        assert corners.tolist() == [0, 1, 2, 4, 5, 6]
        assert (abs(counts - 1000) < 150).all()
        for crop in crops[:20, ..., 0]:
            top, left = divmod(int(crop[0, 0]), 4)
            np.testing.assert_array_equal(crop, image[top : top + 2, left : left + 2, 0])
        padded = T.RandomCrop((3, 4), padding=1)(np.ones((500, 3, 4, 1)), 0)
        assert set(padded.sum(axis=(1, 2, 3)).tolist()) == {6.0, 8.0, 9.0, 12.0}


class TestColours:
    @pytest.mark.parametrize("factor", [0.0, 0.4, 1.0, 1.7])
    def test_factors_are_pillow_s(self, factor: float) -> None:
        enhance = pytest.importorskip("PIL.ImageEnhance")
        from PIL import Image

        picture = Image.fromarray(IMAGE)
        for ours, theirs in (
            (T.Brightness, enhance.Brightness),
            (T.Contrast, enhance.Contrast),
            (T.Saturation, enhance.Color),
        ):
            found = ours((factor, factor))(IMAGE).astype(int)
            assert abs(found - np.asarray(theirs(picture).enhance(factor))).max() <= 1  # Pillow truncates
        grey = T.Grayscale()(IMAGE)[..., 0].astype(int)
        assert abs(grey - np.asarray(picture.convert("L"))).max() <= 1
        assert T.Grayscale(3)(IMAGE).shape == IMAGE.shape

    @pytest.mark.parametrize("shift", [-0.4, -0.1, 0.05, 0.5])
    def test_hue_is_colorsys_s(self, shift: float) -> None:
        image = RNG.random((6, 6, 3))
        image[0] = image[0, :, :1]  # greys have no hue
        expected = np.empty_like(image)
        for place in np.ndindex(6, 6):
            hue, saturation, value = colorsys.rgb_to_hsv(*image[place])
            expected[place] = colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value)
        np.testing.assert_allclose(T.Hue((shift, shift))(image), expected, atol=1e-12)

    def test_jitter_is_its_steps(self) -> None:
        jitter = T.ColorJitter(0.3, (0.5, 0.8), 0.2, 0.1)
        params = jitter.sample_params(np.random.default_rng(0), 1)
        expected = IMAGE
        for step, values in zip((T.Brightness(0), T.Contrast(0), T.Saturation(0), T.Hue(0)), params, strict=True):
            expected = step.apply(expected, values)
        np.testing.assert_array_equal(jitter.apply(IMAGE, params), expected)
        assert T.ColorJitter(brightness=0.1).changes == {"brightness"}

    def test_grey_images(self) -> None:
        grey = RNG.random((5, 5, 1))
        np.testing.assert_array_equal(T.Saturation(0.5)(grey, 0), grey)
        np.testing.assert_allclose(T.Contrast((0, 0))(grey), grey.mean())
        two = RNG.random((5, 5, 2))
        for transform in (T.Saturation(0.5), T.Hue(0.1), T.Grayscale()):
            with pytest.raises(ShapeError, match="2 channels"):
                transform(two, 0)

    def test_normalised_images_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"values from -2 to 1(.|\n)*before Normalize"):
            T.Brightness(0.1)(np.array([[-2.0, 1.0]]), 0)


class TestBlurAndPatches:
    @pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
    def test_blur_is_scipy_s(self, sigma: float) -> None:
        image = RNG.random((9, 8, 2))
        expected = ndimage.gaussian_filter(image, (sigma, sigma, 0), mode="mirror", radius=(3, 3, 0))
        np.testing.assert_allclose(T.GaussianBlur(7, sigma)(image), expected, atol=1e-12)
        with pytest.raises(ShapeError, match="kernel_size=21"):
            T.GaussianBlur(21)(image, 0)

    @pytest.mark.book("9-48", name="wl.data.transforms.Cutout")
    def test_cutout_cuts_a_square(self) -> None:
        image = np.ones((10, 10, 3))
        for size in (1, 4, 5):
            inside = T.Cutout(size).apply(image, np.array([[0.5, 0.5, 0.5]]))
            holes = (inside == 0).all(axis=2)
            assert holes.sum() == size**2
            rows, columns = np.nonzero(holes)
            assert (np.ptp(rows), np.ptp(columns)) == (size - 1, size - 1)  # type: ignore[comparison-overlap]
        corner = T.Cutout(5).apply(image, np.array([[0.0, 0.0, 0.0]]))
        assert (corner[..., 0] == 0).sum() == 9  # clipped at the border: 3 x 3 are left
        one = T.Cutout(4, per_channel=True).apply(image, np.array([[0.5, 0.5, 0.4]]))
        assert (one == 0).sum(axis=(0, 1)).tolist() == [0, 16, 0]  # the book's: a single channel
        many = T.Cutout(4, per_channel=True)(np.ones((300, 10, 10, 3)), 0)
        assert ((many == 0).any(axis=(1, 2)).sum(axis=1) == 1).all()
        assert set(np.argmax((many == 0).any(axis=(1, 2)), axis=1).tolist()) == {0, 1, 2}
        assert (T.Cutout(4, p=0.0)(image, 0) == 1).all()
        assert (T.Cutout(20, fill=7)(np.zeros((4, 4), np.uint8), 0) == 7).all()

    def test_random_erasing_stays_inside(self) -> None:
        images = np.ones((400, 12, 16, 1))
        erased = T.RandomErasing(0.5, scale=(0.1, 0.2), ratio=(0.5, 2.0))(images, 0)
        holes = (erased == 0).sum(axis=(1, 2, 3)) / (12 * 16)
        assert 0.4 < (holes > 0).mean() < 0.6
        assert holes[holes > 0].min() > 0.07
        assert holes.max() < 0.23
        places = (erased == 0).any(axis=0)
        assert places.all()  # everything can be hit


class TestValues:
    def test_to_float(self) -> None:
        np.testing.assert_array_equal(T.ToFloat()(IMAGE), IMAGE.astype(np.float32) / np.float32(255))
        assert T.ToFloat(np.float64)(IMAGE).dtype == np.float64
        np.testing.assert_array_equal(T.ToFloat()(SQUARE), SQUARE.astype(np.float32))

    def test_normalize(self) -> None:
        x = RNG.random((2, 4, 4, 3))
        mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
        np.testing.assert_allclose(T.Normalize(mean, std)(x), (x - mean) / std)
        with pytest.raises(DTypeError, match="ToFloat"):
            T.Normalize(0.5, 0.5)(IMAGE)
        with pytest.raises(ShapeError, match="one for each channel"):
            T.Normalize([0.1, 0.2], [1.0, 1.0])(x)

    def test_one_hot(self) -> None:
        np.testing.assert_array_equal(T.OneHot(4)([[1, 3]]), np.eye(4)[[[1, 3]]])
        with pytest.raises(IndexError, match="labels from 0 to 4 for 4 classes"):
            T.OneHot(4)([0, 4])
        with pytest.raises(IndexError):
            T.OneHot(4)([-1])
        with pytest.raises(DTypeError, match="not integers"):
            T.OneHot(4)([0.5])

    @pytest.mark.book("9-24", "A8-04", name="wl.data.transforms.GaussianNoise")
    def test_noise_acts_as_weight_decay(self) -> None:
        n, d, sigma, draws = 6, 3, 0.5, 20_000
        X, w = RNG.standard_normal((n, d)), RNG.standard_normal(d)
        y = RNG.standard_normal(n)
        noisy = T.GaussianNoise(sigma)(np.broadcast_to(X, (draws, n, d)), 0)
        assert (noisy - X).std() == pytest.approx(sigma, rel=0.01)
        losses = ((noisy @ w - y) ** 2).sum(axis=1)
        expected = ((X @ w - y) ** 2).sum() + n * sigma**2 * (w @ w)
        assert losses.mean() == pytest.approx(expected, abs=4 * losses.std() / np.sqrt(draws))

    @pytest.mark.book("A8-04", name="wl.data.transforms.GaussianNoise")
    def test_noise_is_for_training(self) -> None:
        noise = T.GaussianNoise(0.3)
        x = RNG.standard_normal((5, 4))
        assert not np.array_equal(noise(x), noise(x))  # drawn at run time, not stored
        np.testing.assert_array_equal(noise.eval()(x), x)
        np.testing.assert_array_equal(T.GaussianNoise(0.0)(x), x)
        bytes_ = T.GaussianNoise(0.1)(np.full((100, 100), 128, np.uint8), 0)
        assert bytes_.std() == pytest.approx(25.5, rel=0.03)
        images = T.GaussianNoise(1.0)(np.zeros((4, 5, 5, 1)), 0)
        assert len(np.unique(images)) == images.size  # each pixel has its own
