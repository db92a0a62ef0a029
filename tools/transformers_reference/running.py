"""What is expected of a model: arrays for expected.npz and plain values for expected.json."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]  # not in the project's environment
from tokenizers import Tokenizer  # type: ignore[import-not-found]  # not in the project's environment
from transformers import (  # type: ignore[import-not-found]  # not in the project's environment
    GenerationConfig,
    GenerationMixin,
    WhisperFeatureExtractor,
)
from transformers.models.vit.image_processing_pil_vit import (  # type: ignore[import-not-found]
    ViTImageProcessorPil,
)

from .vocabularies import TEXTS

Arrays = dict[str, np.ndarray]
Plain = dict[str, Any]
NEW = 20  # tokens
SHORTEST_CYCLE = 4  # different tokens that greedy search must find, or the model says too little

BEAMS = {"num_beams": 3, "num_return_sequences": 3}
SEARCHES: list[tuple[bool, Plain]] = [  # whether it may end at a token, and the other settings
    (False, {}),
    (True, {}),
    (False, BEAMS | {"length_penalty": 1.0}),
    (False, BEAMS | {"length_penalty": 0.0}),
    (True, BEAMS | {"length_penalty": 1.0}),
    (True, BEAMS | {"length_penalty": 0.0}),
    (True, BEAMS | {"length_penalty": 1.0, "early_stopping": True}),
]


MOST_ROUNDING = 3e-6  # of logits against float64, so that others can come within 1e-5


class Unsuitable(Exception):  # noqa: N818 - says what the model is
    """The model of this seed shows too little, or float32 too little of it; another one is tried."""


# --- inputs


def padded(rows: list[list[int]], side: str, pad: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one length, and which places are real."""
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), pad, np.int64)
    mask = np.zeros((len(rows), longest), np.int64)
    for i, row in enumerate(rows):
        where = slice(0, len(row)) if side == "right" else slice(longest - len(row), longest)
        tokens[i, where], mask[i, where] = row, 1
    return tokens, mask


def real(values: Any, mask: np.ndarray) -> np.ndarray:
    """Numbers with zeros in padded places, whose values nobody promises."""
    array = values.detach().numpy() if isinstance(values, torch.Tensor) else values
    return np.where(mask.astype(bool)[..., None], array, 0).astype(np.float32)


def stacked(states: Any, mask: np.ndarray | None = None) -> np.ndarray:
    """Hidden states, (layers + 1, batch, time, features)."""
    arrays = [state.detach().numpy() if mask is None else real(state, mask) for state in states]
    return np.stack(arrays).astype(np.float32)


def tensor(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values)


def check_rounding(model: Any, **inputs: torch.Tensor) -> None:
    """Compare the first row, which has no padding, with float64."""
    first = {name: value[:1] for name, value in inputs.items()}
    wide = {name: value.double() if value.is_floating_point() else value for name, value in first.items()}
    exact = copy.deepcopy(model).double()(**wide)
    found = model(**first)
    for name in ("logits", "prediction_logits"):
        if hasattr(found, name) and (found[name] - exact[name]).abs().max() > MOST_ROUNDING:
            raise Unsuitable("its logits depend on rounding")


def heeds_masks(model: Any) -> bool:
    """RWKV reads padding as if it were text, and its cache is right for one row alone: there each row is run alone."""
    return model.config.model_type != "rwkv"


def row_by_row(model: Any, tokens: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits (batch, time, vocabulary) and hidden states (layers, batch, time, features) of rows without their padding.

    As the first of the states stand the vectors that go into the first block, which the model itself does not tell.
    """
    logits = np.zeros((*tokens.shape, model.config.vocab_size), np.float32)
    states: list[np.ndarray] = []
    for i, row in enumerate(mask.astype(bool)):
        ids = tensor(tokens[i : i + 1, row])
        out = model(input_ids=ids, output_hidden_states=True, use_cache=False)
        first = model.rwkv.blocks[0].pre_ln(model.rwkv.embeddings(ids))
        found = [first, *out.hidden_states[:-2], out.hidden_states[-1]]  # without the last before the last norm
        states = states or [np.zeros((*tokens.shape, state.shape[-1]), np.float32) for state in found]
        logits[i, row] = out.logits[0].detach().numpy()
        for whole, state in zip(states, found, strict=True):
            whole[i, row] = state[0].detach().numpy()
    return logits, np.stack(states)


# --- searches


def searches(model: Any, inputs: dict[str, torch.Tensor], prompt: int, pad: int) -> list[Plain]:
    """What `generate` finds, if float64 finds the same."""
    greedy, _ = _generate(model, inputs, prompt, {"pad_token_id": pad})
    if min(len(set(row)) for row in greedy) < SHORTEST_CYCLE:
        raise Unsuitable("it repeats itself")
    end = _end(greedy)
    found = []
    for ends, settings in SEARCHES:
        settings = settings | {"pad_token_id": pad} | ({"eos_token_id": end} if ends else {})
        tokens, scores = _generate(model, inputs, prompt, settings)
        if not _same_in_float64(model, inputs, prompt, settings, tokens):
            raise Unsuitable("float64 finds other tokens")
        record: Plain = {"settings": settings | {"max_new_tokens": NEW}, "tokens": tokens}
        if scores is not None:
            record["scores"] = [round(score, 6) for score in scores]
        found.append(record)
    if found[0]["tokens"] == [rows for i, rows in enumerate(found[2]["tokens"]) if i % 3 == 0]:
        raise Unsuitable("the best beam is the greedy one")
    if found[4]["tokens"] == found[5]["tokens"]:
        raise Unsuitable("the length penalty changes nothing")
    return found


def _same_in_float64(
    model: Any, inputs: dict[str, torch.Tensor], prompt: int, settings: Plain, tokens: list[list[int]]
) -> bool:
    """Whether each row alone, without padding and in float64, gives the same tokens."""
    wide = copy.deepcopy(model).double()
    rows = len(next(iter(inputs.values())))
    each = len(tokens) // rows
    for i in range(rows):
        alone = {name: value[i : i + 1] for name, value in inputs.items()}
        cut = 0
        if "attention_mask" in alone:
            kept = alone.pop("attention_mask")[0].bool()
            cut = 0 if model.config.is_encoder_decoder else int((~kept).sum())
            alone["input_ids"] = alone["input_ids"][:, kept]
        exact, _ = _generate(wide, alone, prompt - cut, settings)
        for ours, theirs in zip(tokens[i * each : (i + 1) * each], exact, strict=True):
            n = min(len(ours), len(theirs))
            rest = {*ours[n:], *theirs[n:]}
            if ours[:n] != theirs[:n] or rest - {settings["pad_token_id"]}:
                return False
    return True


def _end(greedy: list[list[int]]) -> int:
    """A token that comes neither at once nor never."""
    for token in greedy[0][4:]:
        if greedy[0].index(token) > 3 and token in greedy[1][2:]:
            return token
    late = [token for token in greedy[0][4:] if greedy[0].index(token) > 3]
    if not late:
        raise Unsuitable("it repeats itself")
    return late[0]


def _generate(
    model: Any, inputs: dict[str, torch.Tensor], prompt: int, settings: Plain
) -> tuple[list[list[int]], list[float] | None]:
    if "attention_mask" in inputs and not heeds_masks(model):
        return _generate_row_by_row(model, inputs, settings)
    kind = next(model.parameters()).dtype
    inputs = {name: value.to(kind) if value.is_floating_point() else value for name, value in inputs.items()}
    start = {"decoder_start_token_id": model.config.decoder_start_token_id} if model.config.is_encoder_decoder else {}
    model.generation_config = GenerationConfig(
        max_new_tokens=NEW, use_cache=heeds_masks(model), **start, **settings
    )  # fmt: skip
    found = GenerationMixin.generate(
        model, **inputs, return_dict_in_generate=True, output_scores=True
    )  # not Whisper's own, which cuts and joins windows
    scores = getattr(found, "sequences_scores", None)
    return found.sequences[:, prompt:].tolist(), None if scores is None else scores.double().tolist()


def _generate_row_by_row(
    model: Any, inputs: dict[str, torch.Tensor], settings: Plain
) -> tuple[list[list[int]], list[float] | None]:
    """Rows without their padding, one after another."""
    found: list[list[int]] = []
    scores: list[float] = []
    for ids, mask in zip(inputs["input_ids"], inputs["attention_mask"].bool(), strict=True):
        tokens, score = _generate(model, {"input_ids": ids[mask][None]}, int(mask.sum()), settings)
        found += tokens
        scores += score or []
    return found, scores or None


# --- the kinds of models


def decoder(model: Any, tokenizer: Tokenizer) -> tuple[Arrays, Plain]:
    rows = [tokenizer.encode(text).ids for text in TEXTS]
    pad = model.config.pad_token_id if model.config.pad_token_id is not None else model.config.eos_token_id
    if not heeds_masks(model):
        model.config.use_cache = False
    check_rounding(model, input_ids=torch.tensor(rows[:1]))
    arrays: Arrays = {}
    for side in ("right", "left"):
        tokens, mask = padded(rows, side, pad)
        places = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
        if heeds_masks(model):
            out = model(
                input_ids=tensor(tokens),
                attention_mask=tensor(mask),
                position_ids=tensor(places),
                output_hidden_states=True,
            )
            logits, states = real(out.logits, mask), stacked(out.hidden_states, mask)
        else:
            logits, states = row_by_row(model, tokens, mask)
        arrays |= {f"{side}_tokens": tokens, f"{side}_mask": mask}
        if side == "right":
            arrays |= {"right_logits": logits, "right_hidden": states}
        else:
            arrays |= {"left_logits_of_last": logits[:, -1]}
    inputs = {"input_ids": tensor(tokens), "attention_mask": tensor(mask)}
    found = searches(model, inputs, tokens.shape[1], pad)
    texts = [tokenizer.decode(row) for row in found[0]["tokens"]]
    return arrays, {"texts": TEXTS, "ids": rows, "generate": found, "greedy_texts": texts}


def _pairs(tokenizer: Tokenizer) -> tuple[list[Any], Arrays, dict[str, torch.Tensor]]:
    """A pair of texts and a single one, padded at the end."""
    encoded = [tokenizer.encode(*TEXTS), tokenizer.encode(TEXTS[1])]
    tokens, mask = padded([e.ids for e in encoded], "right")
    kinds, _ = padded([e.type_ids for e in encoded], "right")
    arrays = {"right_tokens": tokens, "right_mask": mask, "right_types": kinds}
    names = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": kinds}
    return [e.ids for e in encoded], arrays, {name: tensor(value) for name, value in names.items()}


def masked(model: Any, tokenizer: Tokenizer) -> tuple[Arrays, Plain]:
    rows, arrays, inputs = _pairs(tokenizer)
    check_rounding(model, **inputs)
    out = model(**inputs, output_hidden_states=True)
    pooled = model.bert(**inputs).pooler_output
    mask = arrays["right_mask"]
    arrays |= {
        "right_logits": real(out.prediction_logits, mask),
        "right_hidden": stacked(out.hidden_states, mask),
        "pooled": pooled.detach().numpy(),
        "next_sentence_logits": out.seq_relationship_logits.detach().numpy(),
    }
    return arrays, {"texts": [TEXTS, [TEXTS[1]]], "ids": rows}


def classifier(model: Any, tokenizer: Tokenizer) -> tuple[Arrays, Plain]:
    rows, arrays, inputs = _pairs(tokenizer)
    check_rounding(model, **inputs)
    out = model(**inputs, output_hidden_states=True)
    arrays |= {
        "logits": out.logits.detach().numpy(),
        "right_hidden": stacked(out.hidden_states, arrays["right_mask"]),
    }
    return arrays, {"texts": [TEXTS, [TEXTS[1]]], "ids": rows}


def _forced(tokenizer: Tokenizer, start: list[int], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """What a decoder is given while it is trained: its start, then the text."""
    rows = [start + tokenizer.encode(text, add_special_tokens=False).ids for text in reversed(TEXTS)]
    return padded(rows, "right", pad)


def encoder_decoder(model: Any, tokenizer: Tokenizer) -> tuple[Arrays, Plain]:
    rows = [tokenizer.encode(text).ids for text in TEXTS]
    pad = model.config.pad_token_id
    decoder_tokens, decoder_mask = _forced(tokenizer, [model.config.decoder_start_token_id], pad)
    arrays: Arrays = {"decoder_tokens": decoder_tokens, "decoder_mask": decoder_mask}
    check_rounding(model, input_ids=torch.tensor(rows[:1]), decoder_input_ids=tensor(decoder_tokens))
    for side in ("left", "right"):
        tokens, mask = padded(rows, side, pad)
        out = model(
            input_ids=tensor(tokens),
            attention_mask=tensor(mask),
            decoder_input_ids=tensor(decoder_tokens),
            decoder_attention_mask=tensor(decoder_mask),
            output_hidden_states=True,
        )
        logits = real(out.logits, decoder_mask)
        arrays |= {f"{side}_tokens": tokens, f"{side}_mask": mask}
        if side == "right":
            arrays |= {
                "right_logits": logits,
                "right_encoder_hidden": stacked(out.encoder_hidden_states, mask),
                "right_decoder_hidden": stacked(out.decoder_hidden_states, decoder_mask),
            }
        else:
            arrays |= {"left_logits_of_first": logits[:, 0]}
    found = searches(model, {"input_ids": tensor(tokens), "attention_mask": tensor(mask)}, 1, pad)
    return arrays, {"texts": TEXTS, "ids": rows, "generate": found}


def image(model: Any, tokenizer: None) -> tuple[Arrays, Plain]:
    random = np.random.default_rng(7)
    size = model.config.image_size
    smooth = np.linspace(0, 255, 20)[:, None, None] + np.linspace(-90, 60, 15)[None, :, None] * [1.0, -1.0, 0.5]
    images = random.integers(0, 256, (2, size, size, 3), np.uint8)
    larger = np.clip(smooth + random.normal(0, 20, smooth.shape), 0, 255).astype(np.uint8)
    processor = preprocessor(model)
    pixels = processor(list(images), return_tensors="np")["pixel_values"]
    resized = processor(larger, return_tensors="np")["pixel_values"]
    check_rounding(model, pixel_values=tensor(pixels))
    out = model(tensor(pixels), output_hidden_states=True)
    arrays = {
        "images": images,
        "larger_image": larger,
        "pixels": pixels.transpose(0, 2, 3, 1),
        "larger_pixels": resized[0].transpose(1, 2, 0),
        "logits": out.logits.detach().numpy(),
        "hidden": stacked(out.hidden_states),
        "larger_logits": model(tensor(resized)).logits.detach().numpy(),
    }
    return arrays, {}


def tones(seconds: float, rate: int = 16000) -> np.ndarray:
    """A chord that becomes louder and higher, as 16-bit numbers."""
    time = np.arange(int(seconds * rate)) / rate
    low = np.sin(2 * np.pi * 250 * time) + 0.5 * np.sin(2 * np.pi * 1000 * time)
    high = np.sin(2 * np.pi * 500 * time) + 0.25 * np.sin(2 * np.pi * 4000 * time)
    return np.where(time < 0.4, 4000 * low, 9000 * high).round().astype(np.int16)


def speech(model: Any, tokenizer: Tokenizer) -> tuple[Arrays, Plain]:
    waves = [tones(1.0), tones(0.7)]
    sounds = [wave.astype(np.float32) / 32768 for wave in waves]
    features = preprocessor(model)(sounds, sampling_rate=16000, return_tensors="np")["input_features"]
    usual = WhisperFeatureExtractor(chunk_length=1)(sounds, sampling_rate=16000, return_tensors="np")["input_features"]
    roles = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    start = [tokenizer.token_to_id(role) for role in roles]
    decoder_tokens, decoder_mask = _forced(tokenizer, start, model.config.pad_token_id)
    check_rounding(model, input_features=tensor(features), decoder_input_ids=tensor(decoder_tokens))
    out = model(tensor(features), decoder_input_ids=tensor(decoder_tokens), output_hidden_states=True)
    arrays = {
        "wave_0": waves[0],
        "wave_1": waves[1],
        "features": features,
        "every_tenth_of_80_features": usual[:, :, ::10],
        "decoder_tokens": decoder_tokens,
        "decoder_mask": decoder_mask,
        "right_logits": real(out.logits, decoder_mask),
        "encoder_last": out.encoder_last_hidden_state.detach().numpy(),
        "encoder_hidden_of_first": stacked([state[:1, ::5] for state in out.encoder_hidden_states]),
        "right_decoder_hidden": stacked(out.decoder_hidden_states, decoder_mask),
    }
    own = model.generation_config
    transcribed = model.generate(tensor(features), language="en", task="transcribe", max_new_tokens=NEW)
    inputs = {"input_features": tensor(features), "decoder_input_ids": tensor(np.array([start, start]))}
    found = searches(model, inputs, len(start), model.config.pad_token_id)
    model.generation_config = own
    plain = {"start": start, "generate": found, "transcribed": transcribed.tolist()}
    return arrays, plain | {"transcribed_texts": [tokenizer.decode(row) for row in transcribed.tolist()]}


def preprocessor(model: Any) -> Any:
    """What makes inputs of images or sounds; None for texts."""
    if model.config.model_type == "vit":
        size = model.config.image_size
        return ViTImageProcessorPil(size={"height": size, "width": size})
    if model.config.model_type == "whisper":
        return WhisperFeatureExtractor(feature_size=model.config.num_mel_bins, chunk_length=1)
    return None


RUNS = {run.__name__: run for run in (decoder, masked, classifier, encoder_decoder, image, speech)}
