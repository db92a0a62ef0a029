"""What layers of sequences cost over the length: to train, for one more token, and in memory. Book, chapter 13.

    python examples/compare_layers.py                    # four layers, short sequences
    python examples/compare_layers.py all                # all of them, up to 2,048 tokens
    python examples/compare_layers.py all picture.svg    # and a picture of the seconds of a training pass

Attention costs n squared to train and n for one more token, and keeps n tokens; layers with a state cost n to train and
the same for one more token after however many, and keep the same. What is counted says so exactly; seconds show where
the curves cross on this machine.
"""

from __future__ import annotations

import sys

import wonderland as wl


def main(layers: list[str] | None, lengths: list[int], features: int, picture: str | None = None) -> None:
    """Print the table, and how the costs grow from the second largest length to the largest."""
    found = wl.models.compare_layers(layers, lengths, features=features)
    print(found)
    print("\ngrowth as a power of n:")
    for layer in found.layers():
        orders = [f"{found.order(layer, what):.2f}" for what in ("train_work", "step_work", "state_bytes")]
        print(f"{layer:>17s}  training {orders[0]}, one more token {orders[1]}, memory {orders[2]}")
    if picture is not None:
        with open(picture, "w", encoding="utf-8") as file:
            file.write(found.picture("train_seconds"))
        print("picture:", picture)


if __name__ == "__main__":
    if sys.argv[1:2] == ["all"]:
        main(None, [256, 512, 1024, 2048], 64, *sys.argv[2:3])
    else:
        main(["attention", "linear attention", "RNN", "convolution"], [64, 128], 8)
