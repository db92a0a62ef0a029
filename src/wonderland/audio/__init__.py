"""Sound: WAV files, frames, windows, spectra, mel filters and cepstra, resampling, mu-law. `wl.audio`.

Signals are (..., time), what follows from frames is (..., frames, features). Everything but files is differentiable and
runs under `jit` and `vmap`. Book, section 8.1.1.
"""

from ..data.formats.wav import Waveform, nbytes, read_wav, sample_count, write_wav
from .companding import mu_law_compress, mu_law_decode, mu_law_encode, mu_law_expand
from .emphasis import deemphasis, preemphasis
from .fourier import istft, stft
from .framing import frame, frame_count, overlap_add
from .layers import MFCC, AmplitudeToDB, LogMel, MelSpectrogram, PreEmphasis, Resample, Spectrogram
from .loudness import amplitude_to_db, db_to_amplitude, db_to_power, power_to_db, spectrogram
from .mel import dct_matrix, hz_to_mel, mel_filter_bank, mel_spectrogram, mel_to_hz, mfcc
from .resampling import resample
from .windows import bartlett_window, blackman_window, get_window, hamming_window, hann_window, kaiser_window

# fmt: off
__all__ = [
    "MFCC", "AmplitudeToDB", "LogMel", "MelSpectrogram", "PreEmphasis", "Resample", "Spectrogram", "Waveform",
    "amplitude_to_db",
    "bartlett_window", "blackman_window", "db_to_amplitude", "db_to_power", "dct_matrix", "deemphasis", "frame",
    "frame_count", "get_window", "hamming_window", "hann_window", "hz_to_mel", "istft", "kaiser_window",
    "mel_filter_bank", "mel_spectrogram", "mel_to_hz", "mfcc", "mu_law_compress", "mu_law_decode", "mu_law_encode",
    "mu_law_expand", "nbytes", "overlap_add", "power_to_db", "preemphasis", "read_wav", "resample", "sample_count",
    "spectrogram", "stft", "write_wav",
]
