"""`python -m benchmarks.peers.onnx_step vit_1`: as `benchmarks.step`, in ONNX Runtime, exported by `torch.onnx`."""

from __future__ import annotations

import functools
import tempfile
from typing import Any

import onnxruntime
import torch

from ..measuring import Step, arguments, figures, line, threads
from .torch_inference import EXAMPLES


def answering(name: str) -> Step:
    model, x = EXAMPLES[name]()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads()
    with tempfile.TemporaryDirectory() as folder:
        torch.onnx.export(model.eval(), (x,), f"{folder}/model.onnx", dynamo=True, verbose=False)
        session: Any = onnxruntime.InferenceSession(f"{folder}/model.onnx", settings)
    return functools.partial(session.run, None, {session.get_inputs()[0].name: x.numpy()})


def main() -> None:
    options = arguments("benchmarks.peers.onnx_step", EXAMPLES).parse_args()
    for name in options.workloads:
        found, _ = figures(functools.partial(answering, name), options.seconds)
        line(name, "onnxruntime", found)


if __name__ == "__main__":
    main()
