"""Sources: mapped files, Arrow tables, a stand-in for Hugging Face datasets, anything with examples."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from wonderland import data
from wonderland.errors import DTypeError, InputError, ShapeError

RNG = np.random.default_rng(0)


def test_memory_maps(tmp_path):
    x = RNG.normal(size=(20, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "xy.npz", x=x, y=np.arange(20), f=np.asfortranarray(x))
    np.savez_compressed(tmp_path / "small.npz", x=x)
    (tmp_path / "raw.bin").write_bytes(b"1234" + x.tobytes())
    found = [
        data.memory_map(tmp_path / "x.npy"),
        data.memory_map(tmp_path / "xy.npz", "x"),
        data.memory_map(tmp_path / "xy.npz", "f"),
        data.memory_map(tmp_path / "raw.bin", dtype=np.float32, shape=(-1, 3), offset=4),
        data.memory_map(tmp_path / "raw.bin", dtype=np.float32, shape=(20, 3), offset=4),
    ]
    for array in found:
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, x)
    np.testing.assert_array_equal(data.memory_map(tmp_path / "small.npz"), x)
    dataset = data.TensorDataset(found[1], data.memory_map(tmp_path / "xy.npz", "y"))
    for workers in (0, 1):
        for xb, yb in data.DataLoader(dataset, 8, shuffle=True, num_workers=workers):
            np.testing.assert_array_equal(x[yb.numpy()], xb)


def test_memory_maps_of_bad_files(tmp_path):
    (tmp_path / "raw.bin").write_bytes(b"12345678")
    np.savez(tmp_path / "xy.npz", x=np.zeros(2), y=np.zeros(2))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "half.npy").write_bytes(b"\x93NUMPY\x01\x00")
    with pytest.raises(InputError, match="there is no file"):
        data.memory_map(tmp_path / "none.npy")
    with pytest.raises(InputError, match=r"no array None.*\n.*\['x', 'y'\]"):
        data.memory_map(tmp_path / "xy.npz")
    for name in ("raw.bin", "objects.npy", "half.npy"):
        with pytest.raises(InputError, match="is not an array file"):
            data.memory_map(tmp_path / name)
    for shape in ((3,), (-1, 3), None):
        if shape is None:
            assert data.memory_map(tmp_path / "raw.bin", dtype=np.int32).shape == (2,)
            continue
        with pytest.raises(ShapeError, match="8 bytes after offset 0"):
            data.memory_map(tmp_path / "raw.bin", dtype=np.int32, shape=shape)


# --- Arrow


def table_of(n=10):
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {
            "a": np.arange(n, dtype=np.float32),
            "b": np.arange(n, dtype=np.float32) * 10,
            "label": np.arange(n) % 3,
            "vector": [[i, i + 1] for i in range(n)],
            "fixed": pa.array([[[i], [i]] for i in range(n)], pa.list_(pa.list_(pa.float64(), 1), 2)),
            "text": [f"row {i}" for i in range(n)],
            "kind": pa.array(["x", "y"] * (n // 2)).dictionary_encode(),
        }
    )


def test_arrow_rows_and_batches():
    dataset = data.ArrowDataset(table_of())
    row = dataset[3]
    assert (float(row["a"]), int(row["label"]), row["text"], row["kind"]) == (3.0, 0, "row 3", "y")
    assert row["vector"].tolist() == [3, 4]
    assert row["fixed"].shape == (2, 1)
    for workers in (0, 1):
        (batch,) = data.DataLoader(dataset, 10, shuffle=True, num_workers=workers)
        order = batch["a"].numpy().astype(int)
        assert sorted(order) == list(range(10))
        np.testing.assert_array_equal(batch["vector"], order[:, None] + [0, 1])
        assert batch["text"] == [f"row {i}" for i in order]
        assert batch["fixed"].shape == (10, 2, 1)
    pairs = data.ArrowDataset(table_of(), inputs=["a", "b"], target="label")
    x, y = pairs[4]
    assert (x.tolist(), int(y)) == ([4.0, 40.0], 1)
    xb, yb = next(iter(data.DataLoader(pairs, 4)))
    assert xb.tolist() == [[0, 0], [1, 10], [2, 20], [3, 30]]
    assert yb.tolist() == [0, 1, 2, 0]
    vectors = data.ArrowDataset(table_of(), inputs="vector", target="label")
    assert vectors[1][0].tolist() == [1, 2]


def test_arrow_chunks_slices_and_files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.concat_tables([table_of(), table_of().slice(2, 4)])
    dataset = data.as_dataset(table, columns=["a", "vector"])
    assert len(dataset) == 14
    assert dataset[12]["vector"].tolist() == [4, 5]
    for name, new in (("file.arrow", pa.ipc.new_file), ("stream.arrow", pa.ipc.new_stream)):
        with pa.OSFile(str(tmp_path / name), "wb") as sink, new(sink, table.schema) as writer:
            writer.write_table(table)
        assert data.ArrowDataset.open(tmp_path / name)[11]["text"] == "row 3"
    (tmp_path / "bad.arrow").write_bytes(b"no arrow at all")
    for name in ("bad.arrow", "none.arrow"):
        with pytest.raises(InputError, match="is no Arrow file"):
            data.ArrowDataset.open(tmp_path / name)


def test_arrow_refusals(monkeypatch):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="no column 'z'"):
        data.ArrowDataset(table_of(), ["z"])
    with pytest.raises(InputError, match="go together"):
        data.ArrowDataset(table_of(), inputs=["a"])
    with pytest.raises(InputError, match="'a' has 1 missing"):
        data.ArrowDataset(pa.table({"a": [1, None]}))
    with pytest.raises(ShapeError, match="'v' differ in length"):
        data.ArrowDataset(pa.table({"v": [[1], [2, 3]]})).__getitems__([0, 1])
    with pytest.raises(DTypeError, match="not all columns of numbers"):
        data.ArrowDataset(table_of(), inputs=["a", "text"], target="label").__getitems__([0])
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    with pytest.raises(InputError, match=r"pip install 'wonderland\[arrow\]'"):
        data.ArrowDataset.open("x.arrow")


# --- the interface of Hugging Face's datasets


class Stored:
    """A stand-in with the interface of `datasets.Dataset`."""

    def __init__(self, columns, fmt=None):
        self.columns, self.fmt = columns, fmt

    @property
    def column_names(self):
        return list(self.columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def with_format(self, fmt):
        return Stored(self.columns, fmt)

    def __getitem__(self, key):
        rows = key if isinstance(key, list) else range(len(self))[key] if isinstance(key, slice) else [key]
        picked = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        if self.fmt == "numpy":
            picked = {name: np.asarray(column) for name, column in picked.items()}
        return picked if isinstance(key, (list, slice)) else {name: column[0] for name, column in picked.items()}

    def __getitems__(self, keys):
        batch = self[keys]
        return [{name: column[i] for name, column in batch.items()} for i in range(len(keys))]


class Streamed:
    """A stand-in with the interface of `datasets.IterableDataset`."""

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return ({"x": 10 * self.epoch + i} for i in range(3))


@pytest.mark.book("5.68", name=("wl.data.as_dataset", "wl.data.HuggingFaceDataset"))
def test_hugging_face_datasets():
    source = Stored({"image": [np.full((2, 2), i) for i in range(6)], "label": list(range(6)), "text": list("abcdef")})
    dataset = data.as_dataset(source)
    assert isinstance(dataset, data.HuggingFaceDataset)
    assert dataset[2]["text"] == "c"
    assert dataset[2]["image"].tolist() == [[2, 2], [2, 2]]
    batch = next(iter(data.DataLoader(dataset, 4)))
    assert batch["image"].shape == (4, 2, 2)
    assert batch["text"] == list("abcd")
    pairs = data.as_dataset(source, inputs="image", target="label")
    calls = []
    cached = pairs.map(lambda pair: calls.append(1) or (pair[0] / 2, pair[1])).cache()
    for _ in range(2):
        for x, y in data.DataLoader(cached, 3, shuffle=True):
            np.testing.assert_allclose(x.numpy()[:, 0, 0], y.numpy() / 2)
    assert len(calls) == 6
    direct = next(iter(data.DataLoader(source.with_format("numpy"), 2)))
    assert direct["label"].tolist() == [0, 1]
    ragged = data.as_dataset(Stored({"ids": [[1], [2, 3]]}).with_format(None), columns=["ids"])
    ragged.source = Stored({"ids": [[1], [2, 3]]})
    with pytest.raises(ShapeError, match="pad_value=0"):
        ragged.__getitems__([0, 1])
    with pytest.raises(InputError, match=r"splits \[.test., .train.\]"):
        data.as_dataset({"train": source, "test": source})


def test_hugging_face_streams():
    loader = data.DataLoader(data.as_dataset(Streamed()), 3)
    assert [[b["x"].tolist() for b in loader] for _ in range(2)] == [[[0, 1, 2]], [[10, 11, 12]]]


def test_anything_else():
    x, y = RNG.normal(size=(4, 2)), np.arange(4)
    assert data.as_dataset((x, y))[1][1] == 1
    assert data.as_dataset(x)[1][0].tolist() == x[1].tolist()
    columns = data.as_dataset({"x": x, "y": y}, inputs="x", target="y")
    xb, yb = next(iter(data.DataLoader(columns, 2)))
    assert (xb.shape, yb.tolist()) == ((2, 2), [0, 1])
    assert data.as_dataset({"x": x, "y": y})[2]["y"] == 2
    assert list(data.as_dataset(lambda: iter([1, 2]))) == [1, 2]
    assert len(data.as_dataset(["a", "b"])) == 2
    dataset = data.TensorDataset(x)
    assert data.as_dataset(dataset) is dataset
    with pytest.raises(InputError, match="read twice"):
        data.as_dataset(iter([1]))
    with pytest.raises(InputError, match="no columns to choose"):
        data.as_dataset([1, 2], columns=["a"])
