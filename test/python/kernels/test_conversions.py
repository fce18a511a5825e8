# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions f32, bf16, f16 ↔ E4M3, E5M2, E8M0 through compiled code, against numerics/formats.py.

Every 8-bit and 16-bit input; f32 around every value at which a rounding turns, and strided through all of
its bits. `test/python/numerics/all_f32.py` takes all 2^32.
"""
import platform
import subprocess
import sys

import numpy as np
import pytest
from numerics import conversions, formats
from numerics.all_f32 import Steps
from numerics.formats import BF16, E4M3, E5M2, F16, FP8, SINGLE

from harness import E8M0, Program

TARGETS = {
    "native": ["--target=cpu"],
    "x86-64-v3": ["--target=cpu", "--cpu=x86-64-v3"],
    **{chip: [f"--target={chip}"] for chip in ("sm_89", "sm_90a", "sm_100a", "sm_120a")},
}
SCALES = [1.0, 448 / 3, 2.0**-7, 1e-30, 3.0e38, 1e-44, formats.FLT_MAX]
INVERSES = [1.0, 1 / 56, 1e-38, 1e-42, 1e35, np.inf]
ALL_16_BITS = np.arange(65536, dtype=np.uint16)


def f32_values(on_cpu):
    """(for casts with scales, for conversions); fewer for the emulator."""
    fp8 = conversions.boundaries(FP8)
    if not on_cpu:
        return [np.concatenate([fp8, conversions.strided(262147)])] * 2
    return np.concatenate([fp8, conversions.strided(16411)]), np.concatenate(
        [conversions.boundaries([*FP8, BF16, F16]), conversions.strided(4099)])


class Conversions:
    def __init__(self, bin_dir, folder, target):
        on_cpu = "sm_" not in target
        scales = SCALES if on_cpu else SCALES[:2]
        cast_values, narrow_values = f32_values(on_cpu)
        doubles = conversions.doubles()
        codes_16 = {fmt: ALL_16_BITS.view(conversions.DTYPES[fmt]) for fmt in (BF16, F16)}
        self.cases = [
            (conversions.casting(SINGLE, len(cast_values), scales), cast_values),
            (conversions.narrowing("f32", len(narrow_values)), narrow_values),
            (conversions.narrowing("f64", len(doubles)), doubles),
            (conversions.widening_e8m0(), np.arange(256, dtype=np.uint8).view(E8M0)),
            *((conversions.casting(fmt, 65536, scales), codes_16[fmt]) for fmt in codes_16),
            *((conversions.narrowing(fmt.name, 65536), codes_16[fmt]) for fmt in codes_16),
            *((conversions.widening_16(fmt), codes_16[fmt]) for fmt in codes_16),
            *((conversions.widening(fmt, INVERSES), np.arange(256, dtype=np.uint8).view(conversions.DTYPES[fmt])) for fmt in FP8),
        ]
        text = "".join(entry.text for entry, _ in self.cases)
        self.cases = {entry.name: (entry, values) for entry, values in self.cases}
        self.program = Program(bin_dir, folder, text, "--recipe=none", *TARGETS[target])


ENTRIES = ["cast_f32", "cast_bf16", "cast_f16", "narrow_f64", "narrow_f32", "narrow_bf16", "narrow_f16", "widen_bf16", "widen_f16", "widen_f8E4M3FN", "widen_f8E5M2", "widen_f8E8M0FNU"]


@pytest.fixture(scope="module", params=TARGETS)
def compiled(request, bin_dir, tmp_path_factory):
    return Conversions(bin_dir, tmp_path_factory.mktemp("conversions"), request.param)


@pytest.mark.parametrize("name", ENTRIES)
def test_conversions(compiled, name):
    entry, values = compiled.cases[name]
    results = compiled.program.call(entry.name, *entry.inputs(values))
    for got, expected, (_, type_name) in zip(results, entry.expected, entry.results):
        codes = expected(values)
        wrong = conversions.wrong_codes(got, codes)
        first = [(values[i], got.ravel()[i], hex(np.ravel(codes)[i])) for i in wrong[:5]]
        assert not len(wrong), f"{len(wrong)} differ in {type_name} (input, got, expected): {first}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a processor of x86-64")
@pytest.mark.parametrize("fmt", [*FP8, F16], ids=lambda fmt: fmt.name)
def test_widening_without_instructions_of_f16(bin_dir, tmp_path, fmt):
    """x86-64-v2 has no instruction that widens f16, by way of which FP8 is decoded."""
    codes = np.arange(1 << fmt.bits).astype(fmt.code_type)
    values = codes.view(conversions.DTYPES[fmt])
    entry = conversions.Entry("widen", len(values), fmt.name)
    entry.convert("extf", SINGLE, lambda _: SINGLE.round(fmt.decode(codes)))
    program = Program(bin_dir, tmp_path, entry.text, "--recipe=none", "--cpu=x86-64-v2")
    (wide,) = program.call("widen", *entry.inputs(values))
    assert not len(conversions.wrong_codes(wide, entry.expected[0](values)))


@pytest.mark.parametrize("target", TARGETS)
def test_cast_to_e8m0_is_refused(run, target):
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf8E8M0FNU> {\n  %y = arith.truncf %x : tensor<4xf32> to tensor<4xf8E8M0FNU>\n  return %y : tensor<4xf8E8M0FNU>\n}\n"
    done = run("fp8-compile", "-", "-o", "/dev/null", "--recipe=none", *TARGETS[target], stdin=text)
    assert done.returncode == 1 and done.stderr.startswith("<stdin>:2:8: error: a cast to f8E8M0FNU does not say how it rounds"), done.stderr


@pytest.mark.parametrize("sign", [0, 1])
def test_steps_of_the_reference(sign):
    """all_f32.py asks the reference for the first f32 of every code alone: the same as asking for every f32."""
    for fmt, scale in [(E4M3, 448 / 3), (E5M2, 1e-30)]:
        cast = lambda values, fmt=fmt, scale=scale: formats.cast(values, scale, fmt)
        steps = Steps(cast)
        for start in [0, 0x3F800000, 0x43DF0000, 0x7F7F0000]:
            values = np.arange(start, start + 2**17, dtype=np.uint32) | np.uint32(sign << 31)
            np.testing.assert_array_equal(steps.codes(int(values[0]), len(values)), cast(values.view(np.float32)))


def test_the_command_for_all_f32(source_dir, build_dir):
    """Around 448, the largest value of E4M3."""
    command = [sys.executable, source_dir / "test/python/numerics/all_f32.py", f"--build={build_dir}"]
    done = subprocess.run([*command, "--first=0x43dc0000", "--last=0x43e40000", "--chunk=0x40000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "524288 values, 8 conversions each: 0 wrong" in done.stdout
