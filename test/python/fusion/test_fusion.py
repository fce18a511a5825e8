# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion never changes a bit: random elementwise programs around casts and products.

Each program is compiled as one entry point, in which code is fused, and as two, in which it
cannot be: one that computes the tensor, one that casts it. Their results must be equal bit for
bit, and equal to numpy's unless the math library is involved.
"""
import json
import subprocess

import numpy as np
import pytest

import reference
from harness import BF16, E4M3, E5M2, F32, MLIR_NAMES, Program, assert_same_bits, random_generator, tensor_type

IDENTITY, TRANSPOSED, ROW, COLUMN = "(i, j) -> (i, j)", "(i, j) -> (j, i)", "(i, j) -> (j)", "(i, j) -> (i)"


# A few programs always, more with the slow tests.
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))]


class Value:
    def __init__(self, name, array, map=IDENTITY):
        self.name, self.array, self.map = name, array, map

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def type(self):
        return tensor_type(self.array.shape, self.dtype)

    def read(self):
        """The array as the loops see it."""
        views = {IDENTITY: self.array, TRANSPOSED: self.array.T, ROW: self.array, COLUMN: self.array[:, None] if self.map == COLUMN else None}
        return views[self.map].astype(F32)


def generic(name, inputs, out_type, body, iterators='"parallel", "parallel"', out_map=IDENTITY, init="%e_" , extra=""):
    maps = ", ".join(f"affine_map<{m}>" for m in [*(v.map for v in inputs), out_map])
    ins = f"ins({', '.join(v.name for v in inputs)} : {', '.join(v.type for v in inputs)})"
    blocks = ", ".join(f"%a{i}: {MLIR_NAMES[v.dtype]}" for i, v in enumerate(inputs))
    element = out_type.split("x")[-1].rstrip(">")
    return f"""
  {init}{name[1:]} = tensor.empty() : {out_type}{extra}
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {ins} outs({"%z_" if extra else init}{name[1:]} : {out_type}) {{
  ^bb0({blocks}, %out: {element}):{body}
  }} -> {out_type}"""


class Code:
    """Random elementwise code over `values`; `math` allows calls that numpy rounds otherwise."""

    def __init__(self, rng, shape, values, count, math):
        self.rng, self.shape, self.math, self.text = rng, shape, math, ""
        self.values = list(values)
        for i in range(count):
            # The newest value always goes on: nothing is dead before the last.
            operands = [self.values[-1], self.values[rng.integers(len(self.values))]]
            self.values.append(self.step(f"%v{i}", operands))
        self.final, self.inner = self.values[-1], self.values[len(values):-1]

    def step(self, name, operands):
        kind = self.rng.choice(["add", "sub", "mul", "max", "mask", "triangle", "neg", "narrow"] + ["tanh", "exp"] * self.math)
        dtype = [F32, BF16][self.rng.integers(2)]
        narrow = kind in ("add", "mul") and all(v.dtype == BF16 for v in operands) and dtype == BF16
        lines, names = [], []
        for i, v in enumerate(operands):
            names.append(f"%a{i}")
            if v.dtype == BF16 and not narrow:
                lines.append(f"%w{i} = arith.extf %a{i} : bf16 to f32")
                names[-1] = f"%w{i}"
        x, y = (np.broadcast_to(v.read(), self.shape) for v in operands)
        t = "bf16" if narrow else "f32"
        with np.errstate(all="ignore"):
            if kind in ("add", "sub", "mul"):
                lines.append(f"%res = arith.{kind}f {names[0]}, {names[1]} : {t}")
                result = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[kind](x, y)
            elif kind == "max":
                lines += [f"%cmp = arith.cmpf ogt, {names[0]}, {names[1]} : f32",
                          f"%res = arith.select %cmp, {names[0]}, {names[1]} : f32"]
                result = np.where(x > y, x, y)
            elif kind == "mask":
                lines += ["%nul = arith.constant 0.0 : f32", f"%cmp = arith.cmpf ogt, {names[1]}, %nul : f32",
                          f"%res = arith.select %cmp, {names[0]}, %nul : f32"]
                result = np.where(y > 0, x, np.float32(0))
            elif kind == "triangle":
                lines += ["%row = linalg.index 0 : index", "%column = linalg.index 1 : index",
                          "%cmp = arith.cmpi ugt, %column, %row : index",
                          f"%res = arith.select %cmp, {names[0]}, {names[1]} : f32"]
                result = np.where(np.triu(np.ones(self.shape, bool), 1), x, y)
            elif kind == "narrow":
                lines += [f"%low = arith.truncf {names[0]} : f32 to bf16", "%res = arith.extf %low : bf16 to f32"]
                result = x.astype(BF16).astype(F32)
            elif kind == "neg":
                lines.append(f"%res = arith.negf {names[0]} : f32")
                result = -x
            else:
                lines.append(f"%res = math.{kind} {names[0]} : f32")
                result = x
        if dtype == BF16 and not narrow:
            lines.append("%nar = arith.truncf %res : f32 to bf16")
        lines.append(f"linalg.yield {'%nar' if dtype == BF16 and not narrow else '%res'} : {MLIR_NAMES[dtype]}")
        body = "".join(f"\n    {line}" for line in lines)
        self.text += generic(name, operands, tensor_type(self.shape, dtype), body)
        return Value(name, np.ascontiguousarray(result.astype(dtype)))


def column_sum(name, value):
    """The program's own sum over the rows, in f32."""
    rows, columns = value.array.shape
    body = "\n    %acc = arith.addf %out, %a0 : f32\n    linalg.yield %acc : f32"
    if value.dtype == BF16:
        body = "\n    %w = arith.extf %a0 : bf16 to f32" + body.replace("%a0", "%w")
    fill = f"\n  %zero{name[1:]} = arith.constant 0.0 : f32\n  %z_{name[1:]} = linalg.fill ins(%zero{name[1:]} : f32) outs(%e_{name[1:]} : tensor<{columns}xf32>) -> tensor<{columns}xf32>"
    total = np.zeros(columns, F32)
    for row in value.array.astype(F32):
        total = total + row
    text = generic(name, [value], f"tensor<{columns}xf32>", body, '"reduction", "parallel"', ROW, extra=fill)
    return text, Value(name, total)


def cast(x, type, shape, format, current):
    """Casts %x; with current scaling the scale is the tensor's own."""
    data = tensor_type(shape, format)
    text, scale = "", "%s"
    if current:
        text = f"""
  %ae = tensor.empty() : tensor<f32>
  %own = fp8.amax ins({x} : {type}) outs(%ae : tensor<f32>) -> tensor<f32>
  %ce = tensor.empty() : tensor<f32>
  %scale = fp8.compute_scale recipe(#fp8.current_scaling) format({MLIR_NAMES[np.dtype(format)]}) ins(%own : tensor<f32>) outs(%ce : tensor<f32>) -> tensor<f32>"""
        scale = "%scale"
    return f"""{text}
  %qe = tensor.empty() : {data}
  %ie = tensor.empty() : tensor<f32>
  %me = tensor.empty() : tensor<f32>
  %q, %i, %amax = fp8.quantize record_amax ins({x} : {type}) scale({scale} : tensor<f32>) outs(%qe, %ie, %me : {data}, tensor<f32>, tensor<f32>) -> {data}, tensor<f32>, tensor<f32>"""


def function(name, arguments, text, results):
    """`arguments` and `results` as (name, type)."""
    types = ", ".join(t for _, t in results)
    return f"""
func.func @{name}({", ".join(f"{n}: {t}" for n, t in arguments)}) -> ({types}) {{{text}
  return {", ".join(n for n, _ in results)} : {types}
}}"""


def check(bin_dir, tmp_path, rng, math, current, product):
    """`product` is "", "scaled" (of FP8 operands) or "kept" (of bf16)."""
    shape = tuple(int(n) for n in rng.integers(3, 90, 2))
    format = [E4M3, E5M2][rng.integers(2)]
    sample = lambda *s: (rng.standard_normal(s) * 2.0 ** rng.integers(-4, 4)).astype(F32)
    m, n = shape
    inputs = [Value("%x", sample(m, n)), Value("%y", sample(m, n).astype(BF16)), Value("%t", sample(n, m), TRANSPOSED),
              Value("%b", sample(n).astype(BF16), ROW), Value("%c", sample(m), COLUMN)]
    k = int(rng.integers(1, 200))
    types = (E4M3, E5M2) if product == "scaled" else (BF16, BF16)
    a, b = sample(m, k).astype(types[0]), sample(k, n).astype(types[1])
    first = []
    if product:
        first = [Value("%d", reference.dot(a, b.T).astype(BF16))]
    code = Code(rng, shape, [*inputs, *first], int(rng.integers(2, 8)), math)

    others = [v for v in code.inner if rng.random() < 0.3]
    summed = [v for v in [code.final, *code.inner] if rng.random() < 0.4]
    sums = [column_sum(f"%sum{i}", v) for i, v in enumerate(summed)]
    extra = [*others, *(v for _, v in sums)]
    computed = code.text + "".join(text for text, _ in sums)
    final, data = code.final, tensor_type(shape, format)
    casts = [("%q", data), ("%i", "tensor<f32>"), ("%amax", "tensor<f32>")]
    scale = ("%s", "tensor<f32>")
    arguments = [(v.name, v.type) for v in inputs]
    extras = [(v.name, v.type) for v in extra]
    casting = cast(final.name, final.type, shape, format, current)
    multiply, operands = "", []
    if product:
        operands = [("%lhs", tensor_type(a.shape, a.dtype)), ("%rhs", tensor_type(b.shape, b.dtype))]
        ins = f"ins(%lhs, %rhs : {operands[0][1]}, {operands[1][1]})"
        multiply = f"""
  %one = arith.constant dense<1.0> : tensor<f32>
  %none = arith.constant 0.0 : bf16
  %de = tensor.empty() : {first[0].type}"""
        if product == "scaled":
            multiply += f"""
  %d = fp8.scaled_matmul fast {ins} scales(%one, %one : tensor<f32>, tensor<f32>)
      outs(%de : {first[0].type}) {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]}} -> {first[0].type}"""
        else:
            multiply += f"""
  %df = linalg.fill ins(%none : bf16) outs(%de : {first[0].type}) -> {first[0].type}
  %d = linalg.matmul {ins} outs(%df : {first[0].type}) -> {first[0].type}"""
    program = (function("fused", [*arguments, *operands, scale], multiply + computed + casting, [*casts, *extras])
               + function("compute", [*arguments, *((v.name, v.type) for v in first)], computed, [(final.name, final.type), *extras])
               + function("cast", [(final.name, final.type), scale], casting, casts))
    report = tmp_path / "report.json"
    compiled = Program(bin_dir, tmp_path, program, "--recipe=none", f"--report=json:{report}")
    s = np.float32(2.0 ** rng.integers(-3, 6) * 1.3)
    factors = [a, b] if product else []
    fused = compiled.call("fused", *(v.array for v in inputs), *factors, s)
    computed_values = compiled.call("compute", *(v.array for v in inputs), *(v.array for v in first))
    cast_values = compiled.call("cast", computed_values[0], s)
    for actual, expected in zip(fused, [*cast_values, *computed_values[1:]], strict=True):
        assert_same_bits(actual, expected)
    if not math:
        assert_same_bits(computed_values[0], final.array)
        for actual, value in zip(computed_values[1:], extra, strict=True):
            assert_same_bits(actual, value.array)
    ir = subprocess.run([bin_dir / "fp8-compile", compiled.source, "-o", "-", "--emit=fusion", "--recipe=none"],
                        capture_output=True, text=True, check=True).stdout
    fused = ir.split("func.func")[1]
    traffic = next(t for t in json.loads(report.read_text())["memory"]["traffic"] if t["entry"] == "fused")
    assert sum(traffic["after_fusion"].values()) <= sum(traffic["before_fusion"].values())
    return "producer {" in fused, "epilogue {" in fused


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("current", [False, True], ids=["known_scale", "own_scale"])
def test_producers(bin_dir, tmp_path, seed, current):
    rng = random_generator(41, seed, current)
    has_producer, _ = check(bin_dir, tmp_path, rng, math=seed % 3 == 0, current=current, product="")
    assert has_producer


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("current", [False, True], ids=["known_scale", "own_scale"])
@pytest.mark.parametrize("product", ["scaled", "kept"])
def test_epilogues(bin_dir, tmp_path, seed, current, product):
    rng = random_generator(42, seed, current, product == "kept")
    # The order of what is written decides which one; there is always something to fuse.
    assert any(check(bin_dir, tmp_path, rng, math=seed % 3 == 0, current=current, product=product))


def test_the_report_counts_bytes(bin_dir, tmp_path):
    """x [6, 8] f32 is negated to bf16, cast to FP8 (record: data, scale_inv, amax), and returned."""
    program = function("main", [("%x", "tensor<6x8xf32>"), ("%s", "tensor<f32>")],
                       generic("%v", [Value("%x", np.zeros((6, 8), F32))], "tensor<6x8xbf16>", """
    %n = arith.negf %a0 : f32
    %r = arith.truncf %n : f32 to bf16
    linalg.yield %r : bf16""") + cast("%v", "tensor<6x8xbf16>", (6, 8), E4M3, False),
                       [("%q", "tensor<6x8xf8E4M3FN>"), ("%i", "tensor<f32>"), ("%amax", "tensor<f32>")])
    report = tmp_path / "report.json"
    Program(bin_dir, tmp_path, program, "--recipe=none", f"--report=json:{report}")
    # Before: read x, and v and the scale; write v, and 48 bytes, scale_inv and amax. After: v is gone.
    assert json.loads(report.read_text())["memory"]["traffic"] == [{
        "entry": "main", "estimated": False, "read_again": [],
        "before_fusion": {"read": 48 * 4 + 48 * 2 + 4, "written": 48 * 2 + 48 + 8},
        "after_fusion": {"read": 48 * 4 + 4, "written": 48 + 8}}]


def test_the_report_counts_arithmetic_on_tensors(bin_dir, tmp_path):
    """tanh of x [8, 4] f32, times w [4, 2]: nothing fuses, so nothing changes."""
    program = """
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %t = math.tanh %x : tensor<8x4xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.matmul ins(%t, %w : tensor<8x4xf32>, tensor<4x2xf32>) outs(%f : tensor<8x2xf32>) -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
"""
    report = tmp_path / "report.json"
    Program(bin_dir, tmp_path, program, "--recipe=none", f"--report=json:{report}")
    figures = {"read": (32 + 32 + 8) * 4, "written": (32 + 16) * 4}
    assert json.loads(report.read_text())["memory"]["traffic"] == [
        {"entry": "main", "estimated": False, "before_fusion": figures, "after_fusion": figures, "read_again": []}
    ]


def test_code_that_adds_to_its_output(bin_dir, tmp_path):
    """It runs once per element of the output, also where a reader repeats each of them."""
    text = """
func.func @main(%x: tensor<5xf32>, %i: tensor<5xf32>, %y: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<5xf32>) outs(%i : tensor<5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %v = arith.addf %out, %in : f32
    linalg.yield %v : f32
  } -> tensor<5xf32>
  %e = tensor.empty() : tensor<5x7xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%0, %y : tensor<5xf32>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<5x7xf32>
  return %1 : tensor<5x7xf32>
}"""
    rng = random_generator(74)
    x, i, y = (rng.standard_normal(shape).astype(F32) for shape in ([5], [5], [5, 7]))
    (actual,) = Program(bin_dir, tmp_path, text, "--recipe=none").call("main", x, i, y)
    assert_same_bits(actual, (i + x)[:, None] + y)
