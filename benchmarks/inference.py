"""Forward passes of whole models, with the parameters of a trained one: ONNX Runtime is a peer here, too.

| name | model | input |
|---|---|---|
| resnet18_1, resnet18_16 | ResNet-18 | 1 and 16 images of 224 x 224 |
| convnext_1, convnext_16 | ConvNeXt-T | 1 and 16 images of 224 x 224 |
| vit_1 | ViT-S/16: 12 blocks of width 384, 6 heads | an image of 224 x 224 |
| bert_1 | 12 blocks of width 768, 12 heads, normalized after each sum | 128 tokens |
| gpt2_1 | 12 blocks of width 768, 12 heads, causal; logits of 50257 tokens | 128 tokens |

Ours is `wl.jit` of the module: what depends on parameters alone is kept from call to call. Images are channels last
here and in JAX; PyTorch gets both layouts and the faster one counts; ONNX Runtime gets what `torch.onnx` exports.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import wonderland as wl

from . import steps
from .options import Options
from .workloads import Step

SIDE, TOKENS = 224, 128


def answering(model: Any, x: wl.Tensor) -> Step:
    @wl.jit
    def answer(model: Any, x: wl.Tensor) -> wl.Tensor:
        return model(x)

    with wl.no_grad():
        answer(model, x)
    return functools.partial(wl.no_grad()(answer), model, x)


def images(batch: int) -> wl.Tensor:
    return wl.random.normal((batch, SIDE, SIDE, 3))


def resnet18(batch: int) -> Step:
    return answering(wl.models.resnet18().eval(), images(batch))


def convnext(batch: int) -> Step:
    return answering(wl.models.convnext_tiny().eval(), images(batch))


def vit(batch: int) -> Step:
    return answering(wl.models.ViT(1000, (SIDE, SIDE, 3), 16, 384, 6, 12).eval(), images(batch))


def bert(batch: int) -> Step:
    model = wl.models.BERT(30522, pooler=False).eval()
    return answering(model, wl.random.randint((batch, TOKENS), 0, model.vocabulary))


def gpt2(batch: int) -> Step:
    model = wl.models.GPT(50257).eval()
    return answering(model, wl.random.randint((batch, TOKENS), 0, model.vocabulary))


BATCHES = ((resnet18, 1), (resnet18, 16), (convnext, 1), (convnext, 16), (vit, 1), (bert, 1), (gpt2, 1))
INFERENCE: dict[str, Callable[..., Step]] = {f"{f.__name__}_{n}": functools.partial(f, n) for f, n in BATCHES}


def main(options: Options | None = None) -> None:
    steps.main(options, INFERENCE, measures=1, onnx=True)


if __name__ == "__main__":
    main()
