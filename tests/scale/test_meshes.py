"""Models on a mesh of eight devices, which XLA makes of one processor, in a process of its own. Skipped without JAX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wonderland as wl

pytest.importorskip("jax")


def test_steps_on_a_mesh_are_those_of_one_device() -> None:
    """Ten steps, within 1e-5; a device holds at most a seventh of a GPT that is split over all eight."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(wl.__file__).parents[1])])
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    cases = ["refused", "gpt", "mlp", "cnn", "vit", "lstm"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.scale.mesh_cases", *cases],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("refused: ") for line in lines) == 6
    assert len(lines) == 6 + 5 * 4  # each model by each of the rules


def test_a_mesh_that_is_larger_than_the_machine_says_how_to_try_it() -> None:
    with pytest.raises(wl.errors.InputError, match="host_platform_device_count=4096"):
        wl.shard(wl.nn.Linear(4, 4), "data", mesh=wl.mesh(data=4096))
    with pytest.raises(wl.errors.InputError, match="no axis 'rows'"):
        wl.shard(wl.nn.Linear(4, 4), {"weight": ("rows",)}, mesh=wl.mesh(data=1))
