"""One set of tensors in several files: any slices, any windows, and damage that is found by name."""

from __future__ import annotations

import copy
import itertools
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import FileError, InputError
from wonderland.storage import slices as module
from wonderland.storage.slices import Slice, Sliced, SlicedSet, joined, write_slices


def cut(draw, n):
    """Places at which an axis is cut."""
    return sorted({0, n, *draw(st.lists(st.integers(0, n), max_size=2))})


@st.composite
def tensors(draw):
    """A tensor in a grid of slices, each given to one of three processes."""
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    dtype = draw(st.sampled_from([np.float32, np.int64, wl.bfloat16, np.bool_]))
    x = np.random.default_rng(0).integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)
    grid = [[]]
    for n in shape:
        ends = cut(draw, n)
        grid = [[*place, slice(*pair)] for place in grid for pair in itertools.pairwise(ends)]
    owners = [draw(st.integers(0, 2)) for _ in grid]
    window = tuple(slice(*sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))) for n in shape)
    return x, [(tuple(place), owner) for place, owner in zip(grid, owners, strict=True)], window


def held(x, places, rank):
    found = [Slice(tuple(s.start for s in place), x[place]) for place, owner in places if owner == rank]
    return Sliced(x.shape, x.dtype, found)


@settings(max_examples=60, deadline=None)
@given(tensors())
def test_any_slices_give_any_window_again(tmp_path_factory, case):
    x, places, window = case
    folder = tmp_path_factory.mktemp("set")
    parts = [write_slices(folder, "s", rank, {"x": held(x, places, rank)}) for rank in range(3)]
    index = json.loads(json.dumps(joined(parts)))  # it travels as text
    assert sorted(index["files"]) == sorted(os.listdir(folder))
    found = SlicedSet(folder, index)
    assert (found.shape("x"), found.dtype("x")) == (x.shape, x.dtype)
    np.testing.assert_array_equal(found.read("x"), x)
    np.testing.assert_array_equal(found.read("x", window), x[window])


X = np.arange(24.0).reshape(4, 6)


@pytest.fixture
def two(tmp_path):
    """A set of two processes: rows of x in both, y in the first alone."""
    rows = [[Slice((0, 0), X[:2])], [Slice((2, 0), X[2:3]), Slice((3, 0), X[3:])]]
    parts = [
        write_slices(tmp_path, "s", rank, {"x": Sliced(X.shape, X.dtype, mine), "y": Sliced((3,), X.dtype, [])})
        for rank, mine in enumerate(rows)
    ]
    parts.append(write_slices(tmp_path, "s", 2, {"y": Sliced.whole(X[0, :3])}))
    return tmp_path, joined(parts)


def test_files_are_ordinary_and_only_those_with_a_part_are_opened(two):
    folder, index = two
    np.testing.assert_array_equal(wl.load(folder / "s-00002.safetensors")["y"], X[0, :3])
    assert set(wl.load(folder / "s-00001.safetensors")) == {"x[2:3,0:6]", "x[3:4,0:6]"}
    (folder / "s-00000.safetensors").unlink()
    found = SlicedSet(folder, index)
    np.testing.assert_array_equal(found.read("x", (slice(2, 4), slice(1, 3))), X[2:4, 1:3])
    np.testing.assert_array_equal(found.read("y"), X[0, :3])
    with pytest.raises(FileError, match="s-00000"):
        found.read("x")


def flip(path):
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1
    path.write_bytes(contents)


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda folder: (folder / "s-00001.safetensors").write_bytes(b""), "bytes instead of"),
        (lambda folder: flip(folder / "s-00001.safetensors"), "was changed after"),
        (lambda folder: (folder / "s-00001.safetensors").unlink(), "s-00001.safetensors is missing"),
    ],
)
def test_damaged_files_are_refused_by_name(two, damage, words):
    folder, index = two
    damage(folder)
    with pytest.raises(FileError, match=words):
        SlicedSet(folder, index).read("x")


def changed(index, change):
    index = copy.deepcopy(index)
    change(index["tensors"]["x"], index)
    return index


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x, index: x["slices"].pop(), "have 18 of its 24 numbers"),
        (lambda x, index: x["slices"].append(x["slices"][0]), "overlap"),
        (lambda x, index: x.update(shape=[4, 5]), "reach beyond"),
        (lambda x, index: x.update(shape=[5, 6]), "have 24 of its 30"),
        (lambda x, index: x.update(shape=[2**40, 2**40]), "makes no sense of the tensor 'x'"),
        (lambda x, index: x.update(dtype="F99"), "makes no sense of the tensor 'x'"),
        (lambda x, index: x["slices"][0].update(start=[0]), "makes no sense of the tensor 'x'"),
        (lambda x, index: x["slices"][0].update(start=[-1, 0]), "makes no sense of the tensor 'x'"),
        (lambda x, index: x["slices"][0].update(file="other.safetensors"), "makes no sense of the tensor 'x'"),
        (lambda x, index: index["files"].update({"../s.safetensors": 3}), "makes no sense of the file"),
        (lambda x, index: index.pop("files"), "makes no sense of files"),
    ],
)
def test_an_index_that_makes_no_sense_is_refused(two, change, words):
    folder, index = two
    with pytest.raises(FileError, match=words):
        SlicedSet(folder, changed(index, change))


def test_another_dtype_and_another_model_are_found(two):
    folder, index = two
    with pytest.raises(FileError, match="does not have"):
        SlicedSet(folder, changed(index, lambda x, _: x.update(dtype="I64"))).read("x")
    with pytest.raises(FileError, match="no tensor 'z'"):
        SlicedSet(folder, index).read("z")
    with pytest.raises(InputError, match="a slice for each axis"):
        SlicedSet(folder, index).read("x", (slice(0, 2),))


@pytest.mark.parametrize(
    "others, words",
    [
        (Sliced((4, 6), X.dtype, [Slice((1, 0), X[1:])]), "overlap"),
        (Sliced((4, 6), X.dtype, [Slice((3, 0), X[3:])]), "have 18 of its 24"),
        (Sliced((4, 7), X.dtype, []), "processes disagree"),
        (Sliced((4, 6), np.dtype(np.float32), []), "processes disagree"),
    ],
)
def test_processes_that_do_not_fit_together_are_refused(tmp_path, others, words):
    first = write_slices(tmp_path, "s", 0, {"x": Sliced((4, 6), X.dtype, [Slice((0, 0), X[:2])])})
    with pytest.raises(InputError, match=words):
        joined([first, write_slices(tmp_path, "s", 1, {"x": others})])


def test_an_interrupted_write_leaves_nothing(tmp_path):
    class Failing:
        shape, dtype, ndim = (2, 6), X.dtype, 2

        def __array__(self, dtype=None, copy=None):
            raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="the disk is full"):
        write_slices(tmp_path, "s", 0, {"x": Sliced((4, 6), X.dtype, [Slice((0, 0), X[:2]), Slice((2, 0), Failing())])})
    assert os.listdir(tmp_path) == []
    assert module.joined([]) == {"files": {}, "tensors": {}}
