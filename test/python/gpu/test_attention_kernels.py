# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The kernels of attention, forward and backward, on the emulator with all of its checks: against attention in f64, and what they
# read, write and compute.

import json
import os
import re
import shutil
import subprocess

import numpy
import pytest
from attention_cases import MASKS, Case
from compiled import CHIPS, PTXAS, Function, assemble

import cuda_driver

# Probabilities, gradients of scores and results are rounded to the type of the operands: an error of at most half a unit in the
# last place each, which add up as squares; sums in f32, and exponentials of 2 ulp, add little.
ERROR = {"bf16": 2**-8, "f16": 2**-11}
SQUARE = (1, 2, 2, 90, 90, 32, 48)


def check(case, got, want):
    for name, values in got.items():
        expected = want[name]
        assert (numpy.isnan(values) == numpy.isnan(expected)).all(), name
        finite, infinite = numpy.isfinite(expected), numpy.isinf(expected)
        assert (values[infinite] == expected[infinite]).all(), name
        if not finite.any():
            continue
        error, size = abs(values[finite] - expected[finite]), (abs(expected) + case.terms.get(name, 0))[finite]
        # Exponentials of a score have its error, which is relative to the largest one.
        limit = 2**-22 * (1 + case.largest) if name in "ml" else ERROR[case.element]
        assert (error**2).mean() <= limit**2 * (size**2).mean(), name
        assert error.max() <= 8 * limit * size.max(), name


def run(case, compile, arch, seed=1):
    print("seed", seed)
    got, want, functions = case.run(compile, arch, numpy.random.default_rng(seed))
    check(case, got, want)
    return got, functions


@pytest.mark.parametrize("number, mask", list(enumerate(MASKS)), ids=list(MASKS))
def test_masks(compile, number, mask):
    run(Case(SQUARE if MASKS[mask][0] else (2, 2, 1, 70, 150, 32, 48), mask), compile, CHIPS[number % 4])


@pytest.mark.slow(one_of=16)
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("mask", MASKS)
def test_masks_on_all_chips(compile, mask, arch):
    run(Case((2, 1, 2, 200, 200, 64, 64), mask), compile, arch, seed=2)


@pytest.mark.parametrize("tokens, keys", [(1, 1), (1, 300), (17, 17), (300, 1), (129, 65), (1000, 1000)], ids=str)
def test_tokens(compile, tokens, keys):
    run(Case((1, 1, 2, tokens, keys, 16, 16)), compile, "sm_90a", seed=3)


HEADS = [(8, 8), (40, 40), (64, 128), (80, 80), (96, 96), (120, 128), (128, 128), (192, 128), (160, 160), (200, 256), (256, 256)]


@pytest.mark.parametrize("depth, width", HEADS, ids=str)
@pytest.mark.parametrize("arch", ["sm_89", "sm_90a", "sm_100a"])
def test_heads(compile, depth, width, arch):
    """On sm_89 shared memory leaves room for smaller steps; the gradients of key and value of more than 288 elements do not fit the
    registers of one kernel.
    """
    _, functions = run(Case((1, 1, 1, 150, 170, depth, width), scale=depth**-0.5), compile, arch, seed=4)
    assert len(functions[1].calls) == (2 if depth + width <= 288 else 3)


LAYOUTS = {
    "heads_first": dict(layouts=("bhgid", "bhjd", "bhje", "bhgie"), keys=("bhjd", "bhje")),
    "tokens_first": dict(layouts=("ibhgd", "jbhd", "jbhe", "ibhge"), keys=("jbhd", "jbhe")),
    "transposed": dict(layouts=("bhgdi", "bhdj", "bhje", "bihge"), keys=("bjhd", "bhej")),
    "shared_keys": dict(layouts=("bihgd", "bjd", "bje", "bihge"), keys=("bjd", "bje")),
    "shared_values": dict(layouts=("bihgd", "bjhd", "bje", "bihge"), keys=("bjhd", "bje")),
    "gradients_by_head": dict(layouts=("bihgd", "bjhd", "bjhe", "bihge"), keys=("bgjhd", "bgjhe")),
    "keys_by_head": dict(layouts=("bihgd", "bjhgd", "bjhge", "bihge"), keys=("bjhgd", "bjhge")),
}


@pytest.mark.parametrize("number, layout", list(enumerate(LAYOUTS)), ids=list(LAYOUTS))
def test_layouts(compile, number, layout):
    _, functions = run(Case((2, 2, 3, 70, 50, 16, 24), "causal" if number % 2 else "none", **LAYOUTS[layout]), compile, CHIPS[number % 4], seed=5)
    assert [len(function.calls) for function in functions] == [1, 3 if layout == "shared_values" else 2]


@pytest.mark.parametrize("arch", CHIPS)
def test_keys_that_no_query_sees(compile, arch):
    """A block of such keys has no step in the gradients' kernel, whose heads follow one another in shared memory."""
    run(Case((1, 1, 3, 40, 300, 16, 16), "causal", layouts=("bihgd", "bjd", "bje", "bihge"), keys=("bjd", "bje")), compile, arch, seed=13)


FURTHER = {
    "heads": [("hgij", "f32")],
    "all_heads": [("ij", "f32")],
    "not_summed": [("bhgij", "bf16")],
    "keys_first": [("jhig", "f32")],
    "several": [("gij", "bf16"), ("bij", "f32")],
    "rows": [("bhgi", "f32")],
    "rows_and_heads": [("ibgh", "bf16"), ("hgij", "f32"), ("gbhi", "f32")],
}


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("number, further", list(enumerate(FURTHER.values())), ids=list(FURTHER))
def test_gradients_of_scores(compile, number, further, arch):
    """Of a bias: sums over the other outer dimensions. A block of tiles that a mask hides stores zeros. Without keys: a
    number of each row, by the kernel for the query.
    """
    mask = ("bias", "causal", "near")[(number + CHIPS.index(arch)) % 3]
    _, functions = run(Case((2, 2, 2, 70, 150, 16, 24), mask, further=further), compile, arch, seed=14)
    assert len(functions[1].calls) == 2 + sum("j" in letters for letters, _ in further)


class Late(Case):
    """The values of keys that some queries do not see are NaN, in one of two batches: those that no query of the first half
    sees, or, in a window, those that no query of the last quarter sees."""

    def arrays(self, rng):
        made = super().arrays(rng)
        half = self.sizes["i"] // 2
        made["v"][0, slice(half) if self.mask == "window" else slice(half, None)] = numpy.nan
        return made


@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize("arch", CHIPS)
def test_keys_that_are_left_out_on_a_condition(compile, arch, mask):
    """Where it is false, hidden keys are multiplied by probabilities of 0, and a NaN among them reaches the output."""
    for condition in (False, True):
        case = Late((2, 1, 1, 512, 512, 16, 24), mask, condition=condition)
        got, want, _ = case.run(compile, arch, numpy.random.default_rng(18))
        assert numpy.isnan(want["o"][0]).all() and not numpy.isnan(got["o"][1]).any()
        tile = got["o"][0, -128:] if mask == "window" else got["o"][0, :128]  # of queries
        assert numpy.isnan(tile).all() == (not condition)
        assert condition or numpy.isnan(got["o"][0]).all()
        run(Case((1, 2, 2, 300, 300, 16, 24), mask, condition=condition, further=[("hij", "f32")]), compile, arch, seed=19)


@pytest.mark.parametrize("mask", ["none", "causal", "bias", "lengths"])
@pytest.mark.parametrize("number, sink", list(enumerate(["hg", "b", "bhgi"])))
def test_sinks(compile, number, sink, mask):
    """Of heads, batches and rows; also of rows beyond the last full tile."""
    run(Case((2, 2, 2, 70, 150, 16, 24), mask, sink=sink), compile, CHIPS[(number + len(mask)) % 4], seed=16)


class Extremes(Case):
    """Sinks that are all of a row, nothing, and NaN; keys that rows do not see."""

    def arrays(self, rng):
        made = super().arrays(rng)
        made["sink"][:] = numpy.inf, -numpy.inf, numpy.nan, 200
        made["lengths"][:] = 0, 30
        return made


@pytest.mark.parametrize("arch", CHIPS)
def test_extreme_sinks(compile, arch):
    """A row that sees no key has the output 0 where its sink is a number, and is NaN where there is none."""
    case = Extremes((2, 4, 1, 40, 70, 16, 24), "lengths", sink="h")
    got, want, _ = case.run(compile, arch, numpy.random.default_rng(17))
    check(case, {name: got[name] for name in ("o", "m", "l")}, want)


def test_gradient_of_a_bias_of_one_query(compile):
    run(Case((2, 2, 1, 1, 150, 16, 24), "bias", further=[("hj", "f32")]), compile, "sm_90a", seed=15)


@pytest.mark.parametrize("element, out", [("f16", None), ("bf16", "f32"), ("f16", "f32")])
def test_types(compile, element, out):
    run(Case(SQUARE, "causal", element=element, out=out), compile, "sm_120a", seed=6)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_dropout(compile, mask):
    run(Case(SQUARE, mask, dropout=True), compile, "sm_90a", seed=7)


def test_large_scores(compile):
    """Exponentials of these scores overflow without the maximum."""
    run(Case((1, 1, 1, 100, 200, 64, 64), scale=40.0), compile, "sm_90a", seed=8)


class Special(Case):
    """Scores and keys of infinities and NaN; a row of a batch that sees no key."""

    def arrays(self, rng):
        made = super().arrays(rng)
        made["lengths"][:] = 0, 30
        return made


@pytest.mark.parametrize("zero", [False, True])
def test_rows_without_keys(compile, zero):
    """All scores are -∞: NaN, or 0 where the operation says so. Nothing else is touched."""
    case = Special((2, 1, 1, 40, 50, 16, 16), "lengths")
    made = case.arrays(numpy.random.default_rng(9))
    want = case.expected(made)
    result = lambda letters, element: numpy.full(case.shape(letters), numpy.nan, element)
    function = compile(case.forward("sm_90a", ", zero_empty_rows" if zero else ""), "sm_90a")
    *_, o, m, l = function(made["q"], made["k"], made["v"], made["lengths"], result(case.o, made["q"].dtype),
                           result("bhgi", numpy.float32), result("bhgi", numpy.float32))
    empty = 0.0 if zero else numpy.nan
    assert numpy.array_equal(o[0].astype(float), numpy.full_like(want["o"][0], empty), equal_nan=True)
    assert (m[0] == -numpy.inf).all() and numpy.array_equal(l[0], numpy.full_like(l[0], empty), equal_nan=True)
    check(case, {"o": o[1].astype(float), "m": m[1].astype(float), "l": l[1].astype(float)}, {n: want[n][1] for n in "oml"})


class Infinite(Case):

    def arrays(self, rng):
        made = super().arrays(rng)
        made["q"][0, 3, 0, 0, 0], made["q"][0, 4, 0, 0, 2] = numpy.inf, numpy.nan
        made["v"][0, 5, 0, 1] = numpy.nan
        return made


def test_infinities_and_nan(compile):
    case = Infinite((1, 1, 1, 40, 50, 16, 16))
    made = case.arrays(numpy.random.default_rng(10))
    want = case.expected(made)
    result = lambda letters, element: numpy.full(case.shape(letters), numpy.nan, element)
    function = compile(case.forward("sm_89"), "sm_89")
    *_, o, m, l = function(made["q"], made["k"], made["v"], result(case.o, made["q"].dtype), result("bhgi", numpy.float32),
                           result("bhgi", numpy.float32))
    assert numpy.isnan(want["o"]).any() and numpy.isfinite(want["o"]).any()
    check(case, {"o": o.astype(float)}, want)


def test_powers_of_two(compile):
    case = Case(SQUARE)
    got, want, _ = case.run(compile, "sm_90a", numpy.random.default_rng(11))
    made = case.arrays(numpy.random.default_rng(11))
    scale, case.scale = case.scale, case.scale / numpy.log(2)
    result = lambda letters, element: numpy.full(case.shape(letters), numpy.nan, element)
    function = compile(case.forward("sm_90a", ", base_two"), "sm_90a")
    *_, o, _, l = function(made["q"], made["k"], made["v"], result(case.o, made["q"].dtype), result("bhgi", numpy.float32),
                           result("bhgi", numpy.float32))
    case.scale = scale
    check(case, {"o": o.astype(float), "l": l.astype(float)}, want)


def test_same_bits_in_any_order(build_dir, kernel_compiler, tmp_path, monkeypatch):
    """Warps and blocks run in another order for each seed; no sum depends on it."""
    results = []
    for seed in ("1", "77"):
        monkeypatch.setitem(os.environ, "FP8EMU_SEED", seed)
        driver = cuda_driver.Driver(shutil.copy(build_dir / "lib/libfp8emu.so", tmp_path / ("emulator%s.so" % seed)))
        compile = lambda source, arch, driver=driver: Function(kernel_compiler, driver, source, arch)
        got, _ = run(Case((1, 2, 2, 200, 200, 32, 32), "causal"), compile, "sm_90a", seed=12)
        results.append(b"".join(values.tobytes() for values in got.values()))
    assert results[0] == results[1]


def test_unaligned_rows_are_remarked(bin_dir):
    """Rows that are no multiple of 16 bytes are copied element by element; a remark tells it. Others are not."""
    remark = "the key of attention is copied element by element"
    for layout, expected in (("transposed", True), ("heads_first", False)):
        source = Case((1, 1, 1, 32, 32, 16, 16), **LAYOUTS[layout]).forward("sm_90a")
        done = subprocess.run([bin_dir / "fp8-opt", "--fp8-gpu-kernels-pipeline", "--remarks-filter=.*", "--remark-policy=all"], input=source,
                              capture_output=True, text=True)
        assert done.returncode == 0 and (remark in done.stderr) == expected, done.stderr


TOKENS = 512


def count(bin_dir, folder, function, call, elements):
    """The counts of one launch by `fp8-ptx run`, on tensors of zeros: `elements` are those of the arguments."""
    (folder / "kernel.ptx").write_text(function.ptx)
    kernel, *dims, _ = call
    grid, block = (",".join(str(function.constants[name.strip()][0]) for name in part.split(",")) for part in dims)
    subprocess.run([bin_dir / "fp8-ptx", "run", folder / "kernel.ptx", "--kernel=" + kernel, "--grid=" + grid, "--block=" + block,
                    "--shared=%d" % function.shared(kernel), "--profile=json:%s" % (folder / "profile.json"),
                    *("--arg=out:x%d:%s" % one for one in enumerate(elements))], check=True, capture_output=True)
    return json.loads((folder / "profile.json").read_text())["kernels"][0]["total"]


@pytest.mark.parametrize("mask", ["none", "causal", "window"])
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("arch", ["sm_89", "sm_90a"])
def test_counts(compile, bin_dir, tmp_path, arch, depth, mask):
    """Products: 4, and backward 14, times tokens² · depth multiply-adds, in all blocks of 128 queries that a mask leaves. Memory: all
    tensors once, and the streamed ones once for each 128 own rows. No banks in conflict.
    """
    case = Case((1, 1, 1, TOKENS, TOKENS, depth, depth), mask, scale=depth**-0.5)
    big, row = "bf16[%d]" % (TOKENS * depth), "f32[%d]" % TOKENS
    forward, backward = compile(case.forward(arch), arch), compile(case.backward(arch), arch)
    counts = [count(bin_dir, tmp_path, forward, forward.calls[0], [big] * 4 + [row] * 2)]
    counts += [count(bin_dir, tmp_path, backward, call, [big] * 4 + [row] * 3 + [big] * 3) for call in backward.calls]
    tiles = TOKENS // 128
    # Tiles of 128 queries see 147 keys in the window: at most three steps of 64.
    share = {"none": 1, "causal": (tiles + 1) / (2 * tiles), "window": 192 / TOKENS}[mask]
    square, tensor = TOKENS**2 * depth * share, TOKENS * depth * 2
    for counted, products, own, streamed in zip(counts, (4, 6, 8), (2, 3, 4), (2, 2, 2)):
        assert counted["bank_conflicts"] == 0
        assert counted["tensor_operations"] <= 1.02 * products * square
        assert counted["global_sectors"] * 32 <= 1.15 * tensor * (own + streamed * tiles * share)


@pytest.mark.skipif(not PTXAS, reason="needs ptxas")
@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("depth", [64, 128, 256])
def test_registers(compile, arch, depth):
    """Nothing spills, no thread has an array in memory, and ptxas inserts no waits or fences (its remarks C75xx)."""
    for mask in ("none", "causal") if depth <= 128 else ("causal",):
        case = Case((1, 1, 1, TOKENS, TOKENS, depth, depth), mask, further=[("hgij", "f32")])
        for source in (case.forward(arch), case.backward(arch)):
            text = assemble(compile(source, arch).ptx, arch)
            assert not re.search(r"C75\d\d|warning", text), text
            assert re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores", text) == [("0", "0")] * text.count("Compiling entry")
