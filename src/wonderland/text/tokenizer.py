"""The tokenizer: from text to ids and back, in five steps that a `tokenizer.json` names. Book, section 8.2.2.

text -> special tokens found -> normalizer -> pre-tokenizer -> model -> ids (and a template around them)
ids  -> tokens -> decoder -> text
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.arguments import as_int, shown
from ..core.errors import FileError, InputError
from ..core.typing import Array
from ..data.collation import PadCollate, Padded
from ..data.encoding import Vocabulary
from ..data.extras import need
from ..storage.atomic import write_atomically
from .byte_characters import spelled
from .decoders import ByteLevel, Decoder, Fuse, has_bytes
from .models import Model
from .normalizers import Normalizer, Span
from .post_processors import Part, PostProcessor, around, kept, template, trimmed, trimming
from .pre_tokenizers import PreTokenizer
from .published import published_roles, tokenizer_file
from .segmentation import Segmenter
from .special_tokens import SpecialTokens
from .tokenizer_json import from_json, to_json

DECODERS: dict[str, Decoder] = {"ByteLevel": ByteLevel(), "Fuse": Fuse()}


class Encoding(NamedTuple):
    """A text in tokens: their ids, their names, the span of the text that each comes from, and its type (0 or 1)."""

    ids: Array
    tokens: list[str]
    offsets: list[Span]
    type_ids: Array


class Tokenizer:
    """Text to ids and back.

    >>> import wonderland as wl
    >>> tokenizer = wl.text.WordTokenizer.train("the cat is on the table", special_tokens=["[UNK]", "[BOS]"])
    >>> tokenizer.encode("the dog", add_bos=True)
    array([1, 2, 0])
    >>> tokenizer.decode([2, 3, 1])
    'the cat'

    `CharTokenizer`, `WordTokenizer`, `ByteTokenizer`, `BPETokenizer` and `WordPieceTokenizer` are trained here;
    `Tokenizer.from_file` reads the `tokenizer.json` of others. All have this one interface, so a model is made for
    `tokenizer.vocab_size` ids and does not know which tokenizer it is. `save` writes a `tokenizer.json` that the
    `tokenizers` library reads.

    `model` is a `BPE`, `WordPiece`, `Unigram` or `WordLevel`. `decoder`, one of `wl.text.decoders`, joins tokens to a
    text: "ByteLevel" from bytes, "Fuse" without, None with a space between them. `post_processor`, one of
    `wl.text.post_processors`, has the special tokens around a text or two; `before` and `after` are a short way to say
    the same. They are put there unless `add_bos` and `add_eos` say otherwise. Book, section 8.2.2.
    """

    def __init__(
        self,
        model: Model,
        *,
        normalizer: Normalizer | None = None,
        pre_tokenizer: PreTokenizer | None = None,
        decoder: Decoder | str | None = None,
        special_tokens: SpecialTokens | None = None,
        added_ids: dict[str, int] | None = None,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        post_processor: PostProcessor | None = None,
    ) -> None:
        if isinstance(decoder, str):
            if decoder not in DECODERS:
                raise InputError(f"Tokenizer: decoder={decoder!r}.", f"one of {list(DECODERS)}, or of wl.text.decoders")
            decoder = DECODERS[decoder]
        if post_processor is not None and (before or after):
            raise InputError("Tokenizer: both a post_processor and tokens before or after a text.", "one of them")
        self.model, self.normalizer, self.pre_tokenizer, self.decoder = model, normalizer, pre_tokenizer, decoder
        self.post_processor = around(tuple(before), tuple(after)) if post_processor is None else post_processor
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
        self._template = template(self.post_processor)
        for part in (*self._template.single, *self._template.pair):
            if isinstance(part.what, str):
                self.token_to_id(part.what)
        self._special = {self._ids[token.content] for token in self.special_tokens.added if token.special}
        added = self.special_tokens.added
        self._added = {token.content for token in added}
        self._segmenter = Segmenter(model, normalizer, pre_tokenizer, added, self._ids)

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

    def id_to_token(self, number: int) -> str:
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
        pair: str | None = None,
        *,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
        max_length: int | None = None,
        split_special_tokens: bool = False,
    ) -> Array:
        """The ids (n,) of a text, int64, or of two.

        >>> import wonderland as wl
        >>> wl.text.ByteTokenizer(special_tokens=["[EOS]"]).encode("né!", add_eos=True)
        array([110, 195, 169,  33, 256])

        `add_bos` and `add_eos` put special tokens around it (None: as the tokenizer's template has it). A special token
        that is written in the text becomes that token; with `split_special_tokens`, which is for text from strangers,
        it is text like any other. What is longer than `max_length`, special tokens included, is cut off at the end; of
        two texts the longer one is cut first.
        """
        texts = [text] if pair is None else [text, pair]
        rows = [self._segmenter.ids(text, split_special_tokens) for text in texts]
        parts = self._parts(len(rows), add_bos, add_eos)
        if max_length is not None:
            lengths = kept([len(row) for row in rows], self._room(max_length, parts))
            rows = [row[:length] for row, length in zip(rows, lengths, strict=True)]
        ids: list[int] = []
        for what, _ in parts:
            ids += rows[what] if isinstance(what, int) else [self._ids[what]]
        return np.array(ids, np.int64)

    def encode_with_offsets(
        self,
        text: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = False,
        max_length: int | None = None,
        split_special_tokens: bool = False,
    ) -> Encoding:
        """The ids, tokens, spans and types of a text or of two, with the template around them if it is wanted.

        >>> import wonderland as wl
        >>> found = wl.text.WordTokenizer.train("a cat").encode_with_offsets("cat  a", "a")
        >>> found.tokens, found.offsets, found.type_ids
        (['cat', 'a', 'a'], [(0, 3), (5, 6), (0, 1)], array([0, 0, 1]))

        Bytes of one character have the span of that character, and special tokens of the template (0, 0).
        """
        texts = [text] if pair is None else [text, pair]
        rows = [self._segmenter.with_spans(text, split_special_tokens) for text in texts]
        wanted = None if add_special_tokens else False
        parts = self._parts(len(rows), wanted, wanted)
        room = sum(len(row[0]) for row in rows) if max_length is None else self._room(max_length, parts)
        lengths = kept([len(row[0]) for row in rows], room)
        ids: list[int] = []
        offsets: list[Span] = []
        types: list[int] = []
        for what, kind in parts:
            if isinstance(what, int):
                ids += rows[what][0][: lengths[what]]
                offsets += self._trimmed(*rows[what])[: lengths[what]]
            else:
                ids.append(self._ids[what])
                offsets.append((0, 0))
            types += [kind] * (len(ids) - len(types))
        tokens = [self._tokens[number] for number in ids]
        return Encoding(np.array(ids, np.int64), tokens, offsets, np.array(types, np.int64))

    def _trimmed(self, ids: list[int], spans: list[Span]) -> list[Span]:
        prefix_space = trimming(self.post_processor)
        if prefix_space is None:
            return spans
        return [
            trimmed(self._tokens[number], span, prefix_space, place == 0)
            for place, (number, span) in enumerate(zip(ids, spans, strict=True))
        ]

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
        return self._padded("encode_batch", rows, to_multiple, length)

    def encode_pairs(
        self, pairs: Iterable[tuple[str, str]], *, max_length: int | None = None, to_multiple: int = 1
    ) -> tuple[Padded, Padded]:
        """The ids of pairs of texts with the template around them, and the types of these tokens; both padded.

        >>> import wonderland as wl
        >>> tokenizer = wl.text.WordPieceTokenizer.train("is it a cat? it is a cat", 40)
        >>> ids, types = tokenizer.encode_pairs([("a cat", "it is"), ("it", "is")])
        >>> tokenizer.decode(ids.values[1], skip_special_tokens=False)
        '[CLS] it [SEP] is [SEP] [PAD] [PAD]'
        >>> types.values
        array([[0, 0, 0, 0, 1, 1, 1],
               [0, 0, 0, 1, 1, 0, 0]])

        The type of a token says to which of the two texts it belongs, see `wl.text.post_processors`.
        """
        rows = []
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise InputError(f"encode_pairs: {shown(pair)} is no pair of texts.", "(first, second)")
            rows.append(self.encode_with_offsets(*pair, add_special_tokens=True, max_length=max_length))
        ids = self._padded("encode_pairs", [row.ids for row in rows], to_multiple, None)
        return ids, PadCollate(0, to_multiple=to_multiple)([row.type_ids for row in rows])

    def _padded(self, name: str, rows: list[Array], to_multiple: int, length: int | None) -> Padded:
        if not rows:
            raise InputError(f"{name}: there are no texts.", "one text or more")
        pad = PadCollate(0 if self.pad_id is None else self.pad_id, to_multiple=to_multiple, length=length)
        batch: Padded = pad(rows)
        if self.pad_id is None and (batch.lengths < batch.values.shape[1]).any():
            raise InputError(
                f"{name}: texts of {batch.lengths.min()} to {batch.lengths.max()} tokens, and no padding token.",
                'special_tokens=["[PAD]"] when the tokenizer is trained, or pad="..." when it is read',
            )
        return batch

    def _parts(self, count: int, add_bos: bool | None, add_eos: bool | None) -> list[Part]:
        """The texts, and the special tokens around them."""
        parts = list(self._template.pair if count == 2 else self._template.single)
        if add_bos is None and add_eos is None:
            return parts
        texts = [place for place, part in enumerate(parts) if isinstance(part.what, int)]
        without = add_bos is False and add_eos is False
        out = [part for part in parts[texts[0] : texts[-1] + 1] if isinstance(part.what, int) or not without]
        for wanted, role, given in ((add_bos, "bos", parts[: texts[0]]), (add_eos, "eos", parts[texts[-1] + 1 :])):
            if wanted:
                if (name := getattr(self.special_tokens, role)) is None:
                    raise InputError(
                        f"encode: add_{role}=True, and there is no {role} token.",
                        f'special_tokens=["[{role.upper()}]"] when it is trained, or {role}="..." when it is read',
                    )
                given = [Part(name)]
            elif wanted is not None:
                given = []
            out = [*given, *out] if role == "bos" else [*out, *given]
        return out

    @staticmethod
    def _room(max_length: int, parts: list[Part]) -> int:
        special = sum(isinstance(part.what, str) for part in parts)
        room = as_int("encode", "max_length", max_length, 1) - special
        if room < 0:
            raise InputError(f"encode: max_length={max_length} for {special} special tokens.", "a larger max_length")
        return room

    # from ids to text

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
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
        if self.decoder is None:
            return " ".join(tokens)
        if has_bytes(self.decoder):  # of which added tokens, which are text, know nothing
            tokens = [spelled(token) if token in self._added else token for token in tokens]
        return "".join(self.decoder(tokens))

    def decode_batch(self, batch: Iterable[Iterable[int]], *, skip_special_tokens: bool = True) -> list[str]:
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

        Models: BPE (byte-level or not), WordPiece, Unigram and WordLevel, with the normalizers, pre-tokenizers,
        post-processors and decoders that live beside them here; anything else raises and is named. Files do not say
        which token begins or ends a sequence: the usual names are recognized, others are given as `bos="..."`, `eos`,
        `pad`, `unk`, `mask`.
        """
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"Tokenizer: cannot read {os.fspath(path)}: {error}.", "a tokenizer.json") from None
        return from_json(Tokenizer, os.fspath(path), text, roles)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> Tokenizer:
        """The tokenizer of a published model: `tokenizer.json`, and the parts that `tokenizer_config.json` names."""
        return cls.from_file(tokenizer_file(folder), **published_roles(folder))

    def to_tokenizers(self) -> Any:
        """The same tokenizer as one of the `tokenizers` library, which is fast where there is much text."""
        return need("to_tokenizers", "tokenizers", "tokenizers").Tokenizer.from_str(self.to_str())
