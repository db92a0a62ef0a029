"""Transcriptions from frames, against all alignments there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland.errors import InputError, NonFiniteError, ShapeError
from wonderland.generation import ctc_beam_search, ctc_collapse, ctc_greedy

rng = np.random.default_rng(0)


def collapsed(path, blank=0):
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def enumerated(log_p, blank=0):
    """The log-probability of every transcription."""
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        y = collapsed(path, blank)
        found[y] = np.logaddexp(found.get(y, -np.inf), log_p[np.arange(len(path)), path].sum())
    return found


def test_collapsing():
    for path in itertools.product(range(3), repeat=4):
        for blank in (0, 2):
            assert tuple(ctc_collapse(path, blank).tolist()) == collapsed(path, blank)
    assert ctc_collapse(np.array([], int)).tolist() == []
    with pytest.raises(ShapeError, match="one integer for each frame"):
        ctc_collapse([[1]])


@pytest.mark.book("11.52", name=("wl.generation.ctc_greedy", "wl.generation.ctc_beam_search"))
@pytest.mark.parametrize("blank", [0, 2])
def test_wide_beams_find_everything(blank):
    log_p = special.log_softmax(rng.normal(size=(5, 3)) * 1.5, axis=-1)
    expected = enumerated(log_p, blank)
    found = ctc_beam_search(log_p, beams=1000, blank=blank)
    assert [tuple(h.tokens.tolist()) for h in found] == sorted(expected, key=lambda y: -expected[y])
    for h in found:
        assert h.log_prob == pytest.approx(expected[tuple(h.tokens.tolist())], rel=1e-12)
        loss = wl.nn.functional.ctc_loss(log_p, h.tokens, 5, len(h.tokens), blank, reduction="none")
        assert h.log_prob == pytest.approx(-float(loss), rel=1e-12)
    # the likeliest alignment means what greedy decoding says
    assert tuple(ctc_greedy(log_p, blank=blank).tolist()) == collapsed(log_p.argmax(axis=-1), blank)


def test_narrow_beams_are_sums_of_some_alignments():
    log_p = special.log_softmax(rng.normal(size=(6, 4)), axis=-1)
    expected = enumerated(log_p)
    best = max(expected.values())
    before = -np.inf
    for beams in (1, 2, 4, 8, 64, 4096):
        found = ctc_beam_search(log_p, beams=beams)
        assert len(found) <= beams
        assert [h.log_prob for h in found] == sorted((h.log_prob for h in found), reverse=True)
        for h in found:
            assert h.log_prob <= expected[tuple(h.tokens.tolist())] + 1e-12
        before = max(before, found[0].log_prob)
    assert before == pytest.approx(best)


def test_batches_lengths_and_zeros():
    log_p = special.log_softmax(rng.normal(size=(6, 3, 4)) * 3, axis=-1)
    log_p[:, 0, 2] = -np.inf
    log_p[4:, 1] = np.nan  # padding
    lengths = [6, 4, 0]
    greedy, beams = ctc_greedy(log_p, lengths), ctc_beam_search(log_p, lengths, beams=3)
    for n, length in enumerate(lengths):
        np.testing.assert_array_equal(greedy[n], ctc_greedy(log_p[:length, n]) if length else [])
        if length:
            alone = ctc_beam_search(log_p[:length, n], beams=3)
            assert [(h.tokens.tolist(), h.log_prob) for h in beams[n]] == [
                (h.tokens.tolist(), h.log_prob) for h in alone
            ]
    assert all(2 not in h.tokens for h in ctc_beam_search(log_p[:, 0], beams=5000))
    assert [(h.tokens.tolist(), h.log_prob) for h in beams[2]] == [([], 0.0)]


def test_bad_input():
    with pytest.raises(ShapeError, match="time first"):
        ctc_greedy(np.zeros(3))
    with pytest.raises(InputError, match="blank=3 of 3 classes"):
        ctc_greedy(np.zeros((2, 3)), blank=3)
    with pytest.raises(ShapeError, match="input_lengths"):
        ctc_greedy(np.zeros((2, 1, 3)), [2, 2])
    with pytest.raises(InputError, match="from 3 to 3"):
        ctc_greedy(np.zeros((2, 1, 3)), [3])
    with pytest.raises(NonFiniteError, match="a frame of row 0"):
        ctc_beam_search(np.full((2, 3), np.nan))
    with pytest.raises(InputError, match="beams=0"):
        ctc_beam_search(np.zeros((2, 3)), beams=0)
