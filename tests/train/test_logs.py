"""Logs that others can read."""

import csv
import io
import json
import struct
from types import SimpleNamespace

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, train
from wonderland.train import progress
from wonderland.train.tensorboard import EventFile, crc32c

X = np.ones((32, 1), np.float32)


def run(callbacks, epochs=3, **settings):
    wl.random.seed(0)
    return train.fit(
        nn.Linear(1, 1), "mse_loss", (X, 2 * X), epochs=epochs, batch_size=8, callbacks=callbacks, **settings
    )


def test_json_lines_have_epochs_and_steps(tmp_path):
    history = run([train.JSONLines(tmp_path / "log.jsonl", every=2)], progress=False)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if "epoch" in line] == [1, 2, 3]
    assert [line["step"] for line in lines if "epoch" not in line] == [2, 4, 6, 8, 10, 12]
    assert [line["loss"] for line in lines if "epoch" in line] == history["loss"]


def test_a_resumed_run_goes_on_in_its_logs(tmp_path):
    def settings():
        return {
            "callbacks": [train.JSONLines(tmp_path / "log.jsonl"), train.CSVLog(tmp_path / "log.csv")],
            "checkpoint": tmp_path / "run",
            "progress": False,
        }

    run(epochs=2, **settings())
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"step": 99}\n{"cut o')  # what a killed run may leave behind
    run(epochs=4, **settings())
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "log.csv").read_text())))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    assert float(rows[0]["loss"]) == lines[0]["loss"]


def fields(message: bytes) -> list[tuple[int, object]]:
    """The fields of a protocol-buffer message, by the wire format's rules."""
    found, i = [], 0

    def varint():
        nonlocal i
        value = shift = 0
        while True:
            byte = message[i]
            i += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while i < len(message):
        key = varint()
        if key & 7 == 0:
            value: object = varint()
        elif key & 7 == 1:
            (value,), i = struct.unpack("<d", message[i : i + 8]), i + 8
        elif key & 7 == 5:
            (value,), i = struct.unpack("<f", message[i : i + 4]), i + 4
        else:
            size = varint()
            value, i = message[i : i + size], i + size
        found.append((key >> 3, value))
    return found


def records(contents: bytes) -> list[bytes]:
    """The messages of an event file, with a look at both checksums."""

    def unmasked(stored: bytes) -> int:
        turned = (struct.unpack("<I", stored)[0] - 0xA282EAD8) & 0xFFFFFFFF
        return (turned >> 17 | turned << 15) & 0xFFFFFFFF

    found, i = [], 0
    while i < len(contents):
        (size,) = struct.unpack("<Q", contents[i : i + 8])
        assert unmasked(contents[i + 8 : i + 12]) == crc32c(contents[i : i + 8])
        message = contents[i + 12 : i + 12 + size]
        assert unmasked(contents[i + 12 + size : i + 16 + size]) == crc32c(message)
        found.append(message)
        i += 16 + size
    return found


def test_event_files_say_what_tensorboard_reads(tmp_path):
    history = run([train.TensorBoard(tmp_path, every=4, histograms=True)], progress=False)
    (file,) = tmp_path.iterdir()
    events = [dict(fields(message)) for message in records(file.read_bytes())]
    assert events[0][3] == b"brain.Event:2"
    scalars, histograms = {}, {}
    for event in events[1:]:
        for _, value in fields(event[5]):
            entry = dict(fields(value))
            tag = entry[1].decode()
            if 2 in entry:
                scalars.setdefault(tag, []).append((event[2], entry[2]))
            else:
                histograms.setdefault(tag, []).append(dict(fields(entry[5])))
    assert [step for step, _ in scalars["loss"]] == [4, 8, 12]
    np.testing.assert_allclose([value for _, value in scalars["loss"]], history["loss"], rtol=1e-6)
    assert [step for step, _ in scalars["step_loss"]] == [4, 8, 12]
    assert histograms.keys() == {"weight", "bias"}
    assert histograms["weight"][0][3] == 1.0  # how many numbers
    counts = np.frombuffer(histograms["weight"][0][7], "<f8")
    assert counts.sum() == 1.0


def test_the_checksum_is_the_one_of_the_standard():
    assert crc32c(b"") == 0
    assert crc32c(bytes(32)) == 0x8A9136AA  # from the iSCSI standard's examples
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_histograms_leave_out_what_is_not_finite(tmp_path):
    file = EventFile(tmp_path)
    file.histograms(1, {"w": np.array([1.0, np.nan, np.inf, 3.0]), "n": np.array([1, 2]), "empty": np.zeros(0)})
    file.close()
    (path,) = tmp_path.iterdir()
    event = dict(fields(records(path.read_bytes())[1]))
    (entry,) = [dict(fields(value)) for _, value in fields(event[5])]
    moments = dict(fields(entry[5]))
    assert (moments[1], moments[2], moments[3]) == (1.0, 3.0, 2.0)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for callback in (
        train.JSONLines(tmp_path / "file" / "log"),
        train.CSVLog(tmp_path / "file" / "log"),
        train.TensorBoard(tmp_path / "file" / "log"),
    ):
        with pytest.raises(wl.errors.FileError, match="log"):
            run([callback], progress=False)


# --- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_lines_when_it_is_no_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    run([], epochs=2)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("epoch 2/2  loss ")
    assert "steps/s" in lines[1]


def test_a_bar_on_a_terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    run([], epochs=2)
    text = stream.getvalue()
    assert "epoch 1/2" in text
    assert "/4 [" in text  # steps done and steps in all
    assert "\r" in text


def test_the_bar_has_the_loss_and_the_metrics_of_the_epoch_so_far():
    bar = progress.Bar(Terminal())
    bar.running = lambda: {"mae": 0.5, "top_5_accuracy": 0.25}
    bar.epoch(3, 10, 8, 2)
    bar.step(2.0)
    assert "epoch 3/10" in str(bar.bar)
    assert "3/8" in str(bar.bar)
    assert "loss 2, mae 0.5, top 5 accuracy 0.25" in str(bar.bar)
    bar.close()


def test_nothing_when_not_wanted(capsys):
    run([], epochs=1, progress=False)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
    with pytest.raises(wl.errors.InputError, match="progress='x'"):
        progress.make("x")


# --- the learning-rate finder


@pytest.mark.book("A3-40", name="wl.train.find_lr")
def test_the_finder_suggests_a_rate_that_works_and_leaves_the_model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 4)).astype(np.float32)
    y = x @ rng.normal(size=(4, 1)).astype(np.float32)
    wl.random.seed(0)
    model = nn.Linear(4, 1)
    before = np.asarray(model.weight).copy()
    stream = np.asarray(wl.random.streams.default_stream.value).copy()
    found = train.find_lr(model, "mse_loss", (x, y), optimizer=wl.optim.SGD, low=1e-5, high=10.0)
    np.testing.assert_array_equal(np.asarray(model.weight), before)
    np.testing.assert_array_equal(np.asarray(wl.random.streams.default_stream.value), stream)
    history = train.fit(
        model, "mse_loss", (x, y), epochs=5, optimizer=wl.optim.SGD, lr=found.suggestion, progress=False
    )
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    assert found.rates == sorted(found.rates)
    assert "<svg" in found.svg()


def test_the_finder_refuses_a_range_that_makes_no_sense():
    with pytest.raises(wl.errors.InputError, match="low=1"):
        train.find_lr(nn.Linear(1, 1), "mse_loss", (X, X), low=1.0, high=0.1)


def test_a_history_is_drawn_and_asked():
    history = run([], epochs=3, progress=False, validation=(X, X))
    assert ">validation_loss</text>" in history.svg()
    assert history.svg() in history._repr_html_()
    assert history.best("loss")["epoch"] == 3
    assert "3 epochs" in repr(history)
    with pytest.raises(wl.errors.InputError, match="nothing is called 'x'"):
        history["x"]
    assert repr(train.History()) == "History(no epochs yet)"


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"step": "x"}',
        b'{"step": null}',
        b"{}",
        b"3",
        b'{"step": 1' + b"0" * 5000 + b"}",
        b"\0",
    ],
)
def test_a_damaged_line_of_a_log_goes_and_the_others_stay(tmp_path, line):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 2}\n{"step": 9}\n{"st')
    log = wl.train.JSONLines(path)
    log.on_fit_start(SimpleNamespace(step=5))
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'
    with pytest.raises(wl.errors.FileError, match="cannot read"):
        wl.train.JSONLines(tmp_path).on_fit_start(SimpleNamespace(step=5))
