"""Writing sequences with a model of the next token, and saying how likely it finds them. Book, sections 8.4 and 11.2.

    tokens = wl.generation.generate(model, prompt, 100, temperature=0.8, top_p=0.95, key=wl.random.key(0))
    tokens = wl.generation.greedy(model, prompt, 100)
    best = wl.generation.beam_search(model, prompt, 20, beams=5, length_penalty=1.0)[0].tokens
    text = wl.generation.generate_text(model, tokenizer, "Alice was", 200, stop_strings=["Chapter"])
    for piece in wl.generation.stream_text(model, tokenizer, "Alice was", 200): print(piece, end="")
    rows = wl.generation.generate(translator, source=sentences)  # an encoder-decoder writes about a source
    prefix = wl.generation.read_prefix(model, long_prompt)  # once, for generate(model, [...], prefix=prefix)
    tokens = wl.generation.speculative_generate(small_model, model, prompt, 100)
    log_p = wl.generation.sequence_log_prob(model, tokens[None], bos=0)
    print(wl.generation.trace(model, tokens, start=len(prompt)))  # the probability of every token that was written
    text = wl.generation.ctc_beam_search(log_probs)[0].tokens  # of a model that was trained with ctc_loss

A model is anything with `model(tokens) -> logits (batch, time, vocabulary)`, `model.step(token, state) -> logits,
state`, or `new_cache`, `extend` and `step` with a `wl.nn.Cache`: convolutional, recurrent and attention models share
this code.
"""

from ..core.naming import offer as _offer
from .beam import Hypothesis, beam_search
from .cached import Prefix, read_prefix
from .filters import Sampling, min_p, repetition_penalty, temperature, top_k, top_p
from .likelihood import conditional_log_prob, sequence_log_prob, token_log_probs
from .sampling import generate, greedy
from .speculative import speculative_generate
from .speech import transcribe
from .streaming import stream_text, stream_tokens
from .suppression import suppressed
from .text import generate_text
from .tracing import Step, Trace, trace
from .transcription import ctc_beam_search, ctc_collapse, ctc_greedy

_offer(globals())
