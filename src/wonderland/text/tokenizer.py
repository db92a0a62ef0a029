"""The tokenizer: from text to ids and back, in five steps that a `tokenizer.json` names. Book, section 8.2.2.

text -> special tokens found -> normalizer -> pre-tokenizer -> model -> ids (and a template around them)
ids  -> tokens -> decoder -> text
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arguments import as_int, shown
from ..data.collation import PadCollate, Padded
from ..data.encoding import Vocabulary
from ..data.extras import need
from ..errors import FileError, InputError
from ..storage.atomic import write_atomically
from . import byte_characters
from .bpe import BPE
from .normalizers import Normalizer, aligned
from .pre_tokenizers import Piece, PreTokenizer, is_byte_level
from .special_tokens import SpecialTokens, TokenFinder
from .tokenizer_json import from_json, to_json
from .word_level import WordLevel

Array = np.ndarray[Any, Any]
Span = tuple[int, int]
DECODERS = ("ByteLevel", "Fuse", None)


class Encoding(NamedTuple):
    """A text in tokens: their ids, their names, and the span of the text that each comes from."""

    ids: Array
    tokens: list[str]
    offsets: list[Span]


class Tokenizer:
    """Text to ids and back.

    >>> import wonderland as wl
    >>> tokenizer = wl.text.WordTokenizer.train("the cat is on the table", special_tokens=["[UNK]", "[BOS]"])
    >>> tokenizer.encode("the dog", add_bos=True)
    array([1, 2, 0])
    >>> tokenizer.decode([2, 3, 1])
    'the cat'

    `CharTokenizer`, `WordTokenizer`, `ByteTokenizer` and `BPETokenizer` are trained here; `Tokenizer.from_file` reads
    the `tokenizer.json` of others. All have this one interface, so a model is made for `tokenizer.vocab_size` ids and
    does not know which tokenizer it is. `save` writes a `tokenizer.json` that the `tokenizers` library reads.

    `model` is a `BPE` or a `WordLevel`; `decoder` joins tokens to a text: "ByteLevel" from bytes, "Fuse" without, None
    with a space between them. `before` and `after` are the special tokens around every text that is encoded, unless
    `add_bos` and `add_eos` say otherwise. Book, section 8.2.2.
    """

    def __init__(
        self,
        model: BPE | WordLevel,
        *,
        normalizer: Normalizer | None = None,
        pre_tokenizer: PreTokenizer | None = None,
        decoder: str | None = None,
        special_tokens: SpecialTokens | None = None,
        added_ids: dict[str, int] | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> None:
        if decoder not in DECODERS:
            raise InputError(f"Tokenizer: decoder={decoder!r}.", f"one of {DECODERS}")
        self.model, self.normalizer, self.pre_tokenizer, self.decoder = model, normalizer, pre_tokenizer, decoder
        self.special_tokens = SpecialTokens() if special_tokens is None else special_tokens
        self._ids = dict(model.vocab)
        for token in self.special_tokens.added:  # those that are not in the model's vocabulary come after it
            if token.content not in self._ids:
                self._ids[token.content] = (added_ids or {}).get(token.content, self.vocab_size)
        self._tokens = {number: token for token, number in self._ids.items()}
        if len(self._tokens) < len(self._ids):
            twice = next(token for token, number in self._ids.items() if self._tokens[number] != token)
            other = self._tokens[self._ids[twice]]
            raise InputError(f"Tokenizer: {twice!r} and {other!r} have one id, {self._ids[twice]}.", "distinct ids")
        self.before, self.after = tuple(before), tuple(after)
        for content in (*self.before, *self.after):
            self.token_to_id(content)
        self._special = {self._ids[token.content] for token in self.special_tokens.added if token.special}
        added = self.special_tokens.added
        self._added = {token.content for token in added}
        self._raw = TokenFinder([token for token in added if not (token.normalized and normalizer)], None)
        self._normalized = TokenFinder([token for token in added if token.normalized and normalizer], normalizer)

    # the vocabulary

    @property
    def vocab_size(self) -> int:
        """How many ids there are: the rows that an embedding needs."""
        return max(self._ids.values(), default=-1) + 1

    def __len__(self) -> int:
        return self.vocab_size

    @property
    def vocab(self) -> dict[str, int]:
        """The ids by token, special ones among them."""
        return dict(self._ids)

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens in the order of their ids, as a `wl.data.Vocabulary`."""
        return Vocabulary((self.id_to_token(number) for number in range(self.vocab_size)), unknown=self.model.unk)

    def token_to_id(self, token: str) -> int:
        """The id of a token.

        >>> import wonderland as wl
        >>> wl.text.ByteTokenizer().token_to_id("A")
        65
        """
        try:
            return self._ids[token]
        except (KeyError, TypeError):
            raise InputError(f"Tokenizer: {shown(token)} is not among its tokens.", "a token of `vocab`") from None

    def id_to_token(self, number: Any) -> str:
        """The token of an id.

        >>> import wonderland as wl
        >>> wl.text.ByteTokenizer().id_to_token(32)
        'Ġ'
        """
        try:
            return self._tokens[as_int("Tokenizer", "id", number)]
        except KeyError:
            raise InputError(
                f"Tokenizer: there is no token {int(number)}.", f"ids from 0 to {self.vocab_size - 1}"
            ) from None

    def _role(self, role: str) -> int | None:
        name = getattr(self.special_tokens, role)
        return None if name is None else self._ids.get(name)

    @property
    def pad_id(self) -> int | None:
        """The id of the padding token, or None."""
        return self._role("pad")

    @property
    def unk_id(self) -> int | None:
        """The id of the unknown token, or None."""
        return self._role("unk")

    @property
    def bos_id(self) -> int | None:
        """The id of the token that begins a sequence, or None."""
        return self._role("bos")

    @property
    def eos_id(self) -> int | None:
        """The id of the token that ends a sequence, or None."""
        return self._role("eos")

    @property
    def mask_id(self) -> int | None:
        """The id of the token that hides another, or None."""
        return self._role("mask")

    # from text to ids

    def encode(
        self,
        text: str,
        *,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        max_length: int | None = None,
        split_special_tokens: bool = False,
    ) -> Array:
        """The ids (n,) of a text, int64.

        >>> import wonderland as wl
        >>> wl.text.ByteTokenizer(special_tokens=["[EOS]"]).encode("né!", add_eos=True)
        array([110, 195, 169,  33, 256])

        `add_bos` and `add_eos` put special tokens around it (None: as the tokenizer's template has it). A special token
        that is written in the text becomes that token; with `split_special_tokens`, which is for text from strangers,
        it is text like any other. What is longer than `max_length`, special tokens included, is cut off at the end.
        """
        ids: list[int] = []
        for piece, number, _ in self._pieces(text, split_special_tokens):
            if number is None:
                ids += self.model.encode(piece.text)[0]
            else:
                ids.append(number)
        before, after = self._around(add_bos, add_eos)
        if max_length is not None:
            ids = ids[: self._room(max_length, before, after)]
        return np.array([*before, *ids, *after], np.int64)

    def encode_with_offsets(self, text: str, *, split_special_tokens: bool = False) -> Encoding:
        """The ids, tokens and spans of a text, without a template around it.

        >>> import wonderland as wl
        >>> wl.text.WordTokenizer.train("a cat").encode_with_offsets("cat  a")
        Encoding(ids=array([1, 0]), tokens=['cat', 'a'], offsets=[(0, 3), (5, 6)])

        Bytes of one character have the span of that character.
        """
        ids: list[int] = []
        offsets: list[Span] = []
        for piece, number, spans in self._pieces(text, split_special_tokens, with_spans=True):
            if number is not None:
                ids.append(number)
                offsets.append((piece.start, piece.end))
                continue
            numbers, lengths = self.model.encode(piece.text)
            ids += numbers
            place = 0
            for length in lengths:
                offsets.append((spans[place][0], spans[place + length - 1][1]))
                place += length
        return Encoding(np.array(ids, np.int64), [self._tokens[number] for number in ids], offsets)

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text by name.

        >>> import wonderland as wl
        >>> wl.text.WordTokenizer.train("the cat").tokenize("the cat the")
        ['the', 'cat', 'the']
        """
        return [self._tokens[number] for number in self.encode(text, add_bos=False, add_eos=False).tolist()]

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        max_length: int | None = None,
        length: int | None = None,
        to_multiple: int = 1,
    ) -> Padded:
        """The ids of several texts, padded at the end to the longest: `Padded(values, lengths)` with its `mask`.

        >>> import wonderland as wl
        >>> tokenizer = wl.text.CharTokenizer.train("abc", special_tokens=["[PAD]"])
        >>> batch = tokenizer.encode_batch(["abc", "b"])
        >>> batch.values
        array([[1, 2, 3],
               [2, 0, 0]])
        >>> batch.mask.tolist()
        [[True, True, True], [True, False, False]]

        `length` fixes the common length, `to_multiple` rounds it up, `max_length` cuts texts off. The padding token is
        needed as soon as lengths differ.
        """
        if isinstance(texts, str):
            raise InputError(f"encode_batch: {shown(texts)} is one text.", "a list of texts, or `encode`")
        rows = [self.encode(text, add_bos=add_bos, add_eos=add_eos, max_length=max_length) for text in texts]
        if not rows:
            raise InputError("encode_batch: there are no texts.", "one text or more")
        pad = PadCollate(0 if self.pad_id is None else self.pad_id, to_multiple=to_multiple, length=length)
        batch: Padded = pad(rows)
        if self.pad_id is None and (batch.lengths < batch.values.shape[1]).any():
            raise InputError(
                f"encode_batch: texts of {batch.lengths.min()} to {batch.lengths.max()} tokens, and no padding token.",
                'special_tokens=["[PAD]"] when the tokenizer is trained, or pad="..." when it is read',
            )
        return batch

    def _around(self, add_bos: bool | None, add_eos: bool | None) -> tuple[list[int], list[int]]:
        """The ids before and after every text."""
        out = []
        for wanted, role, template in ((add_bos, "bos", self.before), (add_eos, "eos", self.after)):
            if wanted and self._role(role) is None:
                raise InputError(
                    f"encode: add_{role}=True, and there is no {role} token.",
                    f'special_tokens=["[{role.upper()}]"] when it is trained, or {role}="..." when it is read',
                )
            out.append([self._ids[token] for token in template] if wanted is None else [self._role(role)] * wanted)
        return out[0], out[1]  # type: ignore[return-value]

    @staticmethod
    def _room(max_length: int, before: list[int], after: list[int]) -> int:
        room = as_int("encode", "max_length", max_length, 1) - len(before) - len(after)
        if room < 0:
            raise InputError(
                f"encode: max_length={max_length} for {len(before) + len(after)} special tokens.", "a larger max_length"
            )
        return room

    def _pieces(
        self, text: str, split_special: bool = False, with_spans: bool = False
    ) -> Iterator[tuple[Piece, int | None, list[Span]]]:
        """The pieces for the model, or a special token and its id; `with_spans`, also where characters come from."""
        if not isinstance(text, str):
            raise InputError(f"Tokenizer: a {type(text).__name__} is not text.", "a str; `encode_batch` takes several")
        for raw, start, end, added in self._raw.sections(text, not split_special):
            if added is not None:
                yield Piece(raw, start, end), self._ids[added], []
                continue
            spans = None
            if self.normalizer is None:
                normalized = raw
            elif with_spans:
                normalized, spans = aligned(self.normalizer, raw)
            else:
                normalized = self.normalizer(raw)
            for part, first, last, added in self._normalized.sections(normalized, not split_special):
                whole = Piece(part, first, last)
                if added is not None:
                    yield _moved(whole, spans, start), self._ids[added], []
                    continue
                pieces = [whole] if self.pre_tokenizer is None else self.pre_tokenizer([whole])
                for piece in pieces:
                    yield piece, None, self._spans(piece, normalized, spans, start) if with_spans else []

    def _spans(self, piece: Piece, normalized: str, spans: list[Span] | None, start: int) -> list[Span]:
        """For each character that the model sees, the span of the text that it comes from."""
        places: list[Span] = []
        for place in range(piece.start, piece.end):
            found = (place, place + 1) if spans is None else spans[place]
            count = len(normalized[place].encode()) if is_byte_level(self.pre_tokenizer) else 1
            places += [(found[0] + start, found[1] + start)] * count
        extra = len(piece.text) - len(places)  # a space that was put in front belongs to what it precedes
        return [places[0] if places else (start + piece.start, start + piece.start)] * extra + places

    # from ids to text

    def decode(self, ids: Any, *, skip_special_tokens: bool = True) -> str:
        """The text of some ids (n,).

        >>> import wonderland as wl
        >>> tokenizer = wl.text.CharTokenizer.train("abc", special_tokens=["[BOS]"])
        >>> tokenizer.decode([0, 1, 3]), tokenizer.decode([0, 1, 3], skip_special_tokens=False)
        ('ac', '[BOS]ac')

        Bytes that are no UTF-8, such as half a character, become U+FFFD.
        """
        numbers = np.asarray(ids)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InputError(
                f"decode: ids of shape {numbers.shape} and type {numbers.dtype}.", "integers (n,), or `decode_batch`"
            )
        tokens = [self.id_to_token(n) for n in numbers.tolist() if not (skip_special_tokens and n in self._special)]
        if self.decoder == "ByteLevel":  # of which added tokens, which are text, know nothing
            parts = (t.encode() if t in self._added else byte_characters.as_bytes(t) for t in tokens)
            return b"".join(parts).decode("utf-8", "replace")
        return ("" if self.decoder == "Fuse" else " ").join(tokens)

    def decode_batch(self, batch: Any, *, skip_special_tokens: bool = True) -> list[str]:
        """The texts of several rows of ids: a `Padded`, an array (batch, time), or a list of rows.

        >>> import wonderland as wl
        >>> tokenizer = wl.text.ByteTokenizer(special_tokens=["[PAD]"])
        >>> tokenizer.decode_batch(tokenizer.encode_batch(["one", "three"]))
        ['one', 'three']
        """
        if isinstance(batch, Padded):
            values, lengths = np.asarray(batch.values), np.asarray(batch.lengths)
            batch = [row[:length] for row, length in zip(values, lengths.tolist(), strict=True)]
        return [self.decode(row, skip_special_tokens=skip_special_tokens) for row in batch]

    # looking at it

    def pieces(self, text: str) -> list[str]:
        """The part of the text that each token stands for; together they are the text, up to white space left out.

        >>> import wonderland as wl
        >>> wl.text.BPETokenizer.train("the cat is on the table", 259).pieces("the cat")
        ['the', ' ', 'c', 'a', 't']

        Of the tokens of one character the first has it.
        """
        out = []
        done = 0
        for start, end in self.encode_with_offsets(text).offsets:
            out.append(text[max(start, done) : end])
            done = max(done, end)
        return out

    def visualize(self, text: str) -> str:
        """A table of the tokens of a text, the first thing to look at when a model reads nonsense. Book, section 8.2.2.

        >>> import wonderland as wl
        >>> print(wl.text.WordTokenizer.train("the cat").visualize("cat the"))
        id  token  span   text
         0  cat    0:3    'cat'
         1  the    4:7    'the'
        """
        encoding, pieces = self.encode_with_offsets(text), self.pieces(text)
        spans = [f"{start}:{end}" for start, end in encoding.offsets]
        rows = [("id", "token", "span", "text")]
        rows += [
            (str(number), token, span, repr(piece))
            for number, token, span, piece in zip(encoding.ids, encoding.tokens, spans, pieces, strict=True)
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(f"{a:>{widths[0]}}  {b:<{widths[1]}}  {c:<{widths[2] + 2}}{d}".rstrip() for a, b, c, d in rows)

    def __repr__(self) -> str:
        kind = type(self.model).__name__
        return f"{type(self).__name__}({kind} with {self.vocab_size} tokens, {self.special_tokens!r})"

    # files

    def to_str(self) -> str:
        """The tokenizer as the text of a `tokenizer.json`."""
        return to_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a `tokenizer.json`, whole or not at all."""
        write_atomically(path, to_json(self))

    @classmethod
    def from_str(cls, text: str, **roles: str | None) -> Tokenizer:
        """The tokenizer in the text of a `tokenizer.json`; see `from_file`.

        >>> import wonderland as wl
        >>> tokenizer = wl.text.CharTokenizer.train("abc")
        >>> wl.text.Tokenizer.from_str(tokenizer.to_str()).encode("cab")
        array([2, 0, 1])
        """
        if not isinstance(text, str):
            raise InputError(f"Tokenizer: a {type(text).__name__} is no text.", "the text of a tokenizer.json")
        return from_json(Tokenizer, "the text", text, roles)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], **roles: str | None) -> Tokenizer:
        """Read a `tokenizer.json`, written here or by the `tokenizers` library.

        Models: BPE (byte-level or not) and WordLevel, with the normalizers, pre-tokenizers, templates and decoders that
        live beside them here; anything else raises and is named. Files do not say which token begins or ends a
        sequence: the usual names are recognized, others are given as `bos="..."`, `eos`, `pad`, `unk`, `mask`.
        """
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"Tokenizer: cannot read {os.fspath(path)}: {error}.", "a tokenizer.json") from None
        return from_json(Tokenizer, os.fspath(path), text, roles)

    def to_tokenizers(self) -> Any:
        """The same tokenizer as one of the `tokenizers` library, which is fast where there is much text."""
        return need("to_tokenizers", "tokenizers", "tokenizers").Tokenizer.from_str(self.to_str())


def _moved(piece: Piece, spans: list[Span] | None, start: int) -> Piece:
    """A piece of a normalized part with its place in the whole text."""
    first, last = (piece.start, piece.end) if spans is None else (spans[piece.start][0], spans[piece.end - 1][1])
    return Piece(piece.text, first + start, last + start)
