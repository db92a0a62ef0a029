"""Settings by name, by file and by `key=value`."""

import pytest

import wonderland as wl
from wonderland.recipes import Settings, TrainSettings
from wonderland.recipes.settings import OPTIMIZERS, SCHEDULES, schedule_of


def test_a_file_then_names_then_changes(tmp_path):
    (tmp_path / "run.toml").write_text(
        'model = "mlp"\n[data]\nname = "moons"\nn_samples = 50\n[train]\nlr = 1\nepochs = 3\n'
    )
    settings = Settings.of(file=tmp_path / "run.toml", changes=["epochs=4", "model.hidden=[8, 4]", "data.noise=0.2"])
    assert settings.model == {"name": "mlp", "hidden": [8, 4]}
    assert settings.data == {"name": "moons", "n_samples": 50, "noise": 0.2}
    assert settings.train == {"lr": 1.0, "epochs": 4}
    assert Settings.of(model="linear", file=tmp_path / "run.toml").model == {"name": "linear"}  # options of another go
    assert Settings.from_dict(settings.to_dict()) == settings


def test_defaults_of_the_model_stand_behind_what_was_said():
    settings = Settings.of(changes=["lr=0.5"])
    found = settings.training({"lr": 0.1, "augment": True})
    assert (found.lr, found.augment, found.epochs) == (0.5, True, TrainSettings.epochs)


@pytest.mark.parametrize(
    "change, message",
    [
        ("lr", "key=value"),
        ("=3", "key=value"),
        ("rate=3", "no train.rate"),
        ("epoch=3", "epochs?"),
        ("lr=fast", "is no float"),
        ("epochs=1.5", "is no int"),
        ("augment=1", "is no bool"),
        ("optimiser.lr=1", "key=value"),
    ],
)
def test_changes_that_make_no_sense(change, message):
    with pytest.raises(wl.errors.InputError, match=message):
        Settings.of(changes=[change])


@pytest.mark.parametrize(
    "change", ["epochs=0", "lr=0.0", "validation=1.0", "optimizer=newton", "schedule=up", "average=1.0"]
)
def test_values_out_of_range(change):
    with pytest.raises(wl.errors.InputError, match=rf"train\.{change.split('=')[0]} = "):
        Settings.of(changes=[change]).training({})


def test_files_that_are_not_there_or_no_toml(tmp_path):
    with pytest.raises(wl.errors.FileError, match=r"nothing\.toml"):
        Settings.of(file=tmp_path / "nothing.toml")
    (tmp_path / "bad.toml").write_text("lr = = 3")
    with pytest.raises(wl.errors.InputError, match="is no TOML"):
        Settings.of(file=tmp_path / "bad.toml")
    (tmp_path / "odd.toml").write_text("[optimizer]\nlr = 3")
    with pytest.raises(wl.errors.InputError, match="no section 'optimizer'"):
        Settings.of(file=tmp_path / "odd.toml")


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_has_rates_up_to_the_one_given(name):
    rate = schedule_of(TrainSettings(lr=0.5, schedule=name, warmup=0.1), 100)
    rates = [float(rate(step)) for step in range(100)]
    assert min(rates) >= 0
    assert max(rates) == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_is_made(name):
    from wonderland.recipes.running import _optimizer

    model = wl.nn.Linear(3, 4)
    optimizer = _optimizer(TrainSettings(optimizer=name, lr=0.25), model)
    assert float(optimizer.lr) == 0.25
