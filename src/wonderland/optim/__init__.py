"""How parameters move: an optimizer turns gradients into new values. A file per family."""

# ruff: noqa: F403, F405 - minimization/ has an exact `__all__`

from ..core.naming import hints_for as _hints_for
from . import schedules
from .accumulation import Accumulator, accumulate
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adam_relatives import Adamax, NAdam, RAdam
from .asgd import ASGD
from .averaging import EMA, SWA
from .clipping import (
    adaptive_clip,
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value,
    clip_grad_value_,
    global_norm,
)
from .lamb import LAMB
from .lion import Lion
from .loss_scaling import GradScaler
from .minimization import *
from .momentum import HeavyBall, Nesterov
from .muon import Muon, orthogonalize
from .noise import gradient_variance, per_example_gradients
from .optimizer import Group, Optimizer
from .plateau import Plateau
from .proximal import (
    apply_proximal,
    group_soft_threshold,
    project_l1_ball,
    project_l2_ball,
    project_simplex,
    soft_threshold,
)
from .regularizers import elastic_net, gaussian_prior, group_lasso, l1, l2, laplace_prior, map_objective
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .weight_decay import convert_weight_decay, decay_groups

# fmt: off
__all__ = [
    "Optimizer", "Group",
    # rules
    "SGD", "HeavyBall", "Nesterov", "Adagrad", "Adadelta", "RMSprop", "Adam", "AdamW", "NAdam", "RAdam", "Adamax",
    "Lion", "Muon", "orthogonalize", "Adafactor", "LAMB", "Rprop", "ASGD",
    # schedules
    "schedules", "Plateau",
    # weight decay
    "decay_groups", "convert_weight_decay",
    # gradients on their way to the step
    "global_norm", "clip_grad_norm", "clip_grad_norm_", "clip_grad_value", "clip_grad_value_", "adaptive_clip",
    "accumulate", "Accumulator", "per_example_gradients", "gradient_variance", "GradScaler",
    # averages of weights
    "EMA", "SWA",
    # penalties and constraints
    "l1", "l2", "elastic_net", "group_lasso", "gaussian_prior", "laplace_prior", "map_objective", "soft_threshold",
    "group_soft_threshold", "project_l1_ball", "project_l2_ball", "project_simplex", "apply_proximal",
    # minima of functions
    "minimize", "Minimum", "multistart", "gradient_descent", "LBFGS", "line_search", "is_descent_direction",
    "steepest_direction", "classify_stationary", "check_local_min", "convexity_counterexample", "is_convex_sampled",
]

_hints_for(globals())
