# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--mixed-precision: an f32 program runs as the same program with the casts written by hand, bit for bit."""
import numpy as np
import pytest

import reference
from harness import BF16, E4M3, F16, F32, Program, assert_same_bits, random_generator

TYPES = {"bf16": BF16, "f16": F16}

# A product, a bias in f32, elementwise code on narrow values, a norm, and a product of its result.
STEP = """
#all = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
#col = affine_map<(m, n) -> (m)>
func.func @main(%x: tensor<13x37xf32> loc("x"), %w1: tensor<37x29xf32> loc("w1"), %b: tensor<29xf32> loc("b"),
                %w2: tensor<29x17xf32> loc("w2"))
    -> (tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x17xf32>, tensor<13x37xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<13x29xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<13x29xf32>) -> tensor<13x29xf32>
  %h = linalg.matmul ins(%x, %w1 : tensor<13x37xf32>, tensor<37x29xf32>) outs(%f0 : tensor<13x29xf32>) -> tensor<13x29xf32> loc("l1/dot")
  %a = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%h, %b : tensor<13x29xf32>, tensor<29xf32>) outs(%e0 : tensor<13x29xf32>) {
    ^bb0(%p: f32, %q: f32, %r: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
  } -> tensor<13x29xf32>
  %third = arith.constant dense<0.3> : tensor<13x29xf32>
  %c = arith.mulf %h, %third : tensor<13x29xf32>
  %q = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%c, %h : tensor<13x29xf32>, tensor<13x29xf32>) outs(%e0 : tensor<13x29xf32>) {
    ^bb0(%p: f32, %o: f32, %r: f32):
      %sq = arith.mulf %p, %p : f32
      %half = arith.constant 1.5 : f32
      %t = arith.divf %sq, %half : f32
      %s = arith.addf %t, %o : f32
      linalg.yield %s : f32
  } -> tensor<13x29xf32>
  %e1 = tensor.empty() : tensor<13xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<13xf32>) -> tensor<13xf32>
  %sum = linalg.generic {indexing_maps = [#all, #col], iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<13x29xf32>) outs(%f1 : tensor<13xf32>) {
    ^bb0(%p: f32, %r: f32):
      %sq = arith.mulf %p, %p : f32
      %s = arith.addf %r, %sq : f32
      linalg.yield %s : f32
  } -> tensor<13xf32>
  %n = linalg.generic {indexing_maps = [#all, #col, #all], iterator_types = ["parallel", "parallel"]}
      ins(%q, %sum : tensor<13x29xf32>, tensor<13xf32>) outs(%e0 : tensor<13x29xf32>) {
    ^bb0(%p: f32, %o: f32, %r: f32):
      %root = math.sqrt %o : f32
      %s = arith.divf %p, %root : f32
      linalg.yield %s : f32
  } -> tensor<13x29xf32>
  %e2 = tensor.empty() : tensor<13x17xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<13x17xf32>) -> tensor<13x17xf32>
  %y = linalg.matmul ins(%n, %w2 : tensor<13x29xf32>, tensor<29x17xf32>) outs(%f2 : tensor<13x17xf32>) -> tensor<13x17xf32> loc("l2/dot")
  %e3 = tensor.empty() : tensor<29x37xf32>
  %wt = linalg.transpose ins(%w1 : tensor<37x29xf32>) outs(%e3 : tensor<29x37xf32>) permutation = [1, 0]
  %e4 = tensor.empty() : tensor<13x37xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<13x37xf32>) -> tensor<13x37xf32>
  %z = linalg.matmul ins(%h, %wt : tensor<13x29xf32>, tensor<29x37xf32>) outs(%f4 : tensor<13x37xf32>) -> tensor<13x37xf32> loc("back/dot")
  return %a, %c, %q, %n, %y, %z : tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x29xf32>, tensor<13x17xf32>, tensor<13x37xf32>
}
"""


def round_tf32(x):
    """10 bits of mantissa, nearest, ties away from zero: by exact arithmetic in f64."""
    wide = np.asarray(x, F32).astype(np.float64)
    mantissa, exponent = np.frexp(np.abs(wide))
    unit = np.ldexp(1.0, np.maximum(exponent, -125) - 11)  # of the last bit; below 2^-126 that of denormals
    with np.errstate(all="ignore"):
        rounded = np.where(np.isfinite(wide), np.floor(np.abs(wide) / unit + 0.5) * unit, np.abs(wide))
        return np.copysign(rounded, wide).astype(F32)


def wide_dot(a, b):
    """a [M, K] · b [N, K] in f32, a product and its addition rounded once, as fma does: a product of two f32 is
    exact in f64."""
    total = np.zeros((a.shape[0], b.shape[0]), F32)
    for k in range(a.shape[1]):
        total = (total.astype(np.float64) + np.outer(a[:, k].astype(np.float64), b[:, k].astype(np.float64))).astype(F32)
    return total


def sum_rows(values):
    total = np.zeros(values.shape[0], F32)
    for column in values.T:
        total = total + column
    return total


def evaluate(x, w1, b, w2, low, product=reference.dot):
    """The step with the policy written out; low(value) is the value in the narrow type, as f32."""
    h = low(product(low(x), low(w1).T))
    a = h + b
    c = low(h * np.float32(0.3))
    q = low(low(low(c * c) / np.float32(1.5)) + h)
    n = q / np.sqrt(sum_rows(q * q))[:, None]
    y = low(product(low(n), low(w2).T))
    return a, c, q, n, y, low(product(low(h), low(w1)))


def to(dtype):
    return lambda value: np.asarray(value, F32).astype(dtype).astype(F32)


@pytest.fixture(scope="module")
def inputs():
    rng = random_generator(61)
    return [rng.standard_normal(shape).astype(F32) for shape in ([13, 37], [37, 29], [29], [29, 17])]


@pytest.mark.parametrize("name", TYPES)
def test_is_the_program_with_casts(bin_dir, tmp_path, inputs, name):
    program = Program(bin_dir, tmp_path, STEP, "--recipe=none", f"--mixed-precision={name}")
    for actual, wanted in zip(program.call("main", *inputs), evaluate(*inputs, low=to(TYPES[name]))):
        assert_same_bits(actual, wanted)


def test_off_changes_nothing(bin_dir, tmp_path, inputs):
    for folder, options in (("none", []), ("off", ["--mixed-precision=off"])):
        (tmp_path / folder).mkdir()
        program = Program(bin_dir, tmp_path / folder, STEP, "--recipe=none", *options)
        for actual, wanted in zip(program.call("main", *inputs), evaluate(*inputs, low=lambda value: value, product=wide_dot)):
            assert_same_bits(actual, wanted)


def test_tf32(bin_dir, tmp_path, inputs):
    program = Program(bin_dir, tmp_path, STEP, "--recipe=none", "--mixed-precision=tf32")
    product = lambda a, b: reference.dot(round_tf32(a), round_tf32(b))
    for actual, wanted in zip(program.call("main", *inputs), evaluate(*inputs, low=lambda v: v, product=product)):
        assert_same_bits(actual, wanted)


def test_fp8_reads_the_narrow_values(bin_dir, tmp_path, inputs):
    """Casts to FP8 read the rounded operands; a site that is kept is a product in bf16."""
    low = to(BF16)

    def product(a, b):
        if a.shape[1] == 37 or b.shape[0] == 37:  # l1 and what goes back through it
            (qa, ia), (qb, ib) = ((reference.cast(v, s, E4M3), reference.scale_inv(s)) for v in (a, b)
                                  for s in [reference.current_scale(reference.amax(v), E4M3)])
            return reference.scaled_matmul(qa, qb, ia, ib)
        return reference.dot(a, b)

    program = Program(bin_dir, tmp_path, STEP, "--recipe=current", "--format=e4m3", "--keep=l2",
                      "--mixed-precision=bf16")
    for actual, wanted in zip(program.call("main", *inputs), evaluate(*inputs, low=low, product=product)):
        assert_same_bits(actual, wanted)


ONE = """
func.func @main(%x: tensor<COUNTx1xf32>, %w: tensor<1x1xf32>) -> tensor<COUNTx1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<COUNTx1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<COUNTx1xf32>) -> tensor<COUNTx1xf32>
  %y = linalg.matmul ins(%x, %w : tensor<COUNTx1xf32>, tensor<1x1xf32>) outs(%f : tensor<COUNTx1xf32>) -> tensor<COUNTx1xf32>
  return %y : tensor<COUNTx1xf32>
}
"""


def boundaries():
    """Ties and their neighbours in every binade, denormals, the largest values, Inf and NaN."""
    kept = np.arange(0, 2**31, 0x2000 * 997, dtype=np.uint32)
    bits = (kept[:, None] + np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x3000], np.uint32)).ravel()
    bits = np.concatenate([bits, np.array([0x7F7FFFFF, 0x7F7FEFFF, 0x7F7FF000, 0x7F800000, 0x7F800001, 0x7FFFFFFF], np.uint32)])
    return np.concatenate([bits, bits | 0x80000000]).astype(np.uint32).view(F32)


@pytest.mark.parametrize("name", ["tf32", "bf16", "f16"])
def test_rounding_of_an_operand(bin_dir, tmp_path, name):
    x = boundaries()
    program = Program(bin_dir, tmp_path, ONE.replace("COUNT", str(x.size)), "--recipe=none", f"--mixed-precision={name}")
    (actual,) = program.call("main", x[:, None], np.ones((1, 1), F32))
    rounded = round_tf32(x) if name == "tf32" else to(TYPES[name])(x)
    # The product adds +0 to the rounded value: a sum of +0 and -0 is +0.
    with np.errstate(all="ignore"):
        assert_same_bits(actual[:, 0], np.float32(0) + rounded)


# h = x·w in a function of its own, called twice; e is what the second call or the function says.
CALLS = """
func.func private @layer(%x: tensor<9x9xf32>, %w: tensor<9x9xf32>) -> tensor<9x9xf32> FUNCTION {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %y = linalg.matmul INNER ins(%x, %w : tensor<9x9xf32>, tensor<9x9xf32>) outs(%f : tensor<9x9xf32>) -> tensor<9x9xf32>
  return %y : tensor<9x9xf32>
}
func.func @main(%x: tensor<9x9xf32>, %w: tensor<9x9xf32>) -> (tensor<9x9xf32>, tensor<9x9xf32>) {
  %a = call @layer(%x, %w) : (tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<9x9xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = scf.for %i = %c0 to %c1 step %c1 iter_args(%s = %a) -> tensor<9x9xf32> {
    %y = func.call @layer(%s, %w) CALL : (tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<9x9xf32>
    scf.yield %y : tensor<9x9xf32>
  } LOOP
  return %a, %b : tensor<9x9xf32>, tensor<9x9xf32>
}
"""


@pytest.mark.parametrize("where,first,second", [
    (dict(), "bf16", "bf16"),
    (dict(CALL="off"), "bf16", None),
    (dict(CALL="f16"), "bf16", "f16"),
    (dict(FUNCTION="off"), None, None),
    (dict(LOOP="off"), "bf16", None),
    (dict(LOOP="off", CALL="f16"), "bf16", "f16"),
    (dict(CALL="off", FUNCTION="f16"), "f16", "f16"),
    (dict(CALL="off", FUNCTION="f16", INNER="bf16"), "bf16", "bf16"),
], ids=lambda value: "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None)
def test_the_innermost_attribute_holds(bin_dir, tmp_path, where, first, second):
    text = CALLS
    for place in ("CALL", "FUNCTION", "LOOP", "INNER"):
        attribute = f'{{fp8.mixed_precision = "{where[place]}"}}' if place in where else ""
        text = text.replace(place, ("attributes " if place == "FUNCTION" and attribute else "") + attribute)
    program = Program(bin_dir, tmp_path, text, "--recipe=none", "--mixed-precision=bf16")
    rng = random_generator(62)
    x, w = (rng.standard_normal((9, 9)).astype(F32) for _ in range(2))

    def layer(value, name):
        low = to(TYPES[name]) if name else lambda v: v
        return low((reference.dot if name else wide_dot)(low(value), low(w).T))

    a = layer(x, first)
    for actual, wanted in zip(program.call("main", x, w), (a, layer(a, second))):
        assert_same_bits(actual, wanted)


def test_functions_that_need_f32(bin_dir, tmp_path):
    """exp of a narrow value is in f32: more bits than bf16 has. Its own error is at most 4 ulp of f32."""
    text = STEP.replace("%a = linalg.generic", "%ex = math.exp %h : tensor<13x29xf32>\n  %a = linalg.generic").replace(
        "return %a", "return %ex")
    program = Program(bin_dir, tmp_path, text, "--recipe=none", "--mixed-precision=bf16")
    rng = random_generator(63)
    inputs = [rng.standard_normal(shape).astype(F32) for shape in ([13, 37], [37, 29], [29], [29, 17])]
    low = to(BF16)
    h = low(reference.dot(low(inputs[0]), low(inputs[1]).T))
    actual = program.call("main", *inputs)[0]
    np.testing.assert_array_max_ulp(actual, np.exp(h.astype(np.float64)).astype(F32), maxulp=4)
    assert not np.array_equal(actual, low(actual))


def test_a_wrong_attribute(run, tmp_path):
    text = CALLS.replace("CALL", '{fp8.mixed_precision = "half"}').replace("FUNCTION", "").replace("LOOP", "").replace("INNER", "")
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", stdin=text)
    assert done.returncode == 1 and "<stdin>:14:10: error: " in done.stderr
    assert "attribute 'fp8.mixed_precision' must be" in done.stderr


def test_a_wrong_option(run, tmp_path):
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", "--mixed-precision=half", stdin=STEP)
    assert done.returncode == 2 and "--mixed-precision=half must be off, bf16, f16 or tf32" in done.stderr


@pytest.mark.parametrize("name", ["bf16", "f16", "tf32"])
def test_on_a_gpu(bin_dir, tmp_path, monkeypatch, inputs, name):
    """The emulator, with sums in the order of K, has the CPU's bits."""
    results = []
    for target in ("cpu", "sm_89"):
        (tmp_path / target).mkdir()
        program = Program(bin_dir, tmp_path / target, STEP, "--recipe=none", f"--mixed-precision={name}", f"--target={target}",
                          "--order=program")
        monkeypatch.setenv("FP8EMU_SUMS", "korder")
        device = [] if target == "cpu" else ["--device=emulator"]
        program.run("main", inputs, f"--outputs={program.folder / 'outputs'}", *device)
        results.append(program.folder / "outputs")
    first, second = results
    assert first.read_bytes() == second.read_bytes()
