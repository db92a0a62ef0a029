"""Mamba and Mamba-2 as language models."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError

TOKENS = np.random.default_rng(0).integers(0, 11, (3, 7))


def models() -> dict[str, wl.models.CausalLanguageModel]:
    key = wl.random.key(2)
    return {
        "mamba": wl.models.Mamba(11, 8, 2, state=3, key=key),
        "sigmoid": wl.models.Mamba(11, 8, 1, state=3, activation="sigmoid", mode="scan", tied=False, key=key),
        "mamba2": wl.models.Mamba2(11, 8, 2, 4, state=3, groups=2, chunk=4, key=key),
    }


@pytest.mark.book("13.70", name="wl.models.Mamba")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [*models()])
def test_they_keep_every_promise(name: str, compiled: bool) -> None:
    nn.assert_sequence_layer(models()[name], TOKENS, compiled=compiled)


@pytest.mark.book("13.70", name="wl.models.Mamba")
def test_sizes_and_the_first_loss() -> None:
    V, e, L, d, k, n, r, h, g = 65, 32, 2, 64, 4, 16, 2, 4, 1
    wanted = V * e + L * (3 * e * d + d * (k + 3 * n + 2 * r + 3) + e) + e
    model = wl.models.Mamba(V, e, L)
    assert model.num_parameters() == wanted
    assert wl.models.Mamba(V, e, L, tied=False).num_parameters() == wanted + V * e
    wanted = 2 * V * e + L * (3 * e * d + 2 * e * g * n + e * h + (k + 1) * (d + 2 * g * n) + 3 * h + d + e) + e
    other = wl.models.Mamba2(V, e, L, h, state=n)
    assert other.num_parameters() == wanted
    tokens = np.random.default_rng(0).integers(0, V, (4, 40))
    loss = nn.functional.cross_entropy(model(tokens)[:, :-1], tokens[:, 1:])
    assert abs(float(loss) - math.log(V)) < 0.1
    # the state has one size after any number of tokens
    _, cache = model.extend(tokens)
    before = cache.nbytes
    _, cache = model.extend(tokens, cache)
    assert cache.nbytes == before == L * 4 * d * (k - 1 + n) * 4
    with pytest.raises(InputError, match="4 heads of 8 for expand"):
        wl.models.Mamba2(V, e, L, h, head_size=8)


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_they_learn_to_copy_what_stood_before(name: str) -> None:
    """The token after a marker is the one before it: nothing in the present tells it."""
    rng = np.random.default_rng(0)
    kind = {"mamba": wl.models.Mamba(6, 16, 1, state=4), "mamba2": wl.models.Mamba2(6, 16, 1, 4, state=4, chunk=4)}
    model = kind[name]
    optimizer = wl.optim.Adam(model, lr=1e-2)

    def loss(model: wl.models.CausalLanguageModel, tokens: wl.Tensor) -> wl.Tensor:
        return nn.functional.cross_entropy(model(tokens)[:, 4], tokens[:, 0])

    step = wl.jit(wl.value_and_grad(loss))
    found = math.inf
    for _ in range(150):
        tokens = rng.integers(0, 5, (32, 5))
        tokens[:, 4] = 5
        value, slopes = step(model, wl.tensor(tokens))
        optimizer.step(slopes)
        found = float(value)
    assert found < 0.2


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_folders_keep_what_a_model_is(name: str, tmp_path: Path) -> None:
    settings: Any = {"bias": True, "conv_bias": False, "eps": 1e-6, "conv": 3, "expand": 3, "activation": "gelu"}
    if name == "mamba":
        model: wl.models.CausalLanguageModel = wl.models.Mamba(11, 8, 2, state=3, rank=2, tied=False, **settings)
    else:
        model = wl.models.Mamba2(11, 8, 2, 4, state=3, groups=2, tied=True, **settings)
    wl.models.save_pretrained(model, tmp_path / "folder")
    again = wl.models.from_pretrained(tmp_path / "folder")
    np.testing.assert_array_equal(again(TOKENS), model(TOKENS))
    model.stack.norm = nn.LayerNorm(8)
    with pytest.raises(InputError, match="no equal in the family"):
        wl.models.save_pretrained(model, tmp_path / "other")
