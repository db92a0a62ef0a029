"""LeNet, the first convolutional network in wide use: it read digits. Book, chapter 7.

images (b, 28, 28, 1)
  |  conv 5 x 5, 6 channels, activation       (b, 28, 28, 6)
  |  pool 2 x 2                               (b, 14, 14, 6)
  |  conv 5 x 5, 16 channels, activation      (b, 10, 10, 16)
  |  pool 2 x 2                               (b, 5, 5, 16)
  |  flatten, linear 120, linear 84, linear 10
scores (b, 10)
"""

from __future__ import annotations

from ...core.arguments import shown
from ...core.errors import InputError
from ...core.typing import ShapeLike
from ...nn.layers.convolution import Conv2d
from ...nn.layers.dropout import own_stream
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.linear import Linear
from ...nn.layers.pooling import AvgPool2d, MaxPool2d
from ...nn.module.containers import Sequential
from ...random.streams import Source
from .image_classifier import ImageClassifier, as_image_shape

POOLS = {"max": MaxPool2d, "avg": AvgPool2d}


class LeNet(ImageClassifier):
    r"""Two convolutions with pooling, then three linear layers (LeNet-5). Book, chapter 7.

    >>> import wonderland as wl
    >>> model = wl.models.LeNet()
    >>> model(wl.ones((2, 28, 28, 1))).shape, model.num_parameters()
    ((2, 10), 61706)

    \((25c+1)\,6 + (150+1)\,16 + (16h'w'+1)\,120 + 121\cdot84 + 85m\) parameters. `image_size` is (height, width,
    channels) or (height, width); the first convolution keeps the size of 28 x 28 images, as LeNet-5 had 32 x 32 pixels
    with a margin. `pool` is "max" or "avg", `activation` any name or function: the original had "avg" and "tanh".
    """

    def __init__(
        self,
        num_classes: int = 10,
        image_size: ShapeLike = (28, 28, 1),
        activation: ActivationLike = "relu",
        pool: str = "max",
        key: Source = None,
    ) -> None:
        stream = own_stream(key)
        height, width, channels = as_image_shape("LeNet", image_size, least=4)
        margin = 0 if min(height, width) >= 12 else 4  # small images keep their size in the second convolution, too
        if pool not in POOLS:
            raise InputError(f"LeNet: pool={shown(pool)}.", f"one of {', '.join(map(repr, POOLS))}")
        backbone = Sequential(
            Conv2d(channels, 6, 5, padding=2, key=stream),
            as_activation("LeNet", activation),
            POOLS[pool](2),
            Conv2d(6, 16, 5, padding=margin // 2, key=stream),
            as_activation("LeNet", activation),
            POOLS[pool](2),
        )
        places = ((height // 2 - 4 + margin) // 2) * ((width // 2 - 4 + margin) // 2)
        head = Sequential(
            Linear(16 * places, 120, key=stream),
            as_activation("LeNet", activation),
            Linear(120, 84, key=stream),
            as_activation("LeNet", activation),
            Linear(84, num_classes, key=stream),
        )
        super().__init__(backbone, head, pool="flatten")
