"""What layers compute, as functions of all their arguments. A file per family."""

# ruff: noqa: F403 - every file has an exact `__all__`

from ...core.naming import hints_for as _hints_for
from .activations import *
from .affine import *
from .attention import *
from .attention_masks import *
from .attention_weights import *
from .convolution import *
from .feature_maps import *
from .fft_convolution import *
from .filters import *
from .gating import *
from .global_pooling import *
from .grids import *
from .layouts import *
from .linear_attention import *
from .linear_recurrence import *
from .lookup import *
from .losses import *
from .masking import *
from .negative_sampling import *
from .noise import *
from .normalization import *
from .online_attention import *
from .patch_tokens import *
from .patches import *
from .piecewise import *
from .pooling import *
from .signals import *
from .upsampling import *
from .wkv import *

_hints_for(globals())
