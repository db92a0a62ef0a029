"""Products by tiles (AMX): compiled for a processor that has them, and run on tiles that are emulated.

No test here needs such a processor, nor uses one.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import wonderland as wl
from tests.engines import test_narrow, test_rounded
from tests.engines.engines import chunks, native, on_threads, same
from tests.engines.tiles import Emulator
from wonderland.core.primitive import Aval
from wonderland.engines.native import processor, program
from wonderland.engines.native.llvm import Generator, Host, initialize_every_target
from wonderland.engines.native.machine import CannotRun, Machine, machine
from wonderland.engines.native.processor import Processor, of_host
from wonderland.engines.native.products import amx
from wonderland.engines.native.schedule import Schedule
from wonderland.engines.native.steps import Native
from wonderland.ir.stage import stage

Array = np.ndarray[Any, Any]
TURNED = [(False, False), (True, False), (False, True), (True, True)]
SIZES = [(16, 32, 16), (17, 33, 29), (32, 64, 32), (33, 101, 47), (70, 600, 24)]


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    """The host as if it had tiles, and vectors of 64 bytes as all processors that have them."""
    made, text_of = Emulator(), program.text_of
    cpu = machine().cpu._replace(vector_bytes=64, registers=32, pairs_of_bfloat16=False, byte_products="", tiles=True)
    monkeypatch.setattr(machine(), "cpu", cpu)
    monkeypatch.setattr(machine(), "_version", f"emulated {id(made)}")  # code for these tiles is for them alone
    monkeypatch.setattr(program, "text_of", lambda *args: made.emulated(text_of(*args)))
    yield made
    assert made.wrong == []
    assert made.calls["ldtilecfg"] == made.calls["tilerelease"]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks of what else would be one, and sums in parts of 64 bfloat16 or 128 int8."""
    monkeypatch.setattr(amx, "MULTIPLIED", 4000)
    monkeypatch.setattr(amx, "PANEL", 0)


def whole(*shape: int, seed: int) -> wl.Tensor:
    """Numbers of which bfloat16 holds all sums."""
    return wl.asarray(np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)).astype("bfloat16")


# --- bfloat16


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("sizes", SIZES)
def test_pairs_in_every_direction_and_size(emulator: Emulator, sizes: tuple[int, int, int], turned: Any) -> None:
    test_narrow.check("bfloat16", *sizes, turned)
    assert emulator.calls["tdpbf16ps"]


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize(
    ("lead", "m", "k", "n"), [((), 100, 300, 75), ((), 33, 97, 130), ((5,), 20, 150, 40), ((2, 2), 16, 70, 33)]
)
def test_chunks_parts_and_threads(
    emulator: Emulator, small_parts: None, lead: tuple[int, ...], m: int, k: int, n: int, turned: Any
) -> None:
    x = whole(*lead, *((k, m) if turned[0] else (m, k)), seed=0)
    y = whole(*lead, *((n, k) if turned[1] else (k, n)), seed=1)

    def f(x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        return ((x.mT if turned[0] else x) @ (y.mT if turned[1] else y)).astype("float32") - 1.0

    made, arrays = native(f, x, y)
    assert chunks(made) > 1
    np.testing.assert_array_equal(on_threads(made, arrays)[0], np.asarray(f(x, y)))
    assert emulator.calls["tileloadd64"] > emulator.calls["tdpbf16ps"]  # sums are read again
    assert emulator.calls["tdpbf16ps"]


def test_sums_shared_out_in_parts(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows and columns: chunks have parts of the sum."""
    monkeypatch.setattr(amx, "MULTIPLIED", 20_000)
    x, y = whole(18, 1100, seed=0), whole(1100, 17, seed=1)
    made = same(lambda x, y: (x @ y).astype("float32"), x, y, threads=True)
    assert len(made.schedule.steps) > 1
    assert emulator.calls["tdpbf16ps"]


def test_what_is_not_finite_stays_in_its_row_and_column(emulator: Emulator) -> None:
    x, y = whole(33, 45, seed=0).numpy().copy(), whole(45, 20, seed=1).numpy().copy()
    x[7, 44], y[3, 19] = np.nan, np.inf
    made, arrays = native(lambda x, y: (x @ y).astype("float32"), x, y)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float32) @ y.astype(np.float32)
    found = made(arrays)[0]
    np.testing.assert_array_equal(found, wanted)
    assert np.isfinite(found).sum() == 32 * 19
    assert emulator.calls["tdpbf16ps"]


def test_a_row_has_the_same_bits_in_any_batch(emulator: Emulator) -> None:
    x, y = (wl.asarray(test_narrow.numbers(*shape, seed=0)).astype("bfloat16") for shape in ((80, 130), (130, 40)))
    f = lambda x, y: (x @ y).astype("float32")
    alone, everything = (np.asarray(native(f, v, y)[0]([np.asarray(v), np.asarray(y)])[0]) for v in (x[:17], x))
    np.testing.assert_array_equal(alone, everything[:17])
    assert emulator.calls["tdpbf16ps"]


def test_a_training_step_in_bfloat16(emulator: Emulator) -> None:
    x, w, v = (
        wl.asarray(test_narrow.numbers(*shape, seed=s)) for s, shape in enumerate(((40, 70), (70, 50), (50, 20)))
    )

    def loss(w: wl.Tensor, v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        with wl.autocast("bfloat16"):
            return wl.mean(wl.tanh(x @ w / 8) @ v)

    same(lambda *args: wl.grad(loss, argnums=(0, 1))(*args), w, v, x, rtol=0.05, atol=2e-3)
    assert emulator.calls["tdpbf16ps"]


def test_matrices_of_a_batch_of_any_size(emulator: Emulator) -> None:
    f = wl.jit(lambda x: (x @ x.mT).astype("float32"), dynamic={"x": {0: "batch"}})
    for n in (3, 1, 9):
        x = whole(n, 20, 40, seed=n)
        wide = np.asarray(x.astype("float32"))
        np.testing.assert_array_equal(f(x), wide @ wide.swapaxes(-1, -2))
    assert emulator.calls["tdpbf16ps"]


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype"),
    [
        (15, 64, 40, "bfloat16"),
        (64, 30, 40, "bfloat16"),
        (40, 64, 9, "bfloat16"),
        (17, 33_000, 16, "bfloat16"),
        (40, 64, 40, "float16"),
    ],
)
def test_what_does_not_fill_tiles_does_without(emulator: Emulator, m: int, k: int, n: int, dtype: str) -> None:
    """Nor do sums so long that the accumulators of a tile would take more than `LONGEST` terms."""
    x, y = (whole(*shape, seed=0).astype(dtype) for shape in ((m, k), (k, n)))
    same(lambda x, y: x @ y, x, y, rtol=1e-2)
    assert not emulator.calls


# --- int8


@pytest.mark.parametrize(
    ("lead", "n", "k"),
    [
        ((16,), 16, 64),
        ((70,), 70, 257),
        ((33,), 50, 1030),
        ((3, 17), 33, 65),
        ((1, 40, 1), 19, 100),
        ((20,), 21, 65_000),
    ],
)
def test_sums_of_int8_are_those_of_other_instructions(
    request: pytest.FixtureRequest, lead: Any, n: int, k: int
) -> None:
    given = test_rounded.rows(*lead, k), *test_rounded.matrix(n, k)
    f = lambda *args: wl.tanh(test_rounded.product(k)(*args) / 40)
    plain, arrays = native(f, *given)
    wanted = plain(arrays)[0]
    emulator = request.getfixturevalue("emulator")
    np.testing.assert_array_equal(on_threads(*native(f, *given))[0], wanted)
    assert emulator.calls["tdpbssd"]


def test_int8_in_chunks_and_parts(emulator: Emulator, small_parts: None) -> None:
    for lead in ((100,), (3, 37)):
        given = test_rounded.rows(*lead, 300), *test_rounded.matrix(75, 300)
        made, arrays = native(test_rounded.product(300), *given)
        assert chunks(made) > 1
        np.testing.assert_allclose(on_threads(made, arrays)[0], test_rounded.oracle(*given), rtol=4e-7)
    assert emulator.calls["tdpbssd"]


def test_the_largest_sums_of_int8_and_rows_that_are_not_finite(emulator: Emulator) -> None:
    test_rounded.test_views_batches_and_nothing()
    for w in (127, -128):
        given = np.ones((16, 65_536), np.float32), np.full((16, 65_536), w, np.int8), np.ones((16, 1), np.float32)
        found = same(test_rounded.product(65_536), *given, rtol=1e-6)(list(given))
        np.testing.assert_allclose(found[0], w * 65_536, rtol=1e-6)
    x = test_rounded.rows(20, 70)
    x[0, 3], x[1] = np.inf, 0
    odd = x, *test_rounded.matrix(35, 70)
    rows = same(test_rounded.product(70), *odd, rtol=1e-6)(list(odd))[0]
    assert np.isnan(rows[0]).all()
    assert not rows[1].any()
    assert np.isfinite(rows[2:]).all()
    assert emulator.calls["tdpbssd"]


def test_results_of_an_int8_product_in_other_orders_and_types(emulator: Emulator) -> None:
    for dtype in (np.float32, np.float64, wl.bfloat16):
        given = test_rounded.rows(3, 20, 130, dtype=dtype), *test_rounded.matrix(40, 130)
        same(lambda *a: wl.swapaxes(test_rounded.product(130)(*a), 0, 1) + 1, *given, rtol=1e-2, atol=1e-3)
    values, scales = test_rounded.matrix(60, 130)
    same(
        lambda x, v, s: test_rounded.product(130)(x, v[20:], s[20:]),
        test_rounded.rows(30, 130),
        values,
        scales,
        rtol=4e-7,
    )
    assert emulator.calls["tdpbssd"]


def test_few_rows_of_int8_do_without(emulator: Emulator) -> None:
    for lead in ((1,), (15,), (40, 1, 15)):
        same(test_rounded.product(96), test_rounded.rows(*lead, 96), *test_rounded.matrix(50, 96), rtol=4e-7)
    assert not emulator.calls


# --- machine code


def assembly(cpu: Processor, f: Any, *args: Any) -> str:
    """The machine code of a function for a processor."""
    initialize_every_target()
    graph = stage(lambda *xs: [f(*xs)], [Aval(a.shape, a.dtype) for a in args]).graph
    generator = Generator("x86_64-unknown-linux-gnu", "sapphirerapids", "")
    texts = [program.text_of(cast(Native, step), cpu, "routine") for step in Schedule(graph, cpu).steps]
    return "".join(map(generator.assembly, texts))


@functools.cache
def products() -> list[tuple[str, str, Any, Any]]:
    """Instructions with and without tiles, and what they are for."""
    x, y = whole(40, 96, seed=0), whole(96, 70, seed=1)
    given = test_rounded.rows(40, 96), *test_rounded.matrix(70, 96)
    return [
        ("tdpbf16ps", "vdpbf16ps", lambda x, y: x @ y, (x, y)),
        ("tdpbf16ps", "vdpbf16ps", lambda x, y: x @ y.mT, (x, y.mT)),
        ("tdpbssd", "vpdpbusd", test_rounded.product(96), given),
    ]


def host(*features: str) -> Any:
    return SimpleNamespace(
        triple="x86_64-unknown-linux-gnu", cpu="sapphirerapids", features="", has=dict.fromkeys(features, True)
    )


VECTORS = ("sse2", "avx2", "avx512f", "avx512bw", "avx512vnni", "avx512bf16")
TILES = ("amx-tile", "amx-bf16", "amx-int8")


@pytest.mark.parametrize("granted", [True, False])
def test_tiles_are_used_where_the_system_grants_them(monkeypatch: pytest.MonkeyPatch, granted: bool) -> None:
    monkeypatch.setattr(processor, "tiles_granted", lambda host: granted)
    cpu = of_host(host(*VECTORS, *TILES))
    assert cpu.tiles == granted
    for tiled, plain, f, args in products():
        code = assembly(cpu, f, *args)
        assert (tiled in code) == granted
        assert (plain in code) != granted
        assert code.count("ldtilecfg") == code.count("tilerelease") == granted


def test_only_a_processor_with_all_of_amx_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "tiles_granted", lambda host: pytest.fail("asked"))
    for some in ((), TILES[:1], TILES[:2], TILES[1:]):
        assert not of_host(host(*VECTORS, *some)).tiles
    assert not of_host(host("sse2", "avx2", *TILES)).tiles


def test_the_system_grants_tiles_at_most_where_there_are_some() -> None:
    assert not processor.tiles_granted(Host()) or Host().has.get("amx-tile")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is asked")
def test_linux_is_asked_by_the_call_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in (0, -1):
        asked: list[list[int]] = []

        def syscall(*words: ctypes.c_long, asked: list[list[int]] = asked, answer: int = answer) -> int:
            asked.append([word.value for word in words])
            return answer

        monkeypatch.setattr(ctypes, "CDLL", lambda name, call=syscall: SimpleNamespace(syscall=call))
        assert processor.tiles_granted(host()) == (answer == 0)
        assert asked == [[158, 0x1023, 18]]  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
        other: Any = SimpleNamespace(triple="i386-unknown-linux-gnu")  # where the numbers mean other calls
        assert not processor.tiles_granted(other)
        assert len(asked) == 1


def test_code_for_tiles_runs_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "tiles_granted", lambda host: False)
    chosen = Machine("sapphirerapids")
    assert chosen.cpu.tiles
    with pytest.raises(CannotRun, match="sapphirerapids"):
        chosen.function("nothing", lambda name: f"define void @{name}() {{\n  ret void\n}}\n")
