"""The basic recipe of transformers: one model for words, patches, series and nodes."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
POOLINGS = ["mean", "sum", "max", "attention", "cls", None]


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def ids(*shape, seed=0, high=20):
    return wl.asarray(np.random.default_rng(seed).integers(0, high, shape))


def encoder(tokenizer=20, **settings):
    seed = settings.pop("seed", 0)
    given = {"num_heads": 2, "depth": 2, "head": 3, "max_length": 16} | settings
    return wl.models.TransformerEncoder(tokenizer, 8, dtype=wl.float64, key=wl.random.key(seed), **given)


@pytest.mark.book("10.01", "11.42", name=("wl.nn.TransformerStack", "wl.models.TransformerEncoder"))
def test_the_same_blocks_read_every_modality():
    """One instance of the blocks; only the tokenizers and the positions are others."""
    wl.random.seed(0)
    stack = nn.TransformerStack([nn.TransformerBlock(8, 2, dtype=wl.float64) for _ in range(2)])
    f64 = {"dtype": wl.float64}
    kinds = {
        "text": (20, "learned", ids(2, 9), 9),
        "image": (nn.PatchEmbed(2, 1, 8, **f64), "learned", numbers(2, 6, 4, 1), 6),
        "series": (nn.Linear(3, 8, **f64), "sinusoidal", numbers(2, 11, 3), 11),
        "nodes": (nn.Linear(5, 8, **f64), None, numbers(2, 7, 5), 7),
        "audio": (nn.AudioTokenizer([(8, 4, 2)], pool=1, **f64), "sinusoidal", numbers(2, 40), 19),
        "vectors": (None, None, numbers(2, 4, 8), 4),
    }
    for tokenizer, positions, data, n in kinds.values():
        model = encoder(tokenizer, positions=positions, stack=stack)
        assert model.stack is stack
        assert model.encode(data).shape == (2, n, 8)
        assert model(data).shape == (2, 3)


@pytest.mark.book("10.55", name="wl.models.TransformerEncoder")
def test_the_four_steps():
    model, x = encoder(), ids(2, 9)
    tokens = model.tokenizer(x)  # 1. embed
    h = tokens + model.positions.weight[:9]  # 2. positions
    for block in model.stack.blocks:  # 3. blocks
        h = block(h)
    y = model.head(model.stack.norm(h).mean(axis=1))  # 4. the head
    close_array(model(x), y)
    assert model.num_parameters() == (20 + 16) * 8 + 2 * (12 * 64 + 13 * 8) + 2 * 8 + 9 * 3


@pytest.mark.book("10.55", name="wl.models.TransformerEncoder")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_it_learns_a_few_examples_by_heart(pooling):
    model, x, y = encoder(pooling=pooling), ids(16, 9), ids(16, high=3)
    first, last = learns(model, lambda m, x, y: F.cross_entropy(m(x), y), x, y, steps=80, lr=1e-2)
    assert first > 0.9
    assert last < 0.05


@pytest.mark.parametrize("positions, pooling", [("learned", "cls"), ("relative", None), ("rotary", "attention")])
def test_compiled_and_saved(positions, pooling, tmp_path):
    make = lambda seed: encoder(positions=positions, pooling=pooling, registers=1, seed=seed)
    same_when_compiled(make(0), ids(2, 9), lengths=wl.tensor([9, 4]))
    survives_saving(make, tmp_path, ids(2, 9))


@pytest.mark.book("10.57", name=("wl.models.TransformerEncoder", "wl.nn.check_invariance"))
def test_without_positions_the_model_is_invariant():
    order = np.random.default_rng(0).permutation(9)
    permuted = lambda a: wl.asarray(a)[order]
    x = numbers(9, 5)
    for pooling in POOLINGS[:-1]:
        model = encoder(nn.Linear(5, 8, dtype=wl.float64), positions=None, pooling=pooling, registers=1)
        assert nn.check_invariance(lambda x, m=model: m(x[None])[0], x, permuted) < 1e-12
    model = encoder(nn.Linear(5, 8, dtype=wl.float64), positions=None, pooling=None)
    assert nn.check_equivariance(lambda x: model(x[None])[0], x, permuted).interior < 1e-12
    model = encoder(nn.Linear(5, 8, dtype=wl.float64), positions="sinusoidal")
    assert nn.check_invariance(lambda x: model(x[None])[0], x, permuted) > 1e-4


@pytest.mark.book("10.57", "A5-51", name="wl.models.TransformerEncoder")
@pytest.mark.parametrize(
    "positions, pooling",
    [
        *[("learned", kind) for kind in POOLINGS],
        *[(kind, "cls") for kind in ("sinusoidal", "relative", "rotary", "alibi")],
    ],
)
def test_padding_counts_for_nothing(positions, pooling):
    """Rows of a batch have the results that they have alone, wherever their padding is and whatever is in it."""
    tokenizer = nn.Linear(5, 8, dtype=wl.float64)
    model = encoder(tokenizer, positions=positions, pooling=pooling, registers=1)
    x = np.asarray(numbers(3, 6, 5))
    right = np.arange(6) < np.array([[6], [4], [2]])
    left = right[:, ::-1]
    padded = np.full((2, 3, 6, 5), np.nan)
    for row, n in enumerate((6, 4, 2)):
        padded[0, row, :n] = padded[1, row, 6 - n :] = x[row, :n]
    results = [model(wl.asarray(data), token_mask=mask) for data, mask in zip(padded, (right, left), strict=True)]
    close_array(model(wl.asarray(padded[0]), lengths=[6, 4, 2]), results[0])
    for row, n in enumerate((6, 4, 2)):
        alone = model(wl.asarray(x[row : row + 1, :n]))[0]
        if pooling is None:
            close_array(results[0][row, :n], alone, 1000)
            close_array(results[1][row, 6 - n :], alone, 1000)
        else:
            close_array(results[0][row], alone, 1000)
            close_array(results[1][row], alone, 1000)

    def loss(model, x):
        y = model(x, token_mask=right)
        return (y if pooling is not None else wl.where(right[..., None], y, 0.0)).sum()

    grads = wl.grad(loss, argnums=(0, 1))(model, wl.asarray(padded[0]))
    assert all(np.isfinite(np.asarray(g)).all() for g in grads[0].values())
    inputs = np.asarray(grads[1])
    assert not inputs[~right].any()


@pytest.mark.book("A5-51", name="wl.models.TransformerEncoder")
def test_heads():
    """A head on each element, on the pooled vector, and on that of a class token before the others."""
    x = ids(2, 9)
    element = encoder(pooling=None)
    close_array(element(x), element.head(element.encode(x)))
    pooled = encoder(pooling="sum")
    close_array(pooled(x), pooled.head(pooled.encode(x).sum(axis=1)))
    token = encoder(pooling="cls", registers=2)
    tokens = token.extra(token.positions(token.tokenizer(x)))
    assert tokens.shape == (2, 3 + 9, 8)
    close_array(token(x), token.head(token.stack(tokens)[:, 0]))
    assert token.encode(x).shape == (2, 9, 8)
    own = encoder(head=nn.Sequential(nn.Linear(8, 4, dtype=wl.float64), wl.relu, nn.Linear(4, 2, dtype=wl.float64)))
    assert own(x).shape == (2, 2)
    after = encoder(pooling="cls", prepend=False)
    close_array(after.embed(x), after.stack(after.extra(after.positions(after.tokenizer(x))))[:, -1])


def test_empty_rows_give_finite_results():
    for pooling in POOLINGS[:-1]:
        model = encoder(pooling=pooling)
        y = model(ids(2, 5), lengths=[5, 0])
        assert np.isfinite(np.asarray(y.detach())).all()


def test_errors():
    with pytest.raises(InputError, match="pooling='median'"):
        encoder(pooling="median")
    with pytest.raises(InputError, match="positions='some'"):
        encoder(positions="some")
    with pytest.raises(InputError, match="a stack with them"):
        encoder(positions="rotary", stack=encoder().stack)
    with pytest.raises(ShapeError, match=r"integers \(batch, n\)"):
        encoder()(numbers(2, 3))
    with pytest.raises(ShapeError, match=r"tokens \(batch, n, 8\)"):
        encoder(nn.Linear(5, 7, dtype=wl.float64))(numbers(2, 3, 5))
    with pytest.raises(InputError, match="place 16"):
        encoder()(ids(1, 17))
