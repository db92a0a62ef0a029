"""The shapes of `benchmarks/convolutions.py`: data without imports, so that every peer reads the same.

A batch of images, sequences or volumes with channels last, and a kernel; each case is measured forward and backward.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Convolution:
    x: tuple[int, ...]  # (batch, *spatial, in)
    out: int
    kernel: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1

    @property
    def weight(self) -> tuple[int, ...]:
        return (*self.kernel, self.x[-1] // self.groups, self.out)


GRID: dict[str, Convolution] = {
    "conv2d_3x3_64": Convolution((16, 32, 32, 64), 64, (3, 3), padding=1),
    "conv2d_3x3_16": Convolution((32, 32, 32, 16), 32, (3, 3), padding=1),
    "conv2d_3x3_256": Convolution((16, 8, 8, 256), 256, (3, 3), padding=1),
    "conv2d_first": Convolution((32, 32, 32, 3), 32, (3, 3), padding=1),
    "conv2d_digits": Convolution((64, 28, 28, 1), 16, (5, 5)),
    "conv2d_5x5": Convolution((16, 32, 32, 32), 32, (5, 5), padding=2),
    "conv2d_stem": Convolution((4, 112, 112, 3), 64, (7, 7), stride=2, padding=3),
    "conv2d_patches": Convolution((16, 32, 32, 3), 96, (4, 4), stride=4),
    "conv2d_strided": Convolution((16, 32, 32, 64), 128, (3, 3), stride=2, padding=1),
    "conv2d_strided_4x4": Convolution((32, 32, 32, 16), 32, (4, 4), stride=2, padding=1),
    "conv2d_1x1": Convolution((16, 16, 16, 128), 256, (1, 1)),
    "conv2d_1x1_few": Convolution((32, 32, 32, 16), 16, (1, 1)),
    "conv2d_1x1_strided": Convolution((16, 32, 32, 64), 128, (1, 1), stride=2),
    "conv2d_dilated": Convolution((16, 32, 32, 32), 32, (3, 3), padding=2, dilation=2),
    "conv2d_dilated_4": Convolution((8, 32, 32, 64), 64, (3, 3), padding=4, dilation=4),
    "conv2d_grouped_2": Convolution((16, 32, 32, 64), 64, (3, 3), padding=1, groups=2),
    "conv2d_grouped_8": Convolution((16, 32, 32, 64), 64, (3, 3), padding=1, groups=8),
    "conv2d_depthwise": Convolution((16, 32, 32, 64), 64, (3, 3), padding=1, groups=64),
    "conv2d_depthwise_7x7": Convolution((16, 16, 16, 96), 96, (7, 7), padding=3, groups=96),
    "conv2d_depthwise_strided": Convolution((16, 32, 32, 64), 64, (3, 3), stride=2, padding=1, groups=64),
    "conv1d_3": Convolution((32, 256, 64), 64, (3,), padding=1),
    "conv1d_wave": Convolution((16, 4096, 1), 16, (64,), stride=4),
    "conv1d_text": Convolution((32, 64, 128), 128, (5,), padding=2),
    "conv1d_dilated": Convolution((16, 1024, 32), 32, (2,), padding=8, dilation=8),
    "conv1d_strided": Convolution((32, 1024, 16), 32, (9,), stride=2, padding=4),
    "conv1d_depthwise": Convolution((16, 512, 64), 64, (7,), padding=3, groups=64),
    "conv3d_3": Convolution((4, 8, 16, 16, 16), 32, (3, 3, 3), padding=1),
    "conv3d_first": Convolution((4, 16, 32, 32, 1), 16, (3, 3, 3), padding=1),
    "conv3d_strided": Convolution((4, 16, 16, 16, 16), 32, (3, 3, 3), stride=2, padding=1),
    "conv3d_factored": Convolution((4, 8, 16, 16, 32), 32, (1, 3, 3)),
    "conv3d_depthwise": Convolution((4, 8, 16, 16, 32), 32, (3, 3, 3), padding=1, groups=32),
}
