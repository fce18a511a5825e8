# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.scaled_matmul by value on every target: scales per tensor, row, block and MX block against
numerics/products.py, bit for bit. On the emulator products sum in the order of K (FP8EMU_SUMS=korder)."""
import numpy as np
import pytest
from numerics import matmuls
from numerics.formats import BF16, E4M3, E5M2, F16, SINGLE
from numerics.matmuls import Product

from harness import Program, random_generator

CHIPS = ("sm_89", "sm_90a", "sm_100a", "sm_120a")
# Without ptxas, a third of the time: test/python/gpu asks it about every family of kernels.
TARGETS = {
    "cpu": ["--target=cpu"],
    "x86-64-v3": ["--target=cpu", "--cpu=x86-64-v3"],
    **{chip: [f"--target={chip}", "--strict-accumulation", "--order=program", "--ptxas=none"] for chip in CHIPS},
}
# MX products need MX tensor cores: the other chips refuse the recipe.
EVERYWHERE = [(kind, target) for kind in matmuls.KINDS for target in TARGETS if not ("mx" in kind and target in ("sm_89", "sm_90a"))]
# The emulator takes a second or two for each kind and chip.
SOME_CHIPS = [pytest.param(kind, target, marks=[pytest.mark.slow(one_of=4)] if target in CHIPS else []) for kind, target in EVERYWHERE]


def build(bin_dir, folder, cases, target):
    return Program(bin_dir, folder, matmuls.entry("main", cases), "--recipe=none", *TARGETS[target])


@pytest.fixture(autouse=True)
def sums_in_the_order_of_k(monkeypatch):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")


def draw(rng, kind, m, n, k):
    """A product of these sizes, its other properties at random."""
    pick = lambda values: values[rng.integers(len(values))]
    return Product(
        kind, m, n, k, (pick([E4M3, E5M2]), pick([E4M3, E5M2])), pick([SINGLE, BF16, F16]),
        not kind.startswith("block") and bool(pick([0, 1])), bool(pick([0, 1])), pick(["mk", "km"]), pick(["kn", "nk"]))


EDGES = [0, 1, 31, 32, 33, 127, 128, 129, 256, 300]


@pytest.mark.parametrize("kind, target", SOME_CHIPS)
def test_edges_of_k(bin_dir, tmp_path, kind, target):
    rng = random_generator(90, len(kind))
    cases = [draw(rng, kind, 17, 40, k) for k in EDGES]
    matmuls.check(build(bin_dir, tmp_path, cases, target), "main", cases, [case.operands(rng) for case in cases])


@pytest.mark.parametrize("kind", matmuls.KINDS)
def test_several_blocks_of_k(bin_dir, tmp_path, kind):
    """The CPU's micro-kernel takes 512 indices of K at most while a panel is in a cache, several sums from zero of 128
    among them, and packs about 1,024 at a time from 2,048 on."""
    rng = random_generator(95, len(kind))
    cases = [draw(rng, kind, 17, 40, k) for k in (511, 513, 640, 1025, 2100)]
    matmuls.check(build(bin_dir, tmp_path, cases, "x86-64-v3"), "main", cases, [case.operands(rng) for case in cases])


def sweep(kind, count, salt):
    """Products in which each size from 1 to 300 comes at most once per dimension."""
    rng = random_generator(salt, len(kind))
    sizes = zip(*(rng.permutation(300)[:count] + 1 for _ in range(3)))
    return [draw(rng, kind, *map(int, each)) for each in sizes], rng


@pytest.mark.parametrize("kind, target", SOME_CHIPS)
def test_some_shapes(bin_dir, tmp_path, kind, target):
    cases, rng = sweep(kind, 12 if "86" in target or target == "cpu" else 4, 91)
    matmuls.check(build(bin_dir, tmp_path, cases, target), "main", cases, [case.operands(rng) for case in cases])


@pytest.mark.slow(one_of=40)
@pytest.mark.parametrize("start", range(0, 300, 30))
@pytest.mark.parametrize("kind, target", [(kind, target) for kind, target in EVERYWHERE if target != "x86-64-v3"])
def test_every_size_from_1_to_300(bin_dir, tmp_path, kind, target, start):
    part = sweep(kind, 300, 92)[0][start : start + 30]
    rng = random_generator(94, len(kind), start)
    matmuls.check(build(bin_dir, tmp_path, part, target), "main", part, [case.operands(rng) for case in part])


@pytest.mark.parametrize("kind, target", SOME_CHIPS)
def test_zeros_infs_nans_and_extreme_scales(bin_dir, tmp_path, kind, target):
    """Rows of every special byte, and scales at the ends of their range; one summand per sum is not zero, so
    that no order or fusion matters."""
    rng = random_generator(93)
    cases = [Product(kind, 40, 33, 130, formats) for formats in [(E4M3, E5M2), (E5M2, E4M3)]]
    operands = []
    for case in cases:
        a, b, sa, sb, c = case.operands(rng)
        keep = rng.integers(0, 130, 40)
        one = np.zeros_like(a)
        one[np.arange(40), keep] = rng.choice([0x7E, 0x7F, 0xFF, 0x7C, 0xFC, 0x00, 0x80, 0x01, 0x81], 40)
        # MX tensor cores multiply the two elements before their scales: an element whose own scale makes it
        # larger than any f32 (2^15.8 from 2^112 on) is Inf elsewhere, and may give a finite product there.
        largest = 127 + 112 if target in ("sm_100a", "sm_120a") else 254
        extreme = [0, 1, 100, largest, 255] if "mx" in kind else np.float32([0, 1e-45, 1e-38, 1e38, np.inf, np.nan])
        sa = np.asarray(rng.choice(extreme, np.shape(sa))).astype(np.asarray(sa).dtype)
        operands.append([one, b, sa, sb, c])
    matmuls.check(build(bin_dir, tmp_path, cases, target), "main", cases, operands)
