"""Files of tensors: other readers understand them, and damage is found."""

import json
import struct

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.storage.safetensors import CODES, metadata

VALUES = {
    "weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 4)),
    "scalar": np.array(3, np.int64),
    "flags": np.array([True, False, True]),
    "half": np.array([1.5, -2.0], np.float16),
}


def test_other_readers_read_what_we_write(tmp_path):
    wl.save(VALUES, tmp_path / "a.safetensors", {"made": "here"})
    read = safetensors.numpy.load_file(tmp_path / "a.safetensors")
    assert read.keys() == VALUES.keys()
    for name, value in VALUES.items():
        assert read[name].dtype == value.dtype
        assert read[name].shape == value.shape
        assert read[name].tobytes() == value.tobytes()
    assert metadata(tmp_path / "a.safetensors") == {"made": "here"}


def test_we_read_what_others_write(tmp_path):
    safetensors.numpy.save_file(VALUES, tmp_path / "a.safetensors")
    read = wl.load(tmp_path / "a.safetensors")
    for name, value in VALUES.items():
        np.testing.assert_array_equal(np.asarray(read[name]), value)
        assert read[name].dtype == value.dtype


@pytest.mark.parametrize("code", list(CODES))
def test_every_dtype_round_trips_to_the_same_bytes(tmp_path, code):
    values = wl.asarray(np.array([0, 1, 2, 100])).astype(CODES[code])
    wl.save({"x": values}, tmp_path / "x")
    read = wl.load(tmp_path / "x")["x"]
    assert read.dtype == values.dtype
    assert np.asarray(read).tobytes() == np.asarray(values).tobytes()


@pytest.mark.book("1.04", name=("wl.save", "wl.load"))
def test_a_module_saves_and_loads_to_the_same_bytes(tmp_path):
    a = wl.nn.Sequential(wl.nn.Linear(3, 4), wl.nn.BatchNorm1d(4), wl.nn.Dropout(0.5))
    b = wl.nn.Sequential(wl.nn.Linear(3, 4), wl.nn.BatchNorm1d(4), wl.nn.Dropout(0.5))
    wl.save(a, tmp_path / "model")
    b.load_state_dict(wl.load(tmp_path / "model"))
    for (_, x), (_, y) in zip(a.state_dict().items(), b.state_dict().items(), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(wl.errors.DTypeError, match="complex128"):
        wl.save({"z": np.zeros(2, complex)}, tmp_path / "z")
    with pytest.raises(wl.errors.InputError, match="no named tensors"):
        wl.save(wl.ones(2), tmp_path / "z")
    with pytest.raises(wl.errors.InputError, match="texts"):
        wl.save(VALUES, tmp_path / "z", {"epoch": 3})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(wl.errors.FileError, match="nowhere"):
        wl.load(tmp_path / "nowhere")


@given(st.data())
def test_a_truncated_file_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("cut") / "a.safetensors"
    wl.save(VALUES, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(wl.errors.FileError, match=r"a\.safetensors"):
        wl.load(path)


def header(table: object, rest: bytes = b"") -> bytes:
    text = json.dumps(table).encode() if not isinstance(table, bytes) else table
    return struct.pack("<Q", len(text)) + text + rest


ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "contents, message",
    [
        (b"", "0 bytes"),
        (struct.pack("<Q", 2**60), "length of a header"),
        (header(b"not json"), "valid JSON"),
        (header([1, 2]), "not a table"),
        (header(b'{"a": 1, "a": 2}'), "twice"),
        (header({"a": ENTRY}, b"1234567"), "3 bytes at its end"),
        (header({"a": ENTRY | {"shape": [2]}}, b"1234"), "4 bytes for float32"),
        (header({"a": ENTRY | {"shape": [-1]}}, b"1234"), "makes no sense"),
        (header({"a": ENTRY | {"dtype": "object"}}, b"1234"), "makes no sense"),
        (header({"a": ENTRY | {"data_offsets": [4, 0]}}, b"1234"), "makes no sense"),
        (header({"a": ENTRY, "b": ENTRY}, b"1234"), "does not start where"),
        (header({"a": ENTRY, "b": ENTRY | {"data_offsets": [8, 12]}}, b"1" * 12), "does not start where"),
        (header({"__metadata__": {"a": 1}}), "not texts"),
    ],
)
def test_damage_is_described(tmp_path, contents, message):
    (tmp_path / "bad").write_bytes(contents)
    with pytest.raises(wl.errors.FileError, match=message):
        wl.load(tmp_path / "bad")


def test_tensors_that_lie_askew_are_read(tmp_path):
    table = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "b": ENTRY | {"data_offsets": [1, 5]}}
    (tmp_path / "askew").write_bytes(header(table, b"\x07" + np.float32(1.5).tobytes()))
    read = wl.load(tmp_path / "askew")
    assert (int(read["a"][0]), float(read["b"][0])) == (7, 1.5)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [10**400], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [0, 2**40], "data_offsets": [0, 0]},
        {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
    ],
)
def test_odd_entries_of_a_header(tmp_path, entry):
    text = json.dumps({"w": entry}).encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text + b"\1\2\3\4"[: entry["data_offsets"][1]])
    with pytest.raises(wl.errors.FileError, match="not a sound safetensors file"):
        wl.load(tmp_path / "a")


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":' * 100_000, b'{"\\ud800": 1}', b"\xff"])
def test_headers_that_no_parser_takes(tmp_path, text):
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(wl.errors.FileError, match="not valid JSON"):
        wl.load(tmp_path / "a")
