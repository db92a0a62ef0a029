"""The transforms of `benchmarks/fourier.py` in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, fft

from ..fourier_grid import GRID
from ..measuring import Step

NUMBERS, SAMPLES = 1 << 19, 160_000


def real(size: int, numbers: int = NUMBERS, inverse: bool = False) -> Step:
    x = torch.randn(max(1, numbers // size), size)
    if inverse:
        return functools.partial(fft.irfft, fft.rfft(x), n=size)
    return functools.partial(fft.rfft, x)


def complex_(size: int, numbers: int = NUMBERS // 2) -> Step:
    return functools.partial(fft.fft, torch.randn(max(1, numbers // size), size, dtype=torch.complex64))


def spectra(x: Tensor, hop: int, window: Tensor) -> Tensor:
    return torch.stft(x, 512, hop, window=window, return_complex=True)


def stft(signals: int, hop: int) -> Step:
    return functools.partial(spectra, torch.randn(signals, SAMPLES), hop, torch.hann_window(512))


def stft_grad() -> Step:
    x, window = torch.randn(1, SAMPLES, requires_grad=True), torch.hann_window(512)

    def step() -> tuple[Tensor, Tensor]:
        value = torch.view_as_real(spectra(x, 128, window)).square().sum(-1).mean()
        return value, torch.autograd.grad(value, x)[0]

    return step


def convolution(length: int) -> Step:
    x, k = torch.randn(16, length), torch.randn(16, length)

    def step() -> Tensor:
        product = fft.rfft(x, n=2 * length) * fft.rfft(k, n=2 * length)
        return fft.irfft(product, n=2 * length)[..., :length]

    return step


def long_conv(length: int = 4096, channels: int = 64) -> Step:
    x, k = torch.randn(1, length, channels), torch.randn(length, channels)

    def step() -> Tensor:
        product = fft.rfft(x, n=2 * length, dim=1) * fft.rfft(k, n=2 * length, dim=0)
        return fft.irfft(product, n=2 * length, dim=1)[:, :length]

    return step


KINDS: dict[str, Callable[..., Step]] = {
    "real": real,
    "complex": complex_,
    "stft": stft,
    "stft_grad": stft_grad,
    "convolution": convolution,
    "long_conv": long_conv,
}
FOURIER: dict[str, Callable[..., Step]] = {
    name: functools.partial(KINDS[kind], **options) for name, (kind, options) in GRID.items()
}
