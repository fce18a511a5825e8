# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts and amaxes of tensors whose batch, or number of tokens, only the call knows: one library runs at every size, and has
the CPU's bits."""

import functools
import re
import subprocess

import ml_dtypes
import numpy as np
import pytest
from producers import MASKED_SUM

from harness import F32, Program, assert_same_bits, random_generator  # noqa: E402

CHIPS = ["sm_89", "sm_100a"]
BF16 = np.dtype(ml_dtypes.bfloat16)
ELEMENTS = {"bf16": BF16, "f32": F32}
PAIRS = list(zip(CHIPS, ELEMENTS))  # half of all, for tests of many cases
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 448.0, 465.0, 61440.0, -70000.0, 2.0**-10, 1.5 * 2.0**-10, 2.0**-17, 2.0**-130]


def tensor(sizes, element):
    return "tensor<%s%s>" % ("".join("%sx" % size for size in sizes), element)


class Main:
    """A function with casts of its arguments. A size that is a word is dynamic; equal words are equal sizes."""

    def __init__(self, **arguments):
        self.arguments = {name: (sizes, element) for name, (sizes, element) in arguments.items()}
        self.lines, self.results, self.count, self.casts = [], [], 0, 0
        for name, (sizes, _) in self.arguments.items():
            for dim, size in enumerate(sizes):
                if isinstance(size, str) and not any(size + " =" in line for line in self.lines):
                    self.lines.append(f"%{size}d = arith.constant {dim} : index")
                    self.lines.append(f"%{size} = tensor.dim %{name}, %{size}d : {self.type(*self.arguments[name])}")

    @staticmethod
    def type(sizes, element):
        return tensor(["?" if isinstance(size, str) else size for size in sizes], element)

    def empty(self, sizes, element):
        self.count += 1
        dynamic = ", ".join("%" + size for size in sizes if isinstance(size, str))
        self.lines.append(f"%e{self.count} = tensor.empty({dynamic}) : {self.type(sizes, element)}")
        return f"%e{self.count}", self.type(sizes, element)

    def add(self, op, sources, results, text, attributes="", more=""):
        """One operation on arguments `sources`; `results` are sizes and elements."""
        outs = [self.empty(*result) for result in results]
        ins = [self.type(*self.arguments[name]) for name in sources]
        self.count += 1
        values = [f"%r{self.count}#{i}" for i in range(len(outs))] if len(outs) > 1 else [f"%r{self.count}"]
        kinds = ", ".join(kind for _, kind in outs)
        self.lines.append(
            f"%r{self.count}{':%d' % len(outs) if len(outs) > 1 else ''} = {op} ins({', '.join('%' + n for n in sources)} : {', '.join(ins)}) {more} "
            f"outs({', '.join(name for name, _ in outs)} : {kinds}) {attributes} {text} -> {kinds}")
        self.results += [(value, kind) for value, (_, kind) in zip(values, outs)]

    def cast(self, sources, sizes, format="f8E4M3FN", order=None, random=None, extras=(), maps=(), producer="", rows=None):
        results = [(sizes, format)] + ([([sizes[d] for d in order], format)] if order else [])
        attributes = [f"transposition = array<i64: {', '.join(map(str, order))}>"] if order else []
        if maps:
            attributes.append("indexing_maps = [%s]" % ", ".join(f"affine_map<{m}>" for m in maps))
        if rows is not None:
            attributes.append(f"rows = array<i64: {rows}>")
        more = f"scale(%s{self.casts} : tensor<f32>)" + (f" random(%r : tensor<2xi64>) stream({random})" if random is not None else "")
        self.add("fp8.quantize record_amax", sources, [*results, ((), "f32"), ((), "f32"), *extras],
                 f"producer {{{producer}}}" if producer else "", "{%s}" % ", ".join(attributes) if attributes else "", more)
        self.casts += 1

    def __str__(self):
        arguments = ", ".join(f"%{name}: {self.type(*kind)}" for name, kind in self.arguments.items())
        values, kinds = (", ".join(part) for part in zip(*self.results))
        body = "\n  ".join(self.lines)
        return f"func.func @main({arguments}) -> ({kinds}) {{\n  {body}\n  return {values} : {kinds}\n}}\n"


# A scale for each cast: a tensor is cast once with one.
SCALARS = {"s0": ((), "f32"), "s1": ((), "f32"), "s2": ((), "f32"), "s3": ((), "f32"), "r": ((2,), "i64")}


def matrices(element):
    x = ("b", 200)
    main = Main(x=(x, element), f=(x, "f32"), bias=((200,), "f32"), factor=(("b",), "f32"), y=((200, "b"), "bf16"), **SCALARS)
    main.cast(["x"], x, order=(1, 0))
    main.cast(["x"], x, "f8E5M2")
    main.cast(["x"], x, "f8E5M2", order=(1, 0), random=3)
    main.lines.append("%zero = arith.constant 0.0 : f32")
    # A broadcast row, a factor of each row, a transposed input, indices; two stored results, one of them transposed.
    main.cast(["f", "bias", "factor", "y"], x, order=(1, 0), extras=[(x, "bf16"), ((200, "b"), "i1")], producer=MASKED_SUM,
              maps=["(m, n) -> (m, n)", "(m, n) -> (n)", "(m, n) -> (m)", "(m, n) -> (n, m)", "(m, n) -> (m, n)", "(m, n) -> (n, m)"])
    main.add("fp8.amax", ["x"], [((), "f32")], "")
    return main


ADD = """
  ^bb0(%v: ELEMENT, %other: ELEMENT):
    %t = arith.addf %v, %other : ELEMENT
    fp8.yield %t, %t : ELEMENT, ELEMENT
"""


def sequences(element):
    """Tokens of sequences of a known length, with the embedding of positions."""
    x = ("b", 5, 24)
    main = Main(x=(x, element), p=((5, 24), element), **SCALARS)
    main.cast(["x"], x, order=(2, 0, 1))
    main.cast(["x"], x, order=(1, 0, 2))  # the bytes are turned by a kernel of their own
    main.cast(["x", "p"], x, order=(2, 0, 1), random=1, extras=[(x, element)], producer=ADD.replace("ELEMENT", element),
              maps=["(b, s, n) -> (b, s, n)", "(b, s, n) -> (s, n)", "(b, s, n) -> (b, s, n)"])
    return main


def heads(element):
    x = ("b", 3, 40, 32)
    main = Main(x=(x, element), **SCALARS)
    main.cast(["x"], x, order=(0, 1, 3, 2))
    main.cast(["x"], x, "f8E5M2", order=(0, 1, 3, 2), random=2)
    return main


def whole_heads(element):
    """Heads of whole tiles, which have no guards but that of the batch."""
    x = ("b", 2, 128, 128)
    main = Main(x=(x, element), **SCALARS)
    main.cast(["x"], x, order=(0, 1, 3, 2))
    return main


INDICES = """
  ^bb0(%v: ELEMENT, %other: ELEMENT):
    %batch = fp8.index 0
    %place = fp8.index 1
    %same = arith.cmpi eq, %batch, %place : index
    %t = arith.addf %v, %other : ELEMENT
    %m = arith.select %same, %v, %t : ELEMENT
    fp8.yield %m, %m : ELEMENT, ELEMENT
"""


def lengths(element):
    """A batch of sequences whose length is dynamic."""
    x = (3, "b", 40)
    main = Main(x=(x, element), p=(("b", 40), element), **SCALARS)
    main.cast(["x"], x, order=(0, 2, 1))
    main.cast(["x"], x, order=(2, 0, 1))
    main.cast(["x", "p"], x, random=1, extras=[(x, element)], producer=INDICES.replace("ELEMENT", element),
              maps=["(b, s, n) -> (b, s, n)", "(b, s, n) -> (s, n)", "(b, s, n) -> (b, s, n)"])
    main.add("fp8.amax", ["x"], [((), "f32")], "")
    return main


def batches_of_lengths(element):
    """Both are dynamic."""
    x = ("b", "l", 24)
    main = Main(x=(x, element), p=(("l", 24), element), **SCALARS)
    main.cast(["x"], x, order=(2, 0, 1))
    main.cast(["x"], x, order=(0, 2, 1))
    main.cast(["x", "p"], x, order=(1, 0, 2), extras=[(x, element)], producer=INDICES.replace("ELEMENT", element),
              maps=["(b, s, n) -> (b, s, n)", "(b, s, n) -> (s, n)", "(b, s, n) -> (b, s, n)"])
    return main


ROWS = [{"b": size} for size in (1, 0, 127, 128, 129, 300, 16, 4)]
FEW = [{"b": size} for size in (1, 0, 27, 32, 5)]
CASES = {matrices: ROWS, sequences: FEW, heads: FEW, whole_heads: FEW[:3], lengths: ROWS,
         batches_of_lengths: [{"b": b, "l": l} for b, l in [(1, 1), (0, 5), (5, 0), (3, 130), (2, 64)]]}


def fill(rng, sizes, element, known):
    shape = [known.get(size, size) for size in sizes]
    if element == "i64":
        return np.array([0x9E3779B97F4A7C15, 7], np.uint64).view(np.int64)
    if not shape:
        return np.array(1.5, F32)
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)).astype(F32)
    flat = x.reshape(-1)
    if flat.size > 4 * len(SPECIAL):
        flat[rng.choice(flat.size, len(SPECIAL), replace=False)] = SPECIAL
    return x.astype(ELEMENTS[element])


def no_generic_code(bin_dir, folder, source, chip, remark="stays generic code"):
    """Every cast and amax has a kernel of its own."""
    (folder / "remarks.mlir").write_text(source)
    done = subprocess.run([bin_dir / "fp8-compile", folder / "remarks.mlir", f"--target={chip}", "--recipe=none", "--ptxas=none",
                           "--remarks", "-o", folder / "remarks.so"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert remark not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def compiled(bin_dir, tmp_path_factory):
    """Programs, which the tests of several devices share."""

    @functools.cache
    def of(source, target):
        options = [] if target == "cpu" else [f"--target={target}"]
        return Program(bin_dir, tmp_path_factory.mktemp("program"), source, "--recipe=none", *options)

    return of


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bits_of_the_cpu(bin_dir, compiled, tmp_path, case, element, chip):
    main = case(element)
    no_generic_code(bin_dir, tmp_path, str(main), chip)
    gpu, cpu = compiled(str(main), chip), compiled(str(main), "cpu")
    for number, known in enumerate(CASES[case]):
        rng = random_generator(120, number)
        inputs = [fill(rng, *kind, known) for kind in main.arguments.values()]
        got, expected = gpu.call("main", *inputs), cpu.call("main", *inputs)
        assert len(got) == len(expected) == len(main.results)
        for a, b in zip(got, expected):
            assert_same_bits(a, b)


SUMMED = """
  ^bb0(%v: ELEMENT):
    WIDEN
    %n = arith.negf %w : f32
    fp8.yield %v, %w, %n : ELEMENT, f32, f32
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_sums_over_rows(bin_dir, tmp_path, element, chip):
    """Bias gradients: sums of small integers are exact in any order."""
    main = Main(x=(("b", 200), element), **SCALARS)
    text = SUMMED.replace("ELEMENT", element).replace("WIDEN", "%w = arith.extf %v : bf16 to f32" if element == "bf16" else
                                                      "%z = arith.constant 0.0 : f32\n%w = arith.addf %v, %z : f32")
    main.cast(["x"], ("b", 200), "f8E5M2", order=(1, 0), extras=[((200,), "f32")] * 2, producer=text,
              maps=["(m, n) -> (m, n)", "(m, n) -> (n)", "(m, n) -> (n)"])
    no_generic_code(bin_dir, tmp_path, str(main), chip)
    program = Program(bin_dir, tmp_path, str(main), "--recipe=none", f"--target={chip}")
    for rows in (1, 0, 128, 129, 3000):
        x = random_generator(121, rows).integers(-8, 9, (rows, 200)).astype(ELEMENTS[element])
        data, turned, inverse, amax, first, second = program.call("main", x, *[np.array(2, F32)] * 4, np.array([1, 2]))
        wide = x.astype(F32)
        assert_same_bits(data, (2 * wide).astype(ml_dtypes.float8_e5m2))
        assert_same_bits(turned, np.ascontiguousarray(data.T))
        assert_same_bits(inverse, np.array(0.5, F32))
        assert_same_bits(amax, np.abs(wide).max(initial=0).reshape(()))
        assert (first == wide.sum(0)).all() and (second == -wide.sum(0)).all()


# A row less its largest element; a factor of the row from its own index on. Results: the largest, and the sum over all rows.
LARGEST = """
  ^bb0(%m: index, INDICES%e: tensor<NxELEMENT>, %w: f32):
    %lowest = arith.constant 0xFF800000 : f32
    %outside = tensor.empty() : tensor<f32>
    %start = linalg.fill ins(%lowest : f32) outs(%outside : tensor<f32>) -> tensor<f32>
    %largest = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> ()>], iterator_types = ["reduction"]}
        ins(%e : tensor<NxELEMENT>) outs(%start : tensor<f32>) {
      ^bb0(%in: ELEMENT, %out: f32):
        %wide = WIDEN
        %max = arith.maximumf %out, %wide : f32
        linalg.yield %max : f32
    } -> tensor<f32>
    %top = tensor.extract %largest[] : tensor<f32>
    %init = tensor.empty() : tensor<Nxf32>
    %row = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
        ins(%e : tensor<NxELEMENT>) outs(%init : tensor<Nxf32>) {
      ^bb0(%in: ELEMENT, %out: f32):
        %wide = WIDEN
        %below = arith.subf %wide, %top : f32
        %column = linalg.index 0 : index
        %early = arith.cmpi ult, %column, %m : index
        %masked = arith.select %early, %below, %w : f32
        linalg.yield %masked : f32
    } -> tensor<Nxf32>
    fp8.yield %row, %top, %row : tensor<Nxf32>, f32, tensor<Nxf32>
"""


@pytest.mark.parametrize("chip, element", PAIRS)
@pytest.mark.parametrize("outer, n, order", [
    (("b",), 256, (1, 0)), (("b",), 30, (1, 0)), (("b",), 3000, None), (("b", 5), 64, (2, 0, 1)), (("b", 5), 64, (0, 2, 1)),
    ((3, "b"), 64, (0, 2, 1))], ids=str)
def test_rows(bin_dir, tmp_path, outer, n, order, element, chip):
    """Softmaxes and norms: the numbers are small integers, whose sums are exact in any order."""
    dims = "mkl"[:len(outer)]
    main = Main(x=((*outer, n), element), factors=(outer, "f32"), **SCALARS)
    wide = "arith.extf %in : bf16 to f32" if element == "bf16" else "arith.addf %in, %w : f32"
    text = LARGEST.replace("ELEMENT", element).replace("WIDEN", wide).replace("tensor<N", f"tensor<{n}")
    text = text.replace("INDICES", "".join(f"%{dim}: index, " for dim in dims[1:]))
    all, rows, last = (f"({', '.join(dims)}, n) -> ({places})" for places in (", ".join([*dims, "n"]), ", ".join(dims), "n"))
    main.cast(["x", "factors"], (*outer, n), order=order, extras=[(outer, "f32"), ((n,), "f32")], producer=text, maps=[all, rows, rows, last], rows=len(outer))
    no_generic_code(bin_dir, tmp_path, str(main), chip, "becomes a loop over its rows")
    programs = []
    for place, options in {"gpu": [f"--target={chip}"], "cpu": []}.items():
        (tmp_path / place).mkdir()
        programs.append(Program(bin_dir, tmp_path / place, str(main), "--recipe=none", *options))
    for size in (1, 0, 7, 16, 33, 128, 300):
        rng = random_generator(122, size)
        shape = [size if isinstance(s, str) else s for s in outer]
        inputs = [rng.integers(-8, 9, (*shape, n)).astype(ELEMENTS[element]), rng.integers(-8, 9, shape).astype(F32)]
        (*got, sums), (*expected, cpu_sums) = (p.call("main", *inputs, *[np.array(1.5, F32)] * 4, np.array([1, 2])) for p in programs)
        for a, b in zip(got, expected, strict=True):
            assert_same_bits(a, b)
        assert (sums == cpu_sums).all()


BLOCK, MX, ROW = "#fp8.block_scaling", "#fp8.mx_scaling", "#fp8.row_scaling"
# Recipe, sizes, and the blocks of each direction with the order of its dimensions.
BLOCKS = {
    "runs": (BLOCK, ("b", 200), [((1, 128), None), ((128, 1), (1, 0))]),
    "squares": (BLOCK, ("b", 200), [((128, 128), None), ((128, 128), (1, 0))]),
    "e8m0": (MX, ("b", 200), [((1, 32), None), ((32, 1), (1, 0))]),
    "rows": (ROW, ("b", 200), [((1, 0), None)]),
    "long rows": (ROW, ("b", 3000), [((1, 0), None)]),
    "rows and columns": (ROW, ("b", 200), [((1, 0), None), ((0, 1), (1, 0))]),
    "columns": (ROW, ("b", 72), [((0, 1), (1, 0))]),
    "sequences": (BLOCK, ("b", 64, 136), [((1, 1, 128), None), ((2, 64, 1), (2, 0, 1))]),
    "columns of sequences": (ROW, ("b", 20, 136), [((1, 1, 0), None), ((0, 0, 1), (2, 0, 1))]),
    "heads": (ROW, ("b", 2, 40, 32), [((1, 1, 1, 0), None), ((1, 1, 0, 1), (0, 1, 3, 2))]),
    "long heads": (ROW, ("b", 2, 150, 144), [((1, 1, 1, 0), None), ((1, 1, 0, 1), (0, 1, 3, 2))]),
    "lengths": (ROW, (3, "b", 40), [((1, 1, 0), None), ((1, 0, 1), (0, 2, 1))]),
}


def blocks(recipe, sizes, directions, element):
    main = Main(x=(sizes, element), **SCALARS)
    results, scale = [], "f8E8M0FNU" if recipe == MX else "f32"
    for block, order in directions:
        counts = []
        for size, extent in zip(sizes, block):
            count = 1 if extent == 0 else -(-size // extent) if isinstance(size, int) else size if extent == 1 else f"{size}{extent}"
            if isinstance(count, str) and count != size and not any(f"%{count} =" in line for line in main.lines):
                main.lines += [f"%c{extent} = arith.constant {extent} : index", f"%{count} = arith.ceildivui %{size}, %c{extent} : index"]
            counts.append(count)
        order = order or range(len(sizes))
        results += [([sizes[d] for d in order], "f8E4M3FN"), ([counts[d] for d in order], scale)]

    def arrays(lists):
        return "[%s]" % ", ".join("array<i64: %s>" % ", ".join(map(str, one)) for one in lists)

    orders = arrays([order or range(len(sizes)) for _, order in directions])
    main.add(f"fp8.quantize_blocks recipe({recipe})", ["x"], results, "", "{blocks = %s, transpositions = %s}" % (arrays(b for b, _ in directions), orders))
    return main


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("chip, element", PAIRS)
@pytest.mark.parametrize("case", BLOCKS)
def test_blocks(bin_dir, compiled, tmp_path, case, element, chip):
    main = blocks(*BLOCKS[case], element)
    no_generic_code(bin_dir, tmp_path, str(main), chip)
    gpu, cpu = compiled(str(main), chip), compiled(str(main), "cpu")
    for size in (1, 0, 5, 127, 128, 129, 300) if len(BLOCKS[case][1]) == 2 or case == "lengths" else (1, 0, 2, 5):
        rng = random_generator(123, size)
        inputs = [fill(rng, *kind, {"b": size}) for kind in main.arguments.values()]
        for a, b in zip(gpu.call("main", *inputs), cpu.call("main", *inputs), strict=True):
            assert_same_bits(a, b)


def test_the_last_dimension_must_be_known(bin_dir, tmp_path):
    """Else the code is generic, and the remark says why; its results are those of the CPU."""
    main = Main(x=(("b", "l"), "bf16"), **SCALARS)
    main.cast(["x"], ("b", "l"), order=(1, 0))
    (tmp_path / "remarks.mlir").write_text(str(main))
    done = subprocess.run([bin_dir / "fp8-compile", tmp_path / "remarks.mlir", "--target=sm_89", "--recipe=none", "--ptxas=none",
                           "--remarks", "-o", tmp_path / "remarks.so"], capture_output=True, text=True)
    assert re.search("'fp8.quantize' stays generic code on the GPU: the size of its last dimension is dynamic", done.stderr), done.stderr
