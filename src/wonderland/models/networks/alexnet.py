"""AlexNet, which won the ImageNet competition of 2012 by ten points and began the present era. Book, section 9.1.

    images (b, 224, 224, 3)
      |  conv 11 x 11, stride 4, pool      (b, 27, 27, 96)
      |  conv 5 x 5, pool                  (b, 13, 13, 256)
      |  conv 3 x 3 three times, pool      (b, 6, 6, 256)
      |  linear 4096, linear 4096, linear 1000
    scores (b, 1000)

The share of images whose class was not among the best five of the winner's guesses (a table of the book's section 9.1):

    2010    28 %       shallow models
    2011    26 %
    2012    15.3 %     this network
    2017   < 5 %       residual networks and their relatives
"""

from __future__ import annotations

from typing import Any

from ...nn.activations.piecewise import ReLU
from ...nn.layers.convolution import Conv2d
from ...nn.layers.dropout import Dropout, own_stream
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LocalResponseNorm
from ...nn.layers.pooling import AdaptiveAvgPool2d, MaxPool2d
from ...nn.module.containers import Layer, Sequential
from ...random.streams import Source
from .image_classifier import ImageClassifier

#: channels of the five convolutions, and in how many groups each works
GROUPED = ((96, 1), (256, 2), (384, 1), (384, 2), (256, 2))
UNGROUPED = ((64, 1), (192, 1), (384, 1), (256, 1), (256, 1))


class AlexNet(ImageClassifier):
    """Five convolutions and three linear layers, with ReLU and dropout: 61 million parameters. Book, section 9.1.

    >>> import wonderland as wl
    >>> abstract = wl.eval_shape(lambda: wl.models.AlexNet())  # without making the numbers
    >>> abstract.num_parameters(), wl.eval_shape(lambda: wl.models.AlexNet(grouped=True)).num_parameters()
    (61100840, 60965224)

    With `grouped` it is the network of the paper: three convolutions in two groups, one for each of the two GPUs that
    it was split over, and local response normalization after the first two. Without, it is the variant for one device.
    The last maps are averaged to 6 x 6 places, so that images of 63 x 63 pixels and more fit; they were 224 x 224.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        in_channels: int = 3,
        grouped: bool = False,
        dropout: float = 0.5,
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        sizes = GROUPED if grouped else UNGROUPED
        settings: list[dict[str, Any]] = [
            {"kernel_size": 11, "stride": 4, "padding": 2},
            {"kernel_size": 5, "padding": 2},
            *[{"kernel_size": 3, "padding": 1}] * 3,
        ]
        layers: list[Layer] = []
        before = in_channels
        for i, ((channels, groups), how) in enumerate(zip(sizes, settings, strict=True)):
            layers += [Conv2d(before, channels, groups=groups, key=stream, **how), ReLU()]
            if grouped and i < 2:
                layers.append(LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=2.0))
            if i in (0, 1, 4):
                layers.append(MaxPool2d(3, stride=2))  # windows overlap
            before = channels
        head = Sequential(
            Dropout(dropout),
            Linear(before * 6 * 6, 4096, key=stream),
            ReLU(),
            Dropout(dropout),
            Linear(4096, 4096, key=stream),
            ReLU(),
            Linear(4096, num_classes, key=stream),
        )
        super().__init__(Sequential(*layers, AdaptiveAvgPool2d(6)), head, pool="flatten")
