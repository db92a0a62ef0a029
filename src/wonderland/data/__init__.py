"""Datasets, loaders that batch and shuffle them, splits, transforms, and readers of the usual file formats."""

# ruff: noqa: F403, F405 - builtin/ and formats/ have an exact `__all__`

from __future__ import annotations

from ..core.naming import hints_for as _hints_for
from . import transforms
from .builtin import *
from .card import DatasetCard
from .catalogue import Entry, list_datasets, load
from .catalogue import list_datasets as list
from .checks import DataReport, check_labels, class_balance, data_report, duplicates, leakage, row_hashes
from .collation import PadCollate, Padded, collate
from .dataset import (
    CachedDataset,
    ConcatDataset,
    Dataset,
    Examples,
    MappedDataset,
    SequenceDataset,
    Subset,
    TensorDataset,
)
from .drift import DriftReport, TwoSampleResult, classifier_test, drift_report, ks_test, mmd_test
from .encoding import OneHotEncoder, OrdinalEncoder, Vocabulary
from .formats import *
from .loader import DataLoader
from .masking import MaskedCells, MaskedNodes, MaskedPatches, MaskedTokens, MaskingTask, masked_loss
from .mixing import CutMix, MixUp, cutmix, mixup
from .multi_view import MultiView, RandomViews
from .next_token import NextTokenDataset
from .padding import bucket_lengths, lengths_to_mask, pad_sequence, unpad_sequence
from .parallel import sharded_value_and_grad, shards
from .record import DatasetRecord
from .samplers import (
    BatchSampler,
    BucketBatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    ShuffleSampler,
    StratifiedBatchSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .scaling import MinMaxScaler, RobustScaler, StandardScaler
from .sources import ArrowDataset, HuggingFaceDataset, as_dataset, memory_map, read_shard
from .splits import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    TimeSeriesSplit,
    random_split,
    time_split,
    train_test_split,
    train_val_test_split,
)
from .streams import GeneratorDataset, IterableDataset, ShardedDataset
from .tables import Schema, Table, infer_schema, read_table

# fmt: off
__all__ = [
    "Dataset", "Examples", "TensorDataset", "SequenceDataset", "Subset", "ConcatDataset", "MappedDataset",
    "CachedDataset", "NextTokenDataset", "GeneratorDataset", "IterableDataset", "ShardedDataset", "MaskedCells",
    "MaskedNodes", "MaskedPatches", "MaskedTokens", "MaskingTask", "masked_loss", "PadCollate", "Padded", "collate",
    "bucket_lengths", "lengths_to_mask", "pad_sequence", "unpad_sequence", "Sampler", "SequentialSampler",
    "ShuffleSampler",
    "RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "BatchSampler", "BucketBatchSampler",
    "StratifiedBatchSampler", "DataLoader", "train_test_split", "train_val_test_split", "random_split", "time_split",
    "KFold", "StratifiedKFold", "GroupKFold", "LeaveOneOut", "TimeSeriesSplit", "MinMaxScaler", "RobustScaler",
    "StandardScaler", "OneHotEncoder", "OrdinalEncoder", "Vocabulary", "ArrowDataset", "HuggingFaceDataset",
    "as_dataset", "memory_map", "read_shard", "DataReport", "check_labels", "class_balance", "data_report",
    "duplicates", "leakage", "row_hashes", "DriftReport", "TwoSampleResult", "classifier_test", "drift_report",
    "ks_test", "mmd_test", "DatasetCard", "shards", "sharded_value_and_grad", "load", "list_datasets", "Entry",
    "DatasetRecord", "digits", "iris", "mnist", "cifar10", "cifar100", "from_sklearn", "make_xor", "make_parity",
    "make_moons", "make_circles", "make_blobs", "make_spirals", "make_swiss_roll", "make_regression", "make_sine",
    "make_income_rule", "make_heteroscedastic", "make_outliers", "make_imbalanced", "make_bimodal", "make_shapes",
    "SequencePairs", "make_copy_task", "make_reverse_task", "make_sort_task", "make_addition_task", "MultiView",
    "RandomViews", "make_delay_task", "make_selective_copy_task",
    "make_sounds", "write_sounds", "ImageFolder", "SoundFolder",
    "read_csv", "read_parquet", "read_npy", "read_npz", "read_idx", "write_idx", "read_cifar10",
    "read_cifar100", "transforms", "mixup", "cutmix", "MixUp", "CutMix",
    "read_table", "Table", "Schema", "infer_schema",
]

_hints_for(globals())
