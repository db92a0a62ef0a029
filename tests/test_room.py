"""What can never fit is refused at once: before it is allocated, compiled or half-written; what fits is not refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.cli import main
from wonderland.core import room
from wonderland.engines.native.machine import machine
from wonderland.engines.native.program import Program
from wonderland.errors import SizeError
from wonderland.recipes import running

HUGE = (3000, 3000, 3000, 3000)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with so many bytes, on which small things count, too."""

    def limit(nbytes: int) -> None:
        monkeypatch.setattr(room, "memory", lambda: nbytes)
        monkeypatch.setattr(room, "GIBIBYTE", 1024)

    return limit


def refused(what: Any, *texts: str) -> None:
    before = machine().compiled
    with pytest.raises(SizeError) as caught:
        what()
    for text in (*texts, "GiB", "the machine has", "try:"):
        assert text in str(caught.value)
    assert machine().compiled == before


def test_there_is_some_memory() -> None:
    assert 2**24 < room.memory() < 2**63


def test_the_limit_of_the_address_space_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**29, 2**29))
    assert room.memory() == 2**29
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    assert room.memory() > 0


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "300", "memory.max": "500"}, [300, 500]),
        ("0::/the/path/of/the/host\n", {"memory.max": "500\n"}, [500]),  # as a container sees it
        ("4:memory:/job\n0::/\n", {"memory/job/memory.limit_in_bytes": "77"}, [77]),
        ("3:cpu:/job\n", {"cpu/job/memory.max": "5"}, []),
        ("0::/\n", {}, []),
    ],
)
def test_control_groups(groups: str, files: dict[str, str], limits: list[int], tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "groups").write_text(groups)
    assert room.group_limits(tmp_path / "groups", root) == limits


@pytest.mark.parametrize(
    "make",
    [
        lambda: wl.zeros(HUGE),
        lambda: wl.tensor(np.broadcast_to(np.float32(1), HUGE)),
        lambda: wl.array(np.broadcast_to(np.float32(1), HUGE), dtype="float64"),
        lambda: wl.nn.Linear(10**7, 10**7),
        lambda: wl.random.normal(HUGE),
        lambda: wl.jit(lambda x: wl.zeros(HUGE) + x)(wl.ones(3000)),
        lambda: wl.jit(lambda x: wl.broadcast_to(x, HUGE))(wl.ones(3000)),
        lambda: wl.jit(lambda x: wl.broadcast_to(x, HUGE) + 1)(wl.ones(3000)),
        lambda: wl.jit(lambda x: wl.sort(wl.broadcast_to(x, HUGE)).sum())(wl.ones(3000)),
        lambda: wl.jit(lambda x: wl.scan(lambda c, _: (c, c + wl.ones(10**6)), x, length=10**7)[1])(wl.ones(10**6)),
    ],
)
def test_what_no_machine_can_hold(make: Any) -> None:
    refused(make)


def test_an_argument_that_would_be_copied() -> None:
    compiled = wl.jit(lambda x: (x + 1).sum())
    view = wl.broadcast_to(wl.ones(3000), HUGE)  # takes no memory by itself
    with pytest.raises(SizeError, match=r"shape \(3000, 3000, 3000, 3000\) needs"):
        compiled(view)


def test_results_and_intermediate_values_count_together(small: Any) -> None:
    x = wl.ones(1000)

    def fan(x: Any) -> Any:
        return [x + i for i in range(8)]

    with wl.using_backend("native"):
        small(8 * 4000 - 1)
        refused(lambda: wl.jit(fan)(x), "fan", "results and intermediate values")
        small(8 * 4000 + 4096)  # and a little for what else the program keeps
        assert len(wl.jit(fan)(x)) == 8


def test_state_that_is_overwritten_takes_no_memory(small: Any) -> None:
    model = wl.nn.Linear(100, 100)

    @wl.jit
    def step(model: Any) -> None:
        model.weight = model.weight * 0.5

    with wl.using_backend("native"):
        small(20_000)
        step(model)
    assert model.weight.nbytes == 40_000


def test_memory_that_others_have_taken_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, position: int) -> Any:
        raise MemoryError("Unable to allocate 4 bytes")

    x = wl.ones(100_000)
    with wl.using_backend("native"):
        compiled = wl.jit(lambda x: x + 1)
        assert compiled(x).shape == x.shape
        monkeypatch.setattr(Program, "fresh", full)
        with pytest.raises(SizeError, match="Unable to allocate 4 bytes"):
            compiled(x)
        monkeypatch.undo()
        assert compiled(x).shape == x.shape


def test_a_model_that_cannot_fit_is_refused_before_weights_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(running.random, "seed", lambda seed: pytest.fail("the run has begun"))
    folder = tmp_path / "run"
    asked = ["train", "--model", "mlp", "--out", str(folder), "--set"]
    assert main([*asked, "model.hidden=[10000000,10000000]"]) == 2
    error = capsys.readouterr().err
    assert "(10000000, 10000000) needs 372,529.0 GiB, the machine has" in error
    assert "Traceback" not in error
    # weights that fit, and an optimizer that keeps two more numbers of each
    monkeypatch.setattr(room, "memory", lambda: 2**32)
    assert main([*asked, "model.hidden=[20000,20000]"]) == 2
    assert "the weights and the state of the optimizer need 4.5 GiB, the machine has 4.0 GiB" in capsys.readouterr().err
    assert not folder.exists()


def test_the_same_model_with_an_optimizer_that_keeps_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class BegunError(Exception):
        pass

    def begin(seed: int) -> None:
        raise BegunError

    monkeypatch.setattr(running.random, "seed", begin)
    monkeypatch.setattr(room, "memory", lambda: 2**32)
    settings = wl.recipes.Settings.of(model="mlp", changes=["model.hidden=[20000,20000]", "optimizer=sgd"])
    with pytest.raises(BegunError):
        wl.recipes.run(settings)
