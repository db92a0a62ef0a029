"""What every setting means: a sentence, a type, what is allowed, the default. `wonderland list` and help show it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from .catalogue import MODELS
from .settings import TrainSettings


class Setting(NamedTuple):
    """A setting as it is shown."""

    name: str  # as it is said: lr, data.target, model.hidden
    kind: str
    default: str
    meaning: str
    allowed: str


TABLE, FOLDER, ARRAYS, TEXT, SERIES, GRAPH = "table", "folder", "arrays", "text file", "series", "graph"
A_NAME, A_COLUMN, WHOLE = "a text", "the name of a column, or its number", "a whole number"
# name: (of what, type, default, sentence, allowed)
DATA: dict[str, tuple[str, str, str, str, str]] = {
    "target": (TABLE, A_NAME, "the one that its name gives away", "the column to predict", A_COLUMN),
    "columns": (
        TABLE,
        "a table",
        "what is found",
        "what columns are, as data.columns.age=number; a list of names takes these columns alone",
        "number, count, category, ordinal, date, text, identifier, constant, ignore, or a table of settings",
    ),
    "task": (TABLE, A_NAME, "auto", "whether the target is a class or a number", "auto, classification, regression"),
    "split": (
        TABLE,
        A_NAME,
        "what the columns ask for",
        "how the test data are chosen: by chance, the latest, or groups that training does not see",
        "random, time, group",
    ),
    "time": (TABLE, A_NAME, "none", "the column of times for data.split=time", A_COLUMN),
    "group": (TABLE, A_NAME, "none", "the column of groups for data.split=group", A_COLUMN),
    "header": (TABLE, "a truth value", "what is found", "whether the first line names the columns", "true or false"),
    "delimiter": (TABLE, A_NAME, "what is found", "what stands between columns", "one character"),
    "encoding": (TABLE, A_NAME, "what is found", "how the bytes of a text file are to be read", "as utf-8, latin-1"),
    "expect_size": ("file", WHOLE, "none", "the bytes that the file must have", "1 or more"),
    "expect_sha256": ("file", A_NAME, "none", "the SHA-256 checksum that the file must have", "64 hexadecimal digits"),
    "targets": (
        ARRAYS,
        A_NAME,
        "y",
        "the labels: the path of an array beside .npy and IDX files, the name of an array in .npz files",
        "a path, or a name",
    ),
    "features": (
        ARRAYS,
        A_NAME,
        "x",
        "the inputs in .npz files; of a graph, what stands for features that it has not",
        "the name of an array; degree, identity or ones for graphs",
    ),
    "size": (
        FOLDER,
        "one or two numbers",
        "that of the images, or one of about 64 pixels a side if they differ or are large",
        "the height and width to which images are stretched",
        "64, or [h, w]",
    ),
    "mode": (FOLDER, A_NAME, "what is found", "whether images have colours", "RGB or L"),
    "rate": (FOLDER, WHOLE, "that of most", "the samples a second to which sounds are brought", "as 16000"),
    "seconds": (FOLDER, "a number", "what suits most", "how long sounds are made: cut, or with silence", "above 0"),
    "unreadable": (FOLDER, A_NAME, "error", "what is done about files that cannot be read", "error, skip"),
    "files": (TABLE, A_NAME, "what is found", "the column that names images or sounds", "the name of a column"),
    "folder": (TABLE, A_NAME, "that of the table", "where the images or sounds are that a column names", "a path"),
    "context": (
        "text file, series",
        WHOLE,
        "128 for gpt and its like, else 64",
        "the tokens or steps that a model sees",
        "2 or more",
    ),
    "stride": ("text file, series", WHOLE, "1 for series, 32 for texts", "how far apart examples begin", "1 or more"),
    "tokenizer": (
        TEXT,
        A_NAME,
        "char; word_piece for bert",
        "what a text is cut into",
        "char, byte, word, bpe; char or word_piece for bert",
    ),
    "vocabulary": (TEXT, WHOLE, "by the tokenizer", "how many tokens there are, for word and bpe", "2 or more"),
    "masked": (TEXT, "a number", "0.15", "the share of tokens that bert must fill in", "above 0, below 1"),
    "text": ("table of texts", A_NAME, "text", "the column of texts, for text_cnn", "the name of a column"),
    "source": ("table of texts", A_NAME, "the first", "the column of texts to start from, for seq2seq", A_COLUMN),
    "length": ("table of texts", WHOLE, "64", "the words of a text that are read, for text_cnn", "1 or more"),
    "nodes": (GRAPH, A_NAME, "none", "the table of nodes beside a table of edges", "a path"),
    "id": (GRAPH, A_NAME, "id, node, node_id or name", "the column of the table of nodes that names them", A_COLUMN),
    "weight": (GRAPH, A_NAME, "weight", "the column of the table of edges with their weights", A_COLUMN),
    "directed": (GRAPH, "a truth value", "false", "whether edges lead one way", "true or false"),
    "scale": (GRAPH, A_NAME, "auto", "how features of nodes are scaled", "auto, row, standard, none"),
    "inductive": (GRAPH, "a truth value", "false", "whether training sees its own nodes alone", "true or false"),
    "neighbors": (GRAPH, "whole numbers", "all", "the most neighbours of a node in a batch, by distance", "as [10, 5]"),
    "top": (GRAPH, WHOLE, "100", "how many new links a model of links predicts", "1 or more"),
}
WIDTH, SHARE, LAYERS = "1 or more", "from 0 to less than 1", "1 or more"
# (sentence, allowed) of the options of models; one with the name of a model before it is for that model alone
OPTIONS: dict[str, tuple[str, str]] = {
    "activation": ("the function after each layer", "relu, gelu, tanh, silu, ..."),
    "aggregate": ("what a node takes of its neighbours", "mean, sum, max"),
    "attend": ("which nodes attend to each other", "edges, all"),
    "block": ("the kind of residual block", "basic, bottleneck"),
    "channel_hidden": ("the width of the MLPs along channels", WIDTH),
    "channels": ("the channels of the stages, one number for each", "a list of whole numbers"),
    "vgg.channels": ("the channels of the first block, which double from block to block", WIDTH),
    "forecaster.channels": ("the channels of every layer", WIDTH),
    "wavenet.channels": ("the channels of every layer", WIDTH),
    "text_cnn.channels": ("the channels of each width", WIDTH),
    "code": ("the numbers of the code in the middle; 0: an image of features", "0 or more"),
    "convs": ("the convolutions of the blocks, one number for each", "a list of whole numbers"),
    "decoder_layers": ("the blocks of the decoder", LAYERS),
    "encoder_layers": ("the blocks of the encoder", LAYERS),
    "depth": ("how many layers or blocks there are", LAYERS),
    "resnet.depth": ("the blocks of each stage", LAYERS),
    "convnext.depth": ("the blocks of each stage", LAYERS),
    "dilations": ("the steps between the inputs of the layers, one number for each", "a list of whole numbers"),
    "drop_path": ("the share of blocks that are skipped in training", SHARE),
    "dropout": ("the share of numbers that are set to zero in training", SHARE),
    "dynamic": ("whether attention depends on both nodes at once (GATv2)", "true or false"),
    "e": ("the channels of a patch", WIDTH),
    "embed_dim": ("the numbers that stand for a token, step, patch or node", WIDTH),
    "embedding_size": ("the numbers that stand for a word", WIDTH),
    "features": ("the numbers that the differential equation moves", WIDTH),
    "grouped": ("whether convolutions are in two groups, as in the original", "true or false"),
    "heads": ("the heads of attention", "1 or more"),
    "num_heads": ("the heads of attention, which divide embed_dim", "1 or more"),
    "kv_heads": ("the heads of keys and values; 0: as many as there are heads", "0, or a divisor of num_heads"),
    "hidden": ("the widths of the hidden layers", "a whole number, or a list of them"),
    "gcn.hidden": ("the channels of the hidden layers; 0: 16 for nodes, else 64", "0 or more"),
    "gat.hidden": ("the channels of a head", WIDTH),
    "kernel_size": ("the width of the convolutions", "1 or more"),
    "members": ("the networks whose mean is the answer; they share most weights", "1 or more"),
    "bins": ("the pieces into which the range of a number is cut, by quantiles", "1 or more"),
    "method": ("how the differential equation is solved", "rk4, euler, midpoint, ..."),
    "n_mels": ("the most pitches of the picture of a sound", WIDTH),
    "norm": ("the normalization after layers", 'batch, layer, ..., or "" for none'),
    "patch": ("the side of a patch in pixels", "1 or more"),
    "vit.patch": ("the side of a patch in pixels; 0: 2, from 16 pixels a side on 4", "0 or more"),
    "mixer.patch": ("the side of a patch in pixels; 0: 2, from 16 pixels a side on 4", "0 or more"),
    "pool": ("what is kept of four pixels", "max, avg"),
    "pooling": ("what the class is read from", "mean, cls"),
    "positions": ("how positions are known", 'learned, sinusoidal, rotary, alibi, ..., or "" for none'),
    "registers": ("tokens beside the patches", "0 or more"),
    "state": ("the numbers of the state", WIDTH),
    "steps": ("the steps of the solver", "1 or more"),
    "structural": ("what is known of the place of a node", 'random_walk, degree, laplacian, or "" for nothing'),
    "tied": ("whether the last layer is the table of tokens", "true or false"),
    "token_hidden": ("the width of the MLPs along patches", WIDTH),
    "widths": ("how many words the convolutions see, one number for each", "a list of whole numbers"),
}


def of_training() -> list[Setting]:
    """The settings of training.

    >>> of_training()[0]
    Setting(name='epochs', kind='int', default='30', meaning='passes through the training data', allowed='1 or more')
    """
    return [
        Setting(f.name, kind_of(f.default), written(f.default), f.metadata["meaning"], f.metadata["allowed"])
        for f in dataclasses.fields(TrainSettings)
    ]


def of_data() -> list[Setting]:
    """The settings of files; what is generated has options of its own, as `wl.data.make_moons` has."""
    return [
        Setting(f"data.{name}", kind, default, f"{meaning} ({of})", allowed)
        for name, (of, kind, default, meaning, allowed) in DATA.items()
    ]


def of_any_model() -> list[Setting]:
    """The options that all models have."""
    meaning = "a run with whose layers the model begins, all that fit but the head; without --model it is that run's"
    return [Setting("model.from", "text", "none", meaning, "the folder of a run")]


def of_model(name: str) -> list[Setting]:
    """The options of a model."""
    found = []
    for option, default in MODELS[name].options().items():
        meaning, allowed = OPTIONS.get(f"{name}.{option}") or OPTIONS[option]
        found.append(Setting(f"model.{option}", kind_of(default), written(default), meaning, allowed))
    return found


def kind_of(value: object) -> str:
    """The type of a default, in the words of TOML.

    >>> kind_of(True), kind_of((1, 2)), kind_of("a")
    ('bool', 'list', 'text')
    """
    return {"str": "text", "tuple": "list", "NoneType": "text"}.get(type(value).__name__, type(value).__name__)


def written(value: object) -> str:
    """A value as it is written in TOML.

    >>> written(False), written((1, 2)), written("a")
    ('false', '[1, 2]', '"a"')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else '""' if value is None else str(value)
