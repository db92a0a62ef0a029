"""Numbers of many fields at once, by arithmetic on their bytes; the same floats that Python finds one at a time."""

from __future__ import annotations

import numpy as np

EXACT = 2**53  # whole numbers up to here are different floats
LONGEST = 24  # characters of a field that are looked at here
_POWERS = 10.0 ** np.arange(23)  # all exact, so one division rounds once


def parse_decimals(letters: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The numbers of fields such as -12.50, which of them were understood, and which are codes such as 007.

    `letters` has the bytes of a field in each row, zeros after its end. A number is not understood here if it has an
    exponent, or more digits than a float keeps.

    >>> fields = np.array([b"-12.5", b"007", b"1e3"])
    >>> numbers, understood, codes = parse_decimals(fields.view(np.uint8).reshape(3, 5), np.array([5, 3, 3]))
    >>> numbers[:2], understood, codes
    (array([-12.5,   7. ]), array([ True,  True, False]), array([False,  True, False]))
    """
    values = letters - np.uint8(48)
    is_digit = values < 10
    factors = np.where(is_digit, np.uint8(10), np.uint8(1))
    values[~is_digit] = 0
    whole = np.zeros(len(letters), np.int64)
    for place in range(letters.shape[1]):
        whole *= factors[:, place]
        whole += values[:, place]
    dots = letters == 46
    has_dot = dots.any(axis=1)
    fraction = np.where(has_dot, lengths - 1 - dots.argmax(axis=1), 0)
    sign = (letters[:, 0] == 45) | (letters[:, 0] == 43)
    digits = is_digit.sum(axis=1)
    understood = (digits + has_dot + sign == lengths) & (digits > 0) & (digits < 19)  # what is left is a single dot
    understood &= (whole <= EXACT) & (fraction < len(_POWERS))
    numbers = whole / _POWERS[np.where(understood, fraction, 0)]
    np.negative(numbers, out=numbers, where=letters[:, 0] == 45)
    codes = understood & ~has_dot & (letters[:, 0] == 48) & (lengths > 1)
    return numbers, understood, codes
