"""Transformers: models whose tokens attend to each other. Each file reads from top to bottom. Book, chapters 10, 11."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import offer as _offer
from .bert import *
from .encoder import *
from .encoder_decoder import *
from .gpt import *
from .image_gpt import *
from .language_model import *
from .llama import *
from .multimodal import *
from .multiview import *
from .seq2seq import *
from .t5 import *
from .vit import *
from .wav2vec import *
from .whisper import *

_offer(globals())
