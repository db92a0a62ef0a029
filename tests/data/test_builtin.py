"""The built-in datasets: the same as scikit-learn's, split once and for all, refused when their files are changed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland.data.builtin import bundled
from wonderland.errors import InputError, ShapeError

sklearn_datasets = pytest.importorskip("sklearn.datasets")


@pytest.mark.book("4.73", name=("wl.data.load", "wl.data.digits", "wl.data.iris"))
class TestBundled:
    def test_digits_are_scikit_learn_s(self) -> None:
        theirs = sklearn_datasets.load_digits()
        ours = wl.data.digits(flat=True, raw=True)
        np.testing.assert_array_equal(ours.features, theirs.data)
        np.testing.assert_array_equal(ours.targets, theirs.target)
        np.testing.assert_array_equal(wl.data.digits().features[..., 0], theirs.images / 16)

    def test_digits_are_split_by_class(self) -> None:
        digits = wl.data.digits()
        assert (len(digits.train), len(digits.test)) == (1437, 360)
        indices = np.concatenate([digits.parts["train"], digits.parts["test"]])
        np.testing.assert_array_equal(np.sort(indices), np.arange(1797))  # each example in one part
        whole, test = (np.bincount(part.targets, minlength=10) for part in (digits, digits.test))  # type: ignore[arg-type]
        assert (abs(test - whole * 360 / 1797) < 1).all()

    def test_iris_is_scikit_learn_s(self) -> None:
        theirs = sklearn_datasets.load_iris()
        ours = wl.data.iris(dtype=np.float64)
        np.testing.assert_array_equal(ours.features, theirs.data)
        np.testing.assert_array_equal(ours.targets, theirs.target)
        assert ours.features.shape == (150, 4)
        assert ours.feature_names == tuple(theirs.feature_names)
        assert ours.target_names == tuple(theirs.target_names)
        assert np.bincount(ours.test.targets).tolist() == [10, 10, 10]  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["wine", "breast_cancer", "diabetes", "linnerud"])
    def test_the_others_come_from_scikit_learn(self, name: str) -> None:
        theirs, ours = getattr(sklearn_datasets, f"load_{name}")(), wl.data.load(name)
        np.testing.assert_allclose(ours.features, theirs.data, rtol=1e-6)
        np.testing.assert_allclose(ours.targets, theirs.target, rtol=1e-6)
        assert ours.num_classes == (len(theirs.target_names) if name in ("wine", "breast_cancer") else 0)

    def test_standardised_iris(self) -> None:
        x = wl.data.load("iris").features.astype(np.float64)
        scaled = wl.data.transforms.Normalize(x.mean(axis=0), x.std(axis=0))(x)
        np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(scaled.std(axis=0), 1)

    def test_changed_files_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = Path(bundled.__file__).with_name("digits.npz").read_bytes()
        assert len(data) < 60_000
        (tmp_path / "digits.npz").write_bytes(data[:1000] + b"?" + data[1001:])
        monkeypatch.setattr(bundled, "__file__", str(tmp_path / "bundled.py"))
        with pytest.raises(InputError, match=r"digits\.npz.*expected sha256 1687b4"):
            wl.data.digits()


def test_scikit_learn_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"sklearn is not installed(.|\n)*wonderland\[sklearn\]"):
        wl.data.load("wine")
    assert len(wl.data.load("digits")) == 1797  # needs nothing


def test_records() -> None:
    iris = wl.data.iris()
    x, y = iris[149]
    assert (x.shape, y) == ((4,), 2)
    np.testing.assert_array_equal(iris[-1][0], x)
    with pytest.raises(IndexError):
        iris[150]
    with pytest.raises(InputError, match="no part 'validation'"):
        iris.part("validation")
    with pytest.raises(InputError, match="no targets"):
        _ = wl.data.DatasetRecord(np.zeros((3, 2))).arrays
    with pytest.raises(ShapeError, match="2 feature names"):
        wl.data.DatasetRecord(np.zeros((3, 3)), feature_names=("a", "b"))
    batches = list(wl.data.DataLoader(iris.train, batch_size=50))
    assert [tuple(x.shape) for x, _ in batches] == [(50, 4), (50, 4), (20, 4)]


def test_list() -> None:
    entries = wl.data.list()
    assert {"digits", "iris", "wine", "moons", "xor"} <= {entry.name for entry in entries}
    for entry in wl.data.list("generated"):
        record = wl.data.load(entry.name)
        assert len(record) == len(record.targets)
        if record.num_classes:
            assert set(record.targets.tolist()) <= set(range(record.num_classes))
    with pytest.raises(InputError, match="no kind 'x'"):
        wl.data.list("x")


class TestMnist:
    @staticmethod
    def write(folder: Path, part: str, n: int, prefix: str = "", ending: str = ".gz") -> np.ndarray:
        images = np.random.default_rng(n).integers(0, 256, (n, 28, 28), dtype=np.uint8)
        wl.data.write_idx(folder / f"{prefix}{part}-images-idx3-ubyte{ending}", images)
        wl.data.write_idx(folder / f"{prefix}{part}-labels-idx1-ubyte{ending}", (np.arange(n) % 10).astype(np.uint8))
        return images

    def test_both_parts(self, tmp_path: Path) -> None:
        train, test = self.write(tmp_path, "train", 20), self.write(tmp_path, "t10k", 10, ending="")
        record = wl.data.load(tmp_path)
        assert record.features.shape == (30, 28, 28, 1)
        np.testing.assert_array_equal(record.test.features[..., 0], test.astype(np.float32) / 255)
        raw = wl.data.mnist(tmp_path, raw=True, flat=True)
        np.testing.assert_array_equal(raw.train.features, train.reshape(20, 784))

    def test_one_part_is_split(self, tmp_path: Path) -> None:
        self.write(tmp_path, "t10k", 10, prefix="mnist-")
        record = wl.data.mnist(tmp_path)
        assert (len(record.train), len(record.test)) == (8, 2)
        with pytest.raises(InputError, match="expected sha256 1234"):
            wl.data.mnist(tmp_path, expect_sha256={"mnist-t10k-labels-idx1-ubyte.gz": "1234"})
        assert record.test.targets.tolist() == [8, 9]

    def test_bad_folders(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no images and labels"):
            wl.data.mnist(tmp_path)
        self.write(tmp_path, "train", 10)
        wl.data.write_idx(tmp_path / "train-labels-idx1-ubyte.gz", np.zeros(9, np.uint8))
        with pytest.raises(ShapeError, match="train-images-idx3-ubyte"):
            wl.data.mnist(tmp_path)
