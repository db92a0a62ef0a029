"""Published models: logits, hidden states, decoding, tokens and inputs as `transformers` has them.

tests/checkpoints is made by tools/transformers_reference: tiny random models of every family, and what it computes.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError

HOME = Path(__file__).parents[2] / "checkpoints"
MAMBAS = ["mamba", "mamba2"]
DECODERS = ["gpt2", "llama", "llama_tied", "mistral", "qwen2", "qwen3", "rwkv", *MAMBAS]
BOTH = ["t5", "t5_gated"]
WRITERS = [*DECODERS, *BOTH, "whisper"]
COMPILED = ["mistral", "t5_gated"]  # the others run op by op, which is faster for so few tokens
TOL = 1e-5


@functools.cache
def model(name: str) -> Any:
    return wl.models.from_pretrained(HOME / name)


@functools.cache
def expected(name: str) -> dict[str, Any]:
    with np.load(HOME / name / "expected.npz") as arrays:
        return dict(arrays) | json.loads((HOME / name / "expected.json").read_text())


@functools.cache
def tokenizer(name: str) -> wl.text.Tokenizer:
    return wl.text.Tokenizer.from_pretrained(HOME / name)


def real(values: object, mask: np.ndarray) -> np.ndarray:
    return np.where(mask.astype(bool)[..., None], np.asarray(values), 0)


def close(values: object, wanted: np.ndarray, mask: np.ndarray | None = None) -> None:
    found = np.asarray(values) if mask is None else real(values, mask)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOL)


class Watched:
    """What goes into each block of a stack, and what the stack gives: hidden states as `transformers` lists them."""

    def __init__(self, stack: Any) -> None:
        self.stack, self.seen = stack, []

    def __enter__(self) -> list[Any]:
        keep = lambda _, args: self.seen.append(args[0])
        self.hooks = [block.register_forward_pre_hook(keep) for block in self.blocks]
        self.hooks.append(self.stack.register_forward_hook(lambda _, args, out: self.seen.append(out)))
        return self.seen

    @property
    def blocks(self) -> list[Any]:
        return list(self.stack.blocks)

    def __exit__(self, *exception: object) -> None:
        for hook in self.hooks:
            hook.remove()


@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name: str) -> None:
    """Logits and the vectors before, between and after blocks; padding on the right and on the left."""
    x = expected(name)
    with Watched(model(name).stack) as seen:
        logits = model(name)(x["right_tokens"], token_mask=x["right_mask"])
    close(logits, x["right_logits"], x["right_mask"])
    states = list(x["right_hidden"])
    if name in MAMBAS:  # their list begins after the first block, and has what the last norm sees
        seen, states = seen[1:], [*states[:-2], states[-1]]
    for found, wanted in zip(seen, states, strict=True):
        close(found, wanted, x["right_mask"])
    close(model(name)(x["left_tokens"], token_mask=x["left_mask"])[:, -1], x["left_logits_of_last"])
    lengths = x["right_mask"].sum(axis=1)
    close(model(name).extend(x["right_tokens"], lengths=lengths)[0], x["right_logits"], x["right_mask"])


@pytest.mark.parametrize("name", ["bert", "bert_classifier"])
def test_bert(name: str) -> None:
    x, found = expected(name), model(name)
    inputs = (x["right_tokens"], x["right_types"], x["right_mask"])
    with Watched(found.bert.stack) as seen:
        logits = found(*inputs)
    for state, wanted in zip(seen, x["right_hidden"], strict=True):
        close(state, wanted, x["right_mask"])
    if name == "bert_classifier":
        close(logits, x["logits"])
        assert found.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
        return
    close(logits, x["right_logits"], x["right_mask"])
    close(found.bert.embed(*inputs), x["pooled"])
    close(found.follows(*inputs), x["next_sentence_logits"])


@pytest.mark.parametrize("name", BOTH)
def test_t5(name: str) -> None:
    x, found = expected(name), model(name)
    with Watched(found.encoder) as first, Watched(found.decoder) as second:
        logits = found(x["right_tokens"], x["decoder_tokens"], x["right_mask"], token_mask=x["decoder_mask"])
    close(logits, x["right_logits"], x["decoder_mask"])
    for state, wanted in zip(first, x["right_encoder_hidden"], strict=True):
        close(state, wanted, x["right_mask"])
    for state, wanted in zip(second, x["right_decoder_hidden"], strict=True):
        close(state, wanted, x["decoder_mask"])
    left = found(x["left_tokens"], x["decoder_tokens"], x["left_mask"], token_mask=x["decoder_mask"])
    close(left[:, 0], x["left_logits_of_first"])


def test_vit() -> None:
    x, found = expected("vit"), model("vit")
    ready = wl.models.image_preprocessor(HOME / "vit")
    np.testing.assert_allclose(ready(x["images"]), x["pixels"], atol=1e-6)
    with Watched(found.stack) as seen:
        close(found(ready(x["images"])), x["logits"])
    # the last state there is before the last normalization
    for state, wanted in zip(seen[:-1], x["hidden"][:-1], strict=True):
        close(state, wanted)
    close(found(x["larger_pixels"][None]), x["larger_logits"])
    # another size: bytes are rounded between the two passes, whose order is not the same in every version of Pillow
    assert np.abs(np.asarray(ready(x["larger_image"])) - x["larger_pixels"]).max() < 1.01 / 127.5


def sound(number: int) -> np.ndarray:
    return expected("whisper")[f"wave_{number}"].astype(np.float32) / 32768


def test_whisper() -> None:
    x, found = expected("whisper"), model("whisper")
    spectra = np.stack([np.asarray(wl.models.whisper_features(sound(i), 16, 1.0)) for i in range(2)])
    np.testing.assert_allclose(spectra.swapaxes(1, 2), x["features"], atol=2e-5)
    usual = np.stack([np.asarray(wl.models.whisper_features(sound(i), seconds=1.0)) for i in range(2)])
    np.testing.assert_allclose(usual.swapaxes(1, 2)[:, :, ::10], x["every_tenth_of_80_features"], atol=2e-5)
    spectra = x["features"].swapaxes(1, 2)
    close(found.encode(spectra), x["encoder_last"])
    with Watched(found.encoder) as first, Watched(found.decoder) as second:
        close(found(spectra, x["decoder_tokens"]), x["right_logits"], x["decoder_mask"])
    for state, wanted in zip(first, x["encoder_hidden_of_first"], strict=True):
        close(state[:1, ::5], wanted)
    for state, wanted in zip(second, x["right_decoder_hidden"], strict=True):
        close(state, wanted, x["decoder_mask"])


def test_transcription() -> None:
    x = expected("whisper")
    for i in range(2):
        tokens = wl.generation.transcribe(model("whisper"), sound(i), language="en", max_new_tokens=20, jit=bool(i))
        assert tokens.tolist() == x["transcribed"][i]
        text = wl.generation.transcribe(
            model("whisper"), sound(i), tokenizer("whisper"), language="en", max_new_tokens=20, jit=False
        )
        assert text == x["transcribed_texts"][i].strip()
    long = np.concatenate([sound(0), sound(0)])  # two pieces
    tokens = wl.generation.transcribe(model("whisper"), long, language="en", max_new_tokens=20, jit=False)
    assert tokens.tolist() == x["transcribed"][0] * 2
    for bad, message in (
        ({"language": "xx"}, "language='xx'(.|\n)*en"),
        ({"task": "sing"}, "task='sing'(.|\n)*translate"),
        ({"waveform": sound(0)[None]}, "one sound"),
        ({"waveform": np.full(500, np.nan, np.float32)}, "NaN"),
        ({"model": model("gpt2")}, "GPT does not listen"),
    ):
        with pytest.raises(wl.errors.WonderlandError, match=message):
            wl.generation.transcribe(**{"model": model("whisper"), "waveform": sound(0)} | bad)


# --- decoding


def prompt_of(name: str) -> dict[str, Any]:
    x = expected(name)
    if name in DECODERS:
        return {"prompt": x["ids"]}
    if name == "whisper":
        return {"prompt": [x["start"]] * 2, "source": x["features"].swapaxes(1, 2)}
    return {"source": x["ids"]}


def new_tokens(name: str, row: np.ndarray, number: int) -> list[int]:
    x = expected(name)
    before = len(x["ids"][number]) if name in DECODERS else len(x["start"]) if name == "whisper" else 1
    return row[before:].tolist()


@pytest.mark.parametrize("name", WRITERS)
def test_greedy_tokens(name: str) -> None:
    for record in expected(name)["generate"][:2]:
        settings = record["settings"]
        stop, pad = settings.get("eos_token_id"), settings["pad_token_id"]
        rows = wl.generation.greedy(
            model(name), max_new_tokens=settings["max_new_tokens"], stop_tokens=() if stop is None else stop,
            jit=name in COMPILED, **prompt_of(name),
        )  # fmt: skip
        for number, wanted in enumerate(record["tokens"]):
            found = new_tokens(name, rows[number], number)
            assert found == wanted[: len(found)]
            assert set(wanted[len(found) :]) <= {pad}


@pytest.mark.parametrize("name", WRITERS)
def test_beams(name: str) -> None:
    for record in expected(name)["generate"][2:]:
        settings = record["settings"]
        stop, pad, width = settings.get("eos_token_id"), settings["pad_token_id"], settings["num_beams"]
        groups = wl.generation.beam_search(
            model(name), max_new_tokens=settings["max_new_tokens"], beams=width,
            length_penalty=settings["length_penalty"], early_stopping=settings.get("early_stopping", False),
            stop_tokens=() if stop is None else stop, jit=name in COMPILED, **prompt_of(name),
        )  # fmt: skip
        for number, group in enumerate(groups):
            for place, hypothesis in enumerate(group):
                wanted = record["tokens"][number * width + place]
                found = new_tokens(name, hypothesis.tokens, number)
                assert found == wanted[: len(found)]
                # for the token 0 as padding `transformers` takes the one that ends a sequence
                assert set(wanted[len(found) :]) <= {pad or stop}
                assert hypothesis.score == pytest.approx(record["scores"][number * width + place], abs=2e-5)


def test_models_know_where_texts_begin_and_end() -> None:
    llama = model("llama")
    assert (llama.start_token, llama.stop_tokens) == (281, (282,))
    assert model("qwen3").start_token is None
    assert model("t5").start_token == 0
    again = wl.models.from_pretrained(HOME / "llama")
    greedy = wl.generation.greedy(again, None, 10, stop_tokens=(), jit=False)
    assert (len(greedy), greedy[0]) == (11, 281)
    again.stop_tokens = (int(greedy[4]),)
    assert len(wl.generation.greedy(again, None, 10, jit=False)) == 1 + greedy[1:].tolist().index(greedy[4]) + 1
    assert len(wl.generation.beam_search(again, None, 10, beams=1, jit=False)[0].tokens) <= 5


@pytest.mark.parametrize("name", ["bert", "bert_classifier"])
def test_encoders_do_not_write(name: str) -> None:
    with pytest.raises(InputError, match=r"does not write text(.|\n)*a decoder such as wl.models.GPT"):
        wl.generation.greedy(model(name), [1, 2], 3)


# --- tokens


@pytest.mark.parametrize("name", [*DECODERS, *BOTH])
def test_tokens_of_texts(name: str) -> None:
    x = expected(name)
    assert [tokenizer(name).encode(text).tolist() for text in x["texts"]] == x["ids"]
    if "greedy_texts" in x:
        rows = x["generate"][0]["tokens"]
        assert [tokenizer(name).decode(row) for row in rows] == x["greedy_texts"]
    assert tokenizer(name).eos_id == model(name).stop_tokens[0]


@pytest.mark.parametrize("name", ["bert", "bert_classifier"])
def test_tokens_of_pairs(name: str) -> None:
    x = expected(name)
    assert [tokenizer(name).encode(*texts).tolist() for texts in x["texts"]] == x["ids"]
    found = tokenizer(name).encode_with_offsets(*x["texts"][0], add_special_tokens=True)
    assert found.type_ids.tolist() == x["right_types"][0].tolist()


def test_the_parts_of_tokens() -> None:
    assert tokenizer("llama").special_tokens.pad == "<|pad|>"
    whisper = tokenizer("whisper").special_tokens  # its token of padding is the one that ends texts
    assert (whisper.eos, whisper.pad) == ("<|endoftext|>", None)
    with pytest.raises(wl.errors.FileError, match=r"vit has no tokenizer.json"):
        wl.text.Tokenizer.from_pretrained(HOME / "vit")
    with pytest.raises(wl.errors.FileError, match="is no folder"):
        wl.text.Tokenizer.from_pretrained(HOME / "nowhere")
