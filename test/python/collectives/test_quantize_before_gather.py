# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A weight that is divided over the ranks and gathered for its products: bytes are gathered where the recipe allows
it, and every result has the bits of the program that has the whole weight."""

import re
import subprocess

import numpy as np
import pytest
from ranks import NAMES, Ranks

from harness import Program, assert_same_bits, random_generator

RANKS, ROWS, N, K = 2, 48, 256, 192

# y = x w^T, dx = g w, dw = g^T x; each rank has a part of w, and gets the mean of its part of dw.
STEP = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#km = affine_map<(m, n, k) -> (k, m)>
#mn = affine_map<(m, n, k) -> (m, n)>
GRIDfunc.func @main(%p: tensor<PARTxf32> loc("w"), %x: tensor<48x192xf32> loc("x"), %g: tensor<48x256xf32> loc("g"))
    -> (tensor<48x256xf32>, tensor<48x192xf32>, tensor<PARTxf32>MORE) {
  %z = arith.constant 0.0 : f32
  GATHER
  %ey = tensor.empty() : tensor<48x256xf32>
  %fy = linalg.fill ins(%z : f32) outs(%ey : tensor<48x256xf32>) -> tensor<48x256xf32>
  %y = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<48x192xf32>, tensor<256x192xf32>) outs(%fy : tensor<48x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<48x256xf32> loc("jit(f)/jvp(fc)/dot_general")
  %ex = tensor.empty() : tensor<48x192xf32>
  %fx = linalg.fill ins(%z : f32) outs(%ex : tensor<48x192xf32>) -> tensor<48x192xf32>
  %dx = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %w : tensor<48x256xf32>, tensor<256x192xf32>) outs(%fx : tensor<48x192xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<48x192xf32> loc("jit(f)/transpose(jvp(fc))/dot_general")
  %ew = tensor.empty() : tensor<256x192xf32>
  %fw = linalg.fill ins(%z : f32) outs(%ew : tensor<256x192xf32>) -> tensor<256x192xf32>
  %dw = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %x : tensor<48x256xf32>, tensor<48x192xf32>) outs(%fw : tensor<256x192xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<256x192xf32> loc("jit(f)/transpose(jvp(fc))/dot_general")
  SCATTER
  return %y, %dx, %d KEPT: tensor<48x256xf32>, tensor<48x192xf32>, tensor<PARTxf32>MORE
}
"""


def step(dim=None, kept=False, ranks=RANKS, scattered=True):
    """The program; without `dim` it has the whole weight. With `kept` the gathered weight is a result too; without `scattered`
    every rank has the whole gradient."""
    part, gather, grid = [N, K], "%w = tensor.cast %p : tensor<256x192xf32> to tensor<256x192xf32>", ""
    scatter = "%d = tensor.cast %dw : tensor<256x192xf32> to tensor<256x192xf32>"
    if dim is not None:
        part[dim] //= ranks
        grid = f"shard.grid @grid(shape = {ranks})\n"
        gather = f"%w = shard.all_gather %p on @grid grid_axes = [0] gather_axis = {dim} : tensor<PARTxf32> -> tensor<256x192xf32>"
        scatter = f"%d = shard.reduce_scatter %dw on @grid grid_axes = [0] reduction = average scatter_axis = {dim} : tensor<256x192xf32> -> tensor<PARTxf32>"
    if not scattered:
        scatter = scatter.replace("shard.reduce_scatter", "shard.all_reduce").replace(f" scatter_axis = {dim}", "").replace("PART", "256x192")
    text = STEP if scattered else STEP.replace("tensor<PARTxf32>MORE", "tensor<256x192xf32>MORE")
    text = text.replace("GRID", grid).replace("GATHER", gather).replace("SCATTER", scatter).replace("PART", f"{part[0]}x{part[1]}")
    return text.replace("MORE", ", tensor<256x192xf32>" if kept else "").replace("KEPT", ", %w " if kept else "")


def rounded_shard(dim):
    """The program with a weight that is rounded to bf16 before it is gathered."""
    gather = re.search(r"%w = (shard.all_gather) %p (.*) : tensor<(.*)xf32> -> tensor<256x192xf32>", step(dim))
    return step(dim).replace(gather[0], f"""%narrow = arith.truncf %p : tensor<{gather[3]}xf32> to tensor<{gather[3]}xbf16>
  %all = {gather[1]} %narrow {gather[2]} : tensor<{gather[3]}xbf16> -> tensor<256x192xbf16>
  %w = arith.extf %all : tensor<256x192xbf16> to tensor<256x192xf32>""")


def make_inputs():
    rng = random_generator(190)
    w = rng.standard_normal([N, K]).astype(np.float32)
    w[200, 7], w[3, 100] = 37, np.nan  # the largest element is on one rank; NaN is no amax
    return {"w": w, "x": rng.standard_normal([ROWS, K]), "g": rng.standard_normal([ROWS, N])}


# The types that are gathered along dimension 0 and 1, and the reason for wide ones. Row scaling has a scale for each row of w in y,
# and for each column in dx.
CASES = [
    ("delayed", 0, ["f8E4M3FN"], None),
    ("delayed", 1, ["f8E4M3FN"], None),
    ("current", 0, ["f8E4M3FN"], None),
    ("current", 1, ["f8E4M3FN"], None),
    ("block", 0, ["f8E4M3FN", "f32"], None),
    ("block", 1, ["f32"], "blocks of 128 along dimension 1 do not divide a rank's 96"),
    ("row", 0, ["f32"], "a scale covers all of dimension 0, along which it is gathered"),
    ("row", 1, ["f32"], "a scale covers all of dimension 1, along which it is gathered"),
    ("mxfp8", 0, ["f8E4M3FN", "f8E8M0FNU"] * 2, None),
    ("mxfp8", 1, ["f8E4M3FN", "f8E8M0FNU"] * 2, None),
]


@pytest.mark.parametrize("recipe, dim, types, reason", CASES)
def test_gathered_weights_have_the_bits_of_whole_ones(bin_dir, tmp_path, recipe, dim, types, reason):
    (tmp_path / "whole").mkdir()
    options = [f"--recipe={recipe}", "--cpu=x86-64-v3", *(["--amax-history-len=2"] if recipe == "delayed" else [])]
    single = Program(bin_dir, tmp_path / "whole", step(), *options)
    program = Program(bin_dir, tmp_path, step(dim), *options)
    gathers = [c for c in program.manifest["entries"][0]["collectives"] if c["kind"] == "all_gather"]
    assert [c["type"] for c in gathers] == types
    assert gathers[0]["gathered_wide"] == reason
    wide, sent = 4 * N * K // RANKS, sum(c["bytes"] for c in gathers)
    assert sent + gathers[0]["saved_bytes"] == wide and (sent < wide) == (reason is None)
    inputs, state = make_inputs(), {}
    parts = np.split(inputs["w"], RANKS, axis=dim)
    for _ in range(2):
        (expected,) = Ranks(single.library, 1).step([{**inputs, **state}], alone=True)[0]
        results, errors = Ranks(program.library, RANKS).step([{**inputs, **state, "w": part} for part in parts])
        assert errors == [""] * RANKS
        for rank, result in enumerate(results):
            part = np.split(expected[2], RANKS, axis=dim)[rank]
            for actual, wanted in zip(result, [*expected[:2], part, *expected[3:]]):
                assert_same_bits(actual, wanted)
        if recipe == "delayed":
            state = {"scale": expected[-2], "amax_history": expected[-1]}
            inputs["x"] = inputs["x"] * 3


def run_both(single, program, inputs, dim):
    """The results of the program with the whole weight, and those of every rank."""
    (expected,) = Ranks(single.library, 1).step([inputs], alone=True)[0]
    results, errors = Ranks(program.library, RANKS).step([{**inputs, "w": part} for part in np.split(inputs["w"], RANKS, axis=dim)])
    assert errors == [""] * RANKS
    return expected, results


# Casts for two directions with their scales have more bytes than bf16: that is gathered under mxfp8.
@pytest.mark.parametrize("recipe, dim, types", [
    ("delayed", 0, {"f8E4M3FN"}),
    ("current", 1, {"f8E4M3FN"}),
    ("block", 0, {"f8E4M3FN", "f32"}),
    ("mxfp8", 1, {"bf16"}),
])  # fmt: skip
@pytest.mark.parametrize("before", [False, True])
def test_weights_rounded_to_bf16_are_gathered_in_fp8(bin_dir, tmp_path, recipe, dim, types, before):
    """Rounding and gathering commute, whichever the program does first."""
    (tmp_path / "whole").mkdir()
    options = [f"--recipe={recipe}", "--cpu=x86-64-v3", "--mixed-precision=bf16"]
    single = Program(bin_dir, tmp_path / "whole", step(), *options)
    program = Program(bin_dir, tmp_path, rounded_shard(dim) if before else step(dim), *options)
    gathers = [c for c in program.manifest["entries"][0]["collectives"] if c["kind"] == "all_gather"]
    assert {c["type"] for c in gathers} == types
    assert gathers[0]["gathered_wide"] == (None if recipe != "mxfp8" else f"its casts have no fewer bytes ({N * K // RANKS * 66 // 32})")
    sent, wide = sum(c["bytes"] for c in gathers), (2 if before else 4) * N * K // RANKS
    assert sent + sum(c["saved_bytes"] for c in gathers) == wide and sent < (0.3 if recipe != "mxfp8" else 0.51) * 4 * N * K // RANKS
    expected, results = run_both(single, program, make_inputs(), dim)
    for rank, result in enumerate(results):
        for actual, wanted in zip(result, [*expected[:2], np.split(expected[2], RANKS, axis=dim)[rank], *expected[3:]]):
            assert_same_bits(actual, wanted)


def test_a_weight_is_rounded_before_a_wide_gather(bin_dir, tmp_path):
    program = Program(bin_dir, tmp_path, step(0), "--recipe=row", "--mixed-precision=bf16")
    (gather,) = [c for c in program.manifest["entries"][0]["collectives"] if c["kind"] == "all_gather"]
    assert (gather["type"], gather["bytes"], gather["saved_bytes"]) == ("bf16", N * K, N * K)
    assert gather["gathered_wide"] == "a scale covers all of dimension 0, along which it is gathered"


@pytest.mark.parametrize("recipe", ["delayed", "current"])
def test_a_gathered_weight_whose_gradient_is_whole(bin_dir, tmp_path, recipe):
    """The argument has a part of the weight, the result the gradient of all of it: it is a weight nevertheless."""
    (tmp_path / "whole").mkdir()
    options = [f"--recipe={recipe}", "--cpu=x86-64-v3"]
    single = Program(bin_dir, tmp_path / "whole", step(), *options)
    program = Program(bin_dir, tmp_path, step(0, scattered=False), *options)
    assert [(s["role"], s["site"], s["decision"]) for s in program.manifest["sites"]] == [(role, "fc", "fp8") for role in ("fprop", "dgrad", "wgrad")]
    assert [c["type"] for c in program.manifest["entries"][0]["collectives"] if c["kind"] == "all_gather"] == ["f8E4M3FN"]
    assert program.manifest["state"]["columns"] == single.manifest["state"]["columns"]
    expected, results = run_both(single, program, make_inputs(), 0)
    for result in results:
        for actual, wanted in zip(result, expected):
            assert_same_bits(actual, wanted)


@pytest.mark.parametrize("options, kept, reason", [
    (["--recipe=delayed", "--reduce-amax=false"], False, "amaxes are not combined over its ranks (--reduce-amax, --reduce-amax-axes)"),
    (["--recipe=current", "--reduce-amax=false"], False, "amaxes are not combined over its ranks (--reduce-amax, --reduce-amax-axes)"),
    (["--recipe=delayed"], True, "'func.return' reads it too"),
    (["--recipe=current", "--keep=.*"], False, "'fp8.matmul' reads it too"),
])  # fmt: skip
def test_the_report_tells_why_elements_are_gathered_wide(bin_dir, tmp_path, options, kept, reason):
    program = Program(bin_dir, tmp_path, step(0, kept), *options)
    (gather,) = [c for c in program.manifest["entries"][0]["collectives"] if c["kind"] == "all_gather"]
    assert (gather["type"], gather["saved_bytes"], gather["gathered_wide"]) == ("f32", 0, reason)
    done = subprocess.run(
        [bin_dir / "fp8-compile", program.source, "-o", tmp_path / "again.so", "--report=text", *options], capture_output=True, text=True, check=True
    )
    assert f"  main: all_gather of 96 KiB is not cast before: {reason}\n" in done.stdout


def test_the_report_tells_what_a_cast_saves(bin_dir, tmp_path):
    (tmp_path / "p.mlir").write_text(step(0))
    done = subprocess.run(
        [bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so", "--report=text", "--recipe=current"], capture_output=True, text=True, check=True
    )
    assert "  main: all_gather of f8E4M3FN: 1, 24 KiB of each rank, 72 KiB less than before the cast\n" in done.stdout


def training_step(dim=0, ranks=RANKS):
    """The step with gradient descent on the rank's part of the weight, in place of its gradient."""
    text = step(dim, ranks=ranks).replace('loc("w")', '{tf.aliasing_output = 2 : i32} loc("w")')
    (part,) = re.findall(r"%p: (tensor<[^>]*>)", text)
    update = f"""%rate = arith.constant dense<0.01> : {part}
  %change = arith.mulf %d, %rate : {part}
  %next = arith.subf %p, %change : {part}
  return %y, %dx, %next """
    assert "return %y, %dx, %d " in text
    return text.replace("return %y, %dx, %d ", update)


class Trainer:
    """The carried tensors and the state of every rank, from step to step."""

    def __init__(self, program, tensors):
        self.ranks = Ranks(program.library, RANKS)
        self.entries = {entry["name"]: entry for entry in program.manifest["entries"]}
        self.tensors = [dict(given) for given in tensors]

    def call(self, name):
        results, errors = self.ranks.step(self.tensors, name)
        assert errors == [""] * RANKS
        entry = self.entries[name]
        for own, values in zip(self.tensors, results):
            for described, value in zip(entry["results"], values):
                if described["alias"] is not None:
                    own[entry["arguments"][described["alias"]]["name"]] = value.copy()
        return [values[:3] for values in results]


@pytest.mark.parametrize("recipe", ["delayed", "current", "block", "mxfp8"])
def test_parts_of_a_weight_are_kept_in_fp8(bin_dir, tmp_path, recipe):
    (tmp_path / "kept").mkdir()
    options = [f"--recipe={recipe}", "--cpu=x86-64-v3", *(["--amax-history-len=2"] if recipe == "delayed" else [])]
    inputs = make_inputs()
    inputs["w"] = np.nan_to_num(inputs["w"])  # a NaN would spread over the weight
    tensors = [{**inputs, "w": part} for part in np.split(inputs["w"], RANKS)]
    plain = Trainer(Program(bin_dir, tmp_path, training_step(), *options), tensors)
    kept = Trainer(Program(bin_dir, tmp_path / "kept", training_step(), *options, "--fp8-parameters"), tensors)
    for tensor in kept.ranks.manifest["state"]["tensors"]:
        if tensor["name"].startswith("weight/"):  # the initializer writes them
            for own in kept.tensors:
                own[tensor["name"]] = np.zeros(tensor["shape"], NAMES[tensor["type"]])
    kept.call("main_fp8_parameters")
    # A rank has the cast of its part, not of the whole.
    sizes = [value.size for name, value in kept.tensors[0].items() if name.startswith("weight/fc/data")]
    assert sizes and set(sizes) == {N * K // RANKS}
    for _ in range(3):
        for actual, expected in zip(kept.call("main"), plain.call("main")):
            for value, wanted in zip(actual, expected):
                assert_same_bits(value, wanted)
    assert not np.array_equal(plain.tensors[0]["w"], tensors[0]["w"].astype(np.float32))
