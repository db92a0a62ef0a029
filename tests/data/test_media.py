"""Images and sounds from files: what a folder holds, one form for all of them, and what is odd about some."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland.core import room
from wonderland.data.formats import images, sounds
from wonderland.data.formats.images import ImageForm, common_size, read_image, read_images
from wonderland.data.formats.media_files import list_media, media_kind
from wonderland.data.formats.rates import at_rate
from wonderland.data.formats.sounds import SoundForm, fitted, read_sound, read_sounds
from wonderland.data.formats.wav import look_at_wav
from wonderland.errors import FileError, InputError, ShapeError, SizeError

Image = pytest.importorskip("PIL.Image")
rng = np.random.default_rng(0)


def pixels(height: int, width: int, channels: int = 3) -> np.ndarray:
    return rng.integers(0, 256, (height, width, channels), np.uint8).squeeze()


def save(path: Path, array: np.ndarray, **settings: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **settings)
    return path


class TestFolders:
    def test_the_kind_is_that_of_most_files(self, tmp_path: Path) -> None:
        for name in ("a.wav", "b.WAV", "c.png", "d.txt"):
            (tmp_path / name).write_bytes(b"")
        assert media_kind(tmp_path) == "sound"
        assert media_kind(tmp_path / "c.png") == "image"
        assert [media_kind(x) for x in (tmp_path / "d.txt", "x.npy", [1], tmp_path / "no")] == [None] * 4

    def test_a_folder_around_all_is_passed_through(self, tmp_path: Path) -> None:
        for name in ("set/images/cat/1.png", "set/images/dog/deep/2.png"):
            save(tmp_path / name, pixels(2, 2))
        found = list_media(tmp_path, "image")
        assert (found.classes, found.labels) == (("cat", "dog"), (0, 1))
        assert found.names == ("set/images/cat/1.png", "set/images/dog/deep/2.png")

    def test_folders_of_parts(self, tmp_path: Path) -> None:
        for name in ("train/cat/1.png", "train/dog/2.png", "val/cat/3.png", "Test/dog/4.png"):
            save(tmp_path / name, pixels(2, 2))
        found = list_media(tmp_path, "image")
        assert found.classes == ("cat", "dog")
        parts = {name: [found.names[i] for i in rows] for name, rows in found.parts.items()}
        assert parts == {
            "train": ["train/cat/1.png", "train/dog/2.png"],
            "validation": ["val/cat/3.png"],
            "test": ["Test/dog/4.png"],
        }

    def test_what_was_kept_apart_is_for_the_test(self, tmp_path: Path) -> None:
        for name in ("train/cat/1.png", "train/dog/2.png", "valid/cat/3.png"):
            save(tmp_path / name, pixels(2, 2))
        assert {name: len(rows) for name, rows in list_media(tmp_path, "image").parts.items()} == {
            "train": 2,
            "test": 1,
        }

    def test_strays_are_named_and_counted(self, tmp_path: Path) -> None:
        for name in ("cat/1.png", "dog/2.png", "loose.png"):
            save(tmp_path / name, pixels(2, 2))
        for name in ("cat/notes.txt", "dog/a.csv", ".hidden/x.png", "cat/.DS_Store", "__MACOSX/y.png"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(b"")
        (tmp_path / "empty").mkdir()
        found = list_media(tmp_path, "image")
        assert found.names == ("cat/1.png", "dog/2.png")
        assert found.notes == (
            "2 files are no image and are left out: cat/notes.txt, dog/a.csv.",
            "1 file is in no folder of a class and is left out: loose.png.",
            "without images, and no class: empty.",
        )
        assert len(list_media(tmp_path, "image", classes=False).files) == 3

    def test_nothing_to_read(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="has no images, it is empty"):
            list_media(tmp_path, "image")
        (tmp_path / "a.txt").write_text("x")
        with pytest.raises(InputError, match=r"has no sounds \(1 files of other kinds, such as a\.txt\)"):
            list_media(tmp_path, "sound")
        with pytest.raises(InputError, match="is not a folder"):
            list_media(tmp_path / "a.txt", "image")


class TestImages:
    def test_equal_images_are_taken_as_they_are(self, tmp_path: Path) -> None:
        arrays = [pixels(5, 7) for _ in range(40)]  # more than are read without threads
        files = [save(tmp_path / f"{i}.png", array) for i, array in enumerate(arrays)]
        form, notes = images.choose_form(files)
        assert (form, notes) == (ImageForm((5, 7), 3), ())
        x, kept, notes = read_images(files, form)
        np.testing.assert_array_equal(x, arrays)
        assert (kept.tolist(), notes) == (list(range(40)), ())

    def test_different_sizes_become_one_and_it_is_said(self, tmp_path: Path) -> None:
        files = [save(tmp_path / f"{i}.png", pixels(20 + i, 40 + 2 * i)) for i in range(5)]
        form, (note,) = images.choose_form(files)
        assert form.size == (24, 48)
        assert note == (
            "the images have 5 sizes, from 20 x 40 to 24 x 48 pixels; all are made 24 x 48 (data.size=...)."
        )
        x, _, _ = read_images(files, form)
        expected = Image.open(files[2]).resize((48, 24), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(x[2], np.asarray(expected))
        assert images.choose_form(files, (8, 9))[0].size == (8, 9)

    def test_sizes(self) -> None:
        assert common_size([(1, 1)]) == (1, 1)
        assert common_size([(256, 256)] * 3) == (256, 256)
        assert common_size([(257, 300)]) == (64, 64)
        assert common_size([(10, 10), (3, 1000)])[1] <= 128
        for height, width in ((480, 640), (3000, 1000)):
            h, w = common_size([(height, width), (height + 1, width)])
            assert h * w < 5500
            assert 0.7 < (h / w) / (height / width) < 1.4

    def test_grey_is_seen(self, tmp_path: Path) -> None:
        grey = np.repeat(pixels(6, 6, 1)[..., None], 3, axis=2)
        files = [save(tmp_path / "a.png", grey), save(tmp_path / "b.png", grey[..., 0])]
        assert images.choose_form(files)[0].channels == 1  # colours that are all equal are none
        assert images.choose_form(files, mode="RGB")[0].channels == 3
        x, _, _ = read_images(files, ImageForm((6, 6), 1))
        np.testing.assert_array_equal(x[0], x[1])
        files.append(save(tmp_path / "c.png", pixels(6, 6)))
        assert images.choose_form(files)[0].channels == 3
        assert images.choose_form([save(tmp_path / "d.png", grey[..., 0])])[0].channels == 1

    def test_a_camera_that_was_held_upright(self, tmp_path: Path) -> None:
        array = np.zeros((8, 16, 3), np.uint8)
        array[:, :8] = 255
        exif = Image.Exif()
        exif[274] = 6  # the top is on the right
        file = save(tmp_path / "a.jpg", array, exif=exif, quality=95)
        assert images.choose_form([file])[0].size == (16, 8)
        upright = read_image(file)
        assert upright.shape == (16, 8, 3)
        assert upright[:7].min() > 200 > 50 > upright[9:].max()

    def test_large_photographs_are_decoded_small(self, tmp_path: Path) -> None:
        ramp = np.linspace(0, 255, 800).astype(np.uint8)
        file = save(tmp_path / "a.jpg", np.stack([np.tile(ramp, (600, 1))] * 3, -1), quality=95)
        x = read_image(file, ImageForm((30, 40), 3)).astype(float)
        np.testing.assert_allclose(x[..., 0], np.tile(ramp.reshape(40, 20).mean(1), (30, 1)), atol=4)

    def test_sixteen_bits_and_transparency(self, tmp_path: Path) -> None:
        deep = np.array([[0, 257, 65535]], np.uint16)
        assert read_image(save(tmp_path / "a.png", deep), mode="L")[..., 0].tolist() == [[0, 1, 255]]
        clear = np.array([[[9, 9, 9, 0], [9, 9, 9, 255]]], np.uint8)
        assert read_image(save(tmp_path / "b.png", clear)).tolist() == [[[255] * 3, [9] * 3]]

    def test_arrays_as_images(self, tmp_path: Path) -> None:
        arrays = [rng.random((4, 5)).astype(np.float32) for _ in range(3)]
        files = []
        for i, array in enumerate(arrays):
            np.save(tmp_path / f"{i}.npy", array)
            files.append(tmp_path / f"{i}.npy")
        form, _ = images.choose_form(files)
        assert form == ImageForm((4, 5), 1, "float32")
        np.testing.assert_array_equal(read_images(files, form)[0][..., 0], arrays)
        files.append(save(tmp_path / "x.png", pixels(4, 5)))
        with pytest.raises(InputError, match=r"1 of 4 images cannot be read: .*x\.png.*others are float32"):
            read_images(files, form)

    def test_what_cannot_be_read_is_named_together(self, tmp_path: Path) -> None:
        files = [save(tmp_path / f"{i}.png", pixels(3, 3)) for i in range(4)]
        files[1].write_text("this is no image")
        data = files[3].read_bytes()
        files[3].write_bytes(data[:-20])
        form, _ = images.choose_form(files)
        assert form.size == (3, 3)
        with pytest.raises(InputError, match=r"2 of 4 images cannot be read: .*1\.png, .*3\.png.*no image that Pillow"):
            read_images(files, form)
        x, kept, (note,) = read_images(files, form, "skip")
        assert (len(x), kept.tolist()) == (2, [0, 2])
        assert note.startswith("2 of 4 images cannot be read")
        with pytest.raises(InputError, match="cannot be read"):
            read_images(files[1:2] * 3, form, "skip")
        with pytest.raises(InputError, match=r"data\.unreadable"):
            read_images(files, form, "ignore")

    def test_room_is_looked_for_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "memory", lambda: 2**30)
        with pytest.raises(SizeError, match=r"400 images of 1024 x 1024 pixels.*need 1\.2 GiB"):
            read_images([Path("a.png")] * 400, ImageForm((1024, 1024), 3))

    def test_arrays_in_memory(self) -> None:
        form = ImageForm((4, 4), 1)
        assert images.as_images(pixels(4, 4, 1), form).shape == (1, 4, 4, 1)
        assert images.as_images(np.zeros((3, 4, 4), np.uint8), form).shape == (3, 4, 4, 1)
        grey = images.as_images(np.full((4, 4, 3), 100, np.uint8), form)
        assert (str(grey.dtype), np.unique(grey).tolist()) == ("uint8", [100])
        assert images.as_images(pixels(9, 9, 1), form).shape == (1, 4, 4, 1)
        with pytest.raises(InputError, match="scales may differ"):
            images.as_images(np.zeros((4, 4)), form)
        with pytest.raises(ShapeError, match="5 channels"):
            images.as_images(np.zeros((1, 4, 4, 5), np.uint8), form)
        with pytest.raises(ShapeError, match="no image"):
            images.as_images(np.zeros(3), form)

    @pytest.mark.parametrize("size", [0, -1, [1, 2, 3], "axb", True, 2.5, "64x", 10**6])
    def test_sizes_that_are_none(self, size: object) -> None:
        with pytest.raises(InputError, match=r"data\.size"):
            images.as_size(size)

    @pytest.mark.parametrize(
        "change", [{"size": [1]}, {"size": [0, 1]}, {"channels": "3"}, {"dtype": "spam"}, {"dtype": None}]
    )
    def test_a_damaged_form(self, change: dict[str, object]) -> None:
        good = ImageForm((2, 3), 1).to_dict()
        assert ImageForm.of_dict(good) == ImageForm((2, 3), 1)
        with pytest.raises(FileError, match="damaged"):
            ImageForm.of_dict({**good, **change})


def tone(path: Path, seconds: float = 0.1, rate: int = 8000, channels: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    t = np.arange(round(seconds * rate)) / rate
    wl.audio.write_wav(path, 0.5 * np.sin(2 * np.pi * 440 * t)[:, None].repeat(channels, 1), rate)
    return path


class TestSounds:
    def test_the_header_is_that_of_the_standard_library(self, tmp_path: Path) -> None:
        file = tone(tmp_path / "a.wav", 0.2, 11025, 2)
        with wave.open(str(file)) as theirs:
            expected = (theirs.getnframes(), theirs.getnchannels(), theirs.getframerate())
        assert tuple(look_at_wav(file)) == expected

    def test_odd_headers(self, tmp_path: Path) -> None:
        body = np.arange(10, dtype="<i2").tobytes()
        form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
        chunk = lambda name, data, size=None: name + struct.pack("<I", len(data) if size is None else size) + data
        whole = chunk(b"LIST", b"abc") + b"\0" + chunk(b"fmt ", form) + chunk(b"data", body, 0xFFFFFFFF)
        file = tmp_path / "a.wav"
        file.write_bytes(b"RIFF" + struct.pack("<I", 0) + b"WAVE" + whole)
        assert look_at_wav(file) == (10, 1, 8000)
        assert read_sound(file).shape == (10, 1)
        for broken in (b"", b"RIFFxxxxWAVE", b"hello, I am text", b"RIFF0000WAVE" + chunk(b"data", body)):
            file.write_bytes(broken)
            with pytest.raises(InputError, match=r"a\.wav"):
                look_at_wav(file)
            with pytest.raises(InputError, match=r"a\.wav"):
                read_sound(file)

    def test_sounds_without_samples_or_with_nan(self, tmp_path: Path) -> None:
        wl.audio.write_wav(tmp_path / "a.wav", np.zeros(0), 8000)
        with pytest.raises(InputError, match="samples, found none"):
            read_sound(tmp_path / "a.wav")
        wl.audio.write_wav(tmp_path / "b.wav", np.ones(2), 8000, encoding="float32")
        data = (tmp_path / "b.wav").read_bytes()
        (tmp_path / "b.wav").write_bytes(data[:-4] + np.float32(np.nan).tobytes())
        with pytest.raises(InputError, match="NaN"):
            read_sound(tmp_path / "b.wav")

    @pytest.mark.parametrize("old, new", [(44100, 16000), (8000, 11025), (16000, 8000), (8000, 48000)])
    def test_another_rate(self, old: int, new: int) -> None:
        signal = pytest.importorskip("scipy.signal")
        x = rng.standard_normal(2000).astype(np.float32)
        found = at_rate(x, old, new)
        common = np.gcd(old, new)
        expected = signal.resample_poly(x.astype(np.float64), new // common, old // common)
        assert len(found) == len(expected)
        # the filters have the same zeros and window; ours is scaled to keep a constant in another way
        assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()
        np.testing.assert_allclose(found, np.asarray(wl.audio.resample(x, old, new)), atol=1e-5)

    def test_rates_without_a_common_divisor(self) -> None:
        t = np.arange(44101) / 44101
        found = at_rate(np.sin(2 * np.pi * 100 * t), 44101, 8000)
        expected = np.sin(2 * np.pi * 100 * np.arange(len(found)) / 8000)
        np.testing.assert_allclose(found[100:-100], expected[100:-100], atol=5e-3)
        with pytest.raises(InputError, match="4294967295 Hz"):
            at_rate(t, 2**32 - 1, 8000)

    def test_lengths_rates_and_channels_become_one(self, tmp_path: Path) -> None:
        files = [tone(tmp_path / f"{i}.wav", 0.1 + 0.01 * i) for i in range(4)]
        files += [tone(tmp_path / "stereo.wav", channels=2), tone(tmp_path / "fast.wav", rate=16000)]
        form, notes = sounds.choose_form(files)
        assert form == SoundForm(8000, 1040)
        assert notes == (
            "1 of 6 sounds have another rate (16,000 Hz): resampled to 8,000 Hz.",
            "1 of 6 sounds have several channels, which are mixed to one.",
            "the sounds last 0.1 to 0.13 s; all are made 0.13 s: 5 shorter ones are followed by silence "
            "(data.seconds=...).",
        )
        x, kept, _ = read_sounds(files, form)
        assert (x.shape, str(x.dtype), len(kept)) == ((6, 1040, 1), "float32", 6)
        np.testing.assert_array_equal(x[0], x[4])
        assert np.abs(x[5, 50:750] - x[0, 50:750]).max() < 0.01  # the same tone, at twice the rate
        assert not x[0, 800:].any()
        assert sounds.choose_form(files, 4000, 0.05)[0] == SoundForm(4000, 200)

    def test_one_long_sound_does_not_decide(self, tmp_path: Path) -> None:
        files = [tone(tmp_path / f"{i}.wav", 0.1) for i in range(30)] + [tone(tmp_path / "long.wav", 2.0)]
        form, (note,) = sounds.choose_form(files)
        assert form.length == 800
        assert "1 longer ones are cut to their loudest stretch" in note

    def test_the_loudest_stretch(self) -> None:
        x = np.zeros(100, np.float32)
        x[40:50] = 1
        assert fitted(x, 10).tolist() == [1.0] * 10
        assert len(fitted(x, 100)) == 100

    def test_a_folder_as_a_dataset(self, tmp_path: Path) -> None:
        root = wl.data.write_sounds(tmp_path / "set", 10)
        folder = wl.data.load(root)
        assert isinstance(folder, wl.data.SoundFolder)
        assert folder.classes == ("clicks", "falling", "hiss", "rising", "tone")
        x, y = next(iter(wl.data.DataLoader(folder, batch_size=10)))
        made, labels = wl.data.make_sounds(10)
        assert (x.shape, y.tolist()) == ((10, 4000, 1), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
        where = next(i for i, (file, _) in enumerate(folder.samples) if file.name == "tone_005.wav")
        assert labels[5] == 0
        np.testing.assert_allclose(folder[where][0], made[5], atol=1e-4)
        with pytest.raises(InputError, match="no subfolders"):
            wl.data.SoundFolder(root / "tone")
        with pytest.raises(InputError, match=r"data\.seconds"):
            wl.data.SoundFolder(root, seconds=0)

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        files = [tone(tmp_path / f"{i}.wav") for i in range(3)]
        files[1].write_bytes(files[1].read_bytes()[:-100])
        with pytest.raises(InputError, match=r"1 of 3 sounds cannot be read: .*1\.wav.*breaks off"):
            read_sounds(files, SoundForm(8000, 800))
        strange = SoundForm(8000, 800)
        wl.audio.write_wav(files[1], np.zeros(5), 4_000_000)
        with pytest.raises(InputError, match=r"4,000,000 samples a second"):
            read_sounds(files, strange)


def test_made_sounds() -> None:
    x, y = wl.data.make_sounds(25, seconds=0.25, noise=0.0)
    assert (x.shape, str(x.dtype), np.bincount(y).tolist()) == ((25, 2000, 1), "float32", [5] * 5)
    assert np.abs(x).max() <= 1
    again, _ = wl.data.make_sounds(25, seconds=0.25, noise=0.0)
    np.testing.assert_array_equal(x, again)
    power = np.abs(np.fft.rfft(x[..., 0] * np.hanning(2000), axis=1)) ** 2
    peak = power.max(1) / power.sum(1)
    assert peak[y == 0].min() > 0.4 > peak[y != 0].max()  # a tone alone has one pitch
    halves = [np.abs(np.fft.rfft(part[..., 0], axis=1)).argmax(1) for part in (x[:, :1000], x[:, 1000:])]
    assert (halves[0] < halves[1])[y == 1].all()
    assert (halves[0] > halves[1])[y == 2].all()
    record = wl.data.load("sounds", n_samples=10)
    assert record.form == {"kind": "sound", "rate": 8000, "length": 4000}
    with pytest.raises(InputError, match="seconds"):
        wl.data.make_sounds(5, seconds=0.0)
