"""The models of tokenizers: what makes ids of a piece of text."""

from __future__ import annotations

from .bpe import BPE
from .unigram import Unigram
from .word_level import WordLevel
from .word_piece import WordPiece

Model = BPE | Unigram | WordLevel | WordPiece
