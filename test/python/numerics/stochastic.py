# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stochastic rounding: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

The key is the 64-bit seed of the state, low word first. The counter is (column, step, index of the element
in the logical tensor), the index low word first; the first of the four resulting words decides.
"""

import numpy as np
from numerics.formats import cast

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF


def philox(counter, key):
    """Four u32 words per counter of four u32 words; arrays are computed elementwise."""
    c, k = [np.asarray(word, np.uint64) for word in counter], list(key)
    for _ in range(10):
        first, second = c[0] * np.uint64(MULTIPLIERS[0]), c[2] * np.uint64(MULTIPLIERS[1])
        high, low = lambda product: product >> np.uint64(32), lambda product: product & np.uint64(MASK)
        c = [high(second) ^ c[1] ^ np.uint64(k[0]), low(second), high(first) ^ c[3] ^ np.uint64(k[1]), low(first)]
        k = [(word + weyl) & MASK for word, weyl in zip(k, WEYL)]
    return [word.astype(np.uint32) for word in c]


def random_words(seed, column, step, count):
    """The 32 bits of each of `count` elements."""
    index = np.arange(count, dtype=np.uint64)
    counter = (np.uint64(column), np.uint64(step), index & np.uint64(MASK), index >> np.uint64(32))
    return philox(counter, (seed & MASK, seed >> 32))[0]


def fractions_of(words, shape):
    """The 32 bits of the elements of a tensor, as fractions of 2^32."""
    return np.ldexp(np.asarray(words, np.float64).reshape(shape), -32)


def up_below(fractions):
    """Rounds magnitudes to whole numbers: up where the fraction lies below what is discarded."""
    return lambda units: np.floor(units) + (fractions < units - np.floor(units))


def cast_stochastic(x, scale, fmt, words):
    """The magnitude is rounded up where the 32 bits, as a fraction of 2^32, lie below the discarded fraction."""
    return cast(x, scale, fmt, up_below(fractions_of(words, np.shape(x))))
