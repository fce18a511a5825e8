# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every form of a matrix product (forms.py), by value: in high precision and in FP8.

Operands are multiples of a quarter, so that without a recipe sums are exact in any order. In FP8
the expected sums are those of the quantized operands, in f32 in the order of the program.
"""

import json

import numpy as np
import pytest

import reference
from forms import build_forms
from harness import E4M3, Program, assert_same_bits, random_generator

FORMS = build_forms()


class Compiled:
    def __init__(self, bin_dir, folder, recipe):
        text = "".join(form.function() for form in FORMS.values())
        self.program = Program(
            bin_dir, folder, text, f"--recipe={recipe}", "--sites=all", f"--report=json:{folder / 'report'}"
        )
        self.report = json.loads((folder / "report").read_text())


@pytest.fixture(scope="module", params=["none", "current"])
def compiled(request, bin_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, Compiled(bin_dir, folder, request.param)


def quantize(x):
    scale = reference.current_scale(reference.amax(x), E4M3)
    return reference.cast(x, scale, E4M3), reference.scale_inv(scale)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_form(compiled, form):
    recipe, program = compiled
    rng = random_generator(40, *map(ord, form.name))
    arguments = form.arguments(rng)
    (result,) = program.program.call(form.name, *arguments)
    a, b = form.operands(arguments)
    scale = np.float32(1)
    if recipe == "current" and not form.kept:
        (a, x), (b, y) = quantize(a), quantize(b)
        scale = x * y
    assert_same_bits(result, form.contract(a, b, scale, *arguments[2:]))

    sites = [site for site in program.report["sites"] if site["entry"] == form.name]
    assert {site["decision"] for site in sites} == {"fp8" if recipe == "current" and not form.kept else "high"}
    for site in sites:
        assert {key: site[key] for key in ("batch", "m", "n", "k")} == {
            key: form.extent(key) for key in ("batch", "m", "n", "k")
        }
        assert site["role"] in ("fprop", "other")
