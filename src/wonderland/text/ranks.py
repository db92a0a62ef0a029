"""Files of ranks, as the `tiktoken` library has them: tokens as bytes, in the order in which they were learned."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping

from ..core.arguments import shown
from ..core.errors import FileError
from .bpe import BPE
from .byte_characters import CHARACTERS
from .pre_tokenizers import GPT4_PATTERN, ByteLevel, PreTokenizers, Split
from .special_tokens import SpecialTokens
from .tokenizer import Tokenizer
from .tokenizer_json import MOST_IDS

LONGEST = 1024  # bytes of a token, each of whose cuts is looked at; the longest of known files have 128


def from_ranks(
    path: str | os.PathLike[str], special_tokens: Mapping[str, int] | None = None, pattern: str = GPT4_PATTERN
) -> Tokenizer:
    """The byte-level tokenizer of a file of ranks: a token in base64 and its id on each line.

    >>> import base64, pathlib, tempfile
    >>> tokens = [bytes([byte]) for byte in range(256)] + [b"in", b"ing"]
    >>> lines = "".join(f"{base64.b64encode(token).decode()} {rank}\\n" for rank, token in enumerate(tokens))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.tiktoken")
    ...     _ = path.write_text(lines)
    ...     tokenizer = from_ranks(path, {"<|endoftext|>": 300})
    >>> tokenizer.encode("ring<|endoftext|>")
    array([114, 257, 300])

    Neighbours merge if they make a token, first the token with the smallest id. `pattern` cuts a text into words, by
    default as for cl100k; special tokens have the ids that are given. Book, section 8.2.2.
    """
    vocab: dict[str, int] = {}
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise FileError(f"from_ranks: cannot read {os.fspath(path)}: {error}.", "a file of ranks") from None
    for number, line in enumerate(lines, 1):
        try:
            encoded, rank = line.split()
            token = "".join(CHARACTERS[byte] for byte in base64.b64decode(encoded, validate=True))
            if not token or token in vocab or len(token) > LONGEST or not rank.isdigit() or int(rank) >= MOST_IDS:
                raise ValueError
            vocab[token] = int(rank)
        except ValueError:  # binascii.Error is one
            raise FileError(
                f"from_ranks: line {number} of {os.fspath(path)} is {shown(line)}.",
                f"a new token in base64 (at most {LONGEST} bytes), a space, its id",
            ) from None
    if missing := [character for character in CHARACTERS if character not in vocab]:
        raise FileError(f"from_ranks: {os.fspath(path)} lacks {len(missing)} of the 256 bytes.", "a whole file")
    if len(set(vocab.values())) < len(vocab):
        raise FileError(f"from_ranks: two tokens of {os.fspath(path)} have one id.", "distinct ids")
    merges = []
    for token in sorted(vocab, key=vocab.__getitem__):
        # a token has one rank, whatever its two parts are
        parts = ((token[:cut], token[cut:]) for cut in range(1, len(token)))
        merges += [pair for pair in parts if pair[0] in vocab and pair[1] in vocab]
    ids = dict(special_tokens or {})
    return Tokenizer(
        BPE(vocab, merges, ignore_merges=True),
        pre_tokenizer=PreTokenizers((Split(pattern, "Isolated"), ByteLevel(use_regex=False))),
        decoder="ByteLevel",
        special_tokens=SpecialTokens.named(list(ids)),
        added_ids=ids,
    )
