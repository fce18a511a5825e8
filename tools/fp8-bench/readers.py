# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Readers of arguments, for argparse: each raises ArgumentTypeError with a sentence."""

import argparse
import pathlib
from collections.abc import Callable


def names(known: list[str]) -> Callable[[str], list[str]]:
    """A reader of lists like "jax,torch"."""

    def read(text: str) -> list[str]:
        found = [word for word in text.split(",") if word]
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        return list(dict.fromkeys(found))

    return read


def numbers(text: str) -> list[int]:
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no list of numbers such as 1,4,16")
    return found


def shapes(text: str) -> list[tuple[int, ...]]:
    found = []
    for word in text.split(","):
        parts = word.split("x")
        if len(parts) != 3 or not all(part.isdecimal() and int(part) for part in parts):
            raise argparse.ArgumentTypeError(f"'{word}' is no shape MxNxK")
        found.append(tuple(map(int, parts)))
    return found


def positive(kind: type) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
        return value

    return read


def output(text: str) -> pathlib.Path:
    path = pathlib.Path(text)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path
