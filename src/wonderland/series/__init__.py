"""Time series, `wl.series`: windows, datasets and baselines for forecasting, causal losses, teacher forcing.

Series are (..., time, channels). Book, sections 8.1.1 and 8.3.
"""

from . import sampling_schedules
from .augmenting import Jitter, RandomGain, RandomTimeMask, augmentation
from .baselines import drift, historical_mean, naive, seasonal_naive
from .forecasting import ForecastDataset, forecast_split
from .generated import make_ar, make_lorenz, make_narma, make_random_walk, make_seasonal, make_sines
from .losses import sequence_loss, shift_targets
from .multi_step import causal_rollout, direct_forecast, rollout
from .normalization import Normalized, difference, integrate, normalize
from .teacher_forcing import next_tokens, scheduled_sampling, shift_right, unroll
from .windows import make_windows, sliding_windows

# fmt: off
__all__ = [
    "ForecastDataset", "Jitter", "Normalized", "RandomGain", "RandomTimeMask", "augmentation", "causal_rollout",
    "difference", "direct_forecast", "drift", "forecast_split", "historical_mean", "integrate", "make_ar",
    "make_lorenz", "make_narma", "make_random_walk", "make_seasonal", "make_sines", "make_windows", "naive",
    "next_tokens", "normalize", "rollout", "sampling_schedules", "scheduled_sampling", "seasonal_naive",
    "sequence_loss", "shift_right", "shift_targets", "sliding_windows", "unroll",
]
