"""Models that carry a state along a sequence, and what they are compared with. Book, chapter 13; notes, chapter 5."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import offer as _offer
from .blocks import *
from .comparison import *
from .deep_ar import *
from .echo_state import *
from .mamba import *
from .markov_chain import *
from .rnn_language_model import *
from .rnn_seq2seq import *
from .rwkv import *
from .sequence_models import *

_offer(globals())
