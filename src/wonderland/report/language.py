"""What a language model writes and how sure it is of it, where its heads look, and how alike its positions are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..core.errors import ShapeError
from ..core.typing import Array, ArrayLike
from ..generation.tracing import Trace
from ..viz.heatmap import Heat
from .page import details, facts, figures, paragraph, table
from .pictures import Image, Picture, Section

MOST_STEPS = 24  # of a trace that are in the table
MOST_PAIRS = 12  # right ones, and wrong ones
SIDE = 360  # pixels of a picture of similarities
BLUE, RED = np.array([2, 100, 160]), np.array([190, 40, 40])


def language_sections(found: Mapping[str, Any]) -> list[Section]:
    """The sections that what was found gives; see `write`."""
    sections = []
    if "samples" in found or "trace" in found:
        sections.append(_written(found.get("samples", ()), found.get("trace")))
    if "filled" in found:
        sections.append(_filled(found["filled"]))
    if "pairs" in found:
        sections.append(_pairs(found["pairs"]))
    if "attention" in found:
        sections.append(_attention(*found["attention"]))
    if "positions" in found:
        picture = similarity_picture("cosine of the vectors of two positions", found["positions"])
        note = paragraph("Blue is alike, red opposite; the first position is at the top left.")
        sections.append(Section("Positions", note + figures([picture]), {"positions": [picture]}))
    return sections


def _written(samples: Sequence[tuple[str, str]], chain: Trace | None) -> Section:
    parts = [
        f'<div class="written"><span class="prompt">{escape(prompt)}</span>{escape(text)}</div>'
        for prompt, text in samples
    ]
    if parts:
        parts.insert(0, paragraph("What the model writes after a few words that it has never seen, which are pale."))
    if chain is not None and len(chain):
        parts += ["<h3>Probabilities</h3>", shaded(chain), _steps(chain)]
    return Section("Samples", "\n".join(parts))


def shaded(chain: Trace) -> str:
    """The tokens of a trace, each on a shade of its probability; those that were given have none."""
    tokens = [int(token) for token in chain.tokens]
    given = "".join(chain.name_of(token) for token in tokens[: chain.steps[0].place])
    spans = []
    for step in chain.steps:
        others = ", ".join(f"{visible(chain.name_of(t))} {p:.2f}" for t, p in step.likeliest)
        shade = f"background: rgb(2 100 160 / {0.55 * step.probability:.2f})"
        title = f"{step.probability:.3f}; likeliest: {others}"
        spans.append(
            f'<span class="token" style="{shade}" title="{escape(title)}">{escape(chain.name_of(step.token))}</span>'
        )
    mean = np.exp(chain.log_prob / len(chain))
    told = facts([("tokens", len(chain)), ("mean probability of a token", mean), ("log-probability", chain.log_prob)])
    return told + f'<div class="written"><span class="prompt">{escape(given)}</span>{"".join(spans)}</div>'


def _steps(chain: Trace) -> str:
    rows = [
        [
            visible(chain.name_of(step.token)),
            step.probability,
            "   ".join(f"{visible(chain.name_of(token))} {p:.2f}" for token, p in step.likeliest),
        ]
        for step in chain.steps[:MOST_STEPS]
    ]
    caption = f"The first {len(rows)} tokens that were written, and the likeliest ones there"
    return details("Token by token", table(["token", "probability", "likeliest"], rows, caption=caption))


def _filled(texts: Sequence[Sequence[tuple[str, tuple[str, str, float] | None]]]) -> Section:
    """Texts of which some tokens were hidden: the guess is right, or the truth stands beside it."""
    parts = [paragraph("What the model puts in the place of hidden tokens of texts that it has never seen.")]
    right = [guess == truth for text in texts for _, hidden in text if hidden for guess, truth, _ in [hidden]]
    parts.append(facts([("hidden tokens", len(right)), ("right", sum(right)), ("wrong", len(right) - sum(right))]))
    for text in texts:
        words = []
        for token, hidden in text:
            if hidden is None:
                words.append(f'<span class="prompt">{escape(token)}</span>')
                continue
            guess, truth, chance = hidden
            told = "" if guess == truth else f" ({visible(truth)})"
            kind, title = "right" if guess == truth else "wrong", f"{chance:.3f}, sees {visible(token)}"
            words.append(f'<span class="{kind}" title="{escape(title)}">{escape(visible(guess) + told)}</span>')
        parts.append(f'<div class="written">{" ".join(words)}</div>')
    return Section("Filled in", "\n".join(parts))


def _pairs(pairs: Sequence[tuple[str, str, str, bool]]) -> Section:
    right = [pair for pair in pairs if pair[3]]
    wrong = [pair for pair in pairs if not pair[3]]
    different = [list(dict.fromkeys(some))[:MOST_PAIRS] for some in (wrong, right)]
    parts = [facts([("outputs written", len(pairs)), ("right", len(right)), ("wrong", len(wrong))])]
    if wrong:
        rows = [[source, output, target] for source, target, output, _ in different[0]]
        parts += ['<h3 class="wrong">Wrong</h3>', table(["source", "written", "target"], rows)]
    if right:
        rows = [[source, output] for source, _, output, _ in different[1]]
        parts += ['<h3 class="right">Right</h3>', table(["source", "written"], rows)]
    return Section("Outputs", "\n".join(parts))


def _attention(maps: Sequence[tuple[str, ArrayLike]], names: Sequence[str]) -> Section:
    pictures: list[Picture] = []
    shown = [visible(name) for name in names]
    for title, weights in maps:
        table = np.asarray(weights, np.float64)
        if table.shape != (len(names), len(names)):
            raise ShapeError(f"report: attention of shape {table.shape} of {len(names)} tokens.", "weights (t, t)")
        percent = np.round(100 * table).astype(int)
        pictures.append(Heat(title, percent, table, shown, "sees", "token"))
    note = paragraph("How much each token (a row) takes from each token that it sees (a column), in percent.")
    return Section("Attention", note + figures(pictures), {"attention": pictures})


def similarity_picture(title: str, similarities: ArrayLike) -> Image:
    """Numbers (n, n) from -1 to 1 as pixels: white is 0, blue is 1, red is -1."""
    values = np.asarray(similarities, np.float64)
    if values.ndim != 2 or not values.size:
        raise ShapeError(f"report: similarities of shape {values.shape}.", "a matrix (n, n)")
    strength = np.clip(np.nan_to_num(values), -1.0, 1.0)[..., None]
    ink = np.where(strength > 0, BLUE, RED)
    pixels: Array = np.round(255 + np.abs(strength) * (ink - 255)).astype(np.uint8)
    times = max(1, SIDE // max(values.shape))
    return Image(title, pixels.repeat(times, 0).repeat(times, 1))


def visible(token: str) -> str:
    """A token's text with signs in the place of white space.

    >>> visible("a b\\n")
    'a␣b⏎'
    """
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")
