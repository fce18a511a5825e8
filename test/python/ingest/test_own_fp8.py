# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands that are FP8 in the program, with scales of the program: products read the FP8 data.

Every program multiplies x [6, 12] by FP8 data w that stands for w · s [12, 5]. With a recipe
the result is (scale_inv of x · s) Σ x_fp8 · w; without one it is computed as the program is written.
"""

import json
import re

import numpy as np
import pytest

import reference
from form import generic, product, transpose, zeros
from harness import BF16, E4M3, E5M2, F32, Program, assert_same_bits, random_generator

X, W, S, R = "tensor<6x12xbf16>", "tensor<12x5xf8E4M3FN>", "tensor<f32>", "tensor<6x5xf32>"
WIDE, HALF = "tensor<12x5xf32>", "tensor<12x5xbf16>"
MULTIPLY = zeros("i", R) + product("matmul", a="%act", b="%v", ta=X, tb=HALF, tr=R)
SCALED = "%f = arith.extf %x : f8E4M3FN to f32; %m = arith.mulf %f, {} : f32; %t = arith.truncf %m : f32 to bf16; linalg.yield %t : bf16"


def empty(name, ttype):
    return f"  %{name} = tensor.empty() : {ttype}\n"


def one_op(
    body=SCALED.format("%y"),
    word="",
    scale=S,
    source=W,
    value="%bytes",
    factor="%s",
    name="v",
    target=HALF,
    data="kn",
    dims="kn",
    fp8="f8E4M3FN",
    factor_type="f32",
):
    kind = re.split("[x<]", target.rstrip(">"))[-1]
    ins = [(value, source), (factor, scale)]
    return empty(f"{name}e", target) + generic(
        name, dims, (data, word, dims), ins, (f"%{name}e", target), body, (fp8, factor_type, kind)
    )


def cast_op(name, value, source, target, op):
    old, new = (t.rstrip(">").split("x")[-1] for t in (source, target))
    return empty(f"{name}e", target) + generic(
        name,
        "kn",
        ("kn", "kn"),
        [(value, source)],
        (f"%{name}e", target),
        f"%c = arith.{op} %x : {old} to {new}; linalg.yield %c : {new}",
        (old, new),
    )


def programs():
    """Bodies by name; what they read as %w, and how it becomes the bytes [12, 5]."""
    plain = (W, E4M3, (12, 5), lambda w: w)
    full = empty("se", WIDE) + generic(
        "sf", "kn", ("", "kn"), [("%s", S)], ("%se", WIDE), "linalg.yield %x : f32", ("f32", "f32")
    )
    turned = "tensor<5x12xf8E4M3FN>"
    scalar = "  %s0 = tensor.extract %s[] : tensor<f32>\n"
    return {
        "one_op": (one_op() + MULTIPLY, plain),
        "factors_swapped": (one_op(SCALED.replace("%f, {}", "{}, %f").format("%y")) + MULTIPLY, plain),
        "several_ops": (
            cast_op("u", "%bytes", W, WIDE, "extf")
            + full
            + "  %p = arith.mulf %u, %sf : "
            + WIDE
            + "\n"
            + cast_op("v", "%p", WIDE, HALF, "truncf")
            + MULTIPLY,
            plain,
        ),
        "scalar_outside": (
            scalar
            + empty("ve", HALF)
            + generic(
                "v", "kn", ("kn", "kn"), [("%bytes", W)], ("%ve", HALF), SCALED.format("%s0"), ("f8E4M3FN", "bf16")
            )
            + MULTIPLY,
            plain,
        ),
        "wide_product": (
            one_op(
                "%f = arith.extf %x : f8E4M3FN to f32; %m = arith.mulf %f, %y : f32; linalg.yield %m : f32", target=WIDE
            )
            + zeros("i", R)
            + f"  %xw = arith.extf %act : {X} to tensor<6x12xf32>\n"
            + product("matmul", a="%xw", b="%v", ta="tensor<6x12xf32>", tb=WIDE, tr=R),
            plain,
        ),
        "scaled_in_bf16": (
            empty("ve", HALF)
            + generic(
                "v",
                "kn",
                ("kn", "", "kn"),
                [("%bytes", W), ("%s", S)],
                ("%ve", HALF),
                "%f = arith.extf %x : f8E4M3FN to bf16; %h = arith.truncf %y : f32 to bf16; %m = arith.mulf %f, %h : bf16; linalg.yield %m : bf16",
                ("f8E4M3FN", "f32", "bf16"),
            )
            + MULTIPLY,
            plain,
        ),
        "divided": (one_op(SCALED.replace("mulf", "divf").format("%y")) + MULTIPLY, plain),
        "transposed_after": (
            one_op(name="vt", target="tensor<5x12xbf16>", source=turned, data="nk", dims="nk")
            + transpose("v", "%vt", "tensor<5x12xbf16>", HALF, (1, 0))
            + MULTIPLY,
            (turned, E4M3, (5, 12), np.transpose),
        ),
        "transposed_bytes": (
            transpose("wt", "%bytes", turned, W, (1, 0)) + one_op(value="%wt") + MULTIPLY,
            (turned, E4M3, (5, 12), np.transpose),
        ),
        "transposed_inside": (one_op(source=turned, data="nk") + MULTIPLY, (turned, E4M3, (5, 12), np.transpose)),
        "reshaped_after": (
            empty("ue", "tensor<12x1x5xbf16>")
            + generic(
                "u",
                "kon",
                ("onk", "", "kon"),
                [("%bytes", "tensor<1x5x12xf8E4M3FN>"), ("%s", S)],
                ("%ue", "tensor<12x1x5xbf16>"),
                SCALED.format("%y"),
                ("f8E4M3FN", "f32", "bf16"),
            )
            + f"  %v = tensor.collapse_shape %u [[0, 1], [2]] : tensor<12x1x5xbf16> into {HALF}\n"
            + MULTIPLY,
            ("tensor<1x5x12xf8E4M3FN>", E4M3, (1, 5, 12), lambda w: w[0].T),
        ),
        "slice_of_a_stack": (
            "  %ws = tensor.extract_slice %bytes[1, 0, 0] [1, 12, 5] [1, 1, 1] : tensor<3x12x5xf8E4M3FN> to "
            + W
            + "\n"
            + one_op(value="%ws")
            + MULTIPLY,
            ("tensor<3x12x5xf8E4M3FN>", E4M3, (3, 12, 5), lambda w: w[1]),
        ),
        "e5m2": (
            one_op(SCALED.format("%y").replace("f8E4M3FN", "f8E5M2"), source="tensor<12x5xf8E5M2>", fp8="f8E5M2")
            + MULTIPLY,
            ("tensor<12x5xf8E5M2>", E5M2, (12, 5), lambda w: w),
        ),
        "no_scale": (cast_op("v", "%bytes", W, HALF, "extf") + MULTIPLY, plain),
        "as_it_stands": (zeros("i", R) + product("matmul", a="%act", b="%bytes", ta=X, tb=W, tr=R), plain),
        "scale_e8m0": (
            "  %e8 = arith.constant dense<0.25> : tensor<f8E8M0FNU>\n"
            + one_op(
                "%f = arith.extf %x : f8E4M3FN to f32; %g = arith.extf %y : f8E8M0FNU to f32; %m = arith.mulf %f, %g : f32; %t = arith.truncf %m : f32 to bf16; linalg.yield %t : bf16",
                scale="tensor<f8E8M0FNU>",
                factor="%e8",
                factor_type="f8E8M0FNU",
            )
            + MULTIPLY,
            plain,
        ),
        "bitcast": (
            f"  %wb = tensor.bitcast %bytes : tensor<12x5xi8> to {W}\n" + one_op(value="%wb") + MULTIPLY,
            ("tensor<12x5xi8>", np.dtype(np.int8), (12, 5), lambda w: w.view(E4M3)),
        ),
        "repeated": (
            empty("ve", "tensor<1x12x5xbf16>")
            + generic(
                "v",
                "bkn",
                ("kn", "", "bkn"),
                [("%bytes", W), ("%s", S)],
                ("%ve", "tensor<1x12x5xbf16>"),
                SCALED.format("%y"),
                ("f8E4M3FN", "f32", "bf16"),
            )
            + f"  %xb = tensor.expand_shape %act [[0, 1], [2]] output_shape [1, 6, 12] : {X} into tensor<1x6x12xbf16>\n"
            + zeros("i", "tensor<1x6x5xf32>")
            + product(
                "batch_matmul",
                name="y",
                a="%xb",
                b="%v",
                ta="tensor<1x6x12xbf16>",
                tb="tensor<1x12x5xbf16>",
                tr="tensor<1x6x5xf32>",
            )
            + f"  %r = tensor.collapse_shape %y [[0, 1], [2]] : tensor<1x6x5xf32> into {R}\n",
            plain,
        ),
    }


PROGRAMS = programs()
UNSCALED = {"no_scale", "as_it_stands"}


def compile_all(bin_dir, folder, recipe):
    text = "".join(
        f"func.func @{name}(%act: {X}, %bytes: {source[0]}, %s: {S}) -> {R} {{\n{body}  return %r : {R}\n}}\n"
        for name, (body, source) in PROGRAMS.items()
    )
    program = Program(bin_dir, folder, text, f"--recipe={recipe}", f"--report=json:{folder / 'report'}")
    return program, json.loads((folder / "report").read_text())["sites"]


@pytest.fixture(scope="module")
def quantized(bin_dir, tmp_path_factory):
    return compile_all(bin_dir, tmp_path_factory.mktemp("current"), "current")


@pytest.fixture(scope="module")
def original(bin_dir, tmp_path_factory):
    return compile_all(bin_dir, tmp_path_factory.mktemp("none"), "none")


def make_inputs(name):
    _, dtype, shape, _ = PROGRAMS[name][1]
    rng = random_generator(50, *map(ord, name))
    bytes_ = rng.integers(0, 0x60, shape, dtype=np.uint8) | (rng.integers(0, 2, shape, dtype=np.uint8) << 7)
    return rng.standard_normal((6, 12)).astype(BF16), bytes_.view(dtype), np.float32(0.3)


def dequantize(name, w, s):
    """The values that the program makes of the bytes, rounding by rounding."""
    wide = w.astype(F32)
    if name in UNSCALED:
        return wide
    if name == "scale_e8m0":
        s = np.float32(0.25)
    if name == "scaled_in_bf16":
        s = np.float32(s.astype(BF16))
    scaled = wide / s if name == "divided" else wide * s
    return scaled if name == "wide_product" else scaled.astype(BF16).astype(F32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bytes_are_multiplied_as_they_are(quantized, name):
    program, sites = quantized
    x, w, s = make_inputs(name)
    (result,) = program.call(name, x, w, s)
    scale = reference.current_scale(reference.amax(x), E4M3)
    x, inverse = reference.cast(x, scale, E4M3), reference.scale_inv(scale)
    own = {
        "scale_e8m0": np.float32(0.25),
        "divided": np.float32(1) / s,
        "scaled_in_bf16": np.float32(s.astype(BF16)),
    }.get(name, s)
    own = np.float32(1) if name in UNSCALED else own
    w = PROGRAMS[name][1][3](w)
    assert_same_bits(result, (inverse * own) * reference.contract("mk,kn->mn", "mnk", x, w))
    (site,) = [site for site in sites if site["entry"] == name]
    assert (site["role"], site["decision"], site["recipe"]) == ("fprop", "fp8", "own")
    assert site["formats"] == ["E4M3", "E5M2" if name == "e5m2" else "E4M3"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_recipe_the_program_is_as_it_was(original, name):
    program, sites = original
    x, w, s = make_inputs(name)
    (result,) = program.call(name, x, w, s)
    wide = dequantize(name, PROGRAMS[name][1][3](w), s)
    expected = reference.contract("mk,kn->mn", "mnk", x, wide)
    # Products of two wide values are rounded, or not where they are fused with the sum.
    bound = 12 * 2.0**-23 * (np.abs(x.astype(np.float64)) @ np.abs(wide.astype(np.float64)))
    assert (np.abs(result - expected) <= bound).all()
    assert {site["decision"] for site in sites if site["entry"] == name} == {"high"}


X_BYTES = "tensor<6x12xf8E4M3FN>"
BOTH = f"""
func.func @main(%p: {X_BYTES}, %s: {S}, %q: {W}, %d: {S}) -> {R} {{
{one_op(name="u", value="%p", source=X_BYTES, target=X, dims="mk", data="mk")}{one_op(value="%q", factor="%d")}
{zeros("i", R)}{product("matmul", a="%u", b="%v", ta=X, tb=HALF, tr=R)}
  return %r : {R}
}}"""


@pytest.mark.parametrize("recipe", ["current", "delayed"])
def test_two_operands_of_the_programs_own(bin_dir, tmp_path, recipe):
    program = Program(bin_dir, tmp_path, BOTH, f"--recipe={recipe}", f"--report=json:{tmp_path / 'report'}")
    rng = random_generator(51)
    x, w = (rng.integers(0, 0x70, shape, dtype=np.uint8).view(E4M3) for shape in ((6, 12), (12, 5)))
    s, t = np.float32(0.3), np.float32(0.7)
    (result,) = program.call("main", x, s, w, t)
    assert_same_bits(result, (s * t) * reference.contract("mk,kn->mn", "mnk", x, w))
    (site,) = json.loads((tmp_path / "report").read_text())["sites"]
    assert (site["decision"], site["recipe"], site["formats"]) == ("fp8", "own", ["E4M3", "E4M3"])
    assert program.manifest["state"]["columns"] == []


def test_only_the_other_operand_has_a_column(bin_dir, tmp_path):
    text = f"func.func @main(%act: {X}, %bytes: {W}, %s: {S}) -> {R} {{\n{one_op()}{MULTIPLY}  return %r : {R}\n}}\n"
    program = Program(bin_dir, tmp_path, text, "--recipe=delayed")
    assert [column["tensor"] for column in program.manifest["state"]["columns"]] == ["input"]


def test_scales_per_channel_are_kept_and_say_so(bin_dir, tmp_path):
    text = f"func.func @main(%act: {X}, %bytes: {W}, %s: tensor<5xf32>) -> {R} {{\n{one_op(word='n', scale='tensor<5xf32>')}{MULTIPLY}  return %r : {R}\n}}\n"
    program = Program(bin_dir, tmp_path, text, "--recipe=current", f"--report=json:{tmp_path / 'report'}")
    (site,) = json.loads((tmp_path / "report").read_text())["sites"]
    assert site["decision"] == "high" and "scale per channel" in site["reason"]
    rng = random_generator(52)
    x, w, s = (
        rng.standard_normal((6, 12)).astype(BF16),
        rng.integers(0, 0x60, (12, 5), dtype=np.uint8).view(E4M3),
        rng.uniform(0.1, 1, 5).astype(F32),
    )
    (result,) = program.call("main", x, w, s)
    assert_same_bits(result, reference.contract("mk,kn->mn", "mnk", x, (w.astype(F32) * s).astype(BF16)))


def test_kept_sites_stay_dequantized(bin_dir, tmp_path):
    text = f"func.func @main(%act: {X}, %bytes: {W}, %s: {S}) -> {R} {{\n{one_op()}{MULTIPLY}  return %r : {R}\n}}\n"
    program = Program(bin_dir, tmp_path, text, "--recipe=current", "--keep=.")
    x, w, s = make_inputs("one_op")
    (result,) = program.call("main", x, w, s)
    assert_same_bits(result, reference.contract("mk,kn->mn", "mnk", x, dequantize("one_op", w, s).astype(BF16)))


def test_layers_in_a_loop_with_a_scale_each(bin_dir, tmp_path):
    """Bytes and scales of one layer are slices of stacks, at the loop's index."""
    text = """
func.func @main(%x0: tensor<6x12xbf16>, %w: tensor<3x12x12xf8E4M3FN>, %s: tensor<3xf32>) -> tensor<6x12xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : bf16
  %r = scf.for %l = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (tensor<6x12xbf16>) {
    %wl = tensor.extract_slice %w[%l, 0, 0] [1, 12, 12] [1, 1, 1] : tensor<3x12x12xf8E4M3FN> to tensor<12x12xf8E4M3FN>
    %sl = tensor.extract_slice %s[%l] [1] [1] : tensor<3xf32> to tensor<f32>
    %e = tensor.empty() : tensor<12x12xbf16>
    %v = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%wl, %sl : tensor<12x12xf8E4M3FN>, tensor<f32>) outs(%e : tensor<12x12xbf16>) {
    ^bb0(%a: f8E4M3FN, %b: f32, %o: bf16):
      %f = arith.extf %a : f8E4M3FN to f32
      %m = arith.mulf %f, %b : f32
      %t = arith.truncf %m : f32 to bf16
      linalg.yield %t : bf16
    } -> tensor<12x12xbf16>
    %e1 = tensor.empty() : tensor<6x12xbf16>
    %i = linalg.fill ins(%z : bf16) outs(%e1 : tensor<6x12xbf16>) -> tensor<6x12xbf16>
    %y = linalg.matmul ins(%x, %v : tensor<6x12xbf16>, tensor<12x12xbf16>) outs(%i : tensor<6x12xbf16>) -> tensor<6x12xbf16>
    scf.yield %y : tensor<6x12xbf16>
  }
  return %r : tensor<6x12xbf16>
}"""
    program = Program(bin_dir, tmp_path, text, "--recipe=current")
    rng = random_generator(53)
    x = rng.standard_normal((6, 12)).astype(BF16)
    w = rng.integers(0, 0x60, (3, 12, 12), dtype=np.uint8).view(E4M3)
    s = rng.uniform(0.01, 0.1, 3).astype(F32)
    (result,) = program.call("main", x, w, s)
    for layer, own in zip(w, s):
        scale = reference.current_scale(reference.amax(x), E4M3)
        data = reference.cast(x, scale, E4M3)
        x = ((reference.scale_inv(scale) * own) * reference.contract("mk,kn->mn", "mnk", data, layer)).astype(BF16)
    assert_same_bits(result, x)
