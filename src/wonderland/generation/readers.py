"""From what a user gives to what decoding works with: rows of tokens, and a reader of the model for them."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike, DTypeLike
from ..data.collation import Padded
from ..train.step import Model
from .cached import CachedReader, Prefix, reads_on
from .next_token import Reader, TreeSteps, WholeSequences, as_context, has_steps, is_compiled
from .prompts import Prompt, Prompts, as_prompts, as_source


class Task(NamedTuple):
    """What is to be written: a table (rows, time) with room for new tokens, the prompts' lengths, and the model."""

    prompts: Prompts
    table: Array
    lengths: Array
    reader: Reader


def task_for(
    name: str,
    model: Model,
    prompt: Prompt,
    count: int,
    *,
    bos: int | None = None,
    context: int | None = None,
    causal: bool = True,
    jit: bool | None = None,
    source: ArrayLike | Padded | None = None,
    source_mask: ArrayLike | None = None,
    prefix: Prefix | None = None,
    cache_dtype: DTypeLike | None = None,
) -> Task:
    """The rows of a generation, and what answers for the model: its cache, its steps, or the model itself."""
    limit = as_context(name, model, context)
    given, alone = as_source(name, source, source_mask)
    if bos is None and prompt is None and prefix is None:
        bos = getattr(model, "start_token", None)
    if prefix is not None and (bos is not None or given is not None):
        raise InputError(f"{name}: a prefix beside bos or source.", "the prefix begins the rows: one of them")
    prompts = as_prompts(name, prompt, bos, None if prefix is None else prefix.tokens)
    if given is not None and len(prompts.rows) != given.rows:
        if len(prompts.rows) > 1:
            raise ShapeError(f"{name}: {len(prompts.rows)} prompts, {given.rows} sources.", "as many, or one prompt")
        prompts = Prompts(prompts.rows * given.rows, False)
    elif given is not None and prompt is None:
        prompts = Prompts(prompts.rows, alone)
    table, lengths = prompts.table(count)
    compiled, total = is_compiled(model, jit), table.shape[1]
    reader: Reader
    if reads_on(model):
        forced = context is not None
        reader = CachedReader(name, model, limit, total, compiled, len(table), given, prefix, forced, cache_dtype)
    elif given is not None or prefix is not None or cache_dtype is not None:
        what = "source" if given is not None else "prefix" if prefix is not None else "cache_dtype"
        raise InputError(
            f"{name}: a {what} for a {type(model).__name__}, which has no cache.", "a model with new_cache and extend"
        )
    elif has_steps(model):
        reader = TreeSteps(name, model, limit, compiled)
    else:
        reader = WholeSequences(name, model, limit, total, causal, compiled)
    return Task(prompts, table, lengths, reader)
