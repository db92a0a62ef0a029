"""No setting is accepted and ignored: each of them, for each kind of model, has an effect or is refused."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.recipes import MODELS, Settings, TrainSettings, build
from wonderland.recipes.graph_models import GRAPH_MODELS
from wonderland.recipes.running import Changes, _optimizer
from wonderland.recipes.settings import OPTIMIZERS, SCHEDULES, schedule_of
from wonderland.recipes.tasks import TASKS

OTHER = {  # another value than the default, for every setting of training
    "epochs": 3,
    "steps": 6,
    "batch_size": 8,
    "lr": 0.5,
    "optimizer": "sgd",
    "weight_decay": 0.5,
    "schedule": "constant",
    "warmup": 0.7,
    "loss": "multi_margin_loss",
    "class_weights": "balanced",
    "label_smoothing": 0.3,
    "clip_norm": 1e-3,
    "precision": "bfloat16",
    "average": 0.9,
    "augment": True,
    "noise": 0.5,
    "validation": 0.3,
    "patience": 1,
    "freeze": "backbone",
    "checkpoint_every": 1,
    "seed": 3,
}


def test_the_table_has_every_setting():
    assert set(OTHER) == {field.name for field in dataclasses.fields(TrainSettings)}


def traces(folder, *changes, data="digits", model="linear"):
    """All that a short run leaves and that could depend on a setting."""
    settings = Settings.of(model=model, data=data, changes=["epochs=2", "batch_size=256", *changes])
    with wl.using_backend("numpy"):
        done = recipes.run(settings, folder, progress=False, png=False)
    state = {name: np.asarray(value).tobytes() for name, value in done.model.state_dict().items()}
    records = [{k: v for k, v in record.items() if k != "seconds"} for record in done.history.records]
    return state, records, sorted(os.listdir(os.path.join(folder, "checkpoints")))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return traces(tmp_path_factory.mktemp("plain") / "run")


@pytest.mark.parametrize("name", [name for name in OTHER if name not in ("patience", "freeze")])
def test_every_setting_of_training_has_an_effect(tmp_path, plain, name):
    changed = traces(tmp_path / "run", f"{name}={str(OTHER[name]).lower()}")
    assert changed != plain


def test_patience_has_an_effect(tmp_path):
    settings = ["lr=1e-9", "patience=1", "epochs=4", "schedule=constant", "weight_decay=0.0", "optimizer=sgd"]
    _, records, _ = traces(tmp_path / "run", *settings, data="iris")
    assert len(records) < 4


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weight_decay_has_an_effect_with_every_optimizer(name):
    moved = []
    for decay in (0.0, 0.3):
        layer = wl.nn.Linear.from_matrix([[2.0, -1.0], [0.5, 3.0]])
        optimizer = _optimizer(TrainSettings(optimizer=name, lr=0.1, weight_decay=decay), layer)
        for _ in range(3):
            optimizer.step({"weight": wl.tensor([[0.1, 0.4], [-0.2, 0.3]])})
        moved.append(layer.weight.numpy())
    assert np.abs(moved[1] - moved[0]).max() > 1e-4


def test_adams_decay_is_part_of_the_gradient_and_adamws_is_not():
    for name, kind in (("adam", wl.optim.Adam), ("nadam", wl.optim.NAdam), ("adamw", wl.optim.AdamW)):
        a, b = (wl.nn.Linear.from_matrix([[2.0, -1.0]]) for _ in range(2))
        ours, theirs = _optimizer(TrainSettings(optimizer=name, lr=0.1, weight_decay=0.3), a), kind(b, 0.1)
        g = np.array([[0.1, 0.4]], np.float32)
        for _ in range(3):
            coupled = g + 0.3 * b.weight.numpy()
            kept = b.weight.numpy()
            ours.step({"weight": wl.asarray(g)})
            if name == "adamw":
                theirs.groups[0]["weight_decay"] = 0.0
                theirs.step({"weight": wl.asarray(g)})
                b.weight.assign(b.weight.value - wl.asarray((0.1 * 0.3 * kept).astype(np.float32)))
            else:
                theirs.step({"weight": wl.asarray(coupled)})
        np.testing.assert_allclose(a.weight.numpy(), b.weight.numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("steps", [10, 100])
def test_warmup_has_an_effect_with_every_schedule(name, steps):
    def rates(warmup):
        rate = schedule_of(TrainSettings(lr=0.5, schedule=name, warmup=warmup), steps)
        return [float(rate(step)) for step in range(steps)]

    assert rates(0.0) != rates(0.01 if name != "one_cycle" else 0.25) != rates(0.6)
    rising = rates(0.6)
    top = int(np.argmax(rising))
    assert 0.5 * steps <= top <= 0.7 * steps
    assert all(a < b for a, b in itertools.pairwise(rising[:top]))
    assert max(rising) == pytest.approx(0.5, rel=0.02)
    if name == "cosine":  # it comes to its end, however long the warm-up was
        assert rising[-1] < 0.2 * rising[top]


def test_one_cycle_warms_up_as_always_if_nothing_is_said():
    assert Settings.of(model="mlp").training({}).warmup == 0.3
    assert Settings.of(model="mlp", changes=["warmup=0.0"]).training({}).warmup == 0.0
    assert Settings.of(model="mlp", changes=["schedule=cosine"]).training({}).warmup == 0.0


# --- settings that make sense for some data only


def refused(tmp_path, change, **settings):
    settings = Settings.of(**settings, changes=["epochs=1", change])
    with pytest.raises(wl.errors.InputError, match=rf"train\.{change.split('=')[0]} = .* would do nothing"):
        recipes.run(settings, tmp_path / "run", progress=False, png=False)


@pytest.mark.parametrize(
    "model, data, change",
    [
        ("linear", "sine", "label_smoothing=0.1"),
        ("linear", "iris", "augment=true"),
        ("autoencoder", "digits", "label_smoothing=0.1"),
        ("forecaster", "sines", "label_smoothing=0.1"),
        ("forecaster", "sines", "augment=true"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(tmp_path, model, data, change):
    refused(tmp_path, change, model=model, data=data)


@pytest.mark.parametrize("change", ["noise=0.1", "augment=true"])
def test_tokens_have_no_noise(tmp_path, change):
    (tmp_path / "text.txt").write_text("a few words, and again " * 60)
    refused(tmp_path, change, model="wavenet", data=str(tmp_path / "text.txt"))


def test_smoothing_is_for_the_loss_that_the_task_has(tmp_path):
    settings = Settings.of(model="linear", data="iris", changes=["loss=multi_margin_loss", "label_smoothing=0.1"])
    with pytest.raises(wl.errors.InputError, match="the loss multi_margin_loss has none"):
        recipes.run(settings, tmp_path / "run", progress=False, png=False)


def test_habits_of_a_model_that_do_not_suit_the_data_are_switched_off(tmp_path):
    """`mlp` smooths labels by habit; of numbers it does not, and the run says so."""
    with wl.using_backend("numpy"):
        recipes.run(
            Settings.of(model="mlp", data="sine", changes=["epochs=1"]), tmp_path / "run", progress=False, png=False
        )
    stored = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert stored["train"]["label_smoothing"] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("task", ["supervised", "reconstruction"])
def test_every_example_of_a_batch_is_changed(dtype, task):
    images = (np.random.default_rng(0).random((6, 8, 8, 1)) * (255 if dtype == np.uint8 else 1)).astype(dtype)
    targets = images if task == "reconstruction" else np.arange(6)
    rng = np.random.default_rng(1)
    noisy, same = Changes(TrainSettings(noise=0.2), TASKS[task])((images, targets), rng)
    assert (np.abs(noisy.astype(float) - images).max((1, 2, 3)) > 0).all()
    assert noisy.dtype == dtype
    np.testing.assert_array_equal(same, targets)
    moved, goal = Changes(TrainSettings(augment=True), TASKS[task])((images, targets), rng)
    assert (np.abs(moved.astype(float) - images).max((1, 2, 3)) > 0).all()
    np.testing.assert_array_equal(goal, moved if task == "reconstruction" else targets)


# --- options of models

SHAPES = {"conv1d": (16, 3), "conv3d": (8, 8, 8, 1), "wavenet": (16,), "text_cnn": (12,), "forecaster": (16, 2)}
SHAPES |= {"alexnet": (64, 64, 3), **dict.fromkeys(("gpt", "llama", "bert", "seq2seq"), (12,))}
SHAPES |= {name: (16, 2) for name, entry in MODELS.items() if entry.also}
TOKENS = ("wavenet", "text_cnn", "gpt", "llama", "bert", "seq2seq")
SHAPES["sound"] = (800, 1)
ABOUT = {"vocabulary": 11, "source_length": 7, "start_token": 2, "inputs": {}, "class_names": ["a", "b"]}
EACH = [(name, task) for name, entry in MODELS.items() for task in entry.tasks if name != "alexnet"]
ANOTHER = {
    "hidden": [16, 8],
    "members": 3,
    "bins": 5,
    "activation": "gelu",
    "norm": "layer",
    "dropout": 0.7,
    "channels": [4, 8, 12],
    "pool": "avg",
    "grouped": True,
    "convs": [1, 1],
    "depth": 3,
    "block": "bottleneck",
    "patch": 1,
    "kernel_size": 3,
    "drop_path": 0.9,
    "features": 5,
    "steps": 3,
    "method": "euler",
    "code": 4,
    "dilations": [1, 3],
    "embedding_size": 9,
    "widths": [2, 5],
    "e": 9,
    "token_hidden": 5,
    "channel_hidden": 7,
    "embed_dim": 8,
    "num_heads": 2,
    "positions": "learned",
    "tied": False,
    "kv_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "pooling": "cls",
    "registers": 2,
    "state": 3,
    "heads": 3,
    "dynamic": True,
    "aggregate": "max",
    "attend": "all",
    "structural": "degree",
    "n_mels": 9,
}
MORE: dict[tuple[str, str], object] = {
    ("vgg", "channels"): 8,
    ("forecaster", "channels"): 9,
    ("wavenet", "channels"): 9,
    ("text_cnn", "channels"): 9,
}
MORE |= {
    ("vit", "positions"): "sinusoidal",
    ("conv3d", "kernel_size"): 5,
    ("forecaster", "kernel_size"): 3,
    ("neural_ode", "hidden"): 9,
}
MORE |= {(name, "hidden"): 9 for name in GRAPH_MODELS}


SMALL = {"wavenet": {"channels": 8, "dilations": [1, 2]}, "convnext": {"channels": [4, 8], "depth": 1}}


def on_a_graph(name, task, **options):
    wl.random.seed(0)
    model = build({"name": name, **options}, (4,), 7, {"task": task}).train()
    graph = wl.graphs.Batch.from_graphs([wl.graphs.karate_club().with_(x=None, props=None)])
    x = np.random.default_rng(0).normal(size=(34, 4)).astype(np.float32)
    return {k: v.shape for k, v in model.state_dict().items()}, np.asarray(model(x, graph)).tobytes()


def fingerprint(name, task, **options):
    """What a model is, and what it does to an input while it is trained."""
    if name in GRAPH_MODELS:
        return on_a_graph(name, task, **options)
    several = bool(MODELS[name].also)
    tokens = name in TOKENS or (several and task == "language")
    shape = (12,) if several and tokens else SHAPES.get(name, (16, 16, 1))
    wl.random.seed(0)
    model = build({"name": name, **SMALL.get(name, {}), **options}, shape, 7, {**ABOUT, "task": task}).train()
    rng = np.random.default_rng(0)
    x = rng.integers(1, 7, (4, *shape)) if tokens else rng.normal(size=(4, *shape)).astype(np.float32)
    return {k: v.shape for k, v in model.state_dict().items()}, np.asarray(model(wl.asarray(x))).tobytes()


@pytest.mark.parametrize("name, task", EACH)
def test_every_option_of_every_model_has_an_effect(name, task):
    with wl.using_backend("numpy"):  # what comes again would be compiled, with other last digits
        plain = fingerprint(name, task)
        assert fingerprint(name, task) == plain
        for option in MODELS[name].options():
            assert fingerprint(name, task, **{option: MORE.get((name, option), ANOTHER[option])}) != plain, option


def test_alexnets_options_have_an_effect():
    shape = (64, 64, 3)
    plain, grouped = (
        wl.eval_shape(lambda g=g: build({"name": "alexnet", "grouped": g}, shape, 3)) for g in (False, True)
    )
    assert plain.num_parameters() != grouped.num_parameters()
    layers = wl.eval_shape(lambda: build({"name": "alexnet", "dropout": 0.75}, shape, 3)).named_modules()
    assert 0.75 in [layer.p for _, layer in layers if isinstance(layer, wl.nn.Dropout)]


# --- options of data


@pytest.mark.parametrize(
    "model, data, change, message",
    [
        ("wavenet", "text.txt", "data.tokeniser=bpe", "no option data.tokeniser"),
        ("wavenet", "text.txt", "data.vocabulary=100", "the tokenizer char has a size of its own"),
        ("text_cnn", "table.csv", "data.lenght=8", "no option data.lenght"),
        ("forecaster", "table.csv", "data.target=a", "every column is forecast"),
        ("forecaster", "sines", "data.target=a", "target"),
        ("autoencoder", "digits.npz", "data.targets=y", "the image itself"),
        ("linear", "iris", "data.colour=red", "colour"),
        ("linear", "four.npz", "data.targets=y_test", "which are the features"),
    ],
)
def test_options_of_data_that_nobody_would_look_at_are_refused(tmp_path, monkeypatch, model, data, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a few words, and again " * 60)
    (tmp_path / "table.csv").write_text("a,b\n" + "1.5,2\n" * 200)
    digits = wl.data.digits()
    np.savez(tmp_path / "digits.npz", x=digits.features[:50], y=digits.targets[:50])
    x, y = np.zeros((6, 2)), np.arange(6) % 2
    np.savez(tmp_path / "four.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    with pytest.raises(wl.errors.InputError, match=message):
        recipes.run(Settings.of(model=model, data=data, changes=[change]), tmp_path / "run", progress=False, png=False)
