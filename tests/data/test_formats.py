"""Readers of binary formats: what is written comes back, other libraries agree, and damage is refused by name."""

from __future__ import annotations

import gzip
import hashlib
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

IDX_TYPES = ("uint8", "int8", "int16", "int32", "float32", "float64")


class TestIdx:
    @pytest.mark.parametrize("dtype", IDX_TYPES)
    @pytest.mark.parametrize("ending", ["", ".gz"])
    def test_what_is_written_comes_back(self, tmp_path: Path, dtype: str, ending: str) -> None:
        rng = np.random.default_rng(0)
        for shape in ((5,), (3, 4), (2, 3, 4), (0, 3)):
            array = (rng.standard_normal(shape) * 50).astype(dtype)
            path = tmp_path / f"a{ending}"
            wl.data.write_idx(path, array)
            found = wl.data.read_idx(path)
            np.testing.assert_array_equal(found, array)
            assert found.dtype == dtype

    def test_bytes_are_those_of_the_definition(self, tmp_path: Path) -> None:
        wl.data.write_idx(tmp_path / "a", np.array([[1, 2, -3]], ">i2"))
        expected = bytes([0, 0, 0x0B, 2]) + struct.pack(">2I3h", 1, 3, 1, 2, -3)
        assert (tmp_path / "a").read_bytes() == expected

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"\0\0\x08\1" + struct.pack(">I", 5) + b"1234", "13 bytes for uint8 of shape (5,), found 12"),
            (b"\0\0\x08\1" + struct.pack(">I", 3) + b"1234", "11 bytes"),
            (b"\0\0\x08\3" + struct.pack(">3I", 2**32 - 1, 2**32 - 1, 2**32 - 1), "beyond any memory"),
            (b"\0\0\x08\2" + struct.pack(">I", 5), "a header of 12 bytes"),
            (b"\0\0\x07\1" + struct.pack(">I", 0), "begins with 00 00"),
            (b"\1\0\x08\1", "begins with 00 00"),
            (b"", "begins with 00 00"),
            (gzip.compress(b"\0\0\x08\1" + struct.pack(">I", 4) + b"1234", mtime=0)[:-6], "a whole gzip file"),
        ],
    )
    def test_damage_is_refused(self, tmp_path: Path, data: bytes, says: str) -> None:
        path = tmp_path / "labels-idx1-ubyte"
        path.write_bytes(data)
        with pytest.raises(InputError) as error:
            wl.data.read_idx(path)
        assert "labels-idx1-ubyte" in str(error.value)
        assert says in str(error.value)

    def test_size_and_hash(self, tmp_path: Path) -> None:
        path = tmp_path / "a.gz"
        wl.data.write_idx(path, np.arange(4, dtype=np.uint8))
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        wl.data.read_idx(path, expect_size=len(data), expect_sha256=digest.upper())
        with pytest.raises(InputError, match=f"expected {len(data) + 1} bytes, found {len(data)}"):
            wl.data.read_idx(path, expect_size=len(data) + 1)
        with pytest.raises(InputError, match="expected sha256 0000"):
            wl.data.load(path, expect_sha256="0" * 64)

    def test_what_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(DTypeError, match="no int64"):
            wl.data.write_idx(tmp_path / "a", np.arange(3))
        with pytest.raises(InputError, match="shape"):
            wl.data.write_idx(tmp_path / "a", np.uint8(3))


def cifar_file(path: Path, labels: list[Any], seed: int = 0) -> np.ndarray:
    """A file of records with random pixels; returns the planes (n, 3, 32, 32)."""
    planes = np.random.default_rng(seed).integers(0, 256, (len(labels), 3, 32, 32), dtype=np.uint8)
    path.write_bytes(b"".join(bytes(label) + plane.tobytes() for label, plane in zip(labels, planes, strict=True)))
    return planes


class TestCifar:
    def test_ten_classes(self, tmp_path: Path) -> None:
        for i in range(1, 6):
            planes = cifar_file(tmp_path / f"data_batch_{i}.bin", [[i], [0]], seed=i)
        cifar_file(tmp_path / "test_batch.bin", [[9]])
        images, labels = wl.data.read_cifar10(tmp_path / "data_batch_5.bin")
        np.testing.assert_array_equal(labels, [5, 0])
        np.testing.assert_array_equal(images[1, 7, 11], planes[1, :, 7, 11])  # plane, row, column
        record = wl.data.load(tmp_path)
        assert (record.name, len(record.train), len(record.test)) == ("cifar10", 10, 1)
        assert record.test.targets.tolist() == [9]
        assert record.target_names[9] == "truck"
        with pytest.raises(InputError, match=r"test_batch\.bin.*expected sha256 1234"):
            wl.data.cifar10(tmp_path, expect_sha256={"test_batch.bin": "1234"})
        assert wl.data.load(tmp_path / "test_batch.bin").features.shape == (1, 32, 32, 3)

    def test_a_hundred_classes(self, tmp_path: Path) -> None:
        cifar_file(tmp_path / "train.bin", [[3, 77], [19, 99]])
        cifar_file(tmp_path / "test.bin", [[0, 1]])
        (tmp_path / "coarse_label_names.txt").write_text("\n".join(f"group{i}" for i in range(20)))
        assert wl.data.load(tmp_path).targets.tolist() == [77, 99, 1]
        coarse = wl.data.cifar100(tmp_path, labels="coarse")
        assert coarse.targets.tolist() == [3, 19, 0]
        assert coarse.target_names[3] == "group3"

    def test_damage_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "b.bin"
        cifar_file(path, [[1], [10]])
        with pytest.raises(InputError, match="labels below 10, found 10 in record 1"):
            wl.data.read_cifar10(path)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(InputError, match="records of 3073 bytes each, found 6,145"):
            wl.data.read_cifar10(path)
        with pytest.raises(InputError, match="records of 3074"):
            wl.data.read_cifar100(path)
        with pytest.raises(InputError, match=r"lacks the training files or test_batch\.bin"):
            wl.data.cifar10(tmp_path)
        with pytest.raises(InputError, match="labels='x'"):
            wl.data.read_cifar100(path, labels="x")


class TestNumpyFiles:
    def test_arrays_come_back(self, tmp_path: Path) -> None:
        x, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 0])
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", y)
        record = wl.data.load(tmp_path / "x.npy", targets=tmp_path / "y.npy")
        np.testing.assert_array_equal(record.features, x)
        np.testing.assert_array_equal(record.targets, y)
        np.savez(tmp_path / "a.npz", X=x, y=y)
        np.testing.assert_array_equal(wl.data.load(tmp_path / "a.npz").targets, y)
        np.savez_compressed(tmp_path / "b.npz", x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
        split = wl.data.load(tmp_path / "b.npz")
        assert (len(split.train), len(split.test)) == (3, 1)
        np.savez(tmp_path / "c.npz", one=x, two=y)
        with pytest.raises(InputError, match="'one', 'two'; which are the features"):
            wl.data.load(tmp_path / "c.npz")
        assert wl.data.load(tmp_path / "c.npz", features="one", targets="two").targets.tolist() == [0, 1, 0]
        with pytest.raises(InputError, match="no array 'three'"):
            wl.data.load(tmp_path / "c.npz", features="one", targets="three")

    def test_code_is_never_run(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> Any:
                return (pytest.fail, ("the file was executed",))

        np.save(tmp_path / "trap.npy", np.array([Trap()], dtype=object), allow_pickle=True)
        np.savez(tmp_path / "trap.npz", x=np.array([Trap()], dtype=object))
        (tmp_path / "plain.npy").write_bytes(pickle.dumps(Trap()))
        for read, name in (
            (wl.data.read_npy, "trap.npy"),
            (wl.data.read_npz, "trap.npz"),
            (wl.data.read_npy, "plain.npy"),
        ):
            with pytest.raises(InputError, match=name):
                read(tmp_path / name)

    def test_damage_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.arange(100))
        np.savez(tmp_path / "a.npz", x=np.arange(100))
        for name in ("a.npy", "a.npz"):
            data = (tmp_path / name).read_bytes()
            for cut in (0, 4, 20, len(data) // 2, len(data) - 1):
                (tmp_path / name).write_bytes(data[:cut])
                with pytest.raises(InputError, match=name):
                    (wl.data.read_npy if name == "a.npy" else wl.data.read_npz)(tmp_path / name)
        broken = bytearray(data)
        broken[len(data) // 2] ^= 255
        (tmp_path / "a.npz").write_bytes(broken)
        with pytest.raises(InputError, match=r"a\.npz"):
            wl.data.read_npz(tmp_path / "a.npz")


class TestFolders:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        image = pytest.importorskip("PIL.Image")
        rng = np.random.default_rng(0)
        for name in ("dog", "cat"):
            (tmp_path / name / "more").mkdir(parents=True)
            for file in ("b.png", "a.PNG", "more/c.bmp"):
                pixels = rng.integers(0, 256, (5, 6, 3), dtype=np.uint8)
                image.fromarray(pixels).save(tmp_path / name / file)
        (tmp_path / "dog" / "notes.txt").write_text("not an image")
        (tmp_path / ".hidden").mkdir()
        return tmp_path

    def test_images_are_read_with_their_class(self, root: Path) -> None:
        from PIL import Image

        folder = wl.data.load(root)
        assert folder.classes == ("cat", "dog")
        assert folder.targets == (0, 0, 0, 1, 1, 1)
        assert [path.name for path, _ in folder.samples[:3]] == ["a.PNG", "b.png", "c.bmp"]
        image, label = folder[-2]
        np.testing.assert_array_equal(image, np.asarray(Image.open(root / "dog" / "b.png")))
        assert (label, image.dtype) == (1, np.uint8)
        grey, _ = wl.data.ImageFolder(root, mode="L", size=(4, 4))[0]
        assert grey.shape == (4, 4, 1)
        x, y = next(iter(wl.data.DataLoader(folder, batch_size=4)))
        assert (x.shape, y.tolist()) == ((4, 5, 6, 3), [0, 0, 0, 1])

    def test_numpy_images(self, root: Path) -> None:
        np.save(root / "cat" / "0.npy", np.arange(6.0).reshape(2, 3))
        image, label = wl.data.ImageFolder(root)[0]
        assert (image.shape, label) == ((2, 3, 1), 0)
        np.save(root / "cat" / "0.npy", np.zeros(3))
        with pytest.raises(ShapeError, match=r"0\.npy"):
            wl.data.ImageFolder(root)[0]

    def test_bad_folders(self, root: Path, tmp_path: Path) -> None:
        data = (root / "dog" / "b.png").read_bytes()
        (root / "dog" / "b.png").write_bytes(data[: len(data) // 2])
        folder = wl.data.ImageFolder(root)  # lazily: nothing is read yet
        with pytest.raises(InputError, match=r"b\.png.*expected a whole \.png image"):
            folder[4]
        with pytest.raises(IndexError):
            folder[6]
        (root / "empty").mkdir()
        with pytest.raises(InputError, match=r"no image in .*empty"):
            wl.data.ImageFolder(root)
        with pytest.raises(InputError, match="no subfolders"):
            wl.data.ImageFolder(root / "empty")
        with pytest.raises(InputError, match="there is no"):
            wl.data.ImageFolder(root / "nowhere")
        with pytest.raises(InputError, match="mode"):
            wl.data.ImageFolder(root, mode="CMYK")


class TestLoad:
    def test_kinds_are_told_by_content(self, tmp_path: Path) -> None:
        images, labels = np.zeros((4, 3, 3), np.uint8), np.array([1, 0, 2, 1], np.uint8)
        wl.data.write_idx(tmp_path / "images", images)
        wl.data.write_idx(tmp_path / "labels.gz", labels)
        record = wl.data.load(tmp_path / "images", targets=tmp_path / "labels.gz")
        assert record.targets.dtype == np.int64
        assert record[2][1] == 2
        wl.data.write_idx(tmp_path / "labels.gz", labels[:3])
        with pytest.raises(ShapeError, match="4 examples and 3 targets"):
            wl.data.load(tmp_path / "images", targets=tmp_path / "labels.gz")

    def test_unknown_sources(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no dataset or file 'moon'"):
            wl.data.load("moon")
        with pytest.raises(InputError, match=r"there is no './moon\.csv'|there is no 'moon\.csv'"):
            wl.data.load("./moon.csv")
        with pytest.raises(InputError, match="int is not a path"):
            wl.data.load(3)  # type: ignore[arg-type]
        (tmp_path / "x.unknown").write_bytes(b"abcdefgh")
        with pytest.raises(InputError, match=r"x\.unknown.*of no known kind"):
            wl.data.load(tmp_path / "x.unknown")
        (tmp_path / "labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"abc" * 100)[:9])
        with pytest.raises(InputError, match="a whole gzip file"):
            wl.data.load(tmp_path / "labels-idx1-ubyte.gz")
        with pytest.raises(InputError, match="is a folder"):
            wl.data.read_idx(tmp_path)
