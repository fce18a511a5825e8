# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A mixture of experts: products of groups of rows, whose sizes are known only when the step runs.

experts/step.py is the step in JAX, which writes ragged_dot as a product of masked rows with the weights of all experts. The
compiled step multiplies the rows of each expert alone, and has the bits of numpy.
"""

import json
import pathlib

import numpy as np
import pytest
from numerics import products
from numerics import reference as rules
from numerics.formats import BF16 as BF16_CODES
from numerics.formats import E4M3 as E4M3_CODES
from numerics.formats import SINGLE, decode_e8m0

import reference
from harness import BF16, E4M3, E5M2, F32, Program, assert_same_bits, load, random_generator, tensor_type

HERE = pathlib.Path(__file__).resolve().parent / "experts"
ROLES = [("up", "fprop"), ("down", "fprop"), ("down", "wgrad"), ("down", "dgrad"), ("up", "wgrad"), ("up", "dgrad")]


def spans(ends, rows):
    """The rows of each group, as fp8.group_rows has them."""
    begin, found = 0, []
    for end in ends:
        end = max(begin, min(int(end), rows))
        found.append(slice(begin, end))
        begin = end
    return found


def multiply_rows(a, b, ends, split=False, transposed=False):
    """The rows a [T, K] of each group times its b [G, K, N], or [G, N, K] if `transposed`; sums in f32."""
    sums = np.zeros((a.shape[0], b.shape[1 if transposed else 2]), F32)
    for group, rows in enumerate(spans(ends, a.shape[0])):
        sums[rows] = reference.dot(a[rows], b[group] if transposed else b[group].T, split)
    return sums


def multiply_columns(a, b, ends, split=False):
    """For each group, the sum over its rows of a [T, M] times b [T, N]: [G, M, N]."""
    return np.stack([reference.dot(a[rows].T, b[rows].T, split) for rows in spans(ends, a.shape[0])])


class Cast:
    """The casts of a step; `scales` has those that are not computed from the tensor."""

    def __init__(self, scales=None):
        self.scales, self.amaxes = scales, {}

    def __call__(self, name, value, fmt):
        self.amaxes[name] = (reference.amax(value), fmt)
        if self.scales is None:
            scale = reference.current_scale(self.amaxes[name][0], fmt)
        else:
            scale = self.scales.get(name, F32.type(1))
        return reference.cast(value, scale, fmt), reference.scale_inv(scale)


def keep(name, value, fmt):
    return value, None


def scaled(sums, a, b):
    return sums if a[1] is None else (a[1] * b[1]) * sums


def step(inputs, cast):
    """loss, y, and the gradients of down, up and x."""
    down, up, x, experts, target = inputs
    ends = np.cumsum([np.sum(experts == expert) for expert in range(len(up))])
    split = cast is not keep
    x8, up8 = cast("x", x, E4M3), cast("up", up, E4M3)
    before = scaled(multiply_rows(x8[0], up8[0], ends), x8, up8)
    hidden = np.maximum(before, 0)
    h8, down8 = cast("hidden", hidden, E4M3), cast("down", down, E4M3)
    y = scaled(multiply_rows(h8[0], down8[0], ends), h8, down8)
    dy = 2 * (y - target)
    dy8 = cast("dy", dy, E5M2)
    d_down = scaled(multiply_columns(h8[0], dy8[0], ends, split), h8, dy8)
    d_hidden = scaled(multiply_rows(dy8[0], down8[0], ends, split, transposed=True), dy8, down8)
    d_before = np.where(before > 0, d_hidden, F32.type(0))
    d8 = cast("d_before", d_before, E5M2)
    d_up = scaled(multiply_columns(x8[0], d8[0], ends, split), x8, d8)
    d_x = scaled(multiply_rows(d8[0], up8[0], ends, split, transposed=True), d8, up8)
    return np.sum((y - target) ** 2), y, d_down, d_up, d_x


@pytest.fixture(scope="module")
def exported():
    with np.load(HERE / "step.npz") as values:
        read = lambda kind, count: [values[f"{kind}{i}"] for i in range(count)]
        return read("in", 5), read("out", 5)


def compile_step(bin_dir, folder, *options):
    report = folder / "report.json"
    program = Program(bin_dir, folder, (HERE / "step.mlir").read_text(), f"--report=json:{report}", *options)
    return program, json.loads(report.read_text())["sites"]


def assert_close(actual, expected, tolerance):
    error = np.linalg.norm(actual.astype(np.float64) - expected) / np.linalg.norm(expected.astype(np.float64))
    assert error < tolerance, error


def assert_same_step(actual, expected):
    loss, *others = actual
    assert_close(loss, expected[0], 1e-5)  # a sum of 800 f32, in any order
    for value, reference_value in zip(others, expected[1:], strict=True):
        assert_same_bits(value, reference_value)


def test_in_high_precision(bin_dir, tmp_path, exported):
    inputs, results = exported
    program, sites = compile_step(bin_dir, tmp_path, "--recipe=none")
    assert [(s["site"], s["role"]) for s in sites] == ROLES
    for value, expected in zip(program.call("main", *inputs), results, strict=True):
        assert_close(value, expected, 1e-6)  # JAX sums in another order


def test_report(bin_dir, tmp_path):
    """The work is that of one product of all rows, and the weights are read once."""
    _, sites = compile_step(bin_dir, tmp_path, "--recipe=current")
    for site in sites:
        m, n, k = {"fprop": (40, 36, 20), "dgrad": (40, 20, 36), "wgrad": (20, 36, 40)}[site["role"]]
        m, n, k = (m, n, k) if site["site"] == "up" else {"fprop": (40, 20, 36), "dgrad": (40, 36, 20), "wgrad": (36, 20, 40)}[site["role"]]
        assert (site["batch"], site["m"], site["n"], site["k"]) == (1, m, n, k)
        assert site["operand_bytes"] == {"wgrad": 40 * 56}.get(site["role"], 40 * k + 5 * 20 * 36)
        assert "a product per group" in site["code"], site["code"]


def test_with_current_scaling(bin_dir, tmp_path, exported):
    inputs, results = exported
    program, sites = compile_step(bin_dir, tmp_path, "--recipe=current")
    assert [(s["site"], s["role"], s["decision"]) for s in sites] == [(*role, "fp8") for role in ROLES]
    actual = program.call("main", *inputs)
    assert_same_step(actual, step(inputs, Cast()))
    # Each cast to E4M3 has a mean error of about 1/40, and of 1/20 to E5M2; gradients also pass the relu where its argument
    # has another sign than in f32.
    for value, expected, tolerance in zip(actual, results, [0.08, 0.08, 0.1, 0.25, 0.25], strict=True):
        assert_close(value, expected, tolerance)


def test_with_delayed_scaling(bin_dir, tmp_path, exported):
    inputs, _ = exported
    program, _ = compile_step(bin_dir, tmp_path, "--recipe=delayed", "--amax-history-len=4")
    first = Cast({})
    state = tmp_path / "state"
    program.run("main", inputs, f"--save-state={state}", f"--outputs={tmp_path / 'outputs'}")
    outputs = load(tmp_path / "outputs")
    assert_same_step([outputs[str(i)] for i in range(5)], step(inputs, first))
    second = Cast({name: reference.delayed_scale(amax, fmt) for name, (amax, fmt) in first.amaxes.items()})
    program.run("main", inputs, f"--state={state}", f"--outputs={tmp_path / 'outputs'}")
    outputs = load(tmp_path / "outputs")
    assert_same_step([outputs[str(i)] for i in range(5)], step(inputs, second))


def cast_rows(value, fmt, axis):
    """A cast with a scale for all elements along `axis`."""
    amaxes = np.max(np.abs(value), axis=axis, keepdims=True)
    scales = np.vectorize(lambda amax: reference.current_scale(amax, fmt), otypes=[F32])(amaxes)
    # The reference's cast is with one scale, by which it multiplies in f32.
    return reference.cast(value.astype(F32) * scales, F32.type(1), fmt), reference.scale_inv(F32.type(1)) / scales


def multiply_rows_by_row(a, b, ends, axis, split=False):
    """As multiply_rows, where `axis` of b is contracted, with a scale per row of a, and per row or column of each b."""
    (a8, a_inv), (b8, b_inv) = cast_rows(a, E4M3, 1), cast_rows(b, E4M3, axis)
    sums = multiply_rows(a8, b8, ends, split, transposed=axis == 2)
    for group, rows in enumerate(spans(ends, a.shape[0])):
        sums[rows] *= a_inv[rows] * b_inv[group].reshape(1, -1)
    return sums


def multiply_columns_by_row(a, b, ends):
    (a8, a_inv), (b8, b_inv) = cast_rows(a, E4M3, 0), cast_rows(b, E4M3, 0)
    return (a_inv.reshape(-1, 1) * b_inv) * multiply_columns(a8, b8, ends, split=True)


def test_with_row_scaling(bin_dir, tmp_path, exported):
    """A scale per token, and in each weight one per row or column; in weight gradients one per column of all tokens."""
    inputs, results = exported
    program, sites = compile_step(bin_dir, tmp_path, "--recipe=row")
    assert [(s["site"], s["role"], s["recipe"]) for s in sites] == [(*role, "row") for role in ROLES]
    # Kernels of tensor cores find the groups themselves.
    assert all("per group" in s["code"] or "mma" in s["code"] for s in sites), [s["code"] for s in sites]
    down, up, x, experts, target = inputs
    ends = np.cumsum([np.sum(experts == expert) for expert in range(len(up))])
    before = multiply_rows_by_row(x, up, ends, 1)
    hidden = np.maximum(before, 0)
    y = multiply_rows_by_row(hidden, down, ends, 1)
    dy = 2 * (y - target)
    d_hidden = multiply_rows_by_row(dy, down, ends, 2, split=True)
    d_before = np.where(before > 0, d_hidden, F32.type(0))
    d_x = multiply_rows_by_row(d_before, up, ends, 2, split=True)
    expected = [y, multiply_columns_by_row(hidden, dy, ends), multiply_columns_by_row(x, d_before, ends), d_x]
    actual = program.call("main", *inputs)
    assert_same_step(actual, [np.sum((y - target) ** 2), *expected])
    for value, result in zip(actual, results, strict=True):
        assert_close(value, result, 0.15)


SIZES = {"uneven": [3, 19, 0, 14, 1], "one has all": [0, 40, 0, 0, 0], "none has any": [0] * 5, "all used": [8] * 5, "first": [40, 0, 0, 0, 0]}


@pytest.fixture(scope="module")
def current(bin_dir, tmp_path_factory):
    return compile_step(bin_dir, tmp_path_factory.mktemp("current"), "--recipe=current")[0]


def sized(inputs, sizes):
    """The inputs with other numbers of rows for each expert, of 40."""
    return [*inputs[:3], np.repeat(np.arange(6), [*sizes, 40 - sum(sizes)]).astype(np.int32), inputs[4]]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_sizes_of_groups(current, exported, sizes):
    inputs = sized(exported[0], sizes)
    assert_same_step(current.call("main", *inputs), step(inputs, Cast()))


def multiply_by_blocks(recipe, source, a, b, is_weight=True, split=False):
    """a [M, K] · b [N, K] with scales per block of K, cast from `source`; a weight b has square blocks of 128."""
    (a, b), wide = (a.astype(F32), b.astype(F32)), lambda codes: E4M3_CODES.decode(codes).astype(F32)
    if recipe == "mxfp8":
        (a8, ae), (b8, be) = (rules.quantize_mx(x, (1, 32), E4M3_CODES) for x in (a, b))
        return products.mx_product(wide(a8), wide(b8), decode_e8m0(ae), decode_e8m0(be), split)
    rule, side = (lambda amaxes, fmt: rules.block_scale(amaxes, fmt, source)), 128 if is_weight else 1
    (a8, a_inv), (b8, b_inv) = rules.quantize_blocks(a, (1, 128), E4M3_CODES, rule), rules.quantize_blocks(b, (side, 128), E4M3_CODES, rule)
    return products.block_product(wide(a8), wide(b8), a_inv, np.repeat(b_inv, side, axis=0)[: len(b)])


def rows_by_blocks(recipe, a, b, ends, split=False):
    """The rows a [T, K] of each group times its b [G, N, K]."""
    result = np.zeros((a.shape[0], b.shape[1]), F32)
    for group, rows in enumerate(spans(ends, a.shape[0])):
        result[rows] = multiply_by_blocks(recipe, SINGLE, a[rows], b[group], split=split)
    return result


def columns_by_blocks(recipe, a, b, ends):
    """Of each group, a' · b of all rows, those of other groups being zero in a: blocks are of all rows."""
    masked = [np.zeros_like(a) for _ in ends]
    for group, rows in enumerate(spans(ends, len(a))):
        masked[group][rows] = a[rows]
    return np.stack([multiply_by_blocks(recipe, SINGLE, x.T, b.T, is_weight=False, split=True) for x in masked])


def step_by_blocks(recipe, inputs):
    down, up, x, experts, target = inputs
    ends = np.cumsum([np.sum(experts == expert) for expert in range(len(up))])
    turned = lambda w: w.transpose(0, 2, 1)
    before = rows_by_blocks(recipe, x, turned(up), ends)
    hidden = np.maximum(before, 0)
    y = rows_by_blocks(recipe, hidden, turned(down), ends)
    dy = 2 * (y - target)
    d_before = np.where(before > 0, rows_by_blocks(recipe, dy, down, ends, split=True), F32.type(0))
    d_x = rows_by_blocks(recipe, d_before, up, ends, split=True)
    return [np.sum((y - target) ** 2), y, columns_by_blocks(recipe, hidden, dy, ends), columns_by_blocks(recipe, x, d_before, ends), d_x]


@pytest.fixture(scope="module", params=["block", "mxfp8"])
def by_blocks(request, bin_dir, tmp_path_factory):
    return request.param, *compile_step(bin_dir, tmp_path_factory.mktemp(request.param), f"--recipe={request.param}")


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_with_scales_of_blocks(by_blocks, exported, sizes):
    """Where the rows are contracted groups divide blocks: scales are those of the masked rows, one product for all."""
    recipe, program, sites = by_blocks
    assert {(s["role"], "per group" in s["code"]) for s in sites} == {("fprop", True), ("dgrad", True), ("wgrad", False)}
    inputs = sized(exported[0], sizes)
    assert_same_step(program.call("main", *inputs), step_by_blocks(recipe, inputs))


def forward(tokens, groups, k, n, dtype):
    """A forward product whose ends are an argument, with a mask in one operation."""
    x, w, y, masked = (tensor_type(shape, dtype) for shape in ((tokens, k), (groups, k, n), (tokens, n), (groups, tokens, k)))
    ends, kind = f"tensor<{groups}xi32>", tensor_type((), dtype)[7:-1]
    body = f"""  %first = arith.constant dense<0> : tensor<1xi32>
  %before = tensor.extract_slice %ends[0] [{groups - 1}] [1] : {ends} to tensor<{groups - 1}xi32>
  %starts = tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<{groups - 1}xi32>) -> {ends}
  %e = tensor.empty() : {masked}
  %masked = linalg.generic {{indexing_maps = [#tk, #g, #g, #gtk], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x, %starts, %ends : {x}, {ends}, {ends}) outs(%e : {masked}) {{
  ^bb0(%in: {kind}, %start: i32, %end: i32, %out: {kind}):
    %index = linalg.index 1 : index
    %t = arith.index_cast %index : index to i32
    %from = arith.cmpi sge, %t, %start : i32
    %to = arith.cmpi sgt, %end, %t : i32
    %inside = arith.andi %from, %to : i1
    %v = arith.select %inside, %in, %zero : {kind}
    linalg.yield %v : {kind}
  }} -> {masked}
  %ye = tensor.empty() : {y}
  %yz = linalg.fill ins(%zero : {kind}) outs(%ye : {y}) -> {y}
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k, g) -> (g, m, k)>, affine_map<(m, n, k, g) -> (g, k, n)>,
                                        affine_map<(m, n, k, g) -> (m, n)>]
      ins(%masked, %w : {masked}, {w}) outs(%yz : {y}) -> {y}
"""
    return f"""#g = affine_map<(g, t, k) -> (g)>
#tk = affine_map<(g, t, k) -> (t, k)>
#gtk = affine_map<(g, t, k) -> (g, t, k)>
func.func @main(%x: {x} loc("x"), %w: {w} loc("w"), %ends: {ends} loc("ends")) -> {y} {{
  %zero = arith.constant 0.0 : {kind}
{body}  return %y : {y}
}}
"""


@pytest.mark.parametrize("recipe", ["block", "mxfp8"])
@pytest.mark.parametrize(
    "tokens, groups, k, n, ends",
    [
        (300, 4, 200, 140, [7, 100, 100, 290]),
        (20, 3, 40, 5, [4, 9, 30]),  # the last end is beyond the rows
    ],
)
def test_forward_with_scales_of_blocks(bin_dir, tmp_path, recipe, tokens, groups, k, n, ends):
    """One product per group, whose tokens and weight have blocks of their own along K."""
    rng = random_generator(tokens, k, 1)
    x, w = rng.standard_normal((tokens, k)).astype(BF16), rng.standard_normal((groups, k, n)).astype(BF16)
    program = Program(bin_dir, tmp_path, forward(tokens, groups, k, n, BF16), f"--recipe={recipe}")
    assert ["per group" in site["code"] for site in program.manifest["sites"]] == [True]
    (y,) = program.call("main", x, w, np.array(ends, np.int32))
    expected = np.zeros((tokens, n), F32)
    for group, rows in enumerate(spans(ends, tokens)):
        expected[rows] = multiply_by_blocks(recipe, BF16_CODES, x[rows], w[group].T)
    assert_same_bits(y, expected.astype(BF16))


@pytest.mark.parametrize("recipe", ["none", "current"])
@pytest.mark.parametrize(
    "tokens, groups, k, n, ends",
    [
        (300, 4, 70, 33, [7, 100, 100, 290]),
        (0, 3, 8, 8, [0, 0, 0]),
        (1, 2, 1, 1, [0, 1]),
        (50, 1, 16, 40, [50]),
        (20, 3, 0, 5, [4, 9, 30]),  # the last end is beyond the rows
        (24, 4, 200, 17, [9, 5, 20, 18]),  # ends that decrease leave a group empty
    ],
)
def test_forward(bin_dir, tmp_path, recipe, tokens, groups, k, n, ends):
    rng = random_generator(tokens, k)
    x, w = rng.standard_normal((tokens, k)).astype(BF16), rng.standard_normal((groups, k, n)).astype(BF16)
    text = forward(tokens, groups, k, n, BF16)
    if groups == 1:
        text = text.replace("tensor.concat dim(0) %first, %before : (tensor<1xi32>, tensor<0xi32>)", "tensor.concat dim(0) %first : (tensor<1xi32>)")
    (y,) = Program(bin_dir, tmp_path, text, f"--recipe={recipe}").call("main", x, w, np.array(ends, np.int32))
    cast = keep if recipe == "none" else Cast()
    x8, w8 = cast("x", x, E4M3), cast("w", w, E4M3)
    assert_same_bits(y, scaled(multiply_rows(x8[0], w8[0], ends), x8, w8).astype(BF16))
