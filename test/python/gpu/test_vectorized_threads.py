# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise kernels whose threads take several points (fp8-vectorize-threads): the CPU's bits for every type, mixed widths,
broadcasts, sizes and offsets that vectors do not fit, and updates in place. Rows are dynamic unless said: then there is no
number of rows that is too small for vectors."""

import subprocess

import ml_dtypes
import numpy as np
import pytest

from harness import Program, assert_same_bits, random_generator  # noqa: E402

TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f64": np.float64, "i64": np.int64, "i32": np.int32,
         "i8": np.int8, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]


def is_float(element):
    return not element.startswith("i")


class Main:
    """A function of elementwise operations. The size "n" is dynamic: that of the first argument's first dimension."""

    def __init__(self, **arguments):
        self.arguments, self.lines, self.results = arguments, [], []
        name, kind = next(iter(arguments.items()))
        self.lines = ["%c0 = arith.constant 0 : index", f"%n = tensor.dim %{name}, %c0 : {self.type(kind)}"]

    @staticmethod
    def type(kind):
        sizes, element = kind
        return "tensor<%s%s>" % ("".join("%sx" % ("?" if size == "n" else size) for size in sizes), element)

    def add(self, sources, results, body, names=None):
        """Adds a linalg.generic. `sources` are pairs of a value and its dimensions, such as ("x", "ij"); `results` are kinds, all of
        whose dimensions are those of the loops; `body` has %in0, … and yields."""
        dims = "ijkl"[:len(results[0][0])]
        maps = [f"affine_map<({', '.join(dims)}) -> ({', '.join(used)})>" for used in [used for _, used in sources] + [dims] * len(results)]
        number = len(self.lines)
        outs = []
        for place, kind in enumerate(results):
            dynamic = "%n" if "n" in kind[0] else ""
            outs.append(f"%e{number}_{place}")
            self.lines.append(f"{outs[-1]} = tensor.empty({dynamic}) : {self.type(kind)}")
        ins = [f"%{name}" for name, _ in sources]
        in_kinds = [self.arguments[name] for name, _ in sources]
        given = f"ins({', '.join(ins)} : {', '.join(map(self.type, in_kinds))})" if ins else ""
        block = [f"%in{place}: {kind[1]}" for place, kind in enumerate(in_kinds)] + [f"%out{place}: {kind[1]}" for place, kind in enumerate(results)]
        kinds = ", ".join(map(self.type, results))
        parallel = ", ".join(['"parallel"'] * len(dims))
        self.lines.append(f"%r{number}{':%d' % len(results) if len(results) > 1 else ''} = linalg.generic "
                          f"{{indexing_maps = [{', '.join(maps)}], iterator_types = [{parallel}]}} "
                          f"{given} outs({', '.join(outs)} : {kinds}) {{\n"
                          f"  ^bb0({', '.join(block)}):\n{body}\n  }} -> {'(%s)' % kinds if len(results) > 1 else kinds}")
        for place, kind in enumerate(results):
            value = f"%r{number}#{place}" if len(results) > 1 else f"%r{number}"
            self.results.append((value, self.type(kind)))

    def slice(self, name, source, offset, sizes):
        """A view of some columns of a matrix."""
        rows, element = self.arguments[source]
        self.arguments[name] = kind = (sizes, element)
        size = ", ".join("%n" if size == "n" else str(size) for size in sizes)
        self.lines.append(f"%{name} = tensor.extract_slice %{source}[{', '.join(map(str, offset))}] [{size}] [{', '.join('1' * len(sizes))}] : "
                          f"{self.type((rows, element))} to {self.type(kind)}")

    def __str__(self):
        given = [name for name in self.arguments if not any(line.startswith(f"%{name} = ") for line in self.lines)]
        arguments = ", ".join(f"%{name}: {self.type(self.arguments[name])}" for name in given)
        values, kinds = (", ".join(part) for part in zip(*self.results))
        return "func.func @main(%s) -> (%s) {\n  %s\n  return %s : %s\n}\n" % (arguments, kinds, "\n  ".join(self.lines), values, kinds)


def draw(rng, shape, element):
    """Numbers of the type's whole range, with every special value."""
    dtype = np.dtype(TYPES[element])
    if not is_float(element) or dtype.itemsize == 1:
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
    x = (rng.standard_normal(shape) * 2.0 ** rng.integers(-14, 14, shape)).astype(dtype)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 2.0**-20], dtype)
    flat = x.reshape(-1)
    if flat.size > 4 * len(special):
        flat[rng.choice(flat.size, len(special), replace=False)] = special
    return x


def draw_nans(rng, shape, element):
    """Half of the numbers are NaNs of any payload, quiet and signalling."""
    dtype = np.dtype(TYPES[element])
    bits = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), "u%d" % dtype.itemsize).reshape(shape).copy()
    nan = np.array(np.inf, dtype).view(bits.dtype)
    return np.where(rng.integers(0, 2, shape, bool), bits | nan | bits.dtype.type(1), bits).view(dtype)


def widths(bin_dir, folder, source, chip, *options):
    """How many elements, of how many bits, each access of global memory has that is a vector."""
    (folder / "widths.mlir").write_text(source)
    done = subprocess.run([bin_dir / "fp8-compile", folder / "widths.mlir", "--emit=ptx", f"--target={chip}", "--recipe=none", "-o", "-", *options],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip().startswith(("ld.global", "st.global"))]


def same_as_cpu(bin_dir, folder, source, chip, inputs, options=(), check=assert_same_bits):
    """Runs the program on each list of `inputs`, on the CPU and on the emulator."""
    programs = []
    for target in ("cpu", chip):
        (folder / target).mkdir()
        programs.append(Program(bin_dir, folder / target, source, "--recipe=none", f"--target={target}", *options))
    for arrays in inputs:
        expected, got = (program.call("main", *arrays) for program in programs)
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            check(a, b)


def assert_same_bytes(actual, expected):
    assert actual.dtype == expected.dtype and actual.tobytes() == expected.tobytes()


def arithmetic(element):
    if is_float(element):
        return f"%p = arith.mulf %in0, %in1 : {element}\n%q = arith.addf %p, %in0 : {element}\nlinalg.yield %q : {element}"
    return f"%p = arith.muli %in0, %in1 : {element}\n%q = arith.addi %p, %in0 : {element}\nlinalg.yield %q : {element}"


ARITHMETIC = [element for element in TYPES if not element.startswith("f8")]


@pytest.mark.parametrize("chip", CHIPS[:2])
def test_types(bin_dir, tmp_path, chip):
    """16 bytes of each type, and of a last dimension that only smaller vectors divide, or none."""
    main = Main(**{f"x{e}{size}": (("n", size), e) for e in ARITHMETIC for size in (48, 18, 7)},
                **{f"y{e}{size}": (("n", size), e) for e in ARITHMETIC for size in (48, 18, 7)})
    for e in ARITHMETIC:
        for size in (48, 18, 7):
            main.add([(f"x{e}{size}", "ij"), (f"y{e}{size}", "ij")], [(("n", size), e)], arithmetic(e))
    accesses = widths(bin_dir, tmp_path, str(main), chip)
    # 16 bytes are four words of 48 elements of f32, bf16, f16, i32 and i8, and two doubles of 48 or 18 of f64 and i64.
    assert [accesses.count(f"{kind}.global.{width}") for kind in ("ld", "st") for width in ("v4.b32", "v2.b64")] == [10, 8, 5, 4]
    rng = random_generator(140)
    inputs = [[draw(rng, (rows, sizes[1]), e) for sizes, e in main.arguments.values()] for rows in (1, 37, 0)]
    same_as_cpu(bin_dir, tmp_path, str(main), chip, inputs)


WIDENED = """
    %a = arith.extf %in0 : IN to f32
    %s = arith.addf %a, %in1 : f32
    %m = arith.mulf %s, %in2 : f32
    %o = arith.subf %m, %in3 : f32
    %t = math.tanh %o : f32
    %b = arith.truncf %t : f32 to bf16
    linalg.yield %b, %m : bf16, f32"""


@pytest.mark.parametrize("chip", CHIPS)
def test_widths_and_broadcasts(bin_dir, tmp_path, chip):
    """A row, a column and a scalar beside a matrix of narrower elements; results of two widths."""
    narrow = ["bf16", "f16", "f8E4M3FN", "f8E5M2"]
    main = Main(**{f"x{e}": (("n", 3, 40), e) for e in narrow}, row=((40,), "f32"), column=(("n", 3), "f32"), scalar=((), "f32"))
    for e in narrow:
        main.add([(f"x{e}", "ijk"), ("row", "k"), ("column", "ij"), ("scalar", "")], [(("n", 3, 40), "bf16"), (("n", 3, 40), "f32")],
                 WIDENED.replace("IN", e))
    assert "st.global.v4.b32" in widths(bin_dir, tmp_path, str(main), chip)
    rng = random_generator(141)
    inputs = [[draw(rng, [rows if size == "n" else size for size in sizes], e) for sizes, e in main.arguments.values()] for rows in (1, 29)]
    same_as_cpu(bin_dir, tmp_path, str(main), chip, inputs)


@pytest.mark.parametrize("chip", CHIPS[1:2])
def test_offsets(bin_dir, tmp_path, chip):
    """Slices of matrices: those that begin, or whose rows begin, at an odd place have narrower accesses."""
    main = Main(x=(("n", 100), "f32"), y=(("n", 99), "f32"), b=(("n", 104), "bf16"))
    for source, offset in [("x", 0), ("x", 4), ("x", 6), ("x", 3), ("y", 4), ("b", 8), ("b", 4), ("b", 2), ("b", 1)]:
        element = main.arguments[source][1]
        name = f"{source}{offset}"
        main.slice(name, source, (0, offset), ("n", 64))
        main.add([(name, "ij"), (name, "ij")], [(("n", 64), element)], arithmetic(element))
    accesses = widths(bin_dir, tmp_path, str(main), chip)
    assert accesses.count("ld.global.v4.b32") == 3  # x from 0 and 4, b from 8
    rng = random_generator(142)
    inputs = [[draw(rng, (rows, sizes[1]), main.arguments[name][1]) for name, (sizes, _) in list(main.arguments.items())[:3]] for rows in (1, 33)]
    same_as_cpu(bin_dir, tmp_path, str(main), chip, inputs)


ADAM = """
#map = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
func.func @main(%p: tensor<MxNxf32>, %m: tensor<MxNxf32>, %v: tensor<MxNxf32>, %g: tensor<MxNxbf16>, %t: tensor<f32>)
    -> (tensor<MxNxf32>, tensor<MxNxf32>, tensor<MxNxf32>) {
  %half = arith.constant 0.5 : f32
  %small = arith.constant 1.0e-8 : f32
  %r:3 = linalg.generic {indexing_maps = [#map, #none, #map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%g, %t : tensor<MxNxbf16>, tensor<f32>) outs(%p, %m, %v : tensor<MxNxf32>, tensor<MxNxf32>, tensor<MxNxf32>) {
  ^bb0(%gi: bf16, %ti: f32, %pi: f32, %mi: f32, %vi: f32):
    %w = arith.extf %gi : bf16 to f32
    %m0 = arith.mulf %mi, %half : f32
    %m1 = arith.addf %m0, %w : f32
    %v0 = arith.mulf %w, %w : f32
    %v1 = arith.addf %v0, %vi : f32
    %root = math.sqrt %v1 : f32
    %below = arith.addf %root, %small : f32
    %step = arith.divf %m1, %below : f32
    %scaled = arith.mulf %step, %ti : f32
    %p1 = arith.subf %pi, %scaled : f32
    linalg.yield %p1, %m1, %v1 : f32, f32, f32
  } -> (tensor<MxNxf32>, tensor<MxNxf32>, tensor<MxNxf32>)
  return %r#0, %r#1, %r#2 : tensor<MxNxf32>, tensor<MxNxf32>, tensor<MxNxf32>
}
"""


@pytest.mark.parametrize("chip, m, n", [("sm_89", 300, 128), ("sm_90a", 300, 128), ("sm_90a", 150, 250), ("sm_90a", 301, 127), ("sm_90a", 9, 64)])
def test_updates_in_place(bin_dir, tmp_path, chip, m, n):
    """An optimizer's step with static sizes: too few points for all multiprocessors have fewer per thread."""
    source, carry = ADAM.replace("MxN", f"{m}x{n}"), "--carry=0:0,1:1,2:2"
    accesses = widths(bin_dir, tmp_path, source, chip, carry)
    wide = [access for access in accesses if ".v" in access]
    expected = 0 if m * n % 2 or m < 10 else 4 + 3
    assert len(wide) == expected, accesses
    rng = random_generator(143, m)
    inputs = [[*(np.abs(draw(rng, (m, n), "f32")) for _ in range(3)), draw(rng, (m, n), "bf16"), np.array(0.1, np.float32)]]
    same_as_cpu(bin_dir, tmp_path, source, chip, inputs, [carry])


def test_nan_payloads(bin_dir, tmp_path):
    """Operations that only move elements keep the bits of NaNs, signalling ones too."""
    elements = ["f32", "bf16", "f16", "f64"]
    main = Main(**{f"{name}{e}": (("n", 24), e) for name in "xy" for e in elements}, c=(("n", 24), "i32"))
    for e in elements:
        main.add([("c", "ij"), (f"x{e}", "ij"), (f"y{e}", "ij")], [(("n", 24), e), (("n", 24), e)],
                 f"%z = arith.constant 0 : i32\n%b = arith.cmpi slt, %in0, %z : i32\n%s = arith.select %b, %in1, %in2 : {e}\n"
                 f"linalg.yield %s, %in1 : {e}, {e}")
    assert any(".v4" in access for access in widths(bin_dir, tmp_path, str(main), "sm_90a"))
    rng = random_generator(144)
    inputs = [[draw_nans(rng, (31, 24), e) if is_float(e) else draw(rng, (31, 24), e) for _, e in main.arguments.values()]]
    same_as_cpu(bin_dir, tmp_path, str(main), "sm_90a", inputs, check=assert_same_bytes)


@pytest.mark.parametrize("offset", [0, 2, 3])
def test_indices(bin_dir, tmp_path, offset):
    """Each point has its own index, also in three dimensions and beside a fill of a constant."""
    main = Main(x=(("n", 5, 32), "f32"))
    main.add([("x", "ijk")], [(("n", 5, 32), "f32"), (("n", 5, 32), "i32")],
             f"""%k = linalg.index 2 : index
    %j = linalg.index 1 : index
    %c = arith.constant {offset} : index
    %s = arith.addi %j, %c : index
    %b = arith.cmpi ult, %s, %k : index
    %z = arith.constant 7.0 : f32
    %v = arith.select %b, %in0, %z : f32
    %o = arith.index_cast %k : index to i32
    linalg.yield %v, %o : f32, i32""")
    main.add([], [(("n", 5, 32), "f32")], "%z = arith.constant 2.5 : f32\nlinalg.yield %z : f32")
    assert "st.global.v4.b32" in widths(bin_dir, tmp_path, str(main), "sm_90a")
    rng = random_generator(145)
    same_as_cpu(bin_dir, tmp_path, str(main), "sm_90a", [[draw(rng, (13, 5, 32), "f32")]])


# Three parts of a row side by side: as copies into views, and as a branch for each part.
CONCAT = """
func.func @main(%x: tensor<?xAxbf16>, %y: tensor<?xBxbf16>, %z: tensor<?xCxbf16>) -> (tensor<?xSxbf16>, tensor<?xSxf32>) {
  %r = tensor.concat dim(1) %x, %y, %z : (tensor<?xAxbf16>, tensor<?xBxbf16>, tensor<?xCxbf16>) -> tensor<?xSxbf16>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xAxbf16>
  %e = tensor.empty(%n) : tensor<?xSxf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?xSxf32>) {
  ^bb0(%out: f32):
    %a = arith.constant A : index
    %b = arith.constant U : index
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %first = arith.cmpi ult, %j, %a : index
    %v = scf.if %first -> bf16 {
      %s = tensor.extract %x[%i, %j] : tensor<?xAxbf16>
      scf.yield %s : bf16
    } else {
      %second = arith.cmpi ult, %j, %b : index
      %t = scf.if %second -> bf16 {
        %k = arith.subi %j, %a : index
        %s = tensor.extract %y[%i, %k] : tensor<?xBxbf16>
        scf.yield %s : bf16
      } else {
        %k = arith.subi %j, %b : index
        %s = tensor.extract %z[%i, %k] : tensor<?xCxbf16>
        scf.yield %s : bf16
      }
      scf.yield %t : bf16
    }
    %f = arith.extf %v : bf16 to f32
    linalg.yield %f : f32
  } -> tensor<?xSxf32>
  return %r, %w : tensor<?xSxbf16>, tensor<?xSxf32>
}
"""


# Vectors of f32 that are stored, of bf16 that are copied: parts that begin at odd places have none, branches only multiples of 16.
@pytest.mark.parametrize("parts, branches, copies", [((32, 16, 48), 1, 3), ((32, 8, 24), 0, 3), ((32, 12, 4), 0, 3), ((31, 1, 32), 0, 1)], ids=str)
def test_concatenations(bin_dir, tmp_path, parts, branches, copies):
    source = CONCAT.replace("xS", "x%d" % sum(parts)).replace("constant U", "constant %d" % sum(parts[:2])).replace("constant A", "constant %d" % parts[0])
    for name, size in zip("ABC", parts):
        source = source.replace(f"x{name}x", f"x{size}x")
    stores = [access for access in widths(bin_dir, tmp_path, source, "sm_90a") if access.startswith("st.global.v")]
    assert len(stores) == branches + copies
    rng = random_generator(146)
    inputs = [[draw(rng, (rows, size), "bf16") for size in parts] for rows in (1, 23)]
    same_as_cpu(bin_dir, tmp_path, source, "sm_90a", inputs)
