"""Recipes beyond classes and numbers: autoencoders, forecasts, language models, texts."""

import json
import re

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.recipes import Settings

TEXT = "The cat sat on the mat. The dog sat on the log. " * 120


def trained(folder, model, *changes, data=None):
    settings = Settings.of(model=model, data=data, changes=list(changes))
    return recipes.run(settings, folder, progress=False, png=False)


@pytest.mark.parametrize(
    "model, changes", [("autoencoder", ["model.channels=[8]"]), ("unet", ["model.channels=[4, 8]", "noise=0.2"])]
)
def test_images_are_reconstructed(tmp_path, model, changes):
    done = trained(tmp_path, model, "epochs=3", *changes)
    spread = np.var(wl.data.digits().test.features)
    assert done.results["loss"] < 0.5 * spread
    again = recipes.evaluate(tmp_path)
    assert again["loss"] == pytest.approx(done.results["loss"], rel=1e-6)
    with pytest.raises(wl.errors.InputError, match="makes no predictions"):
        recipes.predict(tmp_path, {"name": "digits"})


def test_a_forecaster_beats_the_forecast_that_nothing_changes(tmp_path, capsys):
    done = trained(tmp_path, "forecaster", "epochs=25", "lr=0.01", "data.context=32", "model.channels=16")
    assert done.results["mae"] < 0.5 * done.results["naive_mae"]
    assert recipes.evaluate(tmp_path)["mae"] == pytest.approx(done.results["mae"], rel=1e-6)
    series = wl.series.make_sines(300)
    rows = ["value", *(f"{v:.6f}" for v in np.asarray(series)[:250].reshape(-1))]
    (tmp_path / "past.csv").write_text("\n".join(rows))
    assert main(["predict", str(tmp_path), "--data", str(tmp_path / "past.csv"), "--set", "steps=10"]) == 0
    ahead = np.array([float(line) for line in capsys.readouterr().out.splitlines()[1:]])
    truth = np.asarray(series)[250:260].reshape(-1)
    assert np.abs(ahead - truth).mean() < 0.5 * np.abs(truth - np.asarray(series)[249].item()).mean()


@pytest.mark.parametrize("tokenizer", ["char", "bpe", "word", "byte"])
def test_a_language_model_learns_and_writes(tmp_path, capsys, tokenizer):
    (tmp_path / "text.txt").write_text(TEXT)
    done = trained(
        tmp_path / "run",
        "wavenet",
        "epochs=4",
        "batch_size=16",
        "lr=0.01",
        "validation=0.1",
        f"data.tokenizer={tokenizer}",
        "data.context=32",
        "data.stride=8",
        *(["data.vocabulary=270"] if tokenizer in ("word", "bpe") else []),
        "model.channels=16",
        "model.dilations=[1,2,4]",
        data=str(tmp_path / "text.txt"),
    )
    assert done.results["bits_per_character"] < 2.0  # a choice among its letters would take 4
    assert recipes.evaluate(tmp_path / "run")["loss"] == pytest.approx(done.results["loss"], rel=1e-5)
    arguments = ["generate", str(tmp_path / "run"), "--prompt", "The cat", "--length", "20", "--seed", "3"]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert first.startswith("The cat")
    assert main(arguments) == 0
    assert capsys.readouterr().out == first
    assert main(["predict", str(tmp_path / "run"), "--data", "iris"]) == 2
    assert "wonderland generate" in capsys.readouterr().err


def test_texts_are_classified(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = {"good": ["lovely", "fine", "great"], "bad": ["awful", "poor", "dull"]}
    filler = ["the", "film", "was", "very", "and", "story", "quite"]
    rows = ["review,verdict"]
    for _ in range(120):
        verdict = str(rng.choice(["good", "bad"]))
        text = [*rng.choice(filler, 5), str(rng.choice(words[verdict])), *rng.choice(filler, 3)]
        rows.append(f"{' '.join(text)},{verdict}")
    (tmp_path / "reviews.csv").write_text("\n".join(rows))
    done = trained(
        tmp_path / "run",
        "text_cnn",
        "data.text=review",
        "data.target=verdict",
        "data.length=12",
        "batch_size=16",
        "lr=0.01",
        "model.channels=8",
        data=str(tmp_path / "reviews.csv"),
    )
    assert done.results["accuracy"] > 0.9
    (tmp_path / "new.csv").write_text("review\na lovely film\nan awful story\n")
    assert (
        main(["predict", str(tmp_path / "run"), "--data", str(tmp_path / "new.csv"), "--set", "text=review", "--json"])
        == 0
    )
    assert [row["prediction"] for row in json.loads(capsys.readouterr().out)] == ["good", "bad"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--model", "wavenet"], "no data of its own"),
        (["--model", "wavenet", "--data", "nowhere.txt"], "nowhere.txt"),
        (["--model", "wavenet", "--data", "short.txt"], "too few for windows"),
        (["--model", "wavenet", "--data", "short.txt", "--set", "data.tokenizer=letters"], "no tokenizer 'letters'"),
        (["--model", "wavenet", "--data", "empty.txt"], "the text is empty"),
        (["--model", "wavenet", "--data", "bytes.txt"], "no text in UTF-8"),
        (["--model", "forecaster", "--set", "data.n=50"], "too few for windows"),
        (["--model", "autoencoder", "--data", "iris"], "are no images"),
        (["--model", "text_cnn", "--data", "table.csv"], "no column 'text'"),
    ],
)
def test_data_that_do_not_suit_the_task(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.txt").write_text("too short")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert main(["train", *arguments]) == 2
    assert re.search(re.escape(message), capsys.readouterr().err)


def test_only_language_models_write(tmp_path, capsys):
    trained(tmp_path, "linear", "epochs=1", data="iris")
    assert main(["generate", str(tmp_path)]) == 2
    assert "is no model that writes" in capsys.readouterr().err
