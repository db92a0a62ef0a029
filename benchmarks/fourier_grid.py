"""The transforms of `benchmarks/fourier.py`: data without imports, so that every peer reads the same."""

from __future__ import annotations

GRID: dict[str, tuple[str, dict[str, int]]] = {  # by name: a kind, and its options
    "rfft_256": ("real", {"size": 256}),
    "rfft_400": ("real", {"size": 400}),
    "rfft_512": ("real", {"size": 512}),
    "rfft_1009": ("real", {"size": 1009}),
    "rfft_1024": ("real", {"size": 1024}),
    "rfft_2048": ("real", {"size": 2048}),
    "rfft_4096": ("real", {"size": 4096}),
    "irfft_512": ("real", {"size": 512, "inverse": True}),
    "irfft_4096": ("real", {"size": 4096, "inverse": True}),
    "fft_1024": ("complex", {"size": 1024}),
    "rfft_one_65536": ("real", {"size": 65536, "numbers": 65536}),
    "stft_1_128": ("stft", {"signals": 1, "hop": 128}),
    "stft_1_160": ("stft", {"signals": 1, "hop": 160}),
    "stft_16_128": ("stft", {"signals": 16, "hop": 128}),
    "stft_16_160": ("stft", {"signals": 16, "hop": 160}),
    "stft_grad": ("stft_grad", {}),
    "convolution_4096": ("convolution", {"length": 4096}),
    "convolution_16384": ("convolution", {"length": 16384}),
    "convolution_65536": ("convolution", {"length": 65536}),
    "long_conv_4096": ("long_conv", {}),
}
