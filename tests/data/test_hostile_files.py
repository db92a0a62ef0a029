"""Files that promise too much, hide too much, or say too little: refused before they cost anything."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import FileError, InputError, ShapeError
from wonderland.storage.bounds import LEAST_ARRAY, LEAST_TEXT

LARGE = LEAST_ARRAY + (1 << 20)


def zeros(head: bytes, count: int, bits: int) -> bytes:
    engine = zlib.compressobj(1, zlib.DEFLATED, bits)
    block = bytes(1 << 20)
    pieces = [engine.compress(head)] + [engine.compress(block) for _ in range(count >> 20)]
    return b"".join(pieces) + engine.flush()


def npy(text: str, body: bytes = b"", version: int = 1) -> bytes:
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text.encode() + body


def header(descr: str = "'<f8'", order: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


def refused(read: Any, path: Path, data: bytes, says: str | None = None, most: int = 16 << 20) -> None:
    """Reading is refused with one of our errors, and takes little memory."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises((InputError, FileError), match=says):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < most + 4 * len(data)
    finally:
        tracemalloc.stop()


class TestBombs:
    def test_a_gzip_that_holds_more_than_its_header_promises(self, tmp_path: Path) -> None:
        data = zeros(struct.pack(">4BI", 0, 0, 8, 1, 100), 64 << 20, 31)
        refused(wl.data.read_idx, tmp_path / "a.gz", data, "more than 108 bytes")

    def test_a_header_that_promises_more_than_the_limit(self, tmp_path: Path) -> None:
        data = gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 2**32 - 1))
        refused(wl.data.read_idx, tmp_path / "a.gz", data, "promises 4,294,967,303 bytes, more than 134,217,728")
        refused(wl.data.read_npy, tmp_path / "a.npy.gz", gzip.compress(npy(header(shape="(2**30,)"))))
        refused(wl.data.read_npy, tmp_path / "a.npy.gz", gzip.compress(npy(header(shape=f"({2**40},)"))), "promises")

    def test_text(self, tmp_path: Path) -> None:
        refused(
            wl.data.read_csv, tmp_path / "a.csv.gz", zeros(b"a,b\n", LEAST_TEXT + (2 << 20), 31), None, 3 * LEAST_TEXT
        )

    @pytest.mark.parametrize("claimed", [LARGE, 1000])
    def test_a_zip_whose_member_is_large_or_says_that_it_is_small(self, tmp_path: Path, claimed: int) -> None:
        start = npy(header(shape=f"({LARGE // 8},)"))
        packed = zeros(start, LARGE, -15)
        fields = (20, 0, zipfile.ZIP_DEFLATED, 0, 33, 0, len(packed), claimed, 5, 0)
        local = b"PK\3\4" + struct.pack("<5H3I2H", *fields) + b"x.npy" + packed
        central = b"PK\1\2" + struct.pack("<6H3I5H2I", 20, *fields, 0, 0, 0, 0, 0) + b"x.npy"
        data = local + central + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 1, 1, len(central), len(local), 0)
        refused(wl.data.read_npz, tmp_path / "a.npz", data)
        refused(wl.data.memory_map, tmp_path / "a.npz", data)
        refused(lambda path: list(wl.data.read_shard(path)), tmp_path / "a.npz", data)

    def test_an_image(self, tmp_path: Path) -> None:
        pytest.importorskip("PIL.Image")

        def chunk(name: bytes, body: bytes) -> bytes:
            return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

        side = 8000
        rows = zeros(b"", side * (side + 1), 15)
        form = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
        (tmp_path / "class").mkdir()
        data = b"\x89PNG\r\n\x1a\n" + form + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
        assert len(data) < 600_000
        folder = lambda path: wl.data.ImageFolder(tmp_path)[0]
        refused(folder, tmp_path / "class" / "a.png", data, "8000 x 8000 pixels")

    def test_a_table_with_more_rows_than_its_size_allows(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr("wonderland.data.tables.arrow.unpacked_limit", lambda size: 1_000_000)
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        path = tmp_path / "a.parquet"
        parquet.write_table(pyarrow.table({"a": np.zeros(200_000, np.int8)}), path, compression="zstd")
        assert path.stat().st_size < 100_000
        refused(wl.data.read_parquet, path, path.read_bytes(), "promises 1,600,000 bytes")

    def test_a_page_that_unpacks_to_more(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr("wonderland.data.tables.arrow.unpacked_limit", lambda size: 1_000_000)
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        path = tmp_path / "a.parquet"
        table = pyarrow.table({"a": ["x" * 20_000] * 100})
        parquet.write_table(table, path, compression="zstd", use_dictionary=False)
        refused(wl.data.read_parquet, path, path.read_bytes(), "promises")

    def test_long_texts_that_come_often_are_kept_once(self, tmp_path: Path) -> None:
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        rows = pyarrow.DictionaryArray.from_arrays(np.arange(40_000, dtype=np.int32) % 2, ["x" * 20_000, "y"])
        path = tmp_path / "a.parquet"
        parquet.write_table(pyarrow.table({"a": rows, "b": np.arange(40_000)}), path, store_schema=False)
        tracemalloc.start()
        try:
            found = wl.data.read_parquet(path)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20
        finally:
            tracemalloc.stop()
        assert found.features.shape == (40_000, 3)
        np.testing.assert_array_equal(found.features[:4, 1], [0, 1, 0, 1])


class TestNpyHeaders:
    @pytest.mark.parametrize(
        "text",
        [
            "{" * 90,
            "(" * 500,
            "'",
            "{'descr': '<f8'}",
            "5",
            header(shape="(-1,)"),
            header(shape="(2.0,)"),
            header(shape="(True,)"),
            header(shape="2"),
            header(shape=f"({2**62},)"),
            header(shape="(1,)*70"),
            header(shape="(" + "1," * 70 + ")"),
            header(shape="(1000000000, 0)"),
            header(descr="'|O'"),
            header(descr="'|V0'"),
            header(descr="[('a', '|O')]"),
            header(descr="[('a',)]"),
            header(descr="7"),
            header(descr="'nonsense'"),
            header(order="1"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, tmp_path: Path, text: str) -> None:
        data = npy(text, bytes(16))
        refused(wl.data.read_npy, tmp_path / "a.npy", data)
        refused(wl.data.memory_map, tmp_path / "a.npy", data)

    @pytest.mark.parametrize("change", [b"x", b""])
    def test_the_length_is_exact(self, tmp_path: Path, change: bytes) -> None:
        data = npy(header(), bytes(16))
        data = data + change if change else data[:-1]
        refused(wl.data.read_npy, tmp_path / "a.npy", data, "bytes for its shape")
        refused(wl.data.memory_map, tmp_path / "a.npy", data, "bytes for its shape")

    def test_truth_values_are_0_or_1(self, tmp_path: Path) -> None:
        refused(wl.data.read_npy, tmp_path / "a.npy", npy(header("'|b1'"), b"\1\2"), "neither 0 nor 1")

    def test_all_that_numpy_writes_is_read(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        arrays: list[Any] = [
            rng.normal(size=(3, 4)),
            np.asfortranarray(rng.normal(size=(3, 4))),
            np.array(3),
            np.zeros((0, 2)),
            np.array(["a", "bcd"]),
            np.array([(1, 2.0)], dtype=[("ä", "<i4"), ("b", ">f8", (2,))]),
            np.array([1, 2], ">i4"),
            np.array(["2026-01-01"], "M8[D]"),
        ]
        for array in arrays:
            for version in ((1, 0), (2, 0), (3, 0)):
                if version == (1, 0) and array.dtype.names:
                    continue
                file = io.BytesIO()
                np.lib.format.write_array(file, array, version)
                path = tmp_path / "a.npy"
                path.write_bytes(file.getvalue())
                for found in (wl.data.read_npy(path), wl.data.memory_map(path)):
                    assert found.dtype == array.dtype
                    np.testing.assert_array_equal(found, array)
                    assert found.flags.f_contiguous == array.flags.f_contiguous or array.ndim < 2

    def test_files_of_python_2(self, tmp_path: Path) -> None:
        (tmp_path / "a.npy").write_bytes(npy(header(shape="(2L,)"), bytes(16)))
        assert wl.data.read_npy(tmp_path / "a.npy").shape == (2,)


class TestZips:
    def test_two_arrays_of_one_name(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", npy(header(), bytes(16)))
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr("x.npy", npy(header(), bytes(16)))
        refused(wl.data.read_npz, path, path.read_bytes(), "two arrays")

    def test_other_packings_and_other_members(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        for kind, content in ((zipfile.ZIP_LZMA, npy(header(), bytes(16))), (zipfile.ZIP_STORED, b"no array")):
            with zipfile.ZipFile(path, "w", kind) as archive:
                archive.writestr("x.npy", content)
            refused(wl.data.read_npz, path, path.read_bytes())
            refused(wl.data.memory_map, path, path.read_bytes())

    def test_bytes_before_the_archive(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.arange(3))
        refused(wl.data.read_npz, tmp_path / "b.npz", b"x" + (tmp_path / "a.npz").read_bytes(), "before")

    def test_an_array_that_the_directory_hides(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.arange(3))
        data = bytearray((tmp_path / "a.npz").read_bytes())
        data[data.index(b"PK\1\2") + 33] = 255  # the length of a comment: what follows is taken for one
        refused(wl.data.read_npz, tmp_path / "b.npz", bytes(data), "2 arrays, found 1")
        refused(wl.data.read_npz, tmp_path / "b.npz", (tmp_path / "a.npz").read_bytes() + b"\0", "behind its end")

    def test_a_shard_without_rows(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array(3.0))
        np.savez(tmp_path / "a.npz", x=np.array(3.0))
        for name in ("a.npy", "a.npz"):
            with pytest.raises(ShapeError, match="one row per example"):
                list(wl.data.read_shard(tmp_path / name))
        (tmp_path / "b.npz").write_bytes(b"PK\3\4")
        with pytest.raises(InputError, match="not an array file"):
            list(wl.data.read_shard(tmp_path / "b.npz"))


class TestTables:
    def test_a_field_beyond_what_csv_takes(self, tmp_path: Path) -> None:
        refused(wl.data.read_csv, tmp_path / "a.csv", b"a,b\n" + b"x" * 200_000 + b",1\n")

    def test_very_many_columns(self, tmp_path: Path) -> None:
        names = ",".join(f"c{i}" for i in range(10_000))
        (tmp_path / "a.csv").write_text(f"{names}\n{','.join('1' * 10_000)}\n")
        assert wl.data.read_csv(tmp_path / "a.csv").features.shape == (1, 10_000)

    @pytest.mark.parametrize("delimiter", ["", "ab", "\n", 5])
    def test_delimiters_that_are_none(self, tmp_path: Path, delimiter: Any) -> None:
        (tmp_path / "a.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="delimiter="):
            wl.data.read_csv(tmp_path / "a.csv", delimiter=delimiter)


def test_a_png_whose_pixels_were_changed_is_refused(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "class").mkdir()
    path = tmp_path / "class" / "a.png"
    image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 20), np.uint8)).save(path, compress_level=0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    refused(lambda path: wl.data.ImageFolder(tmp_path)[0], path, bytes(data), "a whole .png image")


def test_paths_that_are_none(tmp_path: Path) -> None:
    for path in ("x" * 5000, "a\0b", tmp_path / ("y" * 300)):
        with pytest.raises((InputError, FileError)):
            wl.data.read_npy(path)


@pytest.mark.parametrize(
    "text", ['{"name": 5}', '{"name": "a", "biases": 3}', "[]", "[" * 100_000, '{"counts": {"a": "b"}}']
)
def test_cards(text: str) -> None:
    with pytest.raises(InputError, match="no card"):
        wl.data.DatasetCard.from_json(text)
