"""Fourier transforms and what is made of them, beside PyTorch, NumPy and SciPy, in float32.

| name | what |
|---|---|
| rfft_256 .. rfft_4096, irfft_512, irfft_4096 | of real signals, 524288 numbers together |
| rfft_400, rfft_1009 | a size of several small primes, and a large prime |
| fft_1024 | of 256 complex signals |
| rfft_one_65536 | of one long signal |
| stft_1_128, stft_1_160, stft_16_128, stft_16_160 | 1 or 16 signals of 10 s at 16 kHz; n_fft 512; hop 128 or 160 |
| stft_grad | the power spectra of one signal, and the gradient of their weighted sum |
| convolution_4096 .. convolution_65536 | 16 signals with kernels as long as they are, by spectra of twice the length |
| long_conv_4096 | `long_conv` of (4096, 64 channels), as state space layers use it |

The second table has plain transforms beside `numpy.fft` and `scipy.fft` (with as many workers as there are threads).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import numpy as np

import wonderland as wl
from wonderland import fft

from . import steps
from .fourier_grid import GRID
from .measuring import best_time, threads
from .options import Options
from .printed import Table
from .workloads import Step

NUMBERS = 1 << 19
SAMPLES = 160_000  # 10 s at 16 kHz


def real(size: int, numbers: int = NUMBERS, inverse: bool = False) -> Step:
    x = wl.random.normal((max(1, numbers // size), size))
    if inverse:
        return functools.partial(wl.jit(lambda s: fft.irfft(s, n=size)), fft.rfft(x))
    return functools.partial(wl.jit(fft.rfft), x)


def complex_(size: int, numbers: int = NUMBERS // 2) -> Step:
    shape = (max(1, numbers // size), size)
    return functools.partial(wl.jit(fft.fft), wl.complex(wl.random.normal(shape), wl.random.normal(shape)))


def stft(signals: int, hop: int, samples: int = SAMPLES) -> Step:
    x = wl.random.normal((signals, samples))
    return functools.partial(wl.jit(lambda x: wl.audio.stft(x, n_fft=512, hop_length=hop)), x)


def stft_grad(samples: int = SAMPLES) -> Step:
    def value(x: wl.Tensor) -> wl.Tensor:
        s = wl.audio.stft(x, n_fft=512, hop_length=128)
        return (wl.square(s.real) + wl.square(s.imag)).mean()

    return functools.partial(wl.jit(wl.value_and_grad(value)), wl.random.normal((1, samples)))


def convolution(length: int, signals: int = 16) -> Step:
    def f(x: wl.Tensor, k: wl.Tensor) -> wl.Tensor:
        product = fft.rfft(x, n=2 * length) * fft.rfft(k, n=2 * length)
        return fft.irfft(product, n=2 * length)[..., :length]

    return functools.partial(wl.jit(f), *(wl.random.normal((signals, length)) for _ in range(2)))


def long_conv(length: int = 4096, channels: int = 64) -> Step:
    x, k = wl.random.normal((1, length, channels)), wl.random.normal((length, channels))
    return functools.partial(wl.jit(wl.nn.functional.long_conv), x, k)


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


def beside_scipy(options: Options) -> None:
    """Plain transforms in turn with those of NumPy and SciPy."""
    scipy = importlib.import_module("scipy.fft")
    columns = ["signals x size", "ours ms", "NumPy / ours", "SciPy / ours"]
    table = Table("Real transforms, beside NumPy and SciPy", columns, options, absolute=["ours ms"])
    for size in (256, 400, 512, 1009, 1024, 2048, 4096, 65536):
        ours = real(size)
        (x,) = (np.asarray(a) for a in ours.args)
        theirs = functools.partial(np.fft.rfft, x), functools.partial(scipy.rfft, x, workers=threads())
        ours()
        turns = [[best_time(step, options.seconds / 6) for step in (ours, *theirs)] for _ in range(options.rounds)]
        mine, *others = (min(column) for column in zip(*turns, strict=True))
        table.row(f"{len(x)} x {size}", f"{mine * 1e3:.3f}", *(f"{other / mine:.2f}" for other in others))


def main(options: Options | None = None) -> None:
    options = options or Options()
    steps.main(options, FOURIER, measures=1, jax=False)
    if not options.workloads:
        beside_scipy(options)


if __name__ == "__main__":
    main()
