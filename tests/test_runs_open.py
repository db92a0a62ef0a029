"""`wl.runs`: a trained run opened, asked and listed."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.errors import FileError, InputError
from wonderland.recipes import Settings


def train(folder, data, *changes, model="linear"):
    settings = Settings.of(model=model, data=str(data), changes=["epochs=2", *changes])
    with wl.using_backend("numpy"):
        return recipes.run(settings, folder, progress=False, png=False)


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pets")
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal(30 if i % 2 else 4):.2f},{('brown', 'white')[i % 3 == 0]},{('cat', 'dog')[i % 2]}"
        for i in range(90)
    ]
    (folder / "pets.csv").write_text("\n".join(["weight,colour,kind", *rows]))
    return folder, train(folder / "runs" / "first", folder / "pets.csv", "data.target=kind", "lr=0.1")


def test_what_training_returns_is_what_is_opened(pets):
    folder, done = pets
    run = wl.runs.open(folder / "runs" / "first")
    assert isinstance(done, wl.runs.Run)
    assert run.folder == done.folder
    assert run.results == done.results
    assert run.history["loss"] == done.history["loss"]
    assert run.settings["train"]["epochs"] == 2
    assert run.schema.feature_names == done.schema.feature_names
    assert run.predict(folder / "pets.csv").to_dict() == done.predict(folder / "pets.csv").to_dict()
    assert run.evaluate() == done.evaluate()
    assert run.evaluate()["accuracy"] == done.results["accuracy"]
    assert repr(run) == repr(done)
    assert "model linear" in repr(run)
    assert "<th>model</th><td>linear</td>" in run._repr_html_()


def test_one_row_a_threshold_and_sets(pets):
    run = pets[1]
    one = run.predict({"weight": 29.0, "colour": "brown"})
    assert len(one) == 1
    p = one.probabilities["dog"][0]
    assert run.predict({"weight": 29.0, "colour": "brown"}, threshold=float(p) + 1e-3).predictions == ["cat"]
    assert run.predict({"weight": 29.0, "colour": "brown"}, threshold=float(p) - 1e-3).predictions == ["dog"]
    sets = run.predict([{"weight": 29.0, "colour": "brown"}, {"weight": None, "colour": "pink"}], sets=0.8)
    assert sets.level == 0.8
    assert all(set(chosen) <= {"cat", "dog"} and chosen for chosen in sets.sets)
    assert any("pink" in note for note in sets.notes)
    with pytest.raises(InputError, match="interval and sets"):
        run.predict({"weight": 1.0, "colour": "brown"}, interval=0.9, sets=0.9)


@pytest.mark.parametrize("source", [None, 3, object(), [], [["a", "b"]], [[1.0], [1.0, 2.0]], {}, {"weight": []}])
def test_sources_that_are_none(pets, source):
    with pytest.raises(wl.errors.WonderlandError) as caught:
        pets[1].predict(source)
    assert "says about itself" not in str(caught.value)  # the run is not to blame


def test_the_file_of_weights_alone_can_be_asked(pets, tmp_path):
    folder, done = pets
    weights = (folder / "runs" / "first" / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(weights)
    run = wl.runs.open(tmp_path / "model.safetensors")
    assert run.predict(folder / "pets.csv").to_dict() == done.predict(folder / "pets.csv").to_dict()
    assert "model linear" in repr(run)
    for name in ("settings", "results", "history"):
        with pytest.raises(FileError, match="cannot read"):
            getattr(run, name)


@pytest.mark.parametrize("text", ["", "[]", '{"test": 3}', "\x00"])
def test_damaged_results_and_history_say_so(pets, tmp_path, text):
    folder, _ = pets
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for path in (folder / "runs" / "first").glob("*.*"):
        if path.is_file():
            (damaged / path.name).write_bytes(path.read_bytes())
    (damaged / "results.json").write_text(text)
    (damaged / "history.jsonl").write_text(text or "3\n")
    run = wl.runs.open(damaged)
    with pytest.raises(FileError, match=r"results\.json"):
        _ = run.results
    if text != '{"test": 3}':
        with pytest.raises(FileError, match=r"history\.jsonl is damaged: line 1"):
            _ = run.history
    assert wl.runs.list(tmp_path)[0]["state"] == "damaged"


def test_runs_are_listed_with_their_results(pets, tmp_path):
    folder, done = pets
    unfinished = folder / "runs" / "second"
    unfinished.mkdir(exist_ok=True)
    (unfinished / "settings.json").write_text(json.dumps({"model": {"name": "mlp"}, "data": {"name": "<x>"}}))
    (folder / "runs" / "notes").mkdir(exist_ok=True)
    found = wl.runs.list(folder / "runs")
    assert [row["state"] for row in found] == ["finished", "not finished"]
    assert found[0]["accuracy"] == done.results["accuracy"]
    lines = repr(found).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:4] == ["folder", "model", "data", "state"]
    assert "&lt;x&gt;" in found._repr_html_()
    assert repr(wl.runs.list(tmp_path)) == "no runs"
    with pytest.raises(FileError, match="cannot read"):
        wl.runs.list(tmp_path / "nowhere")


def test_arrays_in_memory(tmp_path):
    run = train(tmp_path, "moons")
    moons = wl.data.load("moons")
    found = run.predict(moons.features)
    assert len(found) == len(moons)
    for source in (wl.asarray(moons.features), moons, moons.features.tolist()):
        assert run.predict(source).predictions == found.predictions
    everything = run.evaluate((moons.features, moons.targets))
    assert everything["examples"] == len(moons)
    right = np.array(found.predictions) == np.array(moons.target_names)[moons.targets]
    assert everything["accuracy"] == pytest.approx(right.mean())
    assert run.evaluate(moons) == everything
    with pytest.raises(InputError, match="shape"):
        run.predict(np.zeros((3, 5), np.float32))
    with pytest.raises(InputError, match="nothing to predict"):
        run.evaluate(moons.features)


def test_images_and_folders_without_classes_are_named_by_their_files(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for kind, low in (("dark", 0), ("light", 128)):
        (tmp_path / "all" / kind).mkdir(parents=True)
        for i in range(8):
            image = rng.integers(low, low + 127, (8, 8, 3), np.uint8)
            pillow.fromarray(image).save(tmp_path / "all" / kind / f"{i}.png")
    run = train(tmp_path / "run", tmp_path / "all", "lr=0.1", "epochs=10")
    (tmp_path / "new").mkdir()
    for name in ("a.png", "b.png"):
        pillow.fromarray(rng.integers(140, 250, (11, 9, 3), np.uint8)).save(tmp_path / "new" / name)
    found = run.predict(tmp_path / "new")
    assert [row["file"] for row in found] == ["a.png", "b.png"]
    alone = run.predict(tmp_path / "new" / "b.png")
    assert alone.predictions == found.predictions[1:]
    assert alone.confidence == pytest.approx(found.confidence[1:], rel=1e-5)
    assert run.evaluate(tmp_path / "all")["examples"] == 16


def test_one_sound_and_a_folder_of_them(tmp_path):
    root = wl.data.write_sounds(tmp_path / "sounds", 20)
    run = train(tmp_path / "run", root, "data.seconds=0.05")
    one = next(root.rglob("*.wav"))
    (tmp_path / "new").mkdir()
    for name in ("a.wav", "b.wav"):
        (tmp_path / "new" / name).write_bytes(one.read_bytes())
    found, alone = run.predict(tmp_path / "new"), run.predict(one)
    assert [row["file"] for row in found] == ["a.wav", "b.wav"]
    assert alone.predictions * 2 == found.predictions
    assert found.confidence == pytest.approx(np.repeat(alone.confidence, 2), rel=1e-4)
