"""What is read from files: for each reader, sound files to begin with, how they are damaged, and what reading is."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import random
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import wonderland as wl
from wonderland import nn, recipes, train
from wonderland.models.pretrained import IgnoredSettingWarning
from wonderland.recipes.settings import as_value
from wonderland.recipes.tasks.language import read_text
from wonderland.recipes.tasks.texts import read_texts
from wonderland.storage import safetensors
from wonderland.train import resuming
from wonderland.train.checkpoints import WHOLE, read
from wonderland.wengert import Formula, trace

from .mutations import as_json, damaged, damaged_value

Damage = Callable[[bytes, random.Random, bytes], bytes]


@dataclass(frozen=True)
class Format:
    """A kind of file. `checksummed`: damaged bytes either are refused or give what the sound file gives."""

    name: str
    suffix: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    damage: Damage = damaged
    checksummed: bool = False


def _random() -> np.random.Generator:
    return np.random.default_rng(0)  # of its own for every file, which then is the same whatever was made before


def _library(name: str) -> Any:
    return importlib.import_module(name)


def _written(write: Callable[[Any], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _either(*ways: Damage) -> Damage:
    return lambda data, rng, other: rng.choice(ways)(data, rng, other)


# arrays


def _arrays() -> list[Any]:
    return [
        _random().normal(size=(4, 5)).astype(np.float32),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4),
        np.asfortranarray(_random().normal(size=(3, 2))),
        np.array([True, False, True]),
        np.zeros((0, 3)),
        np.array(2.5),
    ]


def _npy() -> list[bytes]:
    record = np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")])
    return [_written(lambda f, a=a: np.save(f, a)) for a in (*_arrays(), record)]  # type: ignore[misc]


def _npy_header(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A header that says something else, with the length that it now has."""
    length = int.from_bytes(data[8:10], "little")
    text = damaged(data[10 : 10 + length], rng, other) if rng.random() < 0.5 else _other_header(rng)
    return data[:8] + struct.pack("<H", len(text) % 2**16) + text + data[10 + length :]


def _other_header(rng: random.Random) -> bytes:
    shape = rng.choice(
        ("(2, 3)", "()", "(9999999999,)", "(2**40,)", "(-1,)", "(True,)", "(1,)*70", "[2]", "(10**9, 0)", "(0,)")
    )
    descr = rng.choice(
        ("'<f4'", "'|O'", "'|V0'", "'<U0'", "[('a','<f4')]", "[]", "5", "'x'", "('<f4', (3,))", "'>M8[x]'")
    )
    extra = rng.choice(("", "", ", 'x': 1", "(" * 500, "{" * 90, ", 'a': '\\ud800'"))
    order = rng.choice(("False", "True", "1"))
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{extra}}}\n".encode()


def _npz() -> list[bytes]:
    x, y = _random().normal(size=(6, 3)), np.arange(6)
    both, four = {"x": x, "y": y}, {"x_train": x, "y_train": y, "x_test": x[:2], "y_test": y[:2]}
    return [_zip(both, zipfile.ZIP_STORED), _zip(both, zipfile.ZIP_DEFLATED), _zip(four, zipfile.ZIP_DEFLATED)]


def _zip(arrays: dict[str, Any], packing: int) -> bytes:
    """What `np.savez` writes, without the time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            item = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(item, _written(lambda f, a=array: np.save(f, a)), packing)  # type: ignore[misc]
    return file.getvalue()


def _idx() -> list[bytes]:
    image = struct.pack(">4B3I", 0, 0, 8, 3, 2, 4, 4) + bytes(range(32))
    return [image, struct.pack(">4BI", 0, 0, 0x0D, 1, 3) + bytes(12), struct.pack(">4BI", 0, 0, 8, 1, 0)]


def _packed(seeds: Callable[[], list[bytes]]) -> Callable[[], list[bytes]]:
    return lambda: [gzip.compress(data, mtime=0) for data in seeds()]


def _repacked(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Damage below a gzip whose checksum is right."""
    return gzip.compress(damaged(gzip.decompress(data), rng, other[:100]), 1, mtime=0)


def _values(found: Any) -> Any:
    """Arrays as something that can be compared, every byte of them read."""
    if isinstance(found, dict):
        return sorted((_values(value) for value in found.values()), key=repr)
    array = np.asarray(found)
    return array.dtype.str, array.shape, array.tobytes()


# tables, sound, images


def _tables() -> list[bytes]:
    rows = ["age,city,repaid", '31,"Ro, me",yes', "54,Pisa,no", "28,Rome,yes", "NA,,no", "1e-3,Bari,yes", "7,Rome,no"]
    return [
        "\n".join(rows).encode(),
        "\n".join(rows[:4]).replace(",", ";").encode(),
        b"\xef\xbb\xbf1,2,0\r\n3,4,1\r\n5,6.5,0\r\n",
        b"a\tb\n1\t2\n",
        b"text,target\nthe cat,yes\na dog,no\n",
    ]


def _parquet() -> list[bytes]:
    pa, pq = _library("pyarrow"), _library("pyarrow.parquet")

    table = pa.table({"a": np.arange(50.0), "b": [None, 1] * 25, "c": ["x", "yy"] * 25, "d": [True, False] * 25})
    return [
        _written(lambda f, c=c, v=v: pq.write_table(table, f, compression=c, data_page_version=v))  # type: ignore[misc]
        for c, v in (("snappy", "1.0"), ("zstd", "2.0"), ("none", "1.0"))
    ] + [_written(lambda f: pq.write_table(table, f, write_page_checksum=True, row_group_size=20))]


def _json_tables() -> list[bytes]:
    rows = [{"a": 1, "b": "x", "c": {"d": True}}, {"a": None, "b": 2.5}, {"a": 2**60, "c": {"d": None, "e": "é"}}]
    return ["\n".join(map(json.dumps, rows)).encode(), json.dumps(rows).encode(), b'{"a": [1, 2], "b": ["x", null]}']


def _read_table(path: Path) -> Any:
    table = wl.data.read_table(path)
    return [column.strings() for column in table.columns.values()], [table.place(i) for i in range(len(table))]


def _arrow(lists: bool = True) -> list[bytes]:
    pa = _library("pyarrow")
    columns: dict[str, Any] = {"a": np.arange(20.0), "b": ["x", "yy"] * 10}
    table = pa.table(columns | {"c": [[1, 2]] * 20 if lists else [None, np.datetime64(5, "s")] * 10})

    def write(kind: Any, **options: Any) -> bytes:
        sink = io.BytesIO()
        with kind(sink, table.schema, **options) as writer:
            writer.write_table(table)
        return sink.getvalue()

    packed = pa.ipc.IpcWriteOptions(compression="lz4")
    return [write(pa.ipc.new_file), write(pa.ipc.new_stream), write(pa.ipc.new_file, options=packed)]


def _read_arrow(path: Path) -> Any:
    dataset = wl.data.ArrowDataset.open(path)
    return [dataset[i] for i in range(min(len(dataset), 30))]


def _images(kind: str) -> Callable[[], list[bytes]]:
    def make() -> list[bytes]:
        from PIL import Image

        pixels = _random().integers(0, 255, (9, 7, 3), np.uint8)
        pictures = [Image.fromarray(pixels), Image.fromarray(pixels[:, :, 0])]
        if kind in ("png", "gif", "tiff"):
            pictures.append(pictures[0].convert("P"))
        return [_written(lambda f, p=p: p.save(f, kind)) for p in pictures]  # type: ignore[misc]

    return make


def _read_image(path: Path) -> Any:
    return _values(wl.data.ImageFolder(path.parent.parent, extensions=(path.suffix,))[0][0])


def _sounds() -> list[bytes]:
    out = []
    for encoding in ("pcm8", "pcm16", "pcm24", "float32"):
        path = Path(_folder, "seed.wav")
        wl.audio.write_wav(path, _random().uniform(-1, 1, (20, 2)), 8000, encoding=encoding)
        out.append(path.read_bytes())
    return out


# text


def _tokenizers() -> list[bytes]:
    texts = ["the cat is on the table", "¡Olé! the 42 cats"]
    special = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]
    made = [
        wl.text.CharTokenizer.train(texts, special_tokens=special, lowercase=True),
        wl.text.WordTokenizer.train(texts, special_tokens=special, strip_punctuation=True),
        wl.text.BPETokenizer.train(texts, 262, special_tokens=special, split_digits=True),
        wl.text.BPETokenizer.train(texts, 262, pattern=r"\p{L}+|\s+|[^\s\p{L}]+"),
        wl.text.WordPieceTokenizer.train(texts, 60),
        _like_llama(),
        _like_t5(),
    ]
    return [tokenizer.to_str().encode() for tokenizer in made]


def _like_llama() -> wl.text.Tokenizer:
    """Characters, unknown ones as bytes, and a text that is not cut."""
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he")]
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁thecao", "▁t", "he", "▁the"]
    replace = wl.text.normalizers.Replace("▁", " ", literal=True)
    decoders = wl.text.decoders
    return wl.text.Tokenizer(
        wl.text.BPE({t: i for i, t in enumerate(tokens)}, merges, "<unk>", fuse_unk=True, byte_fallback=True),
        normalizer=wl.text.normalizers.Normalizers(
            (wl.text.normalizers.Prepend("▁"), wl.text.normalizers.Replace(" ", "▁", literal=True))
        ),
        decoder=decoders.Decoders(
            (decoders.ReplaceEach(replace), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1))
        ),
        special_tokens=wl.text.SpecialTokens.named(["<unk>", "<s>"]),
        before=["<s>"],
    )


def _like_t5() -> wl.text.Tokenizer:
    """Tokens by their probability, and a table of replacements."""
    nodes = [0] * 98  # a is o
    nodes[0], nodes[96], nodes[97] = 1 << 10, 1 << 10 | 1 << 8 | ord("a"), 1 << 31
    pre_tokenizers = wl.text.pre_tokenizers
    return wl.text.Tokenizer(
        wl.text.Unigram([("<unk>", 0.0), ("▁the", -2.0), ("▁", -3.0), *((c, -4.0) for c in "theco")], "<unk>"),
        normalizer=wl.text.Precompiled(struct.pack("<I98I", 4 * 98, *nodes) + b"o\0"),
        pre_tokenizer=pre_tokenizers.PreTokenizers((pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace())),
        decoder=wl.text.decoders.Metaspace(),
        special_tokens=wl.text.SpecialTokens.named(["<unk>", wl.text.AddedToken("</s>", rstrip=True)]),
        after=["</s>"],
    )


def _json_damage(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return as_json(damaged_value(json.loads(data), rng), rng).encode("utf-8", "surrogatepass")


def _read_tokenizer(path: Path) -> Any:
    tokenizer = wl.text.Tokenizer.from_file(path)
    for text in ("the cat", "a" * 300 + "!", " " * 300 + "é42[BOS]"):
        tokenizer.decode(tokenizer.encode(text))
        tokenizer.encode_with_offsets(text[:40], "a cat", add_special_tokens=True)
    return tokenizer.vocab_size


def _ranks() -> list[bytes]:
    import base64

    tokens = [bytes([byte]) for byte in range(256)] + [b"in", b"ing"]
    return ["".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)).encode()]


def _settings() -> list[bytes]:
    return [
        b'model = "mlp"\ndata = "digits"\n[train]\nepochs = 6\nlr = 0.01\n',
        b'[model]\nname = "cnn"\nchannels = [8, 16]\n[data]\nname = "iris"\n[train]\nschedule = "cosine"\n',
    ]


def _formulas() -> list[bytes]:
    return [b"log(x) + x*x - sin(x)", b"max(x, 2, 1e-3)**2/(1 - x)", b"-atan2(x, pi) * exp(-x**2)"]


def _read_formula(path: Path) -> Any:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    formula = Formula(text)
    as_value(text)
    return trace(formula, **dict.fromkeys(formula.names, 1.5)).table()


def _cards() -> list[bytes]:
    card = wl.data.DatasetCard("reviews", source="a shop", biases=["few"], groups=["old"], counts={"train": 3})
    return [card.to_json().encode()]


def _read_card(path: Path) -> Any:
    return str(wl.data.DatasetCard.from_json(read_text(str(path))))


# safetensors, checkpoints, runs


def _tensors() -> list[bytes]:
    values = {"w": _random().normal(size=(2, 3)).astype(np.float32), "b": np.array([True, False]), "n": np.arange(3)}
    return [b"".join(safetensors.encode(values, {"note": "x"})), b"".join(safetensors.encode({"e": np.zeros((0, 2))}))]


def _tensor_header(data: bytes, rng: random.Random, other: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    text = as_json(damaged_value(json.loads(data[8 : 8 + length]), rng), rng).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def _read_tensors(path: Path) -> Any:
    safetensors.metadata(path)
    return _values({name: np.asarray(value) for name, value in wl.load(path).items()})


def _trainer() -> train.Trainer:
    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    return train.Trainer(
        nn.Linear(1, 1),
        "mse_loss",
        (x, x),
        batch_size=4,
        callbacks=[train.EarlyStopping(), train.StopOnConvergence(), train.Watch()],
        schedule=wl.optim.Plateau(0.1),
        metrics=wl.metrics.MeanAbsoluteError(),
        progress=False,
        jit=False,
        check=False,
    )


def _checkpoint_files() -> dict[str, bytes]:
    """Two checkpoints of a short run, the newest last."""
    folder = Path(_folder, "checkpoints")
    trainer = _trainer()
    trainer.checkpoints = train.CheckpointFolder(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(2)
    for path in folder.glob("*.json"):
        record = json.loads(_without_time(path.read_bytes()))
        del record["sha256"]
        path.write_text(json.dumps(record | {"sha256": _digest(record)}))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _without_time(data: bytes) -> bytes:
    return re.sub(rb'"seconds": [0-9.e-]+', b'"seconds": 0.5', data)


def _digest(record: Any) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _records() -> list[bytes]:
    return [list(_files(_checkpoint_files).values())[-2]]


def _record_damage(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A record with odd values, and the checksum that belongs to it."""
    record = damaged_value({k: v for k, v in json.loads(data).items() if k != "sha256"}, rng)
    if isinstance(record, dict):
        record["format"] = WHOLE if rng.random() < 0.9 else record.get("format")
        record["sha256"] = _digest(record)
    return as_json(record, rng).encode("utf-8", "surrogatepass")


def _read_checkpoint(path: Path) -> Any:
    """The newest record is damaged: it is refused or right, and a run goes on from it or from the one before."""
    files = _files(_checkpoint_files)
    *_, record, _ = files
    for name, data in files.items():
        path.with_name(name).write_bytes(path.read_bytes() if name == record else data)
    trainer = _trainer()
    resuming.resume(trainer, train.CheckpointFolder(path.parent))
    if trainer._saved_at < 0:
        raise AssertionError("the checkpoint before it was not used")
    return read(path.with_name(record)).record.get("step")


def _run_files() -> dict[str, bytes]:
    folder = Path(_folder, "run")
    settings = recipes.Settings.of(model="mlp", data="iris", changes=["epochs=1", "model.hidden=[3]"])
    recipes.run(settings, folder, progress=False, png=False)
    names = ("settings.json", "history.jsonl", "model.safetensors")
    return {name: _without_time((folder / name).read_bytes()) for name in names}


def _recipe_damage(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A model that describes itself in another way."""
    tensors, texts = safetensors.decode(data, "seed")
    text = as_json(damaged_value(json.loads(texts["recipe"]), rng), rng)
    return b"".join(safetensors.encode({k: np.asarray(v) for k, v in tensors.items()}, {"recipe": text}))


def _read_run(name: str) -> Callable[[Path], Any]:
    def inside(path: Path) -> Any:
        for other, data in _files(_run_files).items():
            path.with_name(other).write_bytes(path.read_bytes() if other == name else data)
        return sorted(recipes.evaluate(path.parent))

    return inside


def _published_files() -> dict[str, bytes]:
    folder = Path(_folder, "published")
    model = wl.models.Whisper(20, 4, 8, 2, 1, frames=8, context=6, key=wl.random.key(0))  # which has most to be read
    model.stop_tokens = (3,)
    wl.models.save_pretrained(model, folder, max_shard_size=4000)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _read_published(name: str) -> Callable[[Path], Any]:
    def inside(path: Path) -> Any:
        for other, data in _files(_published_files).items():
            path.with_name(other).write_bytes(path.read_bytes() if other == name else data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredSettingWarning)  # keys get other names
            return _values(wl.models.from_pretrained(path.parent).state_dict())

    return inside


def _published(name: str, suffix: str, damage: Damage) -> Format:
    return Format(
        f"from_pretrained {name}", suffix, lambda: [_files(_published_files)[name]], _read_published(name), damage
    )


def _read_log(path: Path) -> Any:
    trainer = _trainer()
    trainer.step = 5
    log = train.JSONLines(path)
    log.on_fit_start(trainer)
    return read_text(str(path))


_made: dict[Any, dict[str, bytes]] = {}
_folder = ""


def _files(make: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    if make not in _made:
        _made[make] = make()
    return _made[make]


def formats(folder: str) -> list[Format]:
    """Every reader; files to begin with are made in the folder."""
    global _folder
    _folder = folder
    data = wl.data
    either = _either(damaged, _json_damage, _json_damage)
    checkpoint = _either(damaged, _record_damage, _record_damage)
    return [
        Format("read_npy", ".npy", _npy, lambda p: _values(data.read_npy(p)), _either(damaged, _npy_header)),
        Format("memory_map", ".npy", _npy, lambda p: _values(data.memory_map(p)), _either(damaged, _npy_header)),
        Format("read_npz", ".npz", _npz, lambda p: _values(data.read_npz(p)), checksummed=True),
        Format("memory_map npz", ".npz", _npz, lambda p: _values(data.memory_map(p, "y"))),
        Format("read_shard", ".npz", _npz, lambda p: [e["x"] for e in data.read_shard(p)]),
        Format("read_idx", ".idx", _idx, lambda p: _values(data.read_idx(p))),
        Format("read_idx gz", ".idx.gz", _packed(_idx), lambda p: _values(data.read_idx(p)), checksummed=True),
        Format("read_idx repacked", ".idx.gz", _packed(_idx), lambda p: _values(data.read_idx(p)), _repacked),
        Format("read_npy repacked", ".npy.gz", _packed(_npy), lambda p: _values(data.read_npy(p)), _repacked),
        Format("read_csv", ".csv", _tables, lambda p: data.read_csv(p, target=-1, on_missing="nan").features),
        Format("read_csv gz", ".csv.gz", _packed(_tables), lambda p: data.read_csv(p, on_missing="drop"), _repacked),
        Format("read_texts", ".csv", lambda: _tables()[-1:], lambda p: read_texts({"name": str(p)}, "text")),
        Format("read_parquet", ".parquet", _parquet, lambda p: data.read_parquet(p, on_missing="nan").features),
        Format("ArrowDataset", ".arrow", _arrow, _read_arrow),
        Format("read_table", ".csv", _tables, _read_table),
        Format("read_table gz", ".csv.gz", _packed(_tables), _read_table, _repacked),
        Format("read_table json", ".json", lambda: _json_tables()[1:], _read_table, either),
        Format("read_table jsonl", ".jsonl", _json_tables, _read_table),
        Format("read_table arrow", ".arrow", lambda: _arrow(lists=False), _read_table),
        Format("read_table parquet", ".parquet", _parquet, _read_table),
        Format("read_cifar10", ".bin", lambda: [bytes([3]) + bytes(3072)], lambda p: _values(data.read_cifar10(p)[0])),
        Format("read_wav", ".wav", _sounds, lambda p: _values(wl.audio.read_wav(p).samples)),
        *(
            Format(f"image {kind}", f".{kind}", _images(kind), _read_image, checksummed=kind == "png")
            for kind in ("png", "jpeg", "bmp", "gif", "tiff", "webp", "ppm")
        ),
        Format(
            "load", ".data", lambda: [*_idx(), *_npy(), *_npz(), *_tables(), *_packed(_npy)()], lambda p: data.load(p)
        ),
        Format("safetensors", ".safetensors", _tensors, _read_tensors, _either(damaged, _tensor_header)),
        Format("checkpoint", ".json", _records, _read_checkpoint, checkpoint),
        Format(
            "run model",
            ".safetensors",
            lambda: [_files(_run_files)["model.safetensors"]],
            _read_run("model.safetensors"),
            _either(damaged, _recipe_damage, _recipe_damage),
        ),
        Format(
            "run settings", ".json", lambda: [_files(_run_files)["settings.json"]], _read_run("settings.json"), either
        ),
        Format("run history", ".jsonl", lambda: [_files(_run_files)["history.jsonl"]], _read_log),
        _published("config.json", ".json", either),
        _published("generation_config.json", ".json", either),
        _published("model.safetensors.index.json", ".json", either),
        _published("model-00001-of-00003.safetensors", ".safetensors", _either(damaged, _tensor_header)),
        Format("tokenizer", ".json", _tokenizers, _read_tokenizer, either),
        Format("from_ranks", ".tiktoken", _ranks, lambda p: wl.text.from_ranks(p).encode("in the ring")),
        Format("settings", ".toml", _settings, lambda p: recipes.Settings.of(file=p).training({})),
        Format("card", ".json", _cards, _read_card, either),
        Format("formula", ".txt", _formulas, _read_formula),
        Format("read_text", ".txt", _tables, lambda p: read_text(str(p))),
    ]


# bombs: small files that would be large


def bombs() -> list[tuple[str, Callable[[], bytes]]]:
    """(the reader, what makes a file of less than half a megabyte that promises or holds hundreds of megabytes)."""
    size = 200 << 20
    header = _other_npy((size // 8,))

    def table(length: int) -> bytes:
        return b"".join(_deflated(31, struct.pack(">4BI", 0, 0, 8, 1, length), size))

    def member(name: str, claimed: int) -> Callable[[], bytes]:
        return lambda: _archive(name, b"".join(_deflated(-15, header, size)), zlib.crc32(header), claimed)

    def picture() -> bytes:
        side = 15000
        rows = b"".join(_deflated(15, b"", side * (side + 1)))
        head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")

    def tensors() -> bytes:
        text = json.dumps({"w": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}).encode()
        return struct.pack("<Q", len(text)) + text

    bitmap = struct.pack("<IHHIIiiHHIIIIII", 54, 0, 0, 54, 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0)
    return [
        ("read_idx gz", lambda: table(size)),
        ("read_idx gz", lambda: table(100)),
        ("read_idx gz", lambda: gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 2**32 - 1), mtime=0)),
        ("read_csv gz", lambda: b"".join(_deflated(31, b"a,b\n", size))),
        ("read_npy repacked", lambda: b"".join(_deflated(31, header, size))),
        ("read_npy", lambda: _other_npy((2**50,))),
        ("memory_map", lambda: _other_npy((2**31, 3))),
        ("read_npz", member("x.npy", len(header) + size)),
        ("read_npz", member("x.npy", 1000)),
        ("memory_map npz", member("y.npy", len(header) + size)),
        ("memory_map npz", member("y.npy", 1000)),
        ("image png", picture),
        ("image bmp", lambda: b"BM" + bitmap),
        ("safetensors", lambda: struct.pack("<Q", 2**63) + b"{}"),
        ("safetensors", tensors),
        ("tokenizer", lambda: json.dumps(_doubling()).encode()),
        ("read_table gz", lambda: b"".join(_deflated(31, b"a,b\n", size))),
        ("read_table parquet", _many_rows),
        ("read_parquet", _many_rows),
        ("read_parquet", _long_texts),
    ]


def _deflated(bits: int, head: bytes, zeros: int) -> Iterator[bytes]:
    engine = zlib.compressobj(9, zlib.DEFLATED, bits)
    yield engine.compress(head)
    block = bytes(1 << 20)
    for _ in range(zeros >> 20):
        yield engine.compress(block)
    yield engine.compress(bytes(zeros % (1 << 20))) + engine.flush()


def _other_npy(shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def _archive(name: str, packed: bytes, checksum: int, claimed: int) -> bytes:
    """A zip with one packed member that claims a size of its own."""
    fields = (20, 0, zipfile.ZIP_DEFLATED, 0, 33, checksum, len(packed), claimed, len(name), 0)
    local = b"PK\3\4" + struct.pack("<5H3I2H", *fields) + name.encode() + packed
    central = b"PK\1\2" + struct.pack("<6H3I5H2I", 20, *fields, 0, 0, 0, 0, 0) + name.encode()
    return local + central + b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 1, 1, len(central), len(local), 0)


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _doubling() -> dict[str, Any]:
    """A tokenizer that makes two letters of each, forty times."""
    content: dict[str, Any] = json.loads(_tokenizers()[0])
    double = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    return content | {"normalizer": {"type": "Sequence", "normalizers": [double] * 40}}


def _many_rows() -> bytes:
    pa, pq = _library("pyarrow"), _library("pyarrow.parquet")
    table = pa.table({"a": np.zeros(30_000_000, np.int8)})
    return _written(lambda f: pq.write_table(table, f, compression="zstd"))


def _long_texts() -> bytes:
    """A text of which every row has a copy, unless it is read with care."""
    pa, pq = _library("pyarrow"), _library("pyarrow.parquet")
    rows = pa.DictionaryArray.from_arrays(np.zeros(40_000, np.int32), ["x" * 20_000])
    return _written(lambda f: pq.write_table(pa.table({"a": rows}), f, compression="zstd", store_schema=False))
