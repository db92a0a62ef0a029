"""The language model RWKV: size, contract, decoding with its cache, saving, learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import models, nn
from wonderland.errors import DTypeError, InputError


def tokens(rows: int = 3, time: int = 7, vocabulary: int = 20) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(0).integers(0, vocabulary, (rows, time)))


@pytest.mark.book("13.63", name="wl.models.RWKV")
@pytest.mark.parametrize("tied", [False, True])
def test_parameters(tied: bool) -> None:
    v, e, depth, h, p = 20, 8, 3, 6, 10
    model = models.RWKV(v, e, depth, hidden=p, time_hidden=h, tied=tied)
    block = 4 * e * h + 2 * h + e * e + 2 * e * p + 9 * e
    assert model.num_parameters() == (1 if tied else 2) * v * e + depth * block + 4 * e
    assert model(tokens()).shape == (3, 7, v)


@pytest.mark.book("13.63", "13.12", name="wl.models.RWKV")
@pytest.mark.parametrize("compiled", [False, True])
def test_it_reads_on(compiled: bool) -> None:
    nn.assert_sequence_layer(models.RWKV(20, 8, 2, key=wl.random.key(0)), tokens(), compiled=compiled)


@pytest.mark.book("13.63", name="wl.nn.RWKVBlock")
def test_a_block_is_both_mixes_after_norms() -> None:
    block, x = nn.RWKVBlock(8, dtype=wl.float64), wl.random.normal((2, 5, 8), dtype=wl.float64)
    h = x + block.token_mixer(block.token_norm(x))
    np.testing.assert_allclose(block(x), h + block.channel_mixer(block.channel_norm(h)), rtol=1e-12)


@pytest.mark.book("13.63", name="wl.generation.greedy")
def test_generation_with_a_state_that_does_not_grow() -> None:
    """Greedy and beam search with the cache find what reading all anew finds; memory stays what it was."""
    model = models.RWKV(20, 16, 2, std=0.5, key=wl.random.key(1)).eval()
    prompts = [[1, 2, 3], [4, 5, 6, 7, 8]]
    rows = wl.generation.greedy(model, prompts, 12)
    for prompt, row in zip(prompts, rows, strict=True):
        text = list(prompt)
        for _ in range(12):
            text.append(int(np.asarray(model(wl.tensor([text])))[0, -1].argmax()))
        assert row.tolist() == text
    # without a cache the model is a function of tokens
    plain = wl.generation.greedy(lambda t: model(t), prompts, 12, jit=False, causal=True)
    assert [row.tolist() for row in plain] == [row.tolist() for row in rows]
    found, wanted = (
        wl.generation.beam_search(m, [1, 2, 3], 8, beams=3, jit=False, causal=True) for m in (model, lambda t: model(t))
    )
    assert [h.tokens.tolist() for h in found] == [h.tokens.tolist() for h in wanted]
    cache, sizes = model.new_cache(2), set()
    for _ in range(70):
        _, cache = model.step(wl.tensor([1, 2]), cache)
        sizes.add(cache.nbytes)
    assert sizes == {2 * 2 * 5 * 16 * 4}  # rows, blocks, 2 e + 3 h numbers of 4 bytes


def test_promises(tmp_path: Path) -> None:
    make = lambda seed: models.RWKV(20, 8, 2, key=wl.random.key(seed))
    same_when_compiled(make(0), tokens())
    survives_saving(make, tmp_path, tokens())


def test_it_learns_to_repeat() -> None:
    """The token before the last: the shift of tokens and the memory are needed."""
    model = models.RWKV(8, 16, 2, key=wl.random.key(0))
    x = tokens(16, 12, 8)

    def loss(model: models.RWKV, x: wl.Tensor) -> wl.Tensor:
        return nn.functional.cross_entropy(model(x)[:, 2:], x[:, :-2])

    first, last = learns(model, loss, x, steps=150, lr=1e-2)
    assert first > 1.9
    assert last < 0.2


def test_bad_input() -> None:
    model = models.RWKV(20, 8, 1, context=5)
    with pytest.raises(InputError, match=r"RWKV\(vocabulary=20, context=5\): 7 tokens, and a context of 5"):
        model(tokens())
    with pytest.raises(DTypeError, match="tokens of float32"):
        model(wl.ones((2, 3)))
    with pytest.raises(InputError, match="convention='x'"):
        models.RWKV(20, 8, 1, convention="x")
    with pytest.raises(InputError, match="vocabulary=0"):
        models.RWKV(0)
