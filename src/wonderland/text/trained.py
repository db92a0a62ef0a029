"""The tokenizers that are trained here: characters, words, bytes, byte pairs, WordPiece. Book, section 8.2.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.arguments import as_int
from ..core.errors import InputError
from ..data.encoding import Vocabulary
from . import decoders
from .bpe import BPE
from .bpe_training import train_bpe
from .byte_characters import CHARACTERS
from .normalizers import BertNormalizer, Lowercase, Normalizer, Replace, chosen
from .post_processors import BertProcessing
from .pre_tokenizers import BertPreTokenizer, ByteLevel, Digits, Piece, PreTokenizer, PreTokenizers, Split, Whitespace
from .special_tokens import SpecialTokens
from .tokenizer import Tokenizer
from .word_level import WordLevel
from .word_piece import WordPiece

Specials = Mapping[str, str] | Iterable[Any]
Texts = str | Iterable[str]
PREFIX = "##"  # of tokens inside of words


class CharTokenizer(Tokenizer):
    """Every character is a token.

    >>> tokenizer = CharTokenizer.train("hello", special_tokens=["[PAD]", "[UNK]"])
    >>> tokenizer.vocab_size, tokenizer.encode("hole!")
    (6, array([3, 5, 4, 2, 1]))
    >>> tokenizer.decode([3, 2, 4, 4, 5])
    'hello'

    Special tokens come first, then the characters of the texts in the order of their codes. A character that did not
    come in training is "[UNK]", or an error if there is no such token. Book, section 8.2.2.
    """

    @classmethod
    def train(
        cls, texts: Texts, *, special_tokens: Specials = (), lowercase: bool = False, strip_punctuation: bool = False
    ) -> CharTokenizer:
        """The tokenizer for the characters of some texts."""
        special = SpecialTokens.named(special_tokens)
        normalizer = _normalizer(lowercase, strip_punctuation)
        seen: set[str] = set()
        for text in _texts("CharTokenizer", texts):
            seen.update(text if normalizer is None else normalizer(text))
        characters = sorted(seen)
        _check_conflicts("CharTokenizer", special, characters)
        vocab = {token: place for place, token in enumerate([*special.contents, *characters])}
        return cls(BPE(vocab, unk=special.unk), normalizer=normalizer, decoder="Fuse", special_tokens=special)


class WordTokenizer(Tokenizer):
    """Every word is a token, and so is every group of other signs.

    >>> tokenizer = WordTokenizer.train("the cat is on the table", special_tokens=["[UNK]"])
    >>> tokenizer.vocabulary.tokens
    ['[UNK]', 'the', 'cat', 'is', 'on', 'table']
    >>> tokenizer.decode(tokenizer.encode("the table is on the dog"), skip_special_tokens=False)
    'the table is on the [UNK]'

    The `vocab_size` most frequent tokens (special ones included) that come at least `min_frequency` times are kept,
    ties in the order of their names; all others are "[UNK]", or an error if there is no such token. `decode` puts a
    space between words. With `keep_spaces` white space is a token too, and `decode` gives the text back as it was.
    `pattern` is a regular expression of your own that matches tokens. Book, section 8.2.2.
    """

    @classmethod
    def train(
        cls,
        texts: Texts,
        vocab_size: int | None = None,
        *,
        special_tokens: Specials = (),
        min_frequency: int = 1,
        lowercase: bool = False,
        strip_punctuation: bool = False,
        keep_spaces: bool = False,
        pattern: str | None = None,
    ) -> WordTokenizer:
        """The tokenizer for the words of some texts."""
        special = SpecialTokens.named(special_tokens)
        normalizer = _normalizer(lowercase, strip_punctuation)
        cut: PreTokenizer = Whitespace()
        if keep_spaces or pattern is not None:
            cut = Split(
                r"\w+|[^\w\s]+|\s+" if pattern is None else pattern,
                "Isolated" if keep_spaces else "Removed",
                invert=not keep_spaces,
            )
        counts = _counts("WordTokenizer", texts, normalizer, cut)
        if vocab_size is not None and as_int("WordTokenizer", "vocab_size", vocab_size) <= len(special.contents):
            raise InputError(
                f"WordTokenizer: vocab_size={vocab_size} has no room beside {len(special.contents)} special tokens.",
                "a larger vocab_size",
            )
        _check_conflicts("WordTokenizer", special, counts)
        known = Vocabulary.build(
            [counts.elements()], specials=special.contents, min_count=min_frequency, max_size=vocab_size
        )
        model = WordLevel(known.ids, unk=special.unk)
        decoder = "Fuse" if keep_spaces else None
        return cls(model, normalizer=normalizer, pre_tokenizer=cut, decoder=decoder, special_tokens=special)


class ByteTokenizer(Tokenizer):
    """Every byte of the UTF-8 text is a token, whose id is the byte; special tokens are 256 and more.

    >>> tokenizer = ByteTokenizer(special_tokens=["[BOS]"])
    >>> tokenizer.encode("né", add_bos=True)
    array([256, 110, 195, 169])
    >>> tokenizer.vocab_size
    257

    There is nothing to train and nothing unknown. Book, section 8.2.2.
    """

    def __init__(self, special_tokens: Specials = ()) -> None:
        special = SpecialTokens.named(special_tokens)
        _check_conflicts("ByteTokenizer", special, CHARACTERS)
        model = BPE({character: byte for byte, character in enumerate(CHARACTERS)})
        super().__init__(model, pre_tokenizer=ByteLevel(use_regex=False), decoder="ByteLevel", special_tokens=special)


class BPETokenizer(Tokenizer):
    """Byte-level byte-pair encoding: bytes, and tokens for the sequences of bytes that are most frequent.

    >>> tokenizer = BPETokenizer.train("aaabdaaabac", vocab_size=259)
    >>> tokenizer.tokenize("aaabdaaabac")
    ['aaab', 'd', 'aaab', 'a', 'c']
    >>> tokenizer.decode(tokenizer.encode("¡Olé! \\N{CAT FACE}"))
    '¡Olé! 🐱'

    Texts are cut into words by GPT-2's pattern, or by `pattern`; merges stay inside words. With `split_digits` every
    digit is a token of its own. `vocab_size` counts the 256 bytes, the special tokens and the merges; there are fewer
    merges if no pair is left that comes `min_frequency` times. Merges and ids are those of the `tokenizers` library.
    Every text can be encoded, and `decode` gives it back. Book, section 8.2.2.
    """

    @classmethod
    def train(
        cls,
        texts: Texts,
        vocab_size: int,
        *,
        special_tokens: Specials = (),
        min_frequency: int = 0,
        pattern: str | None = None,
        split_digits: bool = False,
        lowercase: bool = False,
    ) -> BPETokenizer:
        """The tokenizer for the frequent parts of some texts."""
        special = SpecialTokens.named(special_tokens)
        _check_conflicts("BPETokenizer", special, CHARACTERS)
        normalizer = _normalizer(lowercase, False)
        parts: list[PreTokenizer] = [] if pattern is None else [Split(pattern, "Isolated")]
        parts += [Digits(True)] * split_digits
        parts.append(ByteLevel(use_regex=pattern is None))
        cut = parts[0] if len(parts) == 1 else PreTokenizers(tuple(parts))
        least = 256 + len(special.contents)
        if as_int("BPETokenizer", "vocab_size", vocab_size) < least:
            raise InputError(
                f"BPETokenizer: vocab_size={vocab_size} for 256 bytes and {len(special.contents)} special tokens.",
                f"{least} or more",
            )
        counts = _counts("BPETokenizer", texts, normalizer, cut)
        vocab, merges = train_bpe(counts, vocab_size, CHARACTERS, special.contents, min_frequency)
        model = BPE(vocab, merges)
        return cls(model, normalizer=normalizer, pre_tokenizer=cut, decoder="ByteLevel", special_tokens=special)


class WordPieceTokenizer(Tokenizer):
    """BERT's tokenizer: words without accents in small letters, cut into the longest known parts.

    >>> tokenizer = WordPieceTokenizer.train("the rabbit, the rabbits, the habits", vocab_size=30)
    >>> tokenizer.tokenize("The rabbit habits")
    ['the', 'rabbit', 'hab', '##its']
    >>> tokenizer.decode(tokenizer.encode("The rabbits!"), skip_special_tokens=False)
    '[CLS] the rabbits [UNK] [SEP]'

    The parts are learned like those of byte-pair encoding: the pair of neighbours that comes most often becomes one
    token, until there are `vocab_size`, special ones included. Parts inside of words are written with `##`. A text has
    [CLS] before and [SEP] after it, two texts have one more [SEP] between them; the special tokens need not be these,
    as long as they are named as the parts bos (or [CLS]), eos ([SEP]), unk. Book, section 8.2.2.
    """

    @classmethod
    def train(
        cls,
        texts: Texts,
        vocab_size: int,
        *,
        special_tokens: Specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        min_frequency: int = 0,
        lowercase: bool = True,
        strip_accents: bool | None = None,
    ) -> WordPieceTokenizer:
        """The tokenizer for the frequent parts of some texts' words."""
        special = SpecialTokens.named(special_tokens)
        normalizer = BertNormalizer(strip_accents=strip_accents, lowercase=lowercase)
        cut = BertPreTokenizer()
        counts = _counts("WordPieceTokenizer", texts, normalizer, cut)
        _check_conflicts("WordPieceTokenizer", special, {c for piece in counts for c in piece})
        size = as_int("WordPieceTokenizer", "vocab_size", vocab_size)
        vocab, _ = train_bpe(counts, size, (), special.contents, min_frequency, PREFIX)
        if size < len(vocab):
            raise InputError(
                f"WordPieceTokenizer: vocab_size={size} for {len(vocab)} special tokens and characters of the texts.",
                f"{len(vocab)} or more",
            )
        around = None if special.bos is None or special.eos is None else BertProcessing(special.eos, special.bos)
        return cls(
            WordPiece(vocab, special.unk, PREFIX),
            normalizer=normalizer,
            pre_tokenizer=cut,
            decoder=decoders.WordPiece(PREFIX),
            special_tokens=special,
            post_processor=around,
        )


def _texts(name: str, texts: Texts) -> Iterable[str]:
    """One text or several."""
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, Iterable):
        raise InputError(f"{name}: a {type(texts).__name__} is no text to train on.", "a str, or a list of them")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{name}: text {number} is a {type(text).__name__}.", "a str")
        yield text


def _counts(name: str, texts: Texts, normalizer: Normalizer | None, cut: PreTokenizer) -> Counter[str]:
    """How often each piece of the texts comes."""
    counts: Counter[str] = Counter()
    for text in _texts(name, texts):
        normalized = text if normalizer is None else normalizer(text)
        counts.update(piece.text for piece in cut([Piece.of(normalized)]))
    return counts


def _normalizer(lowercase: bool, strip_punctuation: bool) -> Normalizer | None:
    parts: list[Normalizer] = [Lowercase()] * lowercase + [Replace(r"\p{P}", "")] * strip_punctuation
    return chosen(parts)


def _check_conflicts(name: str, special: SpecialTokens, tokens: Iterable[str]) -> None:
    for content in set(special.contents).intersection(tokens):
        raise InputError(f"{name}: the special token {content!r} is also a token of the text.", "another special token")
