# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of bytes cut out of a text file, plain or gzipped."""

import array
import gzip
import random

from parameters import BATCH, SEQUENCE

HELD_OUT = 20  # the last 1/20 of a text is never trained on
WINDOW = SEQUENCE + 1  # bytes in, and one more to predict


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def split(data):
    """(bytes to train on, bytes held out); too short a text is a ValueError."""
    cut = len(data) - len(data) // HELD_OUT
    if len(data) - cut < WINDOW:
        raise ValueError(f"{len(data)} bytes are too few: at least {HELD_OUT * WINDOW} are needed")
    return data[:cut], data[cut:]


def batches(data, count, seed):
    """`count` batches [BATCH, WINDOW] in one array of 32-bit integers, from random places."""
    draw, tokens = random.Random(seed), array.array("i")
    for _ in range(count * BATCH):
        start = draw.randrange(len(data) - WINDOW + 1)
        tokens.extend(data[start : start + WINDOW])
    return tokens
