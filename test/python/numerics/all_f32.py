#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts all 2^32 values of f32 to E4M3, E5M2, bf16 and f16 through compiled code, and checks every bit.

    build/venv/bin/python test/python/numerics/all_f32.py [--target=cpu] [--cpu=native] [--first=0 --last=4294967296]

Every conversion here rises with its input, so the reference is asked for the first f32 of every code; in
between the code must not change.
"""
import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test" / "python"))

from numerics import conversions  # noqa: E402
from numerics.formats import SINGLE  # noqa: E402

from harness import Program  # noqa: E402

INF_BITS, SIGN = 0x7F800000, 0x80000000
ALL = 2**32


class Steps:
    """A conversion as the first positive f32, by its bits, of every code; `convert` maps values to codes."""

    def __init__(self, convert):
        self.nan, top = (int(convert(np.float32([value]))[0]) for value in (np.nan, np.inf))
        self.dtype = convert(np.float32([0])).dtype
        self.sign = 1 << (8 * self.dtype.itemsize - 1)
        wanted = np.arange(1, top + 1)
        low, high = np.zeros(top, np.int64), np.full(top, INF_BITS)
        while (low < high).any():  # the first of `wanted` or more lies in [low, high]
            middle = (low + high) // 2
            reached = convert(middle.astype(np.uint32).view(np.float32)) >= wanted
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        self.first = np.concatenate([[0], low])

    def codes(self, start, count):
        """Of the f32 values with the bits from `start` on, all of one sign."""
        magnitude = start & ~SIGN
        ends = np.clip(np.append(self.first, INF_BITS + 1)[1:], magnitude, magnitude + count)
        starts = np.clip(self.first, magnitude, magnitude + count)
        codes = np.repeat(np.arange(len(self.first)), ends - starts).astype(self.dtype)
        if start & SIGN:
            codes |= self.dtype.type(self.sign)
        return np.concatenate([codes, np.full(count - len(codes), self.nan, self.dtype)])


def entries(chunk, scales):
    """The functions that are compiled, each with what its results must be; None for a scale_inv."""
    described = []
    for entry in (conversions.casting(SINGLE, chunk, scales), conversions.narrowing("f32", chunk)):
        types = [type_name for _, type_name in entry.results]
        steps = [None if of == "tensor<f32>" else Steps(expected) for of, expected in zip(types, entry.expected)]
        described.append((entry, steps))
    return described


def check(program, entry, steps, start, chunk):
    """The number of wrong results among one chunk of inputs; the first of each conversion is printed."""
    values = np.arange(start, start + chunk, dtype=np.uint64).astype(np.uint32).view(np.float32)
    wrong_ones = 0
    for number, (got, expected) in enumerate(zip(program.call(entry.name, *entry.inputs(values)), steps)):
        if expected is None:
            continue
        codes = expected.codes(start, chunk)
        wrong = conversions.wrong_codes(got, codes)
        wrong_ones += len(wrong)
        for i in wrong[:1]:
            print(f"\n{entry.name}, result {number}: {start + i:#010x} ({values[i]}) became {got[i]}, code {codes[i]:#x} expected")
    return wrong_ones


def show(done, total, began):
    passed = time.monotonic() - began
    bar = "#" * (40 * done // total)
    print(f"\r[{bar:40}] {100 * done / total:5.1f}%  {passed:.0f} s, {passed * (total - done) / max(done, 1):.0f} s left ", end="", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--target", default="cpu", help="cpu, or a chip, on the emulator (hours)")
    parser.add_argument("--cpu", default="native")
    parser.add_argument("--first", type=lambda text: int(text, 0), default=0, help="bits of the first value")
    parser.add_argument("--last", type=lambda text: int(text, 0), default=ALL, help="bits behind the last value")
    parser.add_argument("--chunk", type=lambda text: int(text, 0), default=2**24, help="values in one call; divides 2^31")
    parser.add_argument("--scales", type=lambda text: [float(s) for s in text.split(",")], default=[1.0, 448 / 3])
    arguments = parser.parse_args()
    began, wrong = time.monotonic(), 0
    described = entries(arguments.chunk, arguments.scales)
    options = [f"--target={arguments.target}"] + ([f"--cpu={arguments.cpu}"] if arguments.target == "cpu" else [])
    with tempfile.TemporaryDirectory() as folder:
        text = "".join(entry.text for entry, _ in described)
        program = Program(arguments.build / "bin", pathlib.Path(folder), text, "--recipe=none", *options)
        starts = range(arguments.first, arguments.last, arguments.chunk)
        for done, start in enumerate(starts):
            show(done, len(starts), began)
            wrong += sum(check(program, entry, steps, start, arguments.chunk) for entry, steps in described)
        show(len(starts), len(starts), began)
    conversions_checked = sum(step is not None for _, steps in described for step in steps)
    print(f"\n{len(starts) * arguments.chunk} values, {conversions_checked} conversions each: {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
