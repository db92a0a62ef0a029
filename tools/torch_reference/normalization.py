"""Normalization of activations and of weights.

Left out: `num_batches_tracked` of InstanceNorm, which PyTorch never counts, so that its momentum=None does not average.
"""

from __future__ import annotations

from typing import Any

from .cases import Case

VECTORS, SEQUENCES, IMAGES, VOLUMES = (5, 4), (3, 2, 4), (2, 3, 1, 4), (2, 1, 2, 2, 4)


def running(name: str, shape: tuple[int, ...], **settings: Any) -> Case:
    """A layer of four channels with statistics of its own: two batches in training, then one in evaluation."""
    return Case(name, (shape,), (4,), settings, modes="tte", channels_first=True)


CASES = [
    running("BatchNorm1d", VECTORS),
    running("BatchNorm1d", SEQUENCES, eps=0.1, momentum=None),
    running("BatchNorm2d", IMAGES, momentum=0.3),
    running("BatchNorm2d", IMAGES, track_running_stats=False),
    running("BatchNorm3d", VOLUMES, affine=False),
    running("InstanceNorm1d", SEQUENCES, affine=True),
    running("InstanceNorm2d", IMAGES, track_running_stats=True, momentum=0.3),
    running("InstanceNorm3d", VOLUMES, affine=True, track_running_stats=True),
    Case("GroupNorm", (VECTORS,), (2, 4), channels_first=True),
    Case("GroupNorm", (IMAGES,), (4, 4), {"eps": 0.1}, channels_first=True),
    Case("GroupNorm", (IMAGES,), (1, 4), {"affine": False}, channels_first=True),
    Case("LocalResponseNorm", (IMAGES,), (3,), {"alpha": 0.5, "beta": 0.6, "k": 2.0}, channels_first=True),
    Case("LocalResponseNorm", (SEQUENCES,), (4,), {"alpha": 0.5}, channels_first=True),
    Case("LayerNorm", (IMAGES,), (4,)),
    Case("LayerNorm", (IMAGES,), ([1, 4],), {"eps": 0.1, "bias": False}),
    Case("LayerNorm", (VECTORS,), (4,), {"elementwise_affine": False}),
    Case("RMSNorm", (SEQUENCES,), (4,)),
    Case("RMSNorm", (SEQUENCES,), ([2, 4],), {"eps": 1e-3}),
    Case("Linear", (VECTORS,), (4, 3), wrapped_by="weight_norm"),
    Case("Conv1d", (SEQUENCES,), (4, 2, 2), wrapped_by="weight_norm", channels_first=True),
    Case("Linear", (VECTORS,), (4, 3), modes="tte", wrapped_by="spectral_norm"),
    Case("Conv1d", (SEQUENCES,), (4, 2, 2), modes="te", wrapped_by="spectral_norm", channels_first=True),
]
