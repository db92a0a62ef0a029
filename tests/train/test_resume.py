"""A run that is killed at any moment ends with the same bits as one that never was."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl

# Everything that has state: dropout and its stream, batch normalization, Adam, an average, a plateau, early stopping,
# metrics, a shuffled loader with random transforms, an incomplete last batch, and draws from the global stream.
SCRIPT = """
import sys
import numpy as np
import wonderland as wl
from wonderland import nn, train

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 4)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)


class Jitter:
    random = True

    def __call__(self, x, rng):
        return x + rng.normal(size=x.shape).astype(np.float32) * 0.1


class Draw(train.Callback):
    def on_step_end(self, trainer):
        self.last = float(wl.random.normal(()))  # moves the global stream
        if len(sys.argv) > 3:
            import time

            time.sleep(float(sys.argv[3]))


wl.random.seed(1)
model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
loader = wl.data.DataLoader(
    wl.data.TensorDataset(X, Y), batch_size=20, shuffle=True, seed=3, transform=Jitter()
)
draw = Draw()
history = train.fit(
    model,
    nn.CrossEntropyLoss(),
    loader,
    epochs=6,
    optimizer=wl.optim.AdamW(model, lr=0.01),
    schedule=wl.optim.Plateau(0.01, patience=0, factor=0.5),
    average=wl.optim.EMA(model, decay=0.9),
    validation=(X, Y),
    metrics=wl.metrics.Accuracy(),
    callbacks=[draw, train.EarlyStopping(patience=50)],
    checkpoint=sys.argv[1],
    checkpoint_every=1,
    progress="lines",
)
state = {f"model.{k}": v for k, v in model.state_dict().items()}
state["losses"] = np.array(history["loss"])
state["accuracies"] = np.array(history["accuracy"])
state["validation"] = np.array(history["validation_loss"])
state["rates"] = np.array(history["lr"])
state["drawn"] = np.array(float(wl.random.normal(())))
wl.save(state, sys.argv[2])
"""


def start(folder: Path, result: Path, pause: float = 0.0) -> subprocess.Popen:
    source = str(Path(wl.__file__).parent.parent)
    environment = os.environ | {"PYTHONPATH": source}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), str(result), str(pause)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen) -> str:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return errors


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    finished(start(folder / "run", folder / "result"))
    return wl.load(folder / "result")


def assert_same_bits(a, b):
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert np.asarray(value).tobytes() == np.asarray(b[name]).tobytes(), name


@pytest.mark.book("9-21", name=("wl.train.fit", "wl.train.CheckpointFolder"))
def test_killed_again_and_again_at_random_points(straight, tmp_path):
    chance = random.Random(os.environ.get("PYTEST_RANDOM", 20))
    kills = 0
    for _ in range(3):
        process = start(tmp_path / "run", tmp_path / "result", pause=0.05)
        # not before the first checkpoint: there would be nothing to lose
        before = steps(tmp_path / "run")
        deadline = time.monotonic() + 60
        while steps(tmp_path / "run") == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.25)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills >= 2
    assert "going on after" in finished(start(tmp_path / "run", tmp_path / "result"))
    assert_same_bits(straight, wl.load(tmp_path / "result"))


def steps(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.json")} if folder.exists() else set()


def test_interrupted_by_the_user(straight, tmp_path):
    process = start(tmp_path / "run", tmp_path / "result", pause=0.05)
    deadline = time.monotonic() + 60
    while not steps(tmp_path / "run") and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    finished(start(tmp_path / "run", tmp_path / "result"))
    assert_same_bits(straight, wl.load(tmp_path / "result"))


def test_a_damaged_checkpoint_costs_steps_but_nothing_else(straight, tmp_path):
    process = start(tmp_path / "run", tmp_path / "result", pause=0.05)
    deadline = time.monotonic() + 60
    while len(steps(tmp_path / "run")) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    newest = sorted((tmp_path / "run").glob("step-*.safetensors"))[-1]
    newest.write_bytes(newest.read_bytes()[:100])
    errors = finished(start(tmp_path / "run", tmp_path / "result"))
    assert newest.name in errors
    assert_same_bits(straight, wl.load(tmp_path / "result"))
