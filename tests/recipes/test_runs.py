"""Runs from settings: what they reach, what they leave, and what they refuse."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.recipes import Settings
from wonderland.recipes.tasks import TASKS


def quick(folder, *changes, model="linear", data="iris", **settings):
    return recipes.run(
        Settings.of(model=model, data=data, changes=["epochs=3", *changes]),
        folder,
        progress=False,
        png=False,
        **settings,
    )


@pytest.mark.book("5.67", "4.76", name="wonderland train")
def test_the_main_job_reaches_98_percent_and_leaves_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--set", "epochs=12"]) == 0
    out, err = capsys.readouterr()
    accuracy = float(re.search(r"accuracy ([\d.]+) %", out).group(1))
    assert accuracy >= 98.0
    assert "epoch 12/12" in err
    folder = tmp_path / "runs" / "digits-cnn"
    for name in ("settings.json", "history.jsonl", "model.safetensors", "results.json", "report.html", "checkpoints"):
        assert (folder / name).exists()
    # the same command again finds that all is done
    assert main(["train", "--set", "epochs=12"]) == 0
    again, _ = capsys.readouterr()
    assert f"accuracy {accuracy:.2f} %" in again
    # the saved model gives the same accuracy
    assert main(["evaluate", "runs/digits-cnn", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 100 * found["accuracy"] == pytest.approx(accuracy, abs=0.01)
    assert found["examples"] == 360
    # and predicts inputs from a file
    digits = wl.data.digits()
    np.save(tmp_path / "some.npy", digits.test.features[:5])
    assert main(["predict", "runs/digits-cnn", "--data", "some.npy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prediction,confidence"
    assert len(lines) == 6
    right = [line.split(",")[0] == str(t) for line, t in zip(lines[1:], digits.test.targets[:5], strict=True)]
    assert sum(right) >= 4


def test_a_regression_and_a_table(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    rows = ["a,b,y"] + [f"{a:.5f},{b:.5f},{3 * a - b + 1:.5f}" for a, b in x]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    settings = Settings.of(
        model="linear",
        data=str(tmp_path / "table.csv"),
        changes=["data.target=y", "epochs=200", "lr=0.1", "batch_size=16", "weight_decay=0.0"],
    )
    done = recipes.run(settings, tmp_path / "run", progress=False, png=False)
    assert done.results["r2"] > 0.999
    (tmp_path / "new.csv").write_text("a,b\n1.0,0.0\n0.0,2.0\n")
    assert main(["predict", str(tmp_path / "run"), "--data", str(tmp_path / "new.csv")]) == 0
    values = [float(line) for line in capsys.readouterr().out.splitlines()[1:]]
    np.testing.assert_allclose(values, [4.0, -1.0], atol=0.1)


def test_runs_repeat_themselves(tmp_path):
    a, b = quick(tmp_path / "a", data="moons"), quick(tmp_path / "b", data="moons")
    assert a.results == b.results
    c = quick(tmp_path / "c", "seed=1", data="moons")
    assert a.history["loss"] != c.history["loss"]


def test_averaged_weights_are_the_ones_that_are_kept(tmp_path):
    plain = quick(tmp_path / "a", data="moons")
    averaged = quick(tmp_path / "b", "average=0.9", data="moons")
    assert averaged.history["loss"] == plain.history["loss"]  # the same steps
    assert averaged.results["loss"] != plain.results["loss"]
    # validation is with the averages, too, so the last epoch's and the saved model's agree
    last = averaged.history["validation_loss"][-1]
    assert recipes.evaluate(tmp_path / "b", part="validation")["loss"] == pytest.approx(last, rel=1e-5)


def test_an_interrupted_run_goes_on(tmp_path):
    class Break(wl.train.Callback):
        def on_step_end(self, trainer):
            if trainer.step == 3:
                raise RuntimeError("power cut")

    changes = ["checkpoint_every=1", "batch_size=32"]
    straight = quick(tmp_path / "a", *changes)
    with pytest.raises(RuntimeError, match="power cut"):
        quick(tmp_path / "b", *changes, callbacks=[Break()])
    with pytest.raises(wl.errors.FileError, match="the run is not finished"):
        recipes.open_run(tmp_path / "b")
    resumed = quick(tmp_path / "b", *changes)
    assert straight.history["loss"] == resumed.history["loss"]
    assert straight.results == resumed.results


def test_other_settings_in_the_same_folder_are_refused_unless_fresh(tmp_path):
    quick(tmp_path)
    with pytest.raises(wl.errors.InputError, match=r"train\.lr: 0\.02 there, 0\.5 now"):
        quick(tmp_path, "lr=0.5")
    assert len(quick(tmp_path, "lr=0.5", fresh=True).history) == 3


def test_the_saved_model_says_what_it_is(tmp_path):
    done = quick(tmp_path, model="mlp")
    trained = recipes.open_run(tmp_path)
    assert trained.about["class_names"] == ["setosa", "versicolor", "virginica"]
    x = wl.data.iris().features
    np.testing.assert_array_equal(
        np.asarray(trained.model(wl.asarray(x))), np.asarray(done.model.eval()(wl.asarray(x)))
    )
    assert recipes.evaluate(tmp_path)["accuracy"] == done.results["accuracy"]
    everything = recipes.evaluate(tmp_path, {"name": "iris"})
    assert everything["examples"] == 150
    assert "trained the run" in everything["notes"][0]


def test_splits_do_not_overlap_and_keep_the_shares():
    data = TASKS["supervised"].prepare({"name": "digits"}, 0.1, 0)
    parts = [data.train, data.validation, data.test]
    rows = [{x.tobytes() + bytes([y]) for x, y in zip(*part, strict=True)} for part in parts]
    assert sum(map(len, rows)) == len(set.union(*rows))
    for _, y in parts:
        shares = np.bincount(y) / len(y)
        assert abs(shares - 0.1).max() < 0.02


def test_ctrl_c_leaves_a_checkpoint_and_says_so(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(wl.__file__).parent.parent)}
    command = [sys.executable, "-m", "wonderland", "train", "--model", "linear", "--data", "moons"]
    process = subprocess.Popen(
        [*command, "--set", "epochs=1000000", "--out", "run"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("run/checkpoints/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    message = err.splitlines()[-1]
    assert re.fullmatch(
        r"wonderland train: error: interrupted after epoch \d+, step \d+; the same command goes on from there", message
    )
    step = int(re.search(r"step (\d+)", message).group(1))
    assert wl.train.CheckpointFolder(tmp_path / "run" / "checkpoints").newest().record["step"] == step


# --- bad input


def table(path, *rows):
    path.write_text("\n".join(["a,b,y", *rows]))
    return str(path)


@pytest.mark.parametrize(
    "rows, message",
    [
        ([f"{i},1.0,cat" for i in range(9)], "is always 'cat'"),
        ([f"nan,nan,{i % 2}.5" for i in range(9)], "everything is missing"),
        (["1,2,0", "2,3,1"], "too few"),
        ([], "no examples|empty|no rows"),
    ],
)
def test_data_that_nothing_can_be_learned_from(tmp_path, capsys, rows, message):
    path = table(tmp_path / "bad.csv", *rows)
    code = main(
        ["train", "--model", "linear", "--data", path, "--set", "data.target=y", "--out", str(tmp_path / "run")]
    )
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert re.search(message, err)
    assert not os.path.exists(tmp_path / "run" / "model.safetensors")


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["train", "--model", "mpl"], 2, "mlp?"),
        (["train", "--data", "digit"], 2, "no dataset or file 'digit'"),
        (["train", "--set", "lr"], 2, "key=value"),
        (["train", "--model", "mlp", "--set", "model.width=3"], 2, "no option 'width'"),
        (["train", "nothing.toml"], 2, "nothing.toml"),
        (["train", "--model", "cnn", "--data", "iris"], 2, "is no image"),
        (["train", "--data", "iris", "--model", "linear", "--set", "data.colour=3"], 2, "colour"),
        (["evaluate", "nowhere"], 2, "nowhere"),
        (["predict", "nowhere", "--data", "iris"], 2, "nowhere"),
        (["evaluate", "nowhere", "--set", "a=b"], 2, "--data, which is missing"),
        (
            ["train", "--model", "mlp", "--data", "moons", "--set", "lr=1e30", "--set", "optimizer=sgd"],
            1,
            "the loss",
        ),
    ],
)
def test_mistakes_give_one_message_and_an_exit_code(tmp_path, monkeypatch, capsys, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments]) == code
    _, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in err


def test_models_of_other_data_are_refused(tmp_path, capsys):
    quick(tmp_path / "run")
    assert main(["evaluate", str(tmp_path / "run"), "--data", "digits"]) == 2
    assert "the columns have no names, those of the run have" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "run"), "--data", "moons"]) == 2
    assert "names 'sepal length (cm)'" in capsys.readouterr().err
    wl.save({"w": np.zeros(2)}, tmp_path / "other.safetensors")
    assert main(["evaluate", str(tmp_path / "other.safetensors")]) == 2
    assert "does not say what model" in capsys.readouterr().err


def test_the_list_names_models_data_and_settings(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for word in (*recipes.MODELS, "digits", "moons", "label_smoothing", "model.hidden = [256, 128]"):
        assert word in out
    assert main(["list", "data"]) == 0
    assert "label_smoothing" not in capsys.readouterr().out
