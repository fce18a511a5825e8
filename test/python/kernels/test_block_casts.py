# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.quantize_blocks by value: casts by rows, blocks and MX blocks against numerics/reference.py, bit for bit."""
import numpy as np
import pytest
from numerics import casts
from numerics.casts import BLOCKS, MX_BLOCKS, ROWS, BlockCast, straight
from numerics.conversions import DTYPES
from numerics.formats import BF16, E4M3, E5M2, F16, FP8, SINGLE

from harness import Program, random_generator

TARGETS = {
    "cpu": ["--target=cpu"],
    "x86-64-v3": ["--target=cpu", "--cpu=x86-64-v3"],
}

# Without ptxas: it warns of registers that kernels with three directions, which no program needs, store in
# memory, and no warning is accepted here.
CHIPS = {chip: [f"--target={chip}", "--ptxas=none"] for chip in ("sm_89", "sm_90a", "sm_100a", "sm_120a")}


def build(bin_dir, folder, entries, target):
    text = "".join(casts.entry(name, shape, of) for name, (shape, of) in entries.items())
    return Program(bin_dir, folder, text, "--recipe=none", *{**TARGETS, **CHIPS}[target])


def run_all(program, entries, rng):
    """One call per function, on a hostile tensor."""
    for name, (shape, of) in entries.items():
        x = casts.hostile(rng, shape, DTYPES[of[0].source])
        casts.check(program.call(name, x), of, x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [SINGLE, BF16, F16], ids=lambda fmt: fmt.name)
def test_recipes_and_formats(bin_dir, tmp_path, source, target):
    """Every recipe to both formats, all of its blocks from one read."""
    of = [BlockCast(name, straight(blocks), fmt, source) for name, (_, blocks, _) in casts.RECIPES.items() for fmt in FP8]
    entries = {"ragged": ((150, 300), of), "whole": ((256, 128), of), "row": ((1, 257), of), "column": ((257, 1), of), "one": ((1, 1), of)}
    run_all(build(bin_dir, tmp_path, entries, target), entries, random_generator(70))


def test_tensors_of_zeros_infs_and_nans(bin_dir, tmp_path):
    of = [BlockCast(name, straight(blocks), fmt) for name, (_, blocks, _) in casts.RECIPES.items() for fmt in FP8]
    program = build(bin_dir, tmp_path, {"f": ((40, 140), of)}, "cpu")
    for value in [0.0, -0.0, 1e-45, -1e-40, 1e-37, 3.4e38, np.inf, -np.inf, np.nan, 448, 449, 57344, 57345]:
        x = np.full((40, 140), value, np.float32)
        casts.check(program.call("f", x), of, x)


def test_amaxes_around_every_change_of_an_mx_scale(bin_dir, tmp_path):
    """A block per amax: fp8_max · 2^p and 2 ulp on either side, for every p."""
    powers = np.ldexp(np.float64(1), np.arange(-149, 128))
    values = np.concatenate([powers, powers * 1.75, powers * 1.5])
    bits = values[(values >= 2.0**-149) & (values < 2.0**128)].astype(np.float32).view(np.uint32).astype(np.int64)
    bits = np.unique(bits[:, None] + np.arange(-2, 3))
    amaxes = bits[(bits >= 0) & (bits < 0x7F800000)].astype(np.uint32).view(np.float32)
    x = np.zeros((len(amaxes), 32), np.float32)
    x[:, 5], x[:, 9] = amaxes, -amaxes / 3
    of = [BlockCast(name, straight([block]), fmt) for name, block in [("mx", (1, 32)), ("block", (1, 128)), ("block_f32", (1, 128))] for fmt in FP8]
    program = build(bin_dir, tmp_path, {"f": (x.shape, of)}, "cpu")
    casts.check(program.call("f", x), of, x)


def test_layouts(bin_dir, tmp_path):
    """Directions in the layout of the tensor and transposed, alone and together."""
    plain, turned = (0, 1), (1, 0)
    of = [
        BlockCast("block", (((1, 128), plain), ((128, 1), turned))),
        BlockCast("block", (((128, 1), turned),)),
        BlockCast("block", (((128, 128), plain), ((128, 128), turned)), E5M2),
        BlockCast("mx", (((32, 1), turned), ((1, 32), plain))),
        BlockCast("mx", (((32, 32), turned),), E5M2),
        BlockCast("row", (((1, 0), plain), ((0, 1), turned))),
        BlockCast("row", (((0, 1), turned),)),
    ]
    # The last is large enough for several threads.
    entries = {"ragged": ((150, 300), of), "tall": ((300, 33), of), "large": ((300, 520), of)}
    run_all(build(bin_dir, tmp_path, entries, "cpu"), entries, random_generator(71))


def test_ranks(bin_dir, tmp_path):
    """Batches of matrices, and vectors."""
    batch = lambda blocks: straight([(1, *block) for block in blocks], 3)
    turned = ((1, 1, 128), (0, 2, 1)), ((1, 128, 1), (0, 1, 2)), ((1, 128, 128), (2, 0, 1))
    entries = {
        "batch": ((3, 70, 140), [BlockCast("block", batch(BLOCKS)), BlockCast("mx", batch(MX_BLOCKS)), BlockCast("row", batch(ROWS)), BlockCast("block", turned)]),
        "vector": ((300,), [BlockCast("block", straight([(128,)], 1)), BlockCast("mx", straight([(32,)], 1)), BlockCast("row", straight([(0,)], 1))]),
        "spans": ((5, 6, 7), [BlockCast("row", straight([(1, 0, 0), (0, 0, 1), (0, 1, 0)], 3))]),
    }
    run_all(build(bin_dir, tmp_path, entries, "cpu"), entries, random_generator(72))


# The region needs the values of a tile in memory.
SMALL_TILES = """
func.func @main(%x: tensor<260x5x1xbf16>) -> (tensor<260x5x1xi8>, tensor<260x1x1xf32>, tensor<260x5x1xi8>, tensor<260x1x1xf32>) {
  %d = tensor.empty() : tensor<260x5x1xf8E4M3FN>
  %s = tensor.empty() : tensor<260x1x1xf32>
  %p:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<260x5x1xbf16>) outs(%d, %s : tensor<260x5x1xf8E4M3FN>, tensor<260x1x1xf32>)
      {blocks = [array<i64: 1, 128, 1>]} -> tensor<260x5x1xf8E4M3FN>, tensor<260x1x1xf32>
  %q:2 = fp8.quantize_blocks recipe(#fp8.block_scaling) ins(%x : tensor<260x5x1xbf16>) outs(%d, %s : tensor<260x5x1xf8E4M3FN>, tensor<260x1x1xf32>)
      {blocks = [array<i64: 1, 128, 1>], indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>]} producer {
  ^bb0(%a: bf16):
    %0 = arith.negf %a : bf16
    fp8.yield %0 : bf16
  } -> tensor<260x5x1xf8E4M3FN>, tensor<260x1x1xf32>
  %plain = tensor.bitcast %p#0 : tensor<260x5x1xf8E4M3FN> to tensor<260x5x1xi8>
  %negated = tensor.bitcast %q#0 : tensor<260x5x1xf8E4M3FN> to tensor<260x5x1xi8>
  return %plain, %p#1, %negated, %q#1 : tensor<260x5x1xi8>, tensor<260x1x1xf32>, tensor<260x5x1xi8>, tensor<260x1x1xf32>
}
"""


def test_many_tiles_that_one_thread_casts(bin_dir, tmp_path):
    """Tiles of few elements use the same memory: a stack has no room for a tile of each."""
    x = random_generator(76).standard_normal((260, 5, 1)).astype(DTYPES[BF16])
    plain, inverse, negated, same = Program(bin_dir, tmp_path, SMALL_TILES, "--recipe=none").call("main", x)
    assert (plain.view(np.uint8) ^ 0x80 == negated.view(np.uint8)).all() and (inverse == same).all()


def test_without_elements(bin_dir, tmp_path):
    of = [BlockCast(name, straight(blocks)) for name, (_, blocks, _) in casts.RECIPES.items()]
    entries = {"rows": ((0, 5), of), "columns": ((5, 0), of)}
    run_all(build(bin_dir, tmp_path, entries, "cpu"), entries, random_generator(73))


def sweep(count, salt):
    """`count` shapes in which each size from 1 to 300 comes at most once per dimension, and a cast for each."""
    rng = random_generator(salt)
    rows, columns = (rng.permutation(300)[:count] + 1 for _ in range(2))
    entries = {}
    for m, n in zip(rows.tolist(), columns.tolist()):
        name = rng.choice(["row", "block", "block_f32", "mx"])
        order = [(0, 1), (1, 0)][rng.integers(2)]
        directions = tuple((block, order if rng.random() < 0.5 else (0, 1)) for block in casts.RECIPES[name][1])
        source = [SINGLE, BF16, F16][rng.integers(3)]
        entries[f"f_{m}_{n}"] = ((m, n), [BlockCast(name, directions, FP8[rng.integers(2)], source)])
    return entries, rng


@pytest.mark.parametrize("target", ["cpu", *CHIPS])
def test_some_shapes(bin_dir, tmp_path, target):
    entries, rng = sweep(30 if target == "cpu" else 6, 74)
    run_all(build(bin_dir, tmp_path, entries, target), entries, rng)


@pytest.mark.slow(one_of=40)
@pytest.mark.parametrize("start", range(0, 300, 30))
@pytest.mark.parametrize("target", ["cpu", *CHIPS])
def test_every_size_from_1_to_300(bin_dir, tmp_path, target, start):
    part = dict(list(sweep(300, 75)[0].items())[start : start + 30])
    run_all(build(bin_dir, tmp_path, part, target), part, random_generator(76, start))


PRODUCER = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#columns = affine_map<(d0, d1) -> (d1)>
#kept = affine_map<(d0, d1) -> (KEPT)>
func.func @producer(%x: tensor<MxNxbf16>, %y: tensor<NxMxbf16>, %b: tensor<Nxbf16>) -> (RESULTS) {
EMPTY
  NAMES = fp8.quantize_blocks recipe(RECIPE) ins(%x, %y, %b : tensor<MxNxbf16>, tensor<NxMxbf16>, tensor<Nxbf16>)
      outs(OUTS : RESULTS)
      {blocks = [BLOCKS], transpositions = [ORDERS],
       indexing_maps = [#all, #turned, #columns, #all, #kept]} producer {
    ^bb0(%xe: bf16, %ye: bf16, %be: bf16):
      %s = arith.addf %xe, %be : bf16
      %p = arith.mulf %s, %ye : bf16
      %w = arith.extf %p : bf16 to f32
      fp8.yield %p, %s, %w : bf16, bf16, f32
  } -> RESULTS
  return NAMES : RESULTS
}"""


@pytest.mark.parametrize("sums_all", [False, True])
@pytest.mark.parametrize("shape", [(150, 300), (33, 65), (2, 256)])
@pytest.mark.parametrize("name", casts.RECIPES)
def test_producer(bin_dir, tmp_path, name, shape, sums_all):
    """Elements computed in the cast, with both roundings to bf16; one of the values stored, the other summed in the
    program's order, over the rows or over everything."""
    (m, n), plain, turned = shape, (0, 1), (1, 0)
    cast = BlockCast(name, ((casts.RECIPES[name][1][0], plain), (casts.RECIPES[name][1][1], turned)), E4M3, BF16)
    results = [*cast.types(shape), f"tensor<{m}x{n}xbf16>", "tensor<f32>" if sums_all else f"tensor<{n}xf32>"]
    lists = lambda part: ", ".join(f"array<i64: {', '.join(map(str, direction[part]))}>" for direction in cast.directions)
    words = {
        "RESULTS": ", ".join(results),
        "NAMES": ", ".join(f"%r{i}" for i in range(len(results))),
        "OUTS": ", ".join(f"%o{i}" for i in range(len(results))),
        "EMPTY": "\n".join(f"  %o{i} = tensor.empty() : {of}" for i, of in enumerate(results)),
        "RECIPE": casts.RECIPES[name][0], "BLOCKS": lists(0), "ORDERS": lists(1), "KEPT": "" if sums_all else "d1", "MxN": f"{m}x{n}", "NxM": f"{n}x{m}", "<Nx": f"<{n}x",
    }
    text = PRODUCER
    for word, value in words.items():
        text = text.replace(word, value)
    rng = random_generator(76)
    x, y, bias = (rng.standard_normal(size).astype(DTYPES[BF16]) for size in ((m, n), (n, m), (n,)))
    got = Program(bin_dir, tmp_path, text, "--recipe=none").call("producer", x, y, bias)
    added = (x.astype(np.float32) + bias.astype(np.float32)).astype(DTYPES[BF16])
    value = (added.astype(np.float32) * y.T.astype(np.float32)).astype(DTYPES[BF16])
    casts.check(got[:-2], [cast], value)
    assert got[-2].tobytes() == added.tobytes()
    summed = value.astype(np.float32)
    total = np.cumsum(summed.ravel())[-1] if sums_all else np.cumsum(summed, axis=0)[-1]
    assert got[-1].tobytes() == total.tobytes()


def dynamic_entry(name, block):
    """A cast of tensors of any size, with sizes known when it runs."""
    recipe, scale = casts.RECIPES[name][0], "f8E8M0FNU" if name == "mx" else "f32"
    rows, columns = (f"arith.ceildivui %{size}, %b{size} : index" if extent else "arith.constant 1 : index" for extent, size in zip(block, "mn"))
    return f"""
func.func @cast_{name}_{block[0]}_{block[1]}(%x: tensor<?x?xbf16>) -> (tensor<?x?xf8E4M3FN>, tensor<?x?x{scale}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bm = arith.constant {block[0]} : index
  %bn = arith.constant {block[1]} : index
  %m = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %n = tensor.dim %x, %c1 : tensor<?x?xbf16>
  %rows = {rows}
  %columns = {columns}
  %d = tensor.empty(%m, %n) : tensor<?x?xf8E4M3FN>
  %s = tensor.empty(%rows, %columns) : tensor<?x?x{scale}>
  %q, %i = fp8.quantize_blocks recipe({recipe}) ins(%x : tensor<?x?xbf16>) outs(%d, %s : tensor<?x?xf8E4M3FN>, tensor<?x?x{scale}>)
      {{blocks = [array<i64: {block[0]}, {block[1]}>]}} -> tensor<?x?xf8E4M3FN>, tensor<?x?x{scale}>
  return %q, %i : tensor<?x?xf8E4M3FN>, tensor<?x?x{scale}>
}}"""


def test_sizes_known_when_it_runs(bin_dir, tmp_path):
    each = [("row", (1, 0)), ("row", (0, 1)), ("block", (1, 128)), ("block", (128, 128)), ("mx", (32, 1)), ("mx", (1, 32))]
    program = Program(bin_dir, tmp_path, "".join(dynamic_entry(*of) for of in each), "--recipe=none")
    rng = random_generator(77)
    for name, block in each:
        for shape in [rng.integers(1, 301, 2).tolist(), rng.integers(1, 40, 2).tolist()]:
            x = casts.hostile(rng, shape, DTYPES[BF16])
            casts.check(program.call(f"cast_{name}_{block[0]}_{block[1]}", x), [BlockCast(name, straight([block]), E4M3, BF16)], x)


@pytest.mark.parametrize("chip", CHIPS)
def test_chips(bin_dir, tmp_path, chip):
    """Every recipe, all of its blocks from one read, in both layouts; another choice of formats and sizes on each chip."""
    rng = random_generator(78, list(CHIPS).index(chip))
    entries = {}
    for name in casts.RECIPES:
        shape = tuple(rng.integers(130, 301, 2).tolist())
        directions = tuple((block, [(0, 1), (1, 0)][rng.integers(2)]) for block in casts.RECIPES[name][1])
        source = [SINGLE, BF16, F16][rng.integers(3)]
        entries[name] = (shape, [BlockCast(name, directions, FP8[rng.integers(2)], source)])
    run_all(build(bin_dir, tmp_path, entries, chip), entries, rng)
