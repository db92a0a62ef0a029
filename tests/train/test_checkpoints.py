"""Checkpoints: whole or not at all, damage found by name, and the one before used."""

import errno
import hashlib
import json
import os
import signal

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train
from wonderland.storage import atomic
from wonderland.train import CheckpointFolder, CheckpointWarning
from wonderland.train.checkpoints import read

X = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]


def folder_with(path, steps=(1, 2, 3), keep=3) -> CheckpointFolder:
    folder = CheckpointFolder(path, keep)
    for step in steps:
        folder.save(f"step-{step:08}", {"model.w": wl.tensor([float(step)])}, {"step": step, "note": "a"})
    return folder


def test_the_newest_is_found_and_old_ones_go(tmp_path):
    folder = folder_with(tmp_path, (1, 2, 10), keep=2)
    assert folder.names() == ["step-00000002", "step-00000010"]
    found = folder.newest()
    assert found.record["step"] == 10
    assert found.part("model")["w"].tolist() == [10.0]
    assert sorted(os.listdir(tmp_path)) == sorted(f"{n}.{e}" for n in folder.names() for e in ("json", "safetensors"))
    assert CheckpointFolder(tmp_path / "nothing").newest() is None


def test_a_name_that_is_used_again_is_replaced_whole(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for value in (1.0, 2.0):
        folder.save("best", {"w": wl.tensor([value])}, {})
    assert folder.load("best").tensors["w"].tolist() == [2.0]
    assert len(os.listdir(tmp_path)) == 2


def test_records_are_readable(tmp_path):
    folder_with(tmp_path, (7,))
    record = json.loads((tmp_path / "step-00000007.json").read_text())
    assert (record["step"], record["note"], record["format"]) == (7, "a", 1)
    assert record["tensors"]["file"] == "step-00000007.safetensors"


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda json_file, tensors: tensors.write_bytes(tensors.read_bytes()[:-1]), "bytes instead of"),
        (lambda json_file, tensors: tensors.write_bytes(tensors.read_bytes()[:-1] + b"x"), "was changed"),
        (lambda json_file, tensors: tensors.unlink(), "has lost its tensors"),
        (lambda json_file, tensors: json_file.write_text(json_file.read_text()[:-5]), "no JSON"),
        (lambda json_file, tensors: json_file.write_text(json_file.read_text().replace('"a"', '"b"')), "was changed"),
        (lambda json_file, tensors: json_file.write_text("[]"), "not the record"),
    ],
)
def test_damage_is_named_and_the_one_before_is_used(tmp_path, damage, message):
    folder = folder_with(tmp_path)
    damage(tmp_path / "step-00000003.json", tmp_path / "step-00000003.safetensors")
    with pytest.raises(wl.errors.FileError, match=f"step-00000003.*{message}|{message}.*step-00000003"):
        folder.load("step-00000003")
    with pytest.warns(CheckpointWarning, match="step-00000003"):
        assert folder.newest().record["step"] == 2


def test_another_format_is_refused(tmp_path):
    folder_with(tmp_path, (1,))
    path = tmp_path / "step-00000001.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 9'))
    with pytest.raises(wl.errors.FileError, match="format 9"):
        read(path)


def test_a_folder_without_a_sound_checkpoint(tmp_path):
    with pytest.raises(wl.errors.FileError, match="no sound checkpoint"):
        read(tmp_path)
    with pytest.raises(wl.errors.InputError, match="keep=0"):
        CheckpointFolder(tmp_path, keep=0)
    with pytest.raises(wl.errors.InputError, match="name"):
        CheckpointFolder(tmp_path).save("../outside", {}, {})


def run(folder, epochs=2, width=4, **settings):
    wl.random.seed(0)
    model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))
    history = train.fit(
        model, "mse_loss", (X, X**2), epochs=epochs, checkpoint=folder, progress=False, batch_size=8, **settings
    )
    return model, history


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(wl.errors.ModuleError, match=r"(?s)step-00000010\.json does not fit.*0\.weight"):
        run(tmp_path, epochs=3, width=5)
    with pytest.raises(wl.errors.ModuleError, match="is of a Adam, not of a SGD"):
        run(tmp_path, epochs=3, optimizer=wl.optim.SGD)
    _, history = run(tmp_path, epochs=3, width=5, resume=False)
    assert len(history) == 3


def test_a_full_disk_keeps_the_last_good_checkpoint(tmp_path, monkeypatch):
    run(tmp_path, epochs=2)
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(wl.errors.FileError, match="the disk is full"):
        run(tmp_path, epochs=4)
    monkeypatch.undo()
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    straight, _ = run(None, epochs=4)
    resumed, _ = run(tmp_path, epochs=4)
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_loss_that_is_not_finite_keeps_the_last_good_checkpoint(tmp_path):
    run(tmp_path, epochs=1)
    with pytest.raises(wl.errors.NonFiniteError):
        run(tmp_path, epochs=3, schedule=lambda step: 1e30, optimizer=wl.optim.Adam)
    assert CheckpointFolder(tmp_path).newest().record["epoch"] >= 1
    model, history = run(tmp_path, epochs=2, resume=True)
    assert np.isfinite(np.asarray(model[0].weight)).all()
    assert len(history) >= 1


def test_a_finished_run_stays_finished(tmp_path):
    def settings():
        return {"callbacks": [train.EarlyStopping(patience=1, min_delta=10.0)], "validation": (X, X)}

    a, first = run(tmp_path, epochs=50, **settings())
    b, second = run(tmp_path, epochs=50, **settings())
    assert len(first) == len(second) == 2
    assert first.stopped == second.stopped
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_array_equal(np.asarray(p), np.asarray(q))


@pytest.mark.parametrize("step", [3, 5, 6])  # in the middle of an epoch, its last step, the first of the next
def test_interrupted_at_any_step_of_an_epoch(tmp_path, step):
    class Interrupt(train.Callback):
        def on_step_end(self, trainer):
            if trainer.step == step:
                os.kill(os.getpid(), signal.SIGINT)

    straight, _ = run(None, epochs=4)
    with pytest.raises(KeyboardInterrupt, match=f"step {step}"):
        run(tmp_path, epochs=4, callbacks=[Interrupt()])
    resumed, history = run(tmp_path, epochs=4)
    assert [record["step"] for record in history] == [5, 10, 15, 20]
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_a_run_that_was_stopped_goes_on_in_the_same_trainer():
    def trainer(callbacks=()):
        wl.random.seed(0)
        return train.Trainer(
            nn.Linear(1, 1), "mse_loss", (X, X), batch_size=8, progress=False, callbacks=callbacks, lr=0.1
        )

    for stop in (3, 5):
        stopper = train.LambdaCallback(on_step_end=lambda t, stop=stop: t.step == stop and t.stop("for now"))
        broken, straight = trainer([stopper]), trainer()
        assert broken.fit(3).stopped == "for now"
        assert broken.step == stop
        broken.fit(3)
        straight.fit(3)
        assert broken.step == straight.step == 15
        np.testing.assert_array_equal(np.asarray(broken.model.weight), np.asarray(straight.model.weight))


# Records with odd values and a checksum that belongs to them: the one before serves, or the run says what is wrong.


def tampered(path, **changes) -> None:
    record = {**json.loads(path.read_text()), **changes}
    del record["sha256"]
    record = {key: value for key, value in record.items() if value is not ...}
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**record, "sha256": digest}))


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": "two"},
        {"epoch": -1},
        {"step": None},
        {"step": 10**30},
        {"step": ...},
        {"running": {}},
        {"running": {"total": float("nan"), "count": 1}},
        {"running": {"total": 10**400, "count": 1}},
        {"loader": {"seed": "x"}},
        {"loader": 7},
        {"random": [1, 2, 3]},
        {"random": [[0, 0], [0, -1]]},
        {"random": "abc"},
        {"schedule": 3},
        {"stopped": 5},
        {"callbacks": []},
        {"callbacks": {"0:EarlyStopping": 3}},
        {"callbacks": {"0:EarlyStopping": {}}},
        {"callbacks": {"0:EarlyStopping": {"scores": "abc", "best_epoch": 0}}},
        {"callbacks": {"0:EarlyStopping": {"scores": [1.0], "best_epoch": 7}}},
        {"callbacks": {"0:EarlyStopping": {"scores": [10**400], "best_epoch": 0}}},
        {"history": {}},
        {"history": {"records": [3], "events": [], "stopped": None}},
        {"model": 3},
        {"tensors": 5},
        {"tensors": {"file": 3, "bytes": 1, "sha256": ""}},
        {"tensors": {"file": "../x", "bytes": 1, "sha256": ""}},
    ],
)
def test_odd_values_fall_back_to_the_one_before(tmp_path, changes):
    def settings():
        return {"callbacks": [train.EarlyStopping(patience=50)], "validation": (X, X**2), "jit": False}

    straight, _ = run(None, epochs=3, **settings())
    run(tmp_path, epochs=2, **settings())
    tampered(tmp_path / "step-00000010.json", **changes)
    with pytest.warns(CheckpointWarning, match=r"step-00000010\.json.*The checkpoint before it is used"):
        resumed, history = run(tmp_path, epochs=3, **settings())
    assert [record["step"] for record in history] == [5, 10, 15]
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_damage_beyond_the_parser_falls_back_too(tmp_path):
    for text in ("[" * 100_000, "\udcff", '{"a": 1, "a": 2}', '{"format": {"x": []}, "tensors": 1, "sha256": 2}'):
        folder = folder_with(tmp_path)
        (tmp_path / "step-00000003.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.warns(CheckpointWarning, match="step-00000003"):
            assert folder.newest().record["step"] == 2


def test_saving_beside_a_record_with_odd_values(tmp_path):
    folder = folder_with(tmp_path)
    tampered(tmp_path / "step-00000002.json", tensors=[])
    folder.save("step-00000004", {"model.w": wl.tensor([4.0])}, {"step": 4})
    assert folder.newest().record["step"] == 4


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    class Second(train.Callback):
        said = ""

        def on_epoch_end(self, trainer, record):
            with pytest.raises(wl.errors.FileError, match="in use by another run") as error:
                run(tmp_path)
            self.said = str(error.value)

    second = Second()
    run(tmp_path, callbacks=[second])
    assert f"process {os.getpid()}" in second.said
    run(tmp_path, epochs=3)
