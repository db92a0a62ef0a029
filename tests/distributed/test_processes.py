"""Two processes that train as one, started by `wonderland launch`."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(__file__).with_name("programs.py")
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed: pip install 'wonderland[cluster]'"
)
LAUNCH = [sys.executable, "-m", "wonderland", "launch"]


def run(*command, n=2, options=(), check=True, cwd=None):
    done = subprocess.run(
        [*LAUNCH, "-n", str(n), *options, *map(str, command)], capture_output=True, text=True, timeout=240, cwd=cwd
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def results(*command, **settings):
    lines = run(PROGRAM, *command, **settings).stdout.splitlines()
    return sorted((json.loads(line) for line in lines if line.startswith("{")), key=lambda found: found["rank"])


def alone(*command):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, command)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_mpi
def test_two_processes_are_as_one_and_the_same_bits_again(tmp_path):
    one, first, second = alone("everything", tmp_path), results("everything", tmp_path), results("everything", tmp_path)
    # the same bits in both processes, dropout included, and again
    assert first[0]["trained"] == first[1]["trained"] == second[0]["trained"] == second[1]["trained"]
    assert first[0]["by_hand"] == first[1]["by_hand"] == second[0]["by_hand"]
    # the losses of one process: the last batch has two rows, and an odd number is held out
    for name in ("losses", "validation", "accuracy"):
        np.testing.assert_allclose(first[0]["trained"][name], one["trained"][name], rtol=2e-5)
    np.testing.assert_allclose(first[0]["by_hand"]["losses"], one["by_hand"]["losses"], rtol=1e-5)
    assert first[0]["trained"]["digests"][1] != one["trained"]["digests"][1]  # processes drop different things
    assert first[0]["trained"]["draw"] == one["trained"]["draw"]
    assert (first[1]["by_hand"]["first"], first[1]["by_hand"]["ranks"]) == ([7.0], [[0], [1]])
    # every process is told what is wrong
    for found in first:
        assert "fit: the processes differ in the weights of 0.bias" in found["refused"][0]
    assert "the disk is full" in first[0]["refused"][1]
    assert "checkpoints: process 0 has failed: cannot write" in first[1]["refused"][1]
    assert (tmp_path / "step-00000004.json").exists()
    assert not (tmp_path / "step-00000008.json").exists()


@needs_mpi
@pytest.mark.parametrize("n", [2, 4])
def test_a_killed_process_is_named_and_a_restart_ends_as_without(n, tmp_path):
    rng = random.Random(n)
    dead, step = rng.randrange(n), rng.randrange(1, 15)  # of 15 steps, with checkpoints after 4, 5, 8, 10, 12 and 15
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "die.json").write_text(json.dumps([dead, step]))
    whole = results("restarted", tmp_path / "whole", n=n)
    assert [found["rank"] for found in whole] == list(range(n))
    assert all({**found, "rank": 0} == whole[0] for found in whole)  # all processes have the same losses and bits
    done = run(PROGRAM, "restarted", tmp_path / "broken", n=n, options=["--restarts", "1"])
    assert f"process {dead} of {n} ended by SIGKILL: about to die; restart 1 of 1" in done.stderr
    again = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(again) == n
    assert all({**found, "rank": 0} == whole[0] for found in again)


@needs_mpi
def test_processes_with_another_file_of_the_program_do_not_begin(tmp_path):
    first, second = results("unlike", tmp_path)
    for found in (first, second):
        assert "distributed: the processes differ in the file part_of_program.py" in found["said"][0]


@needs_mpi
def test_the_command_line_and_going_on_with_another_number(tmp_path):
    words = ["train", "--data", "iris", "--model", "mlp", "--set", "epochs=4", "--out", str(tmp_path / "run")]
    done = run(*words, cwd=tmp_path)
    assert done.stdout.count("test loss") == 1
    assert {"model.safetensors", "results.json", "report.html"} <= set(os.listdir(tmp_path / "run"))
    for name in ("results.json", "model.safetensors"):
        os.remove(tmp_path / "run" / name)
    again = subprocess.run(
        [sys.executable, "-m", "wonderland", *words], capture_output=True, text=True, cwd=tmp_path, timeout=240
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout.split("(")[0] == done.stdout.split("(")[0]  # the same checkpoint, the same results


@needs_mpi
def test_ctrl_c_ends_all_after_a_checkpoint(tmp_path):
    words = ["train", "--data", "iris", "--model", "mlp", "--set", "epochs=100000", "--out", str(tmp_path / "run")]
    with subprocess.Popen([*LAUNCH, "-n", "2", *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("epoch 2"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted after epoch" in rest
    assert os.listdir(tmp_path / "run" / "checkpoints")


@pytest.mark.parametrize(
    "words, said",
    [
        (["-n", "2"], "there is no command"),
        (["-n", "0", "train"], "one process or more"),
        (["-n", "2", "list"], "'list' does not run in several processes"),
        (["train"], "-n"),
    ],
)
def test_mistakes_in_the_command(words, said, capsys):
    from wonderland.cli import main

    try:
        code = main(["launch", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert said in capsys.readouterr().err
