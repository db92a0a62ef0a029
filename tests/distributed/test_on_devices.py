"""Processes that train on a mesh over the devices of all of them, which XLA makes of processors."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("on_devices.py")
ROOT = Path(__file__).parents[2]  # from which the program imports its neighbour
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jax", "mpi4py")),
    reason="JAX or mpi4py is not installed: pip install 'wonderland[xla,cluster]'",
)


def run(*command, n, devices, options=()):
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}", "JAX_PLATFORMS": "cpu"}
    flags["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "wonderland", "launch", "-n", str(n), *options, *map(str, command)],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    lines = [line[line.find("{") :] for line in done.stdout.splitlines() if '{"rank"' in line]
    return sorted(map(json.loads, lines), key=lambda found: found["rank"]), done


def test_two_processes_with_four_devices_each_are_one_machine_with_eight(tmp_path):
    found, _ = run(PROGRAM, "everything", tmp_path, n=2, devices=4)
    assert [one.pop("rank") for one in found] == [0, 1]
    assert found[0] == found[1]  # losses, metrics, weights and errors, to the last bit
    hand, fit = found[0]["by_hand"], found[0]["by_fit"]
    assert hand["devices"] == 8
    for rules in ("data", "full", "across"):
        np.testing.assert_allclose(hand[rules], hand["one"], rtol=1e-5, err_msg=rules)
    for rules, alone in (("whole", "one"), ("full", "one"), ("across", "few")):
        assert {"loss", "accuracy"} <= fit[rules].keys() == fit[alone].keys()
        for name, values in fit[rules].items():
            np.testing.assert_allclose(values, fit[alone][name], rtol=1e-5, err_msg=f"{rules} {name}")
    assert fit["device"] == "cpu"
    assert (fit["files"], fit["restored"]) == (2, True)  # each process has written what it holds
    # what is not possible is said in all processes
    for name in ("read", "saved"):
        assert "read: a tensor of shape (5, 256)" in hand[name]
        assert "has parts in other processes" in hand[name]
    assert "has other numbers in process 1 than in process 0" in hand["batches"]
    assert "leave them out: on a mesh over all processes" in hand["sums"]
    for name in ("large", "odd"):
        assert "a multiple of 2 devices, up to 8" in hand[name]
    assert "fit: the processes differ in the weights of 0.weight" in fit["weights"]
    assert "on the devices of several processes, which do not train together" in fit["alone"]


def test_a_killed_process_of_four_and_a_restart_end_as_without(tmp_path):
    rng = random.Random(4)
    dead, step = rng.randrange(4), rng.randrange(1, 6)  # of 6 steps, with checkpoints after 2, 3, 4 and 6
    (tmp_path / "die.json").write_text(json.dumps([dead, step]))
    found, done = run(PROGRAM, "restarted", tmp_path, n=4, devices=2, options=["--restarts", "1"])
    assert f"process {dead} of 4 ended by SIGKILL: about to die; restart 1 of 1" in done.stderr
    assert [one.pop("rank") for one in found] == [0, 1, 2, 3]
    assert all(one == found[0] for one in found)
    assert found[0]["broken"] == found[0]["whole"]
    for name, values in found[0]["one"].items():
        np.testing.assert_allclose(found[0]["whole"][name], values, rtol=1e-5, err_msg=name)


def test_devices_that_were_used_before_say_so_and_a_process_that_fails_does_not_wait_for_others(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys, wonderland as wl\n"
        "rank = int(os.environ['RANK'])\n"
        "wl.set_backend('xla')\n"
        "if sys.argv[1] == 'used':\n"
        "    if rank == 1: wl.devices()\n"
        "    try: wl.distributed.init()\n"
        "    except wl.errors.InputError as error: print(error, flush=True)\n"
        "    except wl.errors.ProcessError as error: print(error, flush=True)\n"
        "else:\n"
        "    wl.distributed.init()\n"
        "    if rank == 1: raise ValueError('mine')\n"
        "    wl.distributed.barrier()\n"
    )
    launch = [sys.executable, "-m", "wonderland", "launch", "-n", "2", str(program)]
    used = subprocess.run([*launch, "used"], capture_output=True, text=True, timeout=100)
    assert used.stdout.count("JAX has used its devices before the processes have joined") == 2, used
    failed = subprocess.run([*launch, "failed"], capture_output=True, text=True, timeout=100)
    assert failed.returncode == 1
    assert "wonderland launch: process 1 of 2 ended with exit code 1: ValueError: mine" in failed.stderr
