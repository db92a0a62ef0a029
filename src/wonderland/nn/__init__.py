"""What models are made of: modules with parameters, and their containers. A file per family."""

# ruff: noqa: F403, I001 - every file has an exact `__all__`, and they are grouped by meaning

from ..core.naming import offer as _offer
from ..core.context import structure_version as structure_version
from . import functional as functional, init as init
from .analysis import diagnostics as diagnostics, regions as regions

# modules, what is in them, and what is done with them
from .module.module import *
from .module.parameter import *
from .module.lazy import *
from .module.containers import *
from .module.hooks import *
from .module.functional_call import *
from .module.freezing import *
from .analysis.summary import *
from .adaptation.surgery import *

# linear layers
from .layers.linear import *
from .layers.bilinear import *
from .layers.fully_connected import *
from .adaptation.fusing import *
from .layers.quantized import *
from .adaptation.quantization import *

# convolutions, pooling, and the sizes of images
from .layers.padding import *
from .layers.convolution import *
from .layers.separable import *
from .layers.masked_convolution import *
from .layers.locally_connected import *
from .layers.long_convolution import *
from .layers.conv_block import *
from .layers.patches import *
from .layers.patch_embedding import *
from .layers.audio_tokenizer import *
from .layers.upsampling import *
from .layers.pooling import *
from .layers.global_pooling import *
from .analysis.convolution_matrix import *
from .layers.layer_sizes import *
from .analysis.receptive_field import *
from .analysis.symmetry import *
from .layers.reshaping import *

# activation functions, fixed, trained and gated
from .layers.identity import *
from .activations.activations import *
from .activations.piecewise import *
from .activations.trainable_activations import *
from .activations.bases import *
from .layers.gated import *
from .layers.kolmogorov_arnold import *

# normalization, noise, and ways around layers
from .layers.normalization import *
from .layers.standardize import *
from .layers.piecewise_linear import *
from .adaptation.batch_norm_inference import *
from .layers.dropout import *
from .layers.noise import *
from .module.modes import *
from .layers.residual import *

# mixers of tokens and channels, and blocks of them
from .mixing.feed_forward import *
from .mixing.token_mixers import *
from .mixing.token_shift import *
from .mixing.mixing_block import *
from .mixing.gated_mixers import *
from .mixing.monet import *
from .mixing.sets import *
from .mixing.continuous_convolution import *

# tables of vectors, many classes, sequences
from .layers.embedding import *
from .layers.embedding_bag import *
from .layers.class_trees import *
from .layers.hierarchical_softmax import *
from .layers.sampled_softmax import *
from .recurrent.layers import *

# cells, and what runs them along sequences
from .recurrent.cell import *
from .recurrent.cells import *
from .recurrent.elman import *
from .recurrent.light_gru import *
from .recurrent.gates import *
from .recurrent.recurrent import *
from .recurrent.bidirectional import *

# attention, positions, and what is kept of the tokens that were read
from .sequences.cache import *
from .sequences.reading import *
from .sequences.state_layer import *
from .sequences.stack import *
from .sequences.pieces import *
from .attention.absolute_positions import *
from .attention.relative_positions import *
from .attention.grid_positions import *
from .attention.rotary import *
from .attention.multi_head import *
from .attention.blocks import *
from .attention.parallel import *
from .attention.single_head import *
from .attention.memory import *
from .attention.latents import *
from .attention.torch_attention import *
from .attention.torch_transformers import *
from .linear_attention.feature_maps import *
from .linear_attention.linear_attention import *
from .linear_attention.attention_free import *
from .linear_attention.rwkv import *

# state-space models
from .state_space.discretization import *
from .state_space.diagonalization import *
from .state_space.scan_operator import *
from .state_space.scan_trace import *
from .state_space.hippo import *
from .state_space.modes import *
from .state_space.linear_ssm import *
from .state_space.diagonal import *
from .state_space.lru import *
from .state_space.s5 import *
from .state_space.s4 import *
from .state_space.ssm_block import *
from .state_space.causal_conv import *
from .state_space.selective_scan import *
from .state_space.selective import *
from .state_space.mamba import *
from .state_space.ssd import *
from .state_space.mamba2 import *
from .state_space.time_invariance import *
from .analysis.complexity import *
from .analysis.residual_stream import *
from .analysis.position_probe import *
from .analysis.sequences import *
from .analysis.through_time import *
from .layers.extra_tokens import *
from .layers.token_pooling import *

# layers that solve equations
from .implicit.solvers import *
from .implicit.fixed_point import *
from .implicit.graph_diffusion import *

# graphs
from .graphs.shift import *
from .graphs.layer import *
from .graphs.convolution import *
from .graphs.polynomial import *
from .graphs.spectral import *
from .graphs.message_passing import *
from .graphs.attention import *
from .graphs.gat import *
from .graphs.sage import *
from .graphs.isomorphism import *
from .graphs.edges import *
from .graphs.spatio_temporal import *
from .graphs.graph_network import *
from .graphs.gated import *
from .graphs.recurrent import *
from .graphs.trainable_shift import *
from .graphs.normalization import *
from .graphs.readout import *
from .graphs.pooling import *
from .graphs.encodings import *
from .graphs.transformer import *
from .graphs.checks import *

# losses
from .losses.regression import *
from .losses.classification import *
from .losses.likelihood import *
from .losses.margins import *
from .losses.metric import *
from .losses.alignment import *

# weights that are computed, adapted, pruned or kept, and what may be wrong with a model
from .module.reparameterization import *
from .adaptation.weight_normalization import *
from .adaptation.adapters import *
from .adaptation.fine_tuning import *
from .adaptation.pruning import *
from .analysis.linting import *

_offer(globals(), also=["functional", "init", "diagnostics", "regions"])
