"""Recurrent language models: what they promise as sequences models, given a condition and covariates."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland.errors import InputError, ShapeError

CELLS = {"lstm": 4, "gru": 3, "rnn": 1}


def small(cell="lstm", **settings):
    settings = {"key": wl.random.key(1), **settings}
    return wl.models.RNNLanguageModel(7, 6, 5, 2, cell=cell, **settings)


def tokens(rows=3, time=9, seed=0):
    return np.random.default_rng(seed).integers(0, 7, (rows, time))


@pytest.mark.book("A5-26", name="wl.models.RNNLanguageModel")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("cell", CELLS)
def test_an_rnn_decoder_is_causal_and_reads_on(cell, compiled):
    """z_t depends on x_1 .. x_{t-1} alone; whole, in parts and token by token it is the same; padding is not seen."""
    wl.nn.assert_sequence_layer(small(cell), tokens(), compiled=compiled)


@pytest.mark.book("A5-26", name="wl.models.RNNLanguageModel")
def test_the_state_of_an_lstm_is_a_pair_and_its_outputs_are_drawn():
    model = small()
    _, cache = model.extend(tokens())
    assert [sorted(part.state) for part in cache.layers] == [["c", "h"]] * 2
    assert sorted(small("gru").extend(tokens())[1].layers[0].state) == ["h"]
    drawn = {tuple(wl.generation.generate(model, [1], 6, key=wl.random.key(i)).tolist()) for i in range(4)}
    assert len(drawn) > 1
    # the shares of what is drawn are those of the softmax at the last place
    p = np.asarray(wl.nn.functional.softmax(model.eval()(np.array([[1, 2]]))[0, -1]))
    many = np.array([row[-1] for row in wl.generation.generate(model, [[1, 2]] * 4000, 1, key=wl.random.key(0))])
    np.testing.assert_allclose(np.bincount(many, minlength=7) / 4000, p, atol=0.03)


@pytest.mark.parametrize("cell", CELLS)
def test_parameters(cell):
    g, v, e, h = CELLS[cell], 7, 6, 5
    plain = v * e + g * h * (e + h + 2) + g * h * (2 * h + 2)
    assert small(cell).num_parameters() == plain + (h + 1) * v
    tied = wl.models.RNNLanguageModel(7, 6, depth=3, cell=cell, tied=True, residual=True)
    assert tied.num_parameters() == v * 6 + 3 * g * 6 * 14 + 4 * 6


@pytest.mark.parametrize("cell", CELLS)
def test_it_learns_a_text(cell):
    text = np.tile([1, 2, 3, 1, 5, 6], 4)[None]
    model = wl.models.RNNLanguageModel(7, 12, depth=1, cell=cell, tied=True, key=wl.random.key(0))
    loss = lambda m, x: wl.nn.functional.cross_entropy(m(x[:, :-1]), x[:, 1:])
    before, after = learns(model, loss, wl.asarray(text), steps=150, lr=2e-2)
    assert after < 0.1 < 1.5 < before
    np.testing.assert_array_equal(wl.generation.greedy(model, [1, 2, 3], 9), np.tile([1, 2, 3, 1, 5, 6], 2))


def test_promises(tmp_path):
    make = lambda i: small(key=wl.random.key(i), residual=False, dropout=0.3)
    same_when_compiled(make(0), tokens())
    survives_saving(make, tmp_path, tokens())
    model = make(0)
    assert not np.allclose(model(tokens()), model(tokens()))  # dropout acts while training


def test_any_layer_that_carries_a_state_can_be_its_cell():
    class Sum(wl.nn.StateLayer):
        def __init__(self, size):
            self.size = size

        def state_shapes(self):
            return {"total": (self.size,)}

        def run(self, x, state, real):
            y = state["total"][:, None] + wl.cumsum(x, axis=1)
            return y, {"total": y[:, -1]}

    model = wl.models.RNNLanguageModel(7, 6, cell=lambda n, m, dtype, key: Sum(n), residual=True)
    wl.nn.assert_sequence_layer(model, tokens())


# --- given something


@pytest.mark.book("A5-28", name="wl.models.RNNLanguageModel")
@pytest.mark.parametrize("cell", CELLS)
def test_another_condition_is_another_distribution(cell):
    model = small(cell, condition=3).eval()
    a, b, again = (wl.nn.functional.softmax(model(tokens(), condition=[c] * 3)) for c in (0, 1, 0))
    np.testing.assert_array_equal(a, again)
    assert np.abs(np.asarray(a) - np.asarray(b)).max(-1).min() > 1e-5  # at every place of every row
    # classes are rows of the identity
    np.testing.assert_allclose(
        model(tokens(), condition=np.eye(3)[[0, 0, 0]].astype("f")), model(tokens(), condition=[0] * 3), rtol=1e-6
    )


@pytest.mark.book("A5-28", name="wl.models.RNNLanguageModel")
def test_what_is_drawn_given_a_condition_can_be_learned():
    """Two classes of sequences: one counts up, one counts down; the condition says which, and no token does."""
    up, down = np.tile([1, 2, 3], 3), np.tile([3, 2, 1], 3)
    x = np.stack([np.r_[2, up], np.r_[2, down]])
    model = wl.models.RNNLanguageModel(4, 12, depth=1, cell="gru", condition=2, key=wl.random.key(0))
    loss = lambda m, x: wl.nn.functional.cross_entropy(m(x[:, :-1], condition=wl.tensor([0, 1])), x[:, 1:])
    assert learns(model, loss, wl.asarray(x), steps=150, lr=2e-2)[1] < 0.1
    rows = wl.generation.greedy(model.given([0, 1]), [[2], [2]], 6)
    np.testing.assert_array_equal(rows, x[:, :7])
    beams = wl.generation.beam_search(model.given([1]), [2], 6, beams=3)
    np.testing.assert_array_equal(beams[0].tokens, x[1, :7])
    probable, not_probable = (wl.generation.sequence_log_prob(model.given([c]), x[:1])[0] for c in (0, 1))
    assert probable > not_probable + 5


@pytest.mark.book("A5-27", name="wl.models.RNNLanguageModel")
def test_covariates_act_at_their_step_and_later_ones():
    model = small(covariates=2).eval()
    v = np.random.default_rng(0).normal(size=(3, 9, 2)).astype("f")
    changed = v.copy()
    changed[:, 4] += 1
    y, other = (np.asarray(model(tokens(), covariates=c)) for c in (v, changed))
    np.testing.assert_array_equal(y[:, :4], other[:, :4])
    assert np.abs(y - other)[:, 4:].max((0, 2)).min() > 1e-6


@pytest.mark.book("A5-27", name="wl.models.GivenModel")
def test_tokens_that_follow_the_weekday_are_learned_and_written():
    days = np.arange(30) % 7
    x = np.r_[0, days[:-1] % 2][
        None
    ]  # the token is whether the day before was odd: nothing in the tokens tells the week
    v = np.eye(7, dtype="f")[days][None]
    model = wl.models.RNNLanguageModel(2, 12, depth=1, covariates=7, key=wl.random.key(0))
    loss = lambda m, x: wl.nn.functional.cross_entropy(m(x, covariates=wl.asarray(v)), wl.asarray(days % 2)[None])
    assert learns(model, loss, wl.asarray(x), steps=150, lr=2e-2)[1] < 0.05
    np.testing.assert_array_equal(wl.generation.greedy(model.given(covariates=v), [0], 20), x[0, :21])
    with pytest.raises(wl.errors.WonderlandError):  # the calendar ends
        wl.generation.greedy(model.given(covariates=v), [0], 40, jit=False)


@pytest.mark.parametrize("compiled", [False, True])
def test_given_models_read_on(compiled):
    v = np.random.default_rng(0).normal(size=(1, 20, 2)).astype("f")
    given = small(condition=3, covariates=2).given([1], v)
    wl.nn.assert_reads_on(given, tokens(), compiled=compiled)
    wl.nn.assert_padding_ignored(given, tokens(), compiled=compiled)
    wl.nn.assert_cache_reorders(given, tokens(), compiled=compiled)


def test_rows_that_change_places_keep_what_they_are_given():
    model, order = small(condition=3).eval(), [2, 1, 2]
    _, cache = model.given([0, 1, 2]).extend(tokens()[:, :-1])
    logits, _ = model.step(tokens()[order, -1], cache.reorder(order))
    np.testing.assert_allclose(logits, model(tokens()[order], condition=order)[:, -1], rtol=1e-5, atol=1e-6)


def test_padded_covariates_reach_nothing():
    model = small(covariates=2)
    v = np.ones((3, 9, 2), "f")
    v[0, 5:] = np.nan
    loss = lambda m, v: (m(tokens(), lengths=[5, 9, 9], covariates=v)[0, :5] ** 2).sum()
    value, grads = wl.value_and_grad(loss)(model, v)
    assert np.isfinite(value.numpy())
    assert all(np.isfinite(np.asarray(g)).all() for g in grads.values())


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: small("elman"), InputError, "there is no cell 'elman'"),
        (lambda: small(tied=True), InputError, "tied logits from 5 features"),
        (lambda: small(residual=True), InputError, "sums around layers"),
        (lambda: small()(tokens(), condition=[1, 1, 1]), InputError, "the model has none"),
        (lambda: small(condition=2)(tokens()), InputError, "no condition"),
        (lambda: small(condition=2).extend(tokens()), InputError, "no condition"),
        (lambda: small(condition=2)(tokens(), condition=[1, 1]), ShapeError, r"\(3, 2\)"),
        (lambda: small(covariates=2)(tokens(), covariates=np.ones((3, 8, 2))), ShapeError, "covariates of shape"),
        (lambda: small(covariates=2).given(np.ones((1, 2))), InputError, "a condition, and the model has none"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
