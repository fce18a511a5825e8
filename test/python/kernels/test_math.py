# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Math functions by value: fp8-expand-math through compiled code, against f64 functions of numpy and the C library.

Errors are in units in the last place (ulp) of the f32 next to the exact result. The limits are the
largest errors that were ever seen, rounded up; lib/Conversion/ExpandMath/README.md lists them.
"""
import math
import os
import platform
import re
import subprocess

import numpy as np
import pytest

from harness import BF16, F16, F32, MLIR_NAMES, Program, assert_same_bits, random_generator

INF, NAN = np.inf, np.nan
erf, erfc = (np.vectorize(function, otypes=[np.float64]) for function in (math.erf, math.erfc))

# Limit in ulp, and the reference.
UNARY = {
    "exp": (1.1, np.exp),
    "exp2": (1.0, np.exp2),
    "expm1": (1.6, np.expm1),
    "tanh": (2.6, np.tanh),
    "sinh": (1.7, np.sinh),
    "cosh": (1.6, np.cosh),
    "log": (1.0, np.log),
    "log2": (1.7, np.log2),
    "log10": (1.5, np.log10),
    "log1p": (1.7, np.log1p),
    "asinh": (2.2, np.arcsinh),
    "acosh": (2.2, np.arccosh),
    "atanh": (2.3, np.arctanh),
    "cbrt": (0.8, np.cbrt),
    "rsqrt": (1.5, lambda x: 1 / np.sqrt(x)),
    "sin": (1.6, np.sin),
    "cos": (1.6, np.cos),
    "tan": (3.3, np.tan),
    "asin": (2.4, np.arcsin),
    "acos": (1.2, np.arccos),
    "atan": (1.5, np.arctan),
    "erf": (1.2, erf),
    "erfc": (3.4, erfc),
}
BINARY = {"powf": (2.3, np.power), "atan2": (1.6, np.arctan2), "fpowi": (2.3, np.power)}
# Powers by products and roots: the exponent, and the limit.
CONSTANT_POWERS = {-3: 3.5, -2: 2.0, -1: 0.5, -0.5: 1.5, 0: 0, 0.5: 0.5, 1: 0, 2: 0.5, 3: 1.5, 4: 2.0}

SMALLEST, LARGEST = 2.0**-149, np.finfo(F32).max
SPECIAL = [0.0, SMALLEST, 2.0**-127, 2.0**-126, 1e-30, 0.5, 1 - 2.0**-24, 1, 1 + 2.0**-23, 1.5, 2, 3, 4, 10, 2.0**23, 2.0**24 + 2,
           88.72283, 88.72284, 89.41598, 89.41599, 87.33655, 103.97207, 103.9721, 128, 150, 1e10, 2.0**126, 2.0**127, LARGEST, INF]
SPECIAL = np.array([*SPECIAL, *(-value for value in SPECIAL), NAN], F32)
COUNT = 1 << 16


def any_bits(rng, count):
    return rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(F32)


def unary_arguments():
    """Special values, all bit patterns alike, and the ranges where most functions change."""
    rng = random_generator(51)
    ranges = [rng.standard_normal(COUNT), rng.uniform(-110, 110, COUNT), rng.uniform(-2, 2, COUNT), 1 + rng.standard_normal(COUNT) * 0.05]
    parts = [SPECIAL, any_bits(rng, COUNT), *ranges]
    return np.concatenate([part.astype(F32) for part in parts])


def pairs():
    """Pairs of special values, of any bits, and those whose powers are finite, bases near 1 among them."""
    rng = random_generator(52)
    special_x, special_y = (values.ravel() for values in np.meshgrid(SPECIAL, SPECIAL))
    x = [special_x, any_bits(rng, COUNT), np.exp(rng.uniform(-80, 80, COUNT)), rng.uniform(0.9, 1.1, COUNT), -rng.uniform(0.5, 3, COUNT)]
    y = [special_y, any_bits(rng, COUNT), rng.uniform(-1.5, 1.5, COUNT), rng.uniform(-900, 900, COUNT), rng.integers(-90, 90, COUNT)]
    return np.concatenate([a.astype(F32) for a in x]), np.concatenate([b.astype(F32) for b in y])


def entry(name, line, types, count, result="f32"):
    """A function `name` that applies `line` (%a, %b to %r) to the elements of tensors of `types`."""
    tensors = [f"tensor<{count}x{element}>" for element in types]
    arguments = ", ".join(f"%{i} : {tensor}" for i, tensor in enumerate(tensors)).replace(" :", ":")
    operands = ", ".join(f"%{i}" for i in range(len(types)))
    block = ", ".join(f"%{value}: {element}" for value, element in zip("ab", types))
    out, maps = f"tensor<{count}x{result}>", ", ".join(["affine_map<(i) -> (i)>"] * (len(types) + 1))
    return f"""
func.func @{name}({arguments}) -> {out} {{
  %e = tensor.empty() : {out}
  %v = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
      ins({operands} : {', '.join(tensors)}) outs(%e : {out}) {{
  ^bb0({block}, %o: {result}):
    {line}
    linalg.yield %r : {result}
  }} -> {out}
  return %v : {out}
}}"""


def remainder(x, y):
    """C's fmod: exact."""
    with np.errstate(all="ignore"):
        return np.fmod(x, y)


def integer_power(x, n):
    """x^n modulo 2^32; 1 / x^-n, truncated, for a negative n."""
    if n < 0:
        return {1: 1, -1: -1 if n % 2 else 1}.get(x, 0)
    power = pow(x, n, 1 << 32)
    return power - (1 << 32) * (power >> 31)


def unary_entry(name, count, element="f32"):
    return entry(f"{name}_{element}", f"%r = math.{name} %a : {element}", [element], count, element)


def entries(unary, binary, unary_count, binary_count):
    texts = [unary_entry(name, unary_count) for name in unary]
    for name in binary:
        second = "i32" if name == "fpowi" else "f32"
        line = f"%r = math.{name} %a, %b : f32" + ", i32" * (name == "fpowi")
        texts.append(entry(name, line, ["f32", second], binary_count))
    return "".join(texts)


def constant_power_entries(count):
    texts = []
    for i, exponent in enumerate(CONSTANT_POWERS):
        line = f"%c = arith.constant {float(exponent)} : f32\n    %r = math.powf %a, %c : f32"
        texts.append(entry(f"power_{i}", line, ["f32"], count))
    return "".join(texts)


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    count = len(unary_arguments())
    text = entries(UNARY, BINARY, count, len(pairs()[0])) + constant_power_entries(count)
    return Program(bin_dir, tmp_path_factory.mktemp("math"), text, "--recipe=none")


def assert_error(actual, exact, limit, *arguments):
    """Errors are at most `limit` ulp. Infinity counts as 2^128, the float that would follow the largest."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        bounded, wanted = (np.clip(values.astype(np.float64), -(2.0**128), 2.0**128) for values in (actual, exact))
    exponent = np.clip(np.frexp(wanted)[1] - 24, -149, 104)
    error = np.abs(bounded - wanted) / np.exp2(exponent.astype(np.float64))
    good = np.where(np.isnan(wanted), np.isnan(actual), error <= limit)
    good &= np.isnan(wanted) | (actual != 0) | (np.signbit(actual) == np.signbit(wanted))
    where = np.argwhere(~good).ravel()
    detail = [(*(values[i] for values in arguments), actual[i], exact[i], error[i]) for i in where[:5]]
    assert actual.dtype == F32
    assert not where.size, f"{len(where)} beyond {limit} ulp (arguments, actual, exact, error): {detail}"


@pytest.mark.parametrize("name", UNARY)
def test_unary_function(name, program):
    x = unary_arguments()
    limit, reference = UNARY[name]
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
    assert_error(program.call(f"{name}_f32", x)[0], exact, limit, x)


@pytest.mark.parametrize("name", BINARY)
def test_binary_function(name, program):
    x, y = pairs()
    if name == "fpowi":
        y = np.clip(np.nan_to_num(y), -(2.0**31), 2.0**31 - 128).astype(np.int32)
        y[:4], x[:4] = [-(2**31), 2**31 - 1, 2**31 - 1, 2**24 + 1], [-1, -1, 1 - 2.0**-24, -1 - 2.0**-23]
    limit, reference = BINARY[name]
    with np.errstate(all="ignore"):  # x87's power is exact for f32, unlike that of f64
        exact = reference(x.astype(np.longdouble), y.astype(np.longdouble)).astype(np.float64)
    assert_error(program.call(name, x, y)[0], exact, limit, x, y)


@pytest.mark.parametrize("exponent", CONSTANT_POWERS)
def test_constant_power(exponent, program):
    x = unary_arguments()
    with np.errstate(all="ignore"):  # long double: numpy's f64 power with 0.5 is the root, which is -0 for -0
        exact = np.power(x.astype(np.longdouble), np.full(len(x), exponent, np.longdouble)).astype(np.float64)
    actual = program.call(f"power_{list(CONSTANT_POWERS).index(exponent)}", x)[0]
    assert_error(actual, exact, CONSTANT_POWERS[exponent], x)


# The binade that begins with the number holds the largest error of the function, or is next to it.
@pytest.mark.parametrize("name, start", [("exp", -4.0), ("tanh", 0.0625), ("log", 0.5), ("erf", 1.0)])
def test_every_float_of_a_binade(name, start, bin_dir, tmp_path):
    program = Program(bin_dir, tmp_path, unary_entry(name, 1 << 23), "--recipe=none")
    limit, reference = UNARY[name]
    x = (np.arange(1 << 23, dtype=np.uint32) + np.float32(start).view(np.uint32)).view(F32)
    assert_error(program.call(f"{name}_f32", x)[0], reference(x.astype(np.float64)), limit, x)


def test_powers_of_two_are_exact(program):
    x = unary_arguments()
    exponents = np.arange(-149, 128).astype(F32)
    powers, count = np.exp2(exponents.astype(np.float64)).astype(F32), len(exponents)
    x[:count] = exponents
    assert_same_bits(program.call("exp2_f32", x)[0][:count], powers)
    x[:count] = powers
    assert_same_bits(program.call("log2_f32", x)[0][:count], exponents)


def test_exponents_of_64_bits(bin_dir, tmp_path):
    """Beyond i32, only the parity and the sign of the exponent count."""
    x = np.array([-1, -1, -1, 1 - 2.0**-24, -1 - 2.0**-23, -1 - 2.0**-23, 2, 1.5], F32)
    n = np.array([2**40 + 1, 2**40, -(2**63) + 1, 2**40, 2**40 + 1, -(2**40), 2**62, -7], np.int64)
    program = Program(bin_dir, tmp_path, entry("f", "%r = math.fpowi %a, %b : f32, i64", ["f32", "i64"], 8), "--recipe=none")
    assert_same_bits(program.call("f", x, n)[0], np.array([-1, 1, -1, 0, -INF, 0, INF, 1.5**-7], F32))


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("target", ["cpu", "sm_89"])
def test_remainders_are_exact(element, target, bin_dir, tmp_path):
    dtype = BF16 if element == "bf16" else F32
    step = 1 if target == "cpu" else 41
    x, y = (values[::step].astype(dtype) for values in pairs())
    exact = remainder(x.astype(F32), y.astype(F32)).astype(dtype)
    text = entry("f", f"%r = arith.remf %a, %b : {element}", [element, element], len(x), element)
    actual = Program(bin_dir, tmp_path, text, "--recipe=none", f"--target={target}").call("f", x, y)[0]
    defined = ~np.isnan(exact.astype(F32))
    assert np.isnan(actual.astype(F32)[~defined]).all()
    assert_same_bits(actual[defined], exact[defined])


@pytest.mark.parametrize("target", ["cpu", "sm_89"])
def test_integer_powers(target, bin_dir, tmp_path):
    rng = random_generator(53)
    x = np.concatenate([np.repeat([1, -1, 2, -2, 3, 10, -(2**31), 2**31 - 1], 8), rng.integers(-40, 40, 200)]).astype(np.int32)
    n = np.concatenate([np.tile([0, 1, 2, 31, 32, -1, -2, 2**31 - 1], 8), rng.integers(-3, 40, 200)]).astype(np.int32)
    x[(x == 0) & (n < 0)] = 1  # undefined, as a division by zero
    program = Program(bin_dir, tmp_path, entry("f", "%r = math.ipowi %a, %b : i32", ["i32", "i32"], len(x), "i32"), "--recipe=none", f"--target={target}")
    assert_same_bits(program.call("f", x, n)[0], np.array([integer_power(int(a), int(b)) for a, b in zip(x, n)], np.int32))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86-64's processors")
def test_processors_agree(bin_dir, tmp_path):
    """The oldest has no fma: the C library's gives the same bits."""
    x, y = unary_arguments()[::61], [values[::61] for values in pairs()]
    unary, binary = ["exp", "tanh", "log", "log1p", "cbrt", "cos", "acos", "erfc"], ["powf", "atan2"]
    results = []
    for cpu in ["native", "x86-64-v3", "x86-64"]:
        folder = tmp_path / cpu
        folder.mkdir()
        program = Program(bin_dir, folder, entries(unary, binary, len(x), len(y[0])), "--recipe=none", f"--cpu={cpu}")
        results.append([program.call(f"{name}_f32", x)[0] for name in unary] + [program.call(name, *y)[0] for name in binary])
    for other in results[1:]:
        for name, actual, expected in zip(unary + binary, other, results[0], strict=True):
            print(name)
            assert_same_bits(actual, expected)


@pytest.mark.parametrize("dtype", [BF16, F16], ids=MLIR_NAMES.get)
def test_narrow_types_round_once(dtype, bin_dir, tmp_path):
    """All values of the type: the f32 function, rounded."""
    names, element = ["tanh", "exp", "erf", "sin"], MLIR_NAMES[dtype]
    text = "".join(unary_entry(name, 65536, kind) for name in names for kind in ("f32", element))
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    for name in names:
        wide = program.call(f"{name}_f32", x.astype(F32))[0]
        with np.errstate(over="ignore"):
            assert_same_bits(program.call(f"{name}_{element}", x)[0], wide.astype(dtype))


@pytest.mark.parametrize("math_option", ["expanded", "libm"])
def test_powers_of_other_types(math_option, bin_dir, tmp_path):
    """Powers of integers, and of f64 with integers as exponents, need no library. 1 / 0 is -1, as all quotients by zero."""
    x = np.array([2, -3, 7, 1, -1, -1, 2, 0, 5, 0], np.int32)
    n = np.array([10, 3, 0, -5, -5, -4, -1, 0, 1, 3], np.int32)
    text = entry("ipowi", "%r = math.ipowi %a, %b : i32", ["i32", "i32"], len(x), "i32")
    text += entry("fpowi", "%r = math.fpowi %a, %b : f64, i32", ["f64", "i32"], len(x), "f64")
    program = Program(bin_dir, tmp_path, text, "--recipe=none", f"--math={math_option}")
    assert_same_bits(program.call("ipowi", x, n)[0], np.array([1024, -27, 1, 1, -1, 1, 0, 1, 5, 0], np.int32))
    assert_same_bits(program.call("fpowi", x.astype(np.float64), n)[0], np.power(x.astype(np.float64), n))


def emit_llvm(bin_dir, tmp_path, text, *options):
    (tmp_path / "f.mlir").write_text(text)
    command = [bin_dir / "fp8-compile", tmp_path / "f.mlir", "--recipe=none", "--emit=llvm", "-o", tmp_path / "f.ll", *options]
    subprocess.run(command, check=True)
    return (tmp_path / "f.ll").read_text()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86-64's processors")
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_loops_are_vectorized(cpu, bin_dir, tmp_path):
    """Each loop is a whole number of vectors, so no scalar operation is left of it."""
    code = emit_llvm(bin_dir, tmp_path, entries(UNARY, BINARY, 4096, 4096), f"--cpu={cpu}")
    for operation in ["fma", "sqrt", "fabs", "copysign"]:
        assert re.search(rf"@llvm.{operation}.v(8|16)f32\(<", code)
        assert f"call float @llvm.{operation}.f32(" not in code


def test_libm_is_called_on_request_and_for_f64(bin_dir, tmp_path):
    f32, f64 = unary_entry("tanh", 64), unary_entry("tanh", 64, "f64")
    assert re.search(r"@llvm.tanh.\w*f32\(", emit_llvm(bin_dir, tmp_path, f32, "--math=libm"))
    assert "@llvm.tanh" not in emit_llvm(bin_dir, tmp_path, f32)
    assert "@llvm.tanh" not in emit_llvm(bin_dir, tmp_path, f32, "--math=expanded")
    assert re.search(r"@llvm.tanh.\w*f64\(", emit_llvm(bin_dir, tmp_path, f64))


def test_an_unknown_choice_is_an_error(run):
    done = run("fp8-compile", "-", "-o", os.devnull, "--math=fast", stdin="")
    assert done.returncode == 2
    assert "--math=fast must be expanded or libm" in done.stderr
