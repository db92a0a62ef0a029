"""Folders of runs that somebody else uses, or that are not as a run left them."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.errors import FileError, InputError, WonderlandError
from wonderland.recipes import Settings
from wonderland.recipes.settings import as_value
from wonderland.storage import safetensors


def quick(folder, *changes, **settings):
    chosen = Settings.of(model="mlp", data="iris", changes=["epochs=1", "model.hidden=[3]", *changes])
    return recipes.run(chosen, folder, progress=False, png=False, **settings)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    quick(folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


# in use


def test_a_second_process_is_refused_with_a_message(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(wl.__file__).parent.parent), "WONDERLAND_BACKEND": "numpy"}
    command = [sys.executable, "-m", "wonderland", "train", "--model", "linear", "--data", "moons", "--out", "run"]
    first = subprocess.Popen(
        [*command, "--set", "epochs=1000000", "--quiet"], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("run/checkpoints/*.json")) and time.monotonic() < deadline:
            time.sleep(0.02)
        second = subprocess.run(
            [*command, "--fresh"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert second.returncode == 2
        assert f"in use by another run (process {first.pid} on " in second.stderr
        assert first.poll() is None
        assert (tmp_path / "run" / "settings.json").exists()  # --fresh did not touch it
    finally:
        first.kill()
        first.wait(60)
    chosen = Settings.of(model="linear", data="moons", changes=["epochs=1"])  # a killed run leaves no lock
    recipes.run(chosen, tmp_path / "run", fresh=True, progress=False, png=False)
    assert not (tmp_path / "run" / ".lock").exists()


def test_reading_from_a_folder_in_use_works(folder):
    seen = []

    class Ask(wl.train.Callback):
        def on_epoch_end(self, trainer, record):
            seen.append(recipes.evaluate(folder)["accuracy"])
            with pytest.raises(FileError, match="in use"):
                quick(folder)

    before = recipes.evaluate(folder)["accuracy"]
    shutil.rmtree(folder / "checkpoints")  # so that there is something to do
    quick(folder, callbacks=[Ask()])
    assert seen == [before]


def test_two_threads_do_not_share_a_folder(tmp_path):
    started, go_on, said = threading.Event(), threading.Event(), []

    class Wait(wl.train.Callback):
        def on_epoch_end(self, trainer, record):
            started.set()
            go_on.wait(60)

    thread = threading.Thread(target=lambda: quick(tmp_path, callbacks=[Wait()]))
    thread.start()
    assert started.wait(60)
    try:
        quick(tmp_path)
    except FileError as error:
        said.append(str(error))
    go_on.set()
    thread.join()
    assert "in use" in said[0]
    quick(tmp_path)


# damaged


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b"[]",
        b"3",
        b'{"train": 3}',
        b'{"train": {}, "model": []}',
        b'{"a": 1, "a": 1}',
        b"",
    ],
)
def test_settings_that_are_not_those_of_a_run(folder, text):
    (folder / "settings.json").write_bytes(text)
    with pytest.raises(FileError, match=r"settings\.json"):
        quick(folder)
    with pytest.raises(FileError, match=r"settings\.json"):
        recipes.evaluate(folder)
    assert main(["evaluate", str(folder)]) == 2


@pytest.mark.parametrize(
    "train", [{}, {"seed": "x", "validation": 0.1}, {"seed": 0, "validation": 2.0}, {"seed": None}]
)
def test_settings_with_odd_values(folder, train):
    (folder / "settings.json").write_text(json.dumps({"train": train}))
    with pytest.raises(FileError, match="seed="):
        recipes.evaluate(folder)


def described(folder, **changes):
    path = folder / "model.safetensors"
    recipe = json.loads(safetensors.metadata(path)["recipe"])
    for place, value in changes.items():
        *owners, name = place.split("__")
        owner = recipe
        for key in owners:
            owner = owner[key]
        owner[name] = value
        if value is ...:
            del owner[name]
    tensors = {name: np.asarray(value) for name, value in wl.load(path).items()}
    wl.save(tensors, path, {"recipe": json.dumps(recipe)})


@pytest.mark.parametrize(
    "changes",
    [
        {"model": 3},
        {"model__name": ["mlp"]},
        {"model__hidden": "abc"},
        {"model__hidden": [3.5]},
        {"model__hidden": {"a": 1}},
        {"model__hidden": [100_000_000]},
        {"model__hidden": [2] * 100_000},
        {"model__activation": 5},
        {"task": ["supervised"]},
        {"task": "nothing"},
        {"shape": "4"},
        {"shape": [10**12]},
        {"shape": [-4]},
        {"shape": [4.0]},
        {"outputs": 10**12},
        {"outputs": None},
        {"about": []},
        {"about__class_names": ...},
        {"about__class_names": 7},
        {"data": "iris"},
        {"data": {}},
        {"data__name": 5},
    ],
)
def test_a_model_that_describes_itself_in_another_way(folder, changes):
    described(folder, **changes)
    with pytest.raises(WonderlandError):
        recipes.evaluate(folder)


def test_no_recipe_or_a_broken_one(folder):
    path = folder / "model.safetensors"
    tensors = {name: np.asarray(value) for name, value in wl.load(path).items()}
    for texts in ({}, {"recipe": "[" * 100_000}, {"recipe": "[]"}, {"recipe": "{"}):
        wl.save(tensors, path, texts)
        with pytest.raises(FileError, match="does not say what model"):
            recipes.open_run(folder)


# settings files


@pytest.mark.parametrize(
    "text", [b"\xff", b"a = \xc3", b"[a]\n" * 2, b"x = " + b"[" * 10_000, b"#" * 70_000, b"[data]\nday = 2026-01-01\n"]
)
def test_settings_files_that_cannot_be_read(tmp_path, text):
    (tmp_path / "a.toml").write_bytes(text)
    with pytest.raises(InputError, match=r"a\.toml"):
        Settings.of(file=tmp_path / "a.toml")


def test_values_on_the_command_line():
    with pytest.raises(InputError, match="nested more than"):
        as_value("[" * 5000 + "]" * 5000)
    assert as_value("2026-01-01") == "2026-01-01"
    assert as_value("1\nb = 2") == "1\nb = 2"
    assert as_value("[1, 2]") == [1, 2]
