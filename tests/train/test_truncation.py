"""Truncated backpropagation in `fit`: the state goes on, the gradient is cut, and a resumed run has the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train
from wonderland.errors import InputError, ModuleError, NonFiniteError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 12, 2))
Y = np.cumsum(X, axis=1)[..., :1] * 0.3


class Rnn(nn.StateLayer):
    """tanh(s A + x B) C, in float64."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.A = nn.Parameter(rng.normal(size=(5, 5)) * 0.4)
        self.B = nn.Parameter(rng.normal(size=(2, 5)))
        self.C = nn.Parameter(rng.normal(size=(5, 1)))

    def features(self) -> int:
        return 2

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (5,)}

    def run(self, x: Any, state: Any, real: Any) -> Any:
        def step(s: Any, u: Any) -> Any:
            s = wl.tanh(s @ self.A + u)
            return s, s

        s, y = wl.scan(step, state["s"], wl.swapaxes(x @ self.B, 0, 1))
        return wl.swapaxes(y, 0, 1) @ self.C, {"s": s}


def fitted(truncated: Any, data: Any = (X, Y), epochs: int = 2, **settings: Any) -> tuple[Rnn, Any]:
    model = Rnn()
    settings = {"optimizer": wl.optim.SGD, "lr": 0.05, "batch_size": 4, "progress": False} | settings
    return model, train.fit(model, "mse_loss", data, epochs=epochs, truncated=truncated, **settings)


def by_hand(batches: Any, steps: int, carry: str, epochs: int = 2, lr: float = 0.05) -> tuple[Rnn, list[float]]:
    """The same in a plain loop: a state that is carried as numbers."""
    model, losses = Rnn(), []
    for _ in range(epochs):
        state, total, count = None, 0.0, 0
        for x, y in batches:
            state = wl.zeros((len(x), 5), dtype=wl.float64) if state is None or carry == "batch" else state
            for i in range(0, x.shape[1], steps):
                part, wanted = wl.tensor(x[:, i : i + steps]), wl.tensor(y[:, i : i + steps])

                def loss(model: Any, s: Any = state, part: Any = part, wanted: Any = wanted) -> Any:
                    out, after = model.run(part, {"s": s}, None)
                    return wl.mean((out - wanted) ** 2), after["s"]

                (value, state), grads = wl.value_and_grad(loss, has_aux=True)(model)
                total, count = total + value.item() * wanted.size, count + wanted.size
                for name, p in model.named_parameters():
                    p.assign(p - lr * grads[name])
        losses.append(total / count)
    return model, losses


def same(a: nn.Module, b: nn.Module) -> None:
    for name, value in a.state_dict().items():
        np.testing.assert_allclose(value, b.state_dict()[name], rtol=1e-10)


@pytest.mark.book("13.28", "A5-09", name=["wl.train.fit", "wl.train.Truncation"])
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("steps", [1, 5, 12, 99])
def test_fit_does_what_a_loop_by_hand_does(steps: int, jit: bool) -> None:
    model, history = fitted(steps, jit=jit)
    wanted, losses = by_hand([(X, Y)], steps, "batch")
    same(model, wanted)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-10)  # a shorter last piece counts for less
    assert history.records[-1]["step"] == 2 * -(-12 // steps)
    plain, _ = fitted(None)
    if steps >= 12:  # a piece as long as the sequences is all of backpropagation
        same(model, plain)
    else:
        assert np.abs(np.asarray(model.A) - np.asarray(plain.A)).max() > 1e-5


@pytest.mark.book("13.28", name="wl.train.Truncation")
def test_the_state_goes_on_from_batch_to_batch_until_the_epoch_ends() -> None:
    batches = [(X[:, :7], Y[:, :7]), (X[:, 7:], Y[:, 7:])]
    settings = train.Truncation(3, carry="epoch")
    model, history = fitted(settings, batches)
    wanted, losses = by_hand(batches, 3, "epoch")
    same(model, wanted)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-10)
    other, _ = fitted(3, batches)
    same(other, by_hand(batches, 3, "batch")[0])
    assert np.abs(np.asarray(model.A) - np.asarray(other.A)).max() > 1e-6
    # arrays are then taken in their order
    in_order, _ = fitted(settings, (X, Y), batch_size=2)
    same(in_order, by_hand([(X[:2], Y[:2]), (X[2:], Y[2:])], 3, "epoch")[0])


def test_rows_begin_anew_where_the_data_say_so() -> None:
    """A mark in the inputs begins a sequence; the others go on."""
    x = X.copy()
    x[..., 1] = 0.0
    x[0, 4, 1] = x[2, 8, 1] = 1.0
    seen = []

    def begins(piece: Any) -> Any:
        seen.append(np.asarray(piece[0])[:, 0, 1] == 1.0)
        return seen[-1]

    model, _ = fitted(train.Truncation(4, begins=begins), (x, Y), epochs=1, lr=0.0, seed=0, batch_size=4)
    assert len(seen) == 3
    # the loss of the epoch is that of sequences that were cut there
    cuts = {0: (4,), 2: (8,)}
    total = 0.0
    for row in range(4):
        for part in np.split(np.arange(12), cuts.get(row, ())):
            out = np.asarray(model(wl.tensor(x[row : row + 1, part])))
            total += ((out - Y[row : row + 1, part]) ** 2).sum()
    loader = wl.data.DataLoader(wl.data.TensorDataset(x, Y), batch_size=4)
    _, history = fitted(train.Truncation(4, begins=begins), loader, epochs=1, lr=0.0)
    assert history["loss"][0] == pytest.approx(total / Y.size)


def saved(path: Path, tensors: Any, record: Any, **changed: object) -> Path:
    """A checkpoint like another one, with changes."""
    own = {"format", "wonderland", "tensors"}
    kept = {key: value for key, value in record.items() if key not in own} | changed
    train.CheckpointFolder(path).save(f"step-{record['step']:08}", tensors, kept)
    return path


@pytest.mark.parametrize("carry", ["batch", "epoch"])
@pytest.mark.parametrize("stop", [1, 3, 5, 6, 7])
def test_a_resumed_run_has_the_same_bits(tmp_path: Path, carry: str, stop: int) -> None:
    """Two batches of pieces of 5, 5 and 2 steps; the run is stopped inside of a batch, and between two."""

    class StopAt(train.Callback):
        def on_step_end(self, trainer: Any) -> None:
            if trainer.step == stop:
                trainer.stop("here")

    def run(folder: Path, callbacks: Any = ()) -> tuple[Rnn, Any]:
        data = wl.data.DataLoader(wl.data.TensorDataset(X, Y), batch_size=2, shuffle=carry == "batch", seed=1)
        return fitted(
            train.Truncation(5, carry=carry),
            data,
            optimizer=wl.optim.Adam,
            metrics=wl.metrics.MeanSquaredError(),
            validation=(X, Y),
            checkpoint=folder,
            checkpoint_every=1,
            callbacks=callbacks,
        )

    straight, history = run(tmp_path / "straight")
    run(tmp_path / "broken", [StopAt()])
    record = train.CheckpointFolder(tmp_path / "broken").newest()
    assert record is not None
    assert record.record["step"] == stop
    # it was stopped on purpose, which a resumed run would respect
    saved(tmp_path / "again", record.tensors, record.record, stopped=None)
    resumed, again = run(tmp_path / "again")
    for name, value in straight.state_dict().items():
        assert np.asarray(value).tobytes() == np.asarray(resumed.state_dict()[name]).tobytes()
    for column in ("loss", "validation_loss", "mse", "validation_mse"):
        assert history[column] == again[column], column
    assert record.part("carried")["s"].shape == (2, 5)


def test_a_checkpoint_of_another_kind_does_not_fit(tmp_path: Path) -> None:
    fitted(5, checkpoint=tmp_path / "run")
    with pytest.raises(ModuleError, match="pieces of 4 steps, and of 5 before"):
        fitted(4, epochs=3, checkpoint=tmp_path / "run")
    for data in ((X, Y), [(X, Y)]):
        with pytest.raises(ModuleError, match="does not fit"):
            fitted(None, data, epochs=3, checkpoint=tmp_path / "run")
    fitted(None, checkpoint=tmp_path / "plain")
    with pytest.raises(ModuleError, match="the state has no"):
        fitted(5, epochs=3, checkpoint=tmp_path / "plain")
    found = train.CheckpointFolder(tmp_path / "run").newest()
    assert found is not None
    odd = saved(tmp_path / "odd", found.tensors, found.record, carried={"read": "many"})
    with pytest.warns(train.CheckpointWarning, match="has carried="):
        fitted(5, checkpoint=odd)
    fewer = {name: t for name, t in found.tensors.items() if not name.startswith("carried")}
    lost = saved(tmp_path / "lost", fewer, found.record)
    with pytest.raises(ModuleError, match="the state of the sequences is missing"):
        fitted(5, checkpoint=lost)


@pytest.mark.parametrize("carry", ["batch", "epoch"])
def test_validation_and_metrics_read_on_as_well(carry: str) -> None:
    batches = [(X[:, :7], Y[:, :7]), (X[:, 7:], Y[:, 7:])]
    model, history = fitted(
        train.Truncation(3, carry=carry), batches, validation=batches, metrics=wl.metrics.MeanSquaredError()
    )
    whole = np.asarray(model(wl.tensor(X)))
    if carry == "batch":
        whole = np.concatenate([np.asarray(model(wl.tensor(x))) for x, _ in batches], axis=1)
    assert history["validation_loss"][-1] == pytest.approx(((whole - Y) ** 2).mean())
    assert history["validation_mse"][-1] == pytest.approx(((whole - Y) ** 2).mean())


def test_models_with_a_cache_of_keys_learn_in_pieces() -> None:
    """A transformer reads earlier pieces too, as constants: its cache grows with the sequences."""
    wl.random.seed(0)
    tokens = RNG.integers(0, 11, size=(4, 80))
    model = wl.models.GPT(11, 80, 8, 2, 1)
    loss = lambda logits, targets: nn.functional.cross_entropy(logits.reshape(-1, 11), targets.reshape(-1))
    before = train.evaluate(model, loss, (tokens[:, :-1], tokens[:, 1:]))["loss"]
    history = train.fit(
        model, loss, (tokens[:, :-1], tokens[:, 1:]), epochs=3, lr=0.02, truncated=20, batch_size=4,
        validation=(tokens[:, :-1], tokens[:, 1:]), progress=False,
    )  # fmt: skip
    assert history["validation_loss"][-1] < before
    # what is measured in pieces is what the model gives for the whole
    assert history["validation_loss"][-1] == pytest.approx(
        train.evaluate(model, loss, (tokens[:, :-1], tokens[:, 1:]))["loss"], rel=1e-4
    )


def test_an_objective_of_your_own_with_padding() -> None:
    mask = np.arange(12) < np.array([12, 7, 3, 9])[:, None]

    def objective(model: Any, loss: Any, batch: Any) -> Any:
        x, y, real = batch
        out = model(x, lengths=real.sum(axis=1))
        return wl.sum(wl.where(real[..., None], (out - y) ** 2, 0.0)) / real.size, out

    data = [(wl.tensor(np.where(mask[..., None], X, np.nan)), wl.tensor(Y), wl.tensor(mask))]

    class Padded(Rnn):
        def run(self, x: Any, state: Any, real: Any) -> Any:
            flags = wl.ones(x.shape[:2], dtype=bool) if real is None else real

            def step(s: Any, now: Any) -> Any:
                s = wl.where(now[1][:, None], wl.tanh(s @ self.A + now[0]), s)
                return s, s

            s, y = wl.scan(step, state["s"], (wl.swapaxes(x @ self.B, 0, 1), wl.swapaxes(flags, 0, 1)))
            return wl.swapaxes(y, 0, 1) @ self.C, {"s": s}

    model = Padded()
    settings: Any = {"epochs": 1, "lr": 0.0, "optimizer": wl.optim.SGD, "objective": objective, "progress": False}
    history = train.fit(model, "mse_loss", data, truncated=5, **settings)
    whole = np.asarray(model(wl.tensor(X)))
    assert history["loss"][0] == pytest.approx((((whole - Y) ** 2)[..., 0] * mask).sum() / mask.size)


def test_a_loss_that_is_not_finite_leaves_no_state_behind() -> None:
    spoiled = X.copy()
    spoiled[:, 8] = np.inf
    model = Rnn()
    before = {name: np.asarray(t).copy() for name, t in model.state_dict().items()}
    settings: Any = {"optimizer": wl.optim.SGD, "lr": 0.05, "batch_size": 4, "progress": False, "check": False}
    trainer = train.Trainer(
        model, "mse_loss", (spoiled, np.where(spoiled[..., :1] > 9, np.inf, Y)), truncated=4, **settings
    )
    with pytest.raises(NonFiniteError, match="step 3"):
        trainer.fit(1)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
    assert trainer.carried is not None
    assert trainer.carried.cache is None


def test_bad_input() -> None:
    with pytest.raises(InputError, match="a Linear does not read on"):
        train.fit(nn.Linear(2, 1), "mse_loss", (X, Y), truncated=3)
    with pytest.raises(InputError, match="steps=0"):
        fitted(0)
    with pytest.raises(InputError, match="carry='always'"):
        train.Truncation(3, carry="always")
    with pytest.raises(InputError, match="begins is a bool"):
        train.Truncation(3, begins=True)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="accumulate=2"):
        fitted(3, accumulate=2)
    with pytest.raises(InputError, match=r"validation=0\.5 takes examples by chance"):
        fitted(train.Truncation(3, "epoch"), validation=0.5)
    with pytest.raises(InputError, match="a shuffled loader"):
        fitted(train.Truncation(3, "epoch"), wl.data.DataLoader((X, Y), 2, shuffle=True))
    with pytest.raises(ShapeError, match="a batch of 1 rows after one of 3"):
        fitted(train.Truncation(3, "epoch"), wl.data.DataLoader((X, Y), 3))
    with pytest.raises(ShapeError, match="a batch without sequences"):
        fitted(3, (np.ones(4), np.ones(4)), check=False)
    with pytest.raises(ShapeError, match="sequences of no steps"):
        fitted(3, [(wl.zeros((2, 0, 2)), wl.zeros((2, 0, 1)))])
    with pytest.raises(ShapeError, match=r"begins gave float64\[4, 2\]"):
        fitted(train.Truncation(3, begins=lambda piece: piece[0][:, 0]))
    model = Rnn()
    step, optimizer = train.training_step(accumulate=2), wl.optim.SGD(model, lr=0.1)
    with pytest.raises(InputError, match="a cache for a batch in pieces of rows"):
        step(model, nn.MSELoss(), optimizer, None, (wl.tensor(X), wl.tensor(Y)), model.new_cache(4))
