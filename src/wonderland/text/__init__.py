"""Text as numbers: tokenizers of characters, words, bytes and subwords, trained here or read from a file.

    tokenizer = wl.text.BPETokenizer.train(text, vocab_size=1000, special_tokens=["[PAD]", "[EOS]"])
    ids = tokenizer.encode("Down the rabbit-hole")            # int64 (n,)
    batch = tokenizer.encode_batch(["one", "two three"])      # batch.values, batch.lengths, batch.mask
    tokenizer.decode(ids)
    tokenizer.save("tokenizer.json")                          # the `tokenizers` library reads it, and we read its files

`wl.data.NextTokenDataset` cuts ids into examples, `wl.nn.Embedding(tokenizer.vocab_size, features)` makes vectors of
them, and `wl.generation` writes text. Book, section 8.2.2.
"""

from . import decoders, normalizers, post_processors, pre_tokenizers
from .bpe import BPE
from .bpe_training import train_bpe
from .charsmap import Precompiled
from .ranks import from_ranks
from .special_tokens import AddedToken, SpecialTokens
from .tokenizer import Encoding, Tokenizer
from .trained import BPETokenizer, ByteTokenizer, CharTokenizer, WordPieceTokenizer, WordTokenizer
from .unigram import Unigram
from .word_level import WordLevel
from .word_piece import WordPiece

# fmt: off
__all__ = [
    "BPE", "AddedToken", "BPETokenizer", "ByteTokenizer", "CharTokenizer", "Encoding", "Precompiled", "SpecialTokens",
    "Tokenizer", "Unigram", "WordLevel", "WordPiece", "WordPieceTokenizer", "WordTokenizer", "decoders", "from_ranks",
    "normalizers", "post_processors", "pre_tokenizers", "train_bpe",
]
