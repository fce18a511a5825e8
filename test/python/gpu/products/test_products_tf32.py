# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products of f32 operands of 10 bits of mantissa, by the tensor cores' TF32, on the emulator, all its checks on. A product of two
# such numbers is exact in f32, so that sums in the order of K have one value.

import re

import numpy
import pytest
from compiled import PTXAS, assemble
from wide_products import Product

MMA = r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.tf32\.tf32\.f32"
INSTRUCTIONS = {"sm_89": MMA, "sm_90a": r"wgmma\.mma_async\.sync\.aligned\.m64n\d+k8\.f32\.tf32\.tf32", "sm_100a": r"tcgen05\.mma\.cta_group::1\.kind::tf32",
                "sm_120a": MMA}
WIDE = ["sm_90a", "sm_100a"]
F32 = ("f32", "f32")


@pytest.mark.parametrize("shape", [(1, 1, 1), (100, 130, 77), (300, 260, 200)])
@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_sums_in_k_order(compile, arch, shape):
    product = Product(arch, shape, F32, tf32=True)
    product.check_k_order(compile)
    assert len(product.function.calls) == 1
    assert re.search(INSTRUCTIONS[arch], product.function.ptx)


@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_lower_bits_are_not_read(compile, arch):
    """The attribute promises that they are 0: what a tensor core does with others shows that it is one."""
    ones = Product(arch, (8, 8, 8), F32, tf32=True)
    a, b = numpy.full((8, 8), 1 + 2.0**-12, numpy.float32), numpy.eye(8, dtype=numpy.float32)
    result = compile(ones.source(), arch)(a, b, *map(numpy.float32, (1, 1)), numpy.full((8, 8), numpy.nan, numpy.float32))[-1]
    assert (result == 1).all()


@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_batches(compile, arch):
    Product(arch, (70, 33, 48), F32, batch=3, out="bf16", tf32=True).check_integers(compile)


@pytest.mark.parametrize("transposed", [(True, False), (True, True)])
@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_transposed_operands_are_copied(compile, arch, transposed):
    product = Product(arch, (60, 70, 50), F32, transposed=transposed, tf32=True)
    product.check_k_order(compile)
    assert len(product.function.calls) == 1 + sum(transposed)


@pytest.mark.parametrize("columns", [16, 64, 256])
@pytest.mark.parametrize("arch", WIDE)
def test_tiles(compile, arch, columns):
    Product(arch, (140, 270, 150), F32, config="tile_n = %d" % columns, tf32=True).check_k_order(compile)
    Product(arch, (40, 300, 50), F32, config="tile_n = 16, swapped = true", tf32=True).check_integers(compile)


@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_without_the_attribute_products_are_exact(compile, arch):
    function = compile(Product(arch, (8, 8, 8), F32).source(), arch)
    assert "fma.rn.f32" in function.ptx and "tf32" not in function.ptx


@pytest.mark.skipif(not PTXAS, reason="ptxas is not installed")
@pytest.mark.parametrize("arch", INSTRUCTIONS)
def test_no_spills(compile, arch):
    message = assemble(compile(Product(arch, (256, 256, 256), F32, tf32=True).source(), arch).ptx, arch)
    assert "0 bytes spill stores, 0 bytes spill loads" in message and "warning" not in message, message
