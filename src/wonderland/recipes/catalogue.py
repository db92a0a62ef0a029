"""The models that `wonderland train` knows by name: a table."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import nn
from ..core.errors import InputError, ShapeError
from ..models import (
    CNN,
    MLP,
    VGG,
    AlexNet,
    CausalConvNet,
    ConvAutoencoder,
    ConvClassifier1d,
    ConvClassifier3d,
    ConvNeXt,
    LeNet,
    MLPMixer,
    NeuralODE,
    ODEFunc,
    UNet,
    ViT,
    small_resnet,
)
from .entries import ModelEntry, Usual, more_passes
from .graph_inputs import is_graph_set
from .graph_models import GRAPH_MODELS, GRAPH_TASKS
from .inputs import Options
from .recurrent_models import gru, lru, lstm, mamba, rwkv
from .sound_models import sound
from .table_models import USUAL, by_size, tabular
from .tasks.forecasting import SERIES
from .text_models import bert, gpt, llama, seq2seq, text_cnn, wavenet


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Scores that are linear in the inputs: softmax regression, or least squares. Book, chapter 4."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), outputs))


def mlp(
    shape: tuple[int, ...],
    outputs: int,
    hidden: int | Sequence[int] = (256, 128),
    activation: str = "relu",
    norm: str | None = "batch",
    dropout: float = 0.2,
) -> nn.Module:
    """Fully-connected layers. Book, chapter 5."""
    widths = [hidden] if isinstance(hidden, int) else list(hidden)
    layers = MLP(math.prod(shape), widths, outputs, activation=activation, norm=norm or None, dropout=dropout)
    return nn.Sequential(nn.Flatten(), layers)


def cnn(shape: tuple[int, ...], outputs: int, channels: Sequence[int] = (32, 64), dropout: float = 0.3) -> nn.Module:
    """Two convolutions and a pooling for each number of channels, then a linear layer. Book, chapter 7."""
    c = _channels("cnn", shape)
    return CNN(outputs, c, channels, norm="batch", dropout=dropout, pool="flatten", image_size=shape)


def lenet(shape: tuple[int, ...], outputs: int, activation: str = "relu", pool: str = "max") -> nn.Module:
    """Two convolutions with pooling and three linear layers. Book, chapter 7."""
    _channels("lenet", shape)
    return LeNet(outputs, shape, activation, pool)


def alexnet(shape: tuple[int, ...], outputs: int, grouped: bool = False, dropout: float = 0.5) -> nn.Module:
    """Five convolutions and three linear layers, for images of 64 pixels and more. Book, section 9.1."""
    return AlexNet(outputs, _channels("alexnet", shape, least=63), grouped, dropout)


def vgg(
    shape: tuple[int, ...],
    outputs: int,
    convs: Sequence[int] = (2, 2, 2),
    channels: int = 16,
    norm: str | None = "batch",
    hidden: Sequence[int] = (64,),
    dropout: float = 0.3,
) -> nn.Module:
    """Blocks of 3 x 3 convolutions whose channels double. Book, section 7.2.1."""
    c = _channels("vgg", shape, least=2 ** len(convs))
    return VGG(convs, channels, outputs, c, norm or None, hidden, None, dropout)


def resnet(
    shape: tuple[int, ...],
    outputs: int,
    channels: Sequence[int] = (16, 32, 64),
    depth: int = 1,
    block: str = "basic",
    dropout: float = 0.0,
) -> nn.Module:
    """Stages of residual blocks, `depth` in each. Book, section 9.4.1."""
    c = _channels("resnet", shape)
    stem = "half" if min(shape[:2]) >= 16 else "small"
    return small_resnet(outputs, c, channels, depth, block=block, stem=stem, dropout=dropout)


def convnext(
    shape: tuple[int, ...],
    outputs: int,
    channels: Sequence[int] = (32, 64),
    depth: int = 2,
    patch: int = 2,
    kernel_size: int = 5,
    drop_path: float = 0.1,
) -> nn.Module:
    """Depthwise convolutions and linear layers around which the input is added. Book, section 9.4.1."""
    c = _channels("convnext", shape, least=patch * 2 ** (len(channels) - 1))
    settings: dict[str, Any] = {"patch": patch, "kernel_size": kernel_size, "drop_path": drop_path, "layer_scale": None}
    return ConvNeXt((depth,) * len(channels), channels, outputs, c, **settings)


def mixer(
    shape: tuple[int, ...],
    outputs: int,
    e: int = 64,
    depth: int = 4,
    patch: int = 0,
    token_hidden: int = 32,
    channel_hidden: int = 128,
    dropout: float = 0.1,
) -> nn.Module:
    """MLPs along patches and along channels; `patch=0` is 2 pixels, from 16 pixels a side on 4. Book, section 11.3."""
    _channels("mixer", shape)
    side = patch or (4 if min(shape[:2]) >= 16 else 2)
    return MLPMixer(outputs, shape, side, e, depth, token_hidden, channel_hidden, dropout)


def vit(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 64,
    depth: int = 4,
    num_heads: int = 4,
    patch: int = 0,
    positions: str | None = "learned",
    pooling: str = "mean",
    registers: int = 0,
    dropout: float = 0.0,
) -> nn.Module:
    """Attention between patches; `patch=0` is 2 pixels, from 16 pixels a side on 4. Book, section 11.2.4."""
    _channels("vit", shape)
    side = patch or (4 if min(shape[:2]) >= 16 else 2)
    settings: dict[str, Any] = {"pooling": pooling, "registers": registers, "dropout": dropout}
    return ViT(outputs, shape, side, embed_dim, num_heads, depth, positions=positions or None, **settings)


def conv1d(
    shape: tuple[int, ...], outputs: int, channels: Sequence[int] = (32, 64), kernel_size: int = 5, dropout: float = 0.1
) -> nn.Module:
    """Convolutions and poolings over time, for sequences. Book, section 8.1.2."""
    if len(shape) != 2:
        raise ShapeError(f"conv1d: an input of shape {shape} is no sequence.", "sequences (time, channels)")
    _long_enough("conv1d", shape, channels)
    return ConvClassifier1d(shape[-1], outputs, channels, kernel_size, dropout)


def conv3d(
    shape: tuple[int, ...], outputs: int, channels: Sequence[int] = (16, 32), kernel_size: int = 3, dropout: float = 0.1
) -> nn.Module:
    """Convolutions and poolings over time, height and width, for videos and volumes. Book, section 8.1.2."""
    if len(shape) != 4:
        raise ShapeError(f"conv3d: an input of shape {shape} is no video.", "videos (time, height, width, channels)")
    _long_enough("conv3d", shape, channels)
    return ConvClassifier3d(shape[-1], outputs, channels, kernel_size, dropout)


def neural_ode(
    shape: tuple[int, ...], outputs: int, features: int = 16, hidden: int = 64, steps: int = 8, method: str = "rk4"
) -> nn.Module:
    """A differential equation between two linear layers. Book, section 9.4.2."""
    layer = NeuralODE(ODEFunc(features, hidden), 1.0, method, steps)
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), features), layer, nn.Linear(features, outputs))


def autoencoder(shape: tuple[int, ...], outputs: int, channels: Sequence[int] = (16, 32), code: int = 0) -> nn.Module:
    """Strided convolutions to a small code, and their transposes back. Book, chapter 7."""
    c = _channels("autoencoder", shape, least=2 ** len(channels))
    return ConvAutoencoder(c, channels, code or None, shape[:2] if code else None)


def unet(
    shape: tuple[int, ...], outputs: int, channels: Sequence[int] = (16, 32), norm: str | None = "batch"
) -> nn.Module:
    """Down to a coarse image and up again, with a bridge at every size. Book, section 7.3."""
    return UNet(_channels("unet", shape, least=2 ** (len(channels) - 1)), outputs, channels, norm or None)


def forecaster(
    shape: tuple[int, ...],
    outputs: int,
    channels: int = 32,
    dilations: Sequence[int] = (1, 2, 4, 8, 16),
    kernel_size: int = 2,
    dropout: float = 0.0,
) -> nn.Module:
    """Dilated causal convolutions: the next step from the steps before it. Book, section 8.3.2."""
    return CausalConvNet(shape[-1], outputs, channels, dilations, kernel_size, dropout=dropout)


# about five minutes on two cores, whatever the length of the text
OF_LANGUAGE: Options = {
    "steps": 980,
    "epochs": 5,
    "batch_size": 32,
    "lr": 8e-3,
    "optimizer": "muon",
    "weight_decay": 0.2,
    "schedule": "cosine",
    "warmup": 0.05,
    "clip_norm": 1.0,
    "validation": 0.02,
}
OF_RECURRENT_LANGUAGE: Options = {**OF_LANGUAGE, "optimizer": "adamw", "lr": 4e-3, "weight_decay": 0.01}
OF_SERIES: Options = {"lr": 5e-3, "clip_norm": 1.0}
SEVERAL: Mapping[str, Usual] = {
    "language": Usual(OF_RECURRENT_LANGUAGE, None),
    "forecasting": Usual({"epochs": 30, "batch_size": 32, "lr": 5e-3, "weight_decay": 0.0, "clip_norm": 1.0}, "sines"),
}
MODELS: dict[str, ModelEntry] = {
    "linear": ModelEntry(linear, "a linear model: softmax regression or least squares", {"lr": 0.02}),
    "mlp": ModelEntry(mlp, "fully-connected layers with batch normalization and dropout", {"label_smoothing": 0.05}),
    "tabular": ModelEntry(
        tabular,
        "for tables: a linear model beside networks that share most weights, on numbers in bins",
        USUAL,
        by_size=by_size,
    ),
    "cnn": ModelEntry(
        cnn,
        "a small convolutional network for images",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02, "augment": True},
        by_size=more_passes,
    ),
    "lenet": ModelEntry(lenet, "LeNet: two convolutions, three linear layers", {"augment": True}),
    "alexnet": ModelEntry(
        alexnet,
        "AlexNet, for larger images: 61 million parameters",
        {"lr": 3e-4, "weight_decay": 0.02, "augment": True},
        data=None,
    ),
    "vgg": ModelEntry(
        vgg,
        "blocks of 3 x 3 convolutions whose channels double",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02, "augment": True},
    ),
    "resnet": ModelEntry(
        resnet,
        "residual blocks: deep networks that train well",
        {"epochs": 12, "batch_size": 100, "lr": 1e-2, "weight_decay": 0.02, "augment": True},
        by_size=more_passes,
    ),
    "convnext": ModelEntry(
        convnext,
        "depthwise convolutions in residual blocks, as transformers are built",
        {
            "lr": 4e-3,
            "label_smoothing": 0.05,
            "weight_decay": 0.05,
            "warmup": 0.1,
            "schedule": "cosine",
            "augment": True,
        },
    ),
    "mixer": ModelEntry(
        mixer,
        "patches mixed by MLPs, without convolutions or attention",
        {"epochs": 12, "lr": 4e-3, "label_smoothing": 0.05, "weight_decay": 0.05, "warmup": 0.1, "augment": True},
    ),
    "vit": ModelEntry(
        vit,
        "a vision transformer: patches that attend to each other",
        {
            "epochs": 15,
            "lr": 8e-3,
            "optimizer": "muon",
            "label_smoothing": 0.05,
            "weight_decay": 0.05,
            "warmup": 0.1,
            "schedule": "cosine",
            "clip_norm": 1.0,
            "augment": True,
        },
    ),
    "conv1d": ModelEntry(
        conv1d, "convolutions over time, for sequences (time, channels)", {"lr": 5e-3}, sequences=True
    ),
    "sound": ModelEntry(
        sound,
        "convolutions over the log-mel picture of sounds, for a folder of WAV files",
        {"lr": 5e-3, "label_smoothing": 0.05, "weight_decay": 0.02},
        data="sounds",
        sequences=True,
        by_size=more_passes,
    ),
    "conv3d": ModelEntry(conv3d, "convolutions over time and space, for videos and volumes", {"lr": 5e-3}),
    "neural_ode": ModelEntry(neural_ode, "a differential equation between two linear layers", {"lr": 3e-2}),
    "autoencoder": ModelEntry(
        autoencoder, "images to a small code and back", {"lr": 5e-3, "weight_decay": 0.0}, task="reconstruction"
    ),
    "unet": ModelEntry(
        unet, "removes noise from images", {"lr": 5e-3, "weight_decay": 0.0, "noise": 0.3}, task="reconstruction"
    ),
    "forecaster": ModelEntry(
        forecaster,
        "the next step of a series",
        {"epochs": 60, "batch_size": 32, "lr": 1e-2, "weight_decay": 0.0},
        task="forecasting",
        data="sines",
    ),
    "lstm": ModelEntry(
        lstm,
        "long short-term memory: classes of series, a language model of a text file, or forecasts",
        OF_SERIES,
        sequences=True,
        also=SEVERAL,
    ),
    "gru": ModelEntry(gru, "gated recurrent units, for the same", OF_SERIES, sequences=True, also=SEVERAL),
    "lru": ModelEntry(
        lru, "linear recurrent units: a state-space model, for the same", OF_SERIES, sequences=True, also=SEVERAL
    ),
    "mamba": ModelEntry(mamba, "a selective state-space model, for the same", OF_SERIES, sequences=True, also=SEVERAL),
    "rwkv": ModelEntry(
        rwkv, "RWKV: a recurrence that is trained at once, for the same", OF_SERIES, sequences=True, also=SEVERAL
    ),
    "wavenet": ModelEntry(
        wavenet,
        "a language model of causal convolutions, for a text file",
        {"epochs": 1, "batch_size": 32, "lr": 4e-3, "clip_norm": 1.0, "validation": 0.02},
        task="language",
        data=None,
    ),
    "gpt": ModelEntry(
        gpt, "a transformer that writes: a language model, for a text file", OF_LANGUAGE, task="language", data=None
    ),
    "llama": ModelEntry(
        llama, "a language model with RMSNorm, rotary positions and gates", OF_LANGUAGE, task="language", data=None
    ),
    "bert": ModelEntry(
        bert, "a transformer that fills in hidden tokens, for a text file", OF_LANGUAGE, task="masked", data=None
    ),
    "seq2seq": ModelEntry(
        seq2seq,
        "a transformer from one text to another, for a table with two columns of texts (data.source, data.target)",
        {"steps": 2500, "epochs": 10, "lr": 2e-3, "clip_norm": 1.0},
        task="pairs",
        data=None,
    ),
    "text_cnn": ModelEntry(
        text_cnn,
        "classes of texts, for a table with a column of texts (data.text) and one of classes (data.target)",
        {"epochs": 10, "lr": 2e-3},
        task="texts",
        data=None,
    ),
    **GRAPH_MODELS,
}


def entry(name: object) -> ModelEntry:
    """The model of a name."""
    if name not in MODELS:
        near = difflib.get_close_matches(str(name), MODELS, 1)
        raise InputError(f"there is no model {name!r}.", f"{near[0]}?" if near else f"one of {', '.join(MODELS)}")
    return MODELS[name]


TEXTS, TABLES = (".txt", ".text", ".md"), (".csv", ".tsv", ".parquet")


def entry_for(model: Options, data: Options) -> ModelEntry:
    """The entry of the settings of a model, as it is for the task: `model.task`, or else what the data are for.

    >>> [entry_for({"name": "lstm"}, {"name": name}).task for name in ("digits", "sines", "alice.txt", "energy.csv")]
    ['supervised', 'forecasting', 'language', 'forecasting']

    Of models that are for several tasks, a text file is for language, a series by name or a table with a row per step
    is for forecasts, and all else has targets. For models on graphs a folder is many graphs, and all else is one.
    """
    found = entry(model["name"])
    if not found.also:
        return found
    if "task" in model:
        if model["task"] not in found.tasks:
            raise InputError(
                f"the model {model['name']} is not for the task {model['task']!r}.", f"one of {', '.join(found.tasks)}"
            )
        return found.suited(str(model["task"]))
    if found.task in GRAPH_TASKS:
        return found.suited("graphs" if is_graph_set(str(data["name"])) else "nodes") if "name" in data else found
    name = str(data.get("name", "")).lower().removesuffix(".gz")
    if name.endswith(TEXTS):
        return found.suited("language")
    return found.suited("forecasting" if name in SERIES or name.endswith(TABLES) else "supervised")


def build(settings: Options, shape: tuple[int, ...], outputs: int, about: Options | None = None) -> nn.Module:
    """The model of the settings `{"name": ..., option: value, ...}` for inputs of a shape; `about` is of the data.

    >>> build({"name": "mlp", "hidden": [8]}, (4,), 3).num_parameters()
    83
    """
    found = entry(settings["name"])
    said = ("name", "from", "task") if found.also else ("name", "from")
    options = {name: value for name, value in settings.items() if name not in said}
    known = found.options()
    if unknown := [name for name in options if name not in known]:
        raise InputError(
            f"the model {settings['name']} has no option {unknown[0]!r}.",
            f"one of {', '.join(known)}" if known else "no options: it has none",
        )
    needed = [p for p in inspect.signature(found.build).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return found.build(shape, outputs, **options, **{p.name: (about or {})[p.name] for p in needed})


def _channels(name: str, shape: tuple[int, ...], least: int = 1) -> int:
    """The channels of images of a shape; anything else is refused."""
    if len(shape) != 3:
        raise ShapeError(
            f"{name}: an input of shape {shape} is no image.", "images (height, width, channels), or model=mlp"
        )
    if min(shape[:2]) < least:
        raise ShapeError(f"{name}: images of {shape[0]} x {shape[1]} pixels.", f"{least} or more a side, or model=cnn")
    return shape[2]


def _long_enough(name: str, shape: tuple[int, ...], channels: Sequence[int]) -> None:
    """Refuse inputs of which the poolings, one for each number of channels, would leave nothing."""
    least = 2 ** len(channels)
    if min(shape[:-1]) < least:
        raise ShapeError(f"{name}: an input of shape {shape}.", f"{least} or more along every axis, or fewer channels")
