"""Writing sequences with a model of the next token, and saying how likely it finds them. Book, section 8.4.

    tokens = wl.generation.generate(model, prompt, 100, temperature=0.8, top_p=0.95, key=wl.random.key(0))
    tokens = wl.generation.greedy(model, prompt, 100)
    best = wl.generation.beam_search(model, prompt, 20, beams=5, length_penalty=1.0)[0].tokens
    text = wl.generation.generate_text(model, tokenizer, "Alice was", 200)
    log_p = wl.generation.sequence_log_prob(model, tokens[None], bos=0)

A model is anything with `model(tokens) -> logits (batch, time, vocabulary)` or `model.step(token, state) -> logits,
state`: convolutional, recurrent and attention models share this code.
"""

from .beam import Hypothesis, beam_search
from .filters import Sampling, min_p, repetition_penalty, temperature, top_k, top_p
from .likelihood import conditional_log_prob, sequence_log_prob, token_log_probs
from .sampling import generate, greedy
from .text import generate_text

__all__ = [
    "Hypothesis",
    "Sampling",
    "beam_search",
    "conditional_log_prob",
    "generate",
    "generate_text",
    "greedy",
    "min_p",
    "repetition_penalty",
    "sequence_log_prob",
    "temperature",
    "token_log_probs",
    "top_k",
    "top_p",
]
