"""Runs on images and sounds of one's own: folders, tables of file names, predictions for files, transfer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.errors import InputError
from wonderland.recipes import Settings, media
from wonderland.recipes.choosing import suited_model
from wonderland.recipes.predictions import Predictions
from wonderland.recipes.transfer import freeze, take

Image = pytest.importorskip("PIL.Image")
rng = np.random.default_rng(0)
QUICK = ["epochs=12", "batch_size=8", "lr=0.02"]


def picture(red: bool, height: int = 8, width: int = 8) -> np.ndarray:
    """Noise that is red, or blue: anything that sees colours can tell them apart."""
    pixels = rng.integers(0, 60, (height, width, 3), np.uint8)
    pixels[..., 0 if red else 2] += 180
    return pixels


def fill(root: Path, count: int = 20, ending: str = "png", **names: bool) -> Path:
    for name, red in names.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            Image.fromarray(picture(red)).save(root / name / f"{i:02d}.{ending}")
    return root


def confidence(answer: Predictions) -> np.ndarray:
    assert answer.confidence is not None
    return answer.confidence


def trained(data: Path | str, out: Path, *changes: str, model: str | None = "linear") -> recipes.Run:
    settings = Settings.of(model=model, data=str(data), changes=[*QUICK, *changes])
    with wl.using_backend("numpy"):
        return recipes.run(settings, out, progress=False, png=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images of two classes, and a run on them."""
    root = tmp_path_factory.mktemp("media")
    fill(root / "set", warm=True, cold=False)
    trained(root / "set", root / "run")
    return root


@pytest.fixture
def run(shared: Path) -> recipes.Run:
    return wl.runs.open(shared / "run")


class TestImages:
    def test_a_folder_is_learned(self, run: recipes.Run) -> None:
        assert run.results["accuracy"] == 1.0
        assert run.about["class_names"] == ["cold", "warm"]
        assert run.about["inputs"]["form"] == {"kind": "image", "size": [8, 8], "channels": 3, "dtype": "uint8"}

    def test_files_folders_lists_and_arrays_have_the_same_answers(self, run: recipes.Run, tmp_path: Path) -> None:
        arrays = [picture(red) for red in (True, False, True)]
        files = [tmp_path / "flat" / f"{i}.png" for i in range(3)]
        files[0].parent.mkdir()
        for file, array in zip(files, arrays, strict=True):
            Image.fromarray(array).save(file)
        asked = {
            "folder": files[0].parent,
            "list": [str(file) for file in files],
            "arrays": np.stack(arrays),
        }
        found = {name: run.predict(source) for name, source in asked.items()}
        for answer in found.values():
            assert answer.predictions == ["warm", "cold", "warm"]
            np.testing.assert_allclose(confidence(answer), confidence(found["folder"]), rtol=1e-6)
        assert found["folder"].ids == ["0.png", "1.png", "2.png"]
        for source in (str(files[1]), files[1], arrays[1], Image.open(files[1])):
            assert run.predict(source).predictions == ["cold"]
        x, names = media.read_inputs(files[0].parent, run.about)
        np.testing.assert_array_equal(x, arrays)
        assert names == ("0.png", "1.png", "2.png")

    def test_images_of_other_sizes_and_modes_are_made_like_the_runs(self, run: recipes.Run, tmp_path: Path) -> None:
        Image.fromarray(picture(True, 33, 21)).save(tmp_path / "a.png")
        assert run.predict(tmp_path / "a.png").predictions == ["warm"]
        Image.fromarray(np.full((9, 9), 50, np.uint8)).save(tmp_path / "grey.png")
        assert media.read_inputs(tmp_path / "grey.png", run.about)[0].shape == (1, 8, 8, 3)

    def test_all_of_a_folder_is_measured(self, run: recipes.Run, shared: Path, tmp_path: Path) -> None:
        found = run.evaluate(fill(tmp_path / "more", 3, cold=False, warm=True))
        assert (found["examples"], found["accuracy"]) == (6, 1.0)
        one = run.evaluate(fill(tmp_path / "one", 3, warm=True))  # one of the classes
        assert (one["examples"], one["accuracy"]) == (3, 1.0)
        assert run.evaluate()["examples"] == 8
        with pytest.raises(InputError, match="class 'hot' is new to the run"):
            run.evaluate(fill(tmp_path / "other", 3, warm=True, hot=True))
        with pytest.raises(InputError, match="no subfolders: there is nothing to predict"):
            run.evaluate(shared / "set" / "warm")

    def test_bad_inputs_are_named(self, run: recipes.Run, tmp_path: Path) -> None:
        (tmp_path / "bad.png").write_text("text")
        with pytest.raises(InputError, match=r"bad\.png"):
            run.predict(tmp_path / "bad.png")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="no images"):
            run.predict(tmp_path / "empty")
        wl.audio.write_wav(tmp_path / "a.wav", np.zeros(10), 8000)
        with pytest.raises(InputError, match="is of sounds, the run is of images"):
            run.predict(tmp_path / "a.wav")
        with pytest.raises(InputError, match=r"data\.size: the run settles it"):
            run.predict(tmp_path, size=16)

    def test_a_run_on_arrays_takes_files_of_the_same_scale(self, tmp_path: Path) -> None:
        x = np.stack([picture(i % 2 == 0)[..., 0] for i in range(40)])
        np.savez(tmp_path / "a.npz", x=x, y=np.arange(40) % 2)
        run = trained(tmp_path / "a.npz", tmp_path / "run")
        Image.fromarray(x[0]).save(tmp_path / "0.png")
        assert run.predict(tmp_path / "0.png").predictions == ["0"]
        assert run.predict(x[1]).predictions == ["1"]
        iris = trained("iris", tmp_path / "iris")
        with pytest.raises(InputError, match="not trained on images or sounds"):
            iris.predict(tmp_path / "0.png")

    def test_what_is_said_before_training(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        root = fill(tmp_path / "set", 8, warm=True, cold=False)
        (root / "cold" / "bad.png").write_text("text")
        (root / "cold" / "notes.txt").write_text("text")
        for i in range(8):  # whichever are chosen for the test, some have a copy among those to train on
            shutil.copy(root / "warm" / f"{i:02d}.png", root / "warm" / f"copy{i}.png")
        shutil.copy(root / "warm" / "00.png", root / "cold" / "copy.png")
        settings = Settings.of(model="linear", data=str(root), changes=["epochs=1", "data.size=[6, 8]"])
        with pytest.raises(InputError, match=r"1 of 26 images cannot be read: .*bad\.png.*"):
            recipes.run(settings, tmp_path / "run", progress=False, png=False)
        settings.change("data.unreadable=skip")
        with wl.using_backend("numpy"):
            run = recipes.run(settings, tmp_path / "run", png=False)
        said = " ".join(capsys.readouterr().err.replace("\n  ", " ").split())
        assert "25 images of 6 x 8 pixels, in colour, 2 classes: cold 9, warm 16." in said
        assert "1 file is no image and is left out: cold/notes.txt." in said
        assert "7 of 25 are copies of others, such as warm/" in said
        assert "2 of 25 are copies of others in another class, such as warm/00.png of cold/copy.png" in said
        assert "examples to test with" in said
        assert "results look better than they are" in said
        assert run.evaluate()["examples"] == 5
        assert run.evaluate(part="train")["examples"] == 18

    def test_parts_of_ones_own(self, tmp_path: Path) -> None:
        root = tmp_path / "set"
        fill(root / "train", 6, warm=True, cold=False)
        fill(root / "val", 2, warm=True, cold=False)
        fill(root / "test", 3, warm=True, cold=False)
        data = wl.recipes.tasks.TASKS["supervised"].prepare({"name": str(root)}, 0.1, 0)
        assert [len(data.part(name)[0]) for name in ("train", "validation", "test")] == [12, 4, 6]
        assert all(name.startswith("test/") for name in data.test_ids)

    def test_refused(self, tmp_path: Path) -> None:
        prepare = wl.recipes.tasks.TASKS["supervised"].prepare
        with pytest.raises(InputError, match="one class only"):
            prepare({"name": str(fill(tmp_path / "one", 6, warm=True))}, 0.1, 0)
        with pytest.raises(InputError, match=r"data\.colour: images are read without it"):
            prepare({"name": str(fill(tmp_path / "two", 6, a=True, b=False)), "colour": True}, 0.1, 0)
        with pytest.raises(InputError, match=r"data\.mode"):
            prepare({"name": str(tmp_path / "two"), "mode": "CMYK"}, 0.1, 0)

    def test_images_of_one_pixel(self, tmp_path: Path) -> None:
        for name, colour in (("warm", [200, 0, 0]), ("cold", [0, 0, 200])):
            (tmp_path / "set" / name).mkdir(parents=True)
            for i in range(5):
                pixel = np.array([[colour]], np.uint8) + np.uint8(i)
                Image.fromarray(pixel).save(tmp_path / "set" / name / f"{i}.png")
        assert trained(tmp_path / "set", tmp_path / "run").shape == (1, 1, 3)

    def test_a_dataset_by_name_comes_before_a_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fill(tmp_path / "digits", 2, a=True, b=False)
        monkeypatch.chdir(tmp_path)
        assert not media.are_media("digits")
        assert media.are_media("./digits")

    def test_an_autoencoder(self, shared: Path, tmp_path: Path) -> None:
        done = trained(shared / "set", tmp_path / "run", "epochs=1", "model.channels=[4]", model="autoencoder")
        assert done.shape == (8, 8, 3)


class TestTables:
    def written(self, root: Path, numbers: bool = False) -> Path:
        fill(root / "images", 12, warm=True, cold=False)
        rows = ["id,photo,label"]
        for name in ("warm", "cold"):
            labels = [f"{i + 0.5}" if numbers else name for i in range(12)]
            rows += [f"{name}{i},images/{name}/{i:02d}.png,{labels[i]}" for i in range(12)]
        (root / "list.csv").write_text("\n".join(rows) + "\n")
        return root / "list.csv"

    def test_a_table_of_file_names(self, tmp_path: Path) -> None:
        table = self.written(tmp_path)
        assert suited_model({"name": str(table)}) == ("cnn", "images of 8 x 8 pixels")
        run = trained(table, tmp_path / "run", "data.target=label")
        assert run.results["accuracy"] == 1.0
        assert run.evaluate()["examples"] == 5
        answer = run.predict(table)
        assert (answer.ids or [])[:2] == ["images/warm/00.png", "images/warm/01.png"]
        assert answer.predictions == ["warm"] * 12 + ["cold"] * 12
        (tmp_path / "new.csv").write_text("photo\nimages/cold/01.png\nimages/warm/01.png\n")
        assert run.predict(tmp_path / "new.csv").predictions == ["cold", "warm"]
        assert run.predict(tmp_path / "images" / "cold" / "01.png").predictions == ["cold"]
        (tmp_path / "labelled.csv").write_text("label,photo\ncold,images/cold/01.png\ncold,images/cold/02.png\n")
        found = run.evaluate(tmp_path / "labelled.csv")
        assert (found["examples"], found["accuracy"]) == (2, 1.0)

    def test_numbers_from_images(self, tmp_path: Path) -> None:
        run = trained(self.written(tmp_path, numbers=True), tmp_path / "run", "data.target=label", "data.files=photo")
        assert run.about["class_names"] == []
        assert "mae" in run.results

    def test_missing_files_are_named(self, tmp_path: Path) -> None:
        table = self.written(tmp_path)
        (tmp_path / "images" / "warm" / "03.png").unlink()
        with pytest.raises(InputError, match=r"1 of 24 files are not in .*images/warm/03\.png \(line 5\)"):
            media.read({"name": str(table), "target": "label"})
        (tmp_path / "elsewhere").mkdir()
        table.rename(tmp_path / "elsewhere" / "list.csv")
        with pytest.raises(InputError, match="24 of 24 files are not in"):
            media.read({"name": str(tmp_path / "elsewhere" / "list.csv"), "target": "label"})
        fill(tmp_path / "images", 12, warm=True)
        found = media.read(
            {"name": str(tmp_path / "elsewhere" / "list.csv"), "target": "label", "folder": str(tmp_path)}
        )
        assert (len(found), found.target_names) == (24, ("cold", "warm"))

    def test_what_is_asked_for(self, tmp_path: Path) -> None:
        table = self.written(tmp_path)
        with pytest.raises(InputError, match="there is nothing to predict"):
            media.read({"name": str(table)})
        with pytest.raises(InputError, match="'id' does not name images"):
            media.read({"name": str(table), "target": "label", "files": "id"})
        (tmp_path / "gap.csv").write_text("photo,label\nimages/cold/01.png,a\nimages/cold/02.png,b\n,b\n")
        with pytest.raises(InputError, match=r"1 rows name no file in 'photo', the first in line 4"):
            media.read({"name": str(tmp_path / "gap.csv")})


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sounds")
    wl.data.write_sounds(root / "set", 60, seconds=0.1)
    for name in ("rising", "falling", "clicks"):
        shutil.rmtree(root / "set" / name)
    trained(root / "set", root / "run", "model.channels=[4, 8]", "model.n_mels=16", model=None)
    return root


class TestSounds:
    def test_a_folder_chooses_its_model_and_is_learned(self, heard: Path) -> None:
        run = wl.runs.open(heard / "run")
        assert json.loads((heard / "run" / "settings.json").read_text())["model"]["name"] == "sound"
        assert run.about["inputs"]["form"] == {"kind": "sound", "rate": 8000, "length": 800}
        assert run.results["accuracy"] == 1.0

    def test_predictions_for_files(self, heard: Path, tmp_path: Path) -> None:
        run = wl.runs.open(heard / "run")
        file = heard / "set" / "hiss" / "hiss_003.wav"
        answer = run.predict(file)
        assert (answer.predictions, answer.ids) == (["hiss"], ["hiss_003.wav"])
        assert set(run.predict(heard / "set" / "tone").predictions) == {"tone"}
        samples = wl.audio.read_wav(file)
        for source in (samples, samples.samples[:, 0], samples.samples[None]):
            np.testing.assert_allclose(confidence(run.predict(source)), confidence(answer), rtol=1e-5)
        t = np.arange(4410) / 44100  # another rate, two channels, another length
        wl.audio.write_wav(tmp_path / "a.wav", 0.4 * np.sin(2 * np.pi * 500 * t)[:, None].repeat(2, 1), 44100)
        assert run.predict(tmp_path / "a.wav").predictions == ["tone"]
        assert run.evaluate(heard / "set")["examples"] == 24
        (tmp_path / "b.wav").write_text("no sound")
        with pytest.raises(InputError, match=r"b\.wav"):
            run.predict(tmp_path / "b.wav")

    def test_models_of_sequences_take_sounds_too(self, heard: Path, tmp_path: Path) -> None:
        done = trained(heard / "set", tmp_path / "run", "epochs=1", "data.seconds=0.02", model="conv1d")
        assert done.shape == (160, 1)

    def test_the_model_is_for_sounds(self) -> None:
        with pytest.raises(InputError, match="no sound"):
            recipes.build({"name": "sound"}, (8, 8, 1), 2, {"inputs": {}})
        assert suited_model({"name": "sounds"})[0] == "sound"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("old")
    fill(root / "set", 10, warm=True, cold=False)
    trained(root / "set", root / "run", "epochs=2", "model.hidden=[6]", model="mlp")
    return root / "run"


class TestTransfer:
    def test_frozen_layers_are_those_of_the_other_run(self, old: Path, tmp_path: Path) -> None:
        fill(tmp_path / "new", 8, red=True, blue=False, other=True)
        Image.fromarray(picture(True, 12, 10)).save(tmp_path / "new" / "red" / "large.png")
        said = [f'model.from="{old}"', "freeze=backbone", "epochs=2"]
        run = trained(tmp_path / "new", tmp_path / "run", *said, model=None)
        settings = json.loads((tmp_path / "run" / "settings.json").read_text())
        assert settings["model"] == {"name": "mlp", "hidden": [6], "from": str(old)}
        assert settings["data"]["size"] == [8, 8]
        before, after = wl.runs.open(old).model.state_dict(), run.model.state_dict()
        parameters = [path for path, _ in run.model.named_parameters()]
        same = [path for path in parameters if np.array_equal(before[path].numpy(), after[path].numpy())]
        assert len(same) == len(parameters) - 2  # all but the weight and the bias of the head
        assert after[parameters[-2]].shape[-1] == 3 or after[parameters[-2]].shape[0] == 3
        np.testing.assert_array_equal(before["0.mean"].numpy(), after["0.mean"].numpy())
        opened = wl.runs.open(tmp_path / "run")
        assert opened.predict(tmp_path / "new" / "red" / "00.png").ids == ["00.png"]

    def test_what_was_taken_is_said(self, old: Path, shared: Path) -> None:
        data = wl.recipes.tasks.TASKS["supervised"].prepare({"name": str(shared / "set")}, 0.1, 0)
        model = wl.nn.Sequential(
            wl.nn.Standardize.of(data.train[0], axis=(0, 1, 2, 3)),
            recipes.build({"name": "mlp", "hidden": [6, 5]}, (8, 8, 3), 2),
        )
        taken, notes = take(model, {"from": str(old)}, data, "supervised")
        assert "tensors with" in notes[0]
        assert notes[1].startswith("new, and drawn by chance: ")
        assert notes[2].startswith("2 do not fit: 1.1.layers.4.weight is (6, 2) there and (6, 5) here")
        assert sorted(taken) == [f"1.1.layers.{i}.{name}" for i in (0, 1) for name in ("bias", "weight")]
        frozen = freeze(model, taken)
        assert 0 < model.num_parameters(trainable_only=True) < model.num_parameters()
        assert frozen[0].endswith("weights are trained.")

    def test_trained_on_if_nothing_is_frozen(self, old: Path, tmp_path: Path) -> None:
        fill(tmp_path / "new", 8, a=True, b=False)
        run = trained(tmp_path / "new", tmp_path / "run", f'model.from="{old}"', "epochs=1", model=None)
        before, after = wl.runs.open(old).model.state_dict(), run.model.state_dict()
        first = next(path for path, _ in run.model.named_parameters())
        assert not np.array_equal(before[first].numpy(), after[first].numpy())

    def test_refused(self, old: Path, tmp_path: Path) -> None:
        fill(tmp_path / "new", 8, a=True, b=False)
        with pytest.raises(InputError, match=r"nothing of .* fits: the model is a head alone"):
            trained(tmp_path / "new", tmp_path / "run", f'model.from="{old}"', model="linear")
        with pytest.raises(InputError, match=r"nothing of .* fits: it has no 1"):
            trained(tmp_path / "new", tmp_path / "run", f'model.from="{old}"', model="cnn")
        with pytest.raises(InputError, match=r"nothing of .* fits: .* is \(.*\) there and \(.*\) here"):
            trained(tmp_path / "new", tmp_path / "run", f'model.from="{old}"', "model.hidden=[7]", model="mlp")
        with pytest.raises(InputError, match=r"freeze.* would do nothing: there is no model\.from"):
            trained(tmp_path / "new", tmp_path / "run", "freeze=backbone", model="linear")
        with pytest.raises(InputError, match="is of the task 'supervised', this is 'reconstruction'"):
            trained(tmp_path / "new", tmp_path / "run", f'model.from="{old}"', model="autoencoder")
        with pytest.raises(wl.errors.FileError, match="has no trained model"):
            trained(tmp_path / "new", tmp_path / "run", f'model.from="{tmp_path}"', model="mlp")

    def test_other_columns(self, tmp_path: Path) -> None:
        rows = [f"{rng.normal():.3f},{rng.normal():.3f},{'yes' if i % 2 else 'no'}" for i in range(30)]
        (tmp_path / "a.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
        (tmp_path / "b.csv").write_text("\n".join(["a,c,label", *rows]) + "\n")
        trained(tmp_path / "a.csv", tmp_path / "run", "epochs=1", "data.target=label", model="mlp")
        said = ("epochs=1", "data.target=label", f'model.from="{tmp_path / "run"}"')
        with pytest.raises(InputError, match="other features than these data: 'c' is new"):
            trained(tmp_path / "b.csv", tmp_path / "other", *said, model=None)
        done = trained(tmp_path / "a.csv", tmp_path / "again", *said, "freeze=backbone", model=None)
        assert done.results["loss"] > 0
