"""The sizes of caches, read from what systems tell of them."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from wonderland.engines.native.caches import Caches, _linux, of_this_machine
from wonderland.engines.native.machine import machine
from wonderland.engines.native.processor import Processor, named, of_host
from wonderland.engines.native.products.epilogue import Epilogue
from wonderland.engines.native.products.product import Product
from wonderland.engines.native.values import Buffer, Hole, whole

TOLD = {
    "index0": ("1", "Data", "48K"),
    "index1": ("1", "Instruction", "32K"),
    "index2": ("2", "Unified", "1024K"),
    "index3": ("3", "Unified", "32M"),
}


def told(folder: pathlib.Path, caches: dict[str, tuple[str, str, str]]) -> dict[int, int]:
    for index, lines in caches.items():
        (folder / index).mkdir()
        for name, line in zip(("level", "type", "size"), lines, strict=True):
            (folder / index / name).write_text(f"{line}\n")
    return dict(_linux(folder))


def test_what_linux_tells(tmp_path):
    assert told(tmp_path, TOLD) == {1: 48 << 10, 2: 1 << 20, 3: 32 << 20}


@pytest.mark.parametrize("size", ["", "0K", "12", "muchK"])
def test_a_size_that_is_none_is_not_believed(tmp_path, size):
    assert told(tmp_path, TOLD | {"index0": ("1", "Data", size)}) == {2: 1 << 20, 3: 32 << 20}


def test_a_file_that_is_not_there(tmp_path):
    told(tmp_path, TOLD)
    (tmp_path / "index2" / "size").unlink()
    assert dict(_linux(tmp_path)) == {1: 48 << 10, 3: 32 << 20}
    assert dict(_linux(tmp_path / "nowhere")) == {}


def test_code_is_written_for_the_caches_of_this_machine():
    caches = of_this_machine()
    assert 1 << 13 <= caches.first <= caches.second <= caches.last
    processor = of_host(machine().host)
    assert (processor.first_cache, processor.second_cache) == caches[:2]


def product(cpu: Processor) -> Product:
    x, y, out = (
        whole(Buffer("arena", m * n, np.dtype(np.float32)), (m, n)) for m, n in ((256, 1433), (1433, 64), (256, 64))
    )
    hole = Hole(out.shape, out.dtype)
    return Product(cpu, x, y, Epilogue(hole, [(out, hole)]))


def test_a_larger_cache_takes_longer_panels():
    cuts = [product(machine().cpu._replace(first_cache=size)).cut for size in (1 << 14, 1 << 15, 48 << 10, 1 << 17)]
    assert cuts == sorted(set(cuts))


def test_a_processor_by_name_has_the_caches_that_most_have():
    processor = named("x86-64-v3", machine().host)[0]
    assert (processor.first_cache, processor.second_cache) == Caches()[:2]
