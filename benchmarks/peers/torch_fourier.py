"""The transforms of `benchmarks/fourier.py` in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, fft

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


FOURIER: dict[str, Callable[..., Step]] = {
    "rfft_256": functools.partial(real, 256),
    "rfft_400": functools.partial(real, 400),
    "rfft_512": functools.partial(real, 512),
    "rfft_1009": functools.partial(real, 1009),
    "rfft_1024": functools.partial(real, 1024),
    "rfft_2048": functools.partial(real, 2048),
    "rfft_4096": functools.partial(real, 4096),
    "irfft_512": functools.partial(real, 512, inverse=True),
    "irfft_4096": functools.partial(real, 4096, inverse=True),
    "fft_1024": functools.partial(complex_, 1024),
    "rfft_one_65536": functools.partial(real, 65536, numbers=65536),
    "stft_1_128": functools.partial(stft, 1, 128),
    "stft_1_160": functools.partial(stft, 1, 160),
    "stft_16_128": functools.partial(stft, 16, 128),
    "stft_16_160": functools.partial(stft, 16, 160),
    "stft_grad": stft_grad,
    "convolution_4096": functools.partial(convolution, 4096),
    "convolution_16384": functools.partial(convolution, 16384),
    "convolution_65536": functools.partial(convolution, 65536),
    "long_conv_4096": long_conv,
}
