# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-run --profile by value: calls, bytes and operations of known kernels, and that the lines sum to the step."""
import json
import re
import subprocess

import numpy as np
import pytest

from harness import save

# A product of 64 x 32 by 32 x 48, tanh of its first operand, and a loop of 5 rounds that each scale the product.
PROGRAM = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>) -> (tensor<64x32xf32>, tensor<64x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x48xf32>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
      loc("jit(step)/h0/fc1/dot_general")
  %like = tensor.empty() : tensor<64x32xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x32xf32>) outs(%like : tensor<64x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32> loc("jit(step)/h0/act/tanh")
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%sum = %y) -> tensor<64x48xf32> {
    %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%sum, %y : tensor<64x48xf32>, tensor<64x48xf32>) outs(%empty : tensor<64x48xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.mulf %a, %half : f32
      %1 = arith.addf %0, %b : f32
      linalg.yield %1 : f32
    } -> tensor<64x48xf32> loc("jit(step)/h0/decay/add")
    scf.yield %n : tensor<64x48xf32>
  }
  return %t, %r : tensor<64x32xf32>, tensor<64x48xf32>
}
"""


def command(*arguments):
    return subprocess.run(list(map(str, arguments)), capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def folder(bin_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    (folder / "step.mlir").write_text(PROGRAM)
    command(bin_dir / "fp8-compile", folder / "step.mlir", "--recipe=none", "-o", folder / "step.so")
    draw = np.random.default_rng(7)
    save(folder / "in", {"0": draw.standard_normal((64, 32), np.float32), "1": draw.standard_normal((32, 48), np.float32)})
    return folder


def run(bin_dir, folder, *args):
    return command(bin_dir / "fp8-run", folder / "step.so", "--inputs=%s" % (folder / "in"), *args)


@pytest.fixture(scope="module")
def profile(bin_dir, folder):
    run(bin_dir, folder, "--steps=21", "--profile=%s" % (folder / "profile"))
    return json.loads((folder / "profile").read_text())


def line(profile, pattern):
    found = [kernel for kernel in profile["kernels"] if re.fullmatch(pattern, kernel["name"])]
    assert len(found) == 1, (pattern, [kernel["name"] for kernel in profile["kernels"]])
    return found[0]


def test_product(profile):
    product = line(profile, "product_fprop_h0_fc1|product_other_h0_fc1")
    assert (product["kind"], product["sites"], product["calls"]) == ("products", ["h0/fc1"], 1)
    # The padding of packed operands is no operation of the product.
    assert product["operations"] == 2 * 64 * 32 * 48
    assert product["bytes_written"] >= 64 * 48 * 4 and product["bytes_read"] >= (64 * 32 + 32 * 48) * 4


def test_elementwise_kernel(profile):
    tanh = line(profile, "tanh_h0_act")
    assert (tanh["kind"], tanh["calls"], tanh["operations"]) == ("elementwise", 1, 64 * 32)
    assert (tanh["bytes_read"], tanh["bytes_written"]) == (64 * 32 * 4, 64 * 32 * 4)


def test_kernel_in_a_loop(profile):
    decay = line(profile, ".*_h0_decay")
    assert (decay["calls"], decay["operations"], decay["sites"]) == (5, 5 * 2 * 64 * 48, ["h0/decay"])
    assert (decay["bytes_read"], decay["bytes_written"]) == (5 * 2 * 64 * 48 * 4, 5 * 64 * 48 * 4)


def test_lines_sum_to_the_step(profile):
    assert (profile["version"], profile["measured_steps"], profile["steps"], profile["skipped_first"]) == (1, 20, 10, True)
    for lines in profile["kernels"], profile["kinds"]:
        # Sums of doubles in another order.
        assert sum(entry["ms"] for entry in lines) == pytest.approx(profile["step"]["ms"], rel=1e-9)
        assert sum(entry["share"] for entry in lines) == pytest.approx(1, rel=1e-9)
    assert sum(entry["calls"] for entry in profile["kernels"]) == profile["step"]["calls"]
    times = [entry["ms"] for entry in profile["kernels"]]
    assert times == sorted(times, reverse=True) and times[-1] > 0
    assert [entry["calls"] for entry in profile["kernels"] if entry["name"] == "outside kernels"] == [0]


def test_rates_and_limits(profile):
    limits = profile["limits"]
    assert limits["threads"] >= 1 and limits["vector_bits"] in (128, 256, 512)
    assert limits["gflops"] > 0 and limits["gbytes_per_s"] > 0
    tanh = line(profile, "tanh_h0_act")
    assert tanh["gflops"] == pytest.approx(tanh["operations"] / tanh["ms"] / 1e6)
    assert tanh["gbytes_per_s"] == pytest.approx(2 * 64 * 32 * 4 / tanh["ms"] / 1e6)
    assert tanh["share_of_limit"] == pytest.approx(
        max(tanh["gflops"] / limits["gflops"], tanh["gbytes_per_s"] / limits["gbytes_per_s"]))


def test_table(bin_dir, folder, profile):
    done = run(bin_dir, folder, "--steps=3", "--profile")
    assert done.stdout == ""
    text = done.stderr.splitlines()
    assert text[0] == "Profile of 2 steps after the first: means of the faster half"
    assert re.fullmatch(r"Limits of this machine, measured now on \d+ threads: \d+ GFLOP/s in f32 multiply-adds of \d+ bits, "
                        r"\d+\.\d GB/s from memory to memory", text[1])
    tables = "\n".join(text[3:]).strip().split("\n\n")
    assert [table.splitlines()[0].split()[-1] for table in tables] == ["kind", "[sites]"]
    for table in tables:
        rows = [row.split() for row in table.splitlines()[1:]]
        assert rows[-1][-2:] == ["a", "step"]
        # Each row is rounded to 0.001 ms.
        assert sum(float(row[0]) for row in rows[:-1]) == pytest.approx(float(rows[-1][0]), abs=0.0005 * len(rows))
    names = {kernel["name"] for kernel in profile["kernels"]}
    assert all(name in done.stderr for name in names)


def test_one_step(bin_dir, folder):
    done = run(bin_dir, folder, "--profile")
    assert done.stderr.startswith("Profile of one step, the first, which is slower than others\n")


def test_names_are_stable_and_in_the_symbols(bin_dir, folder, profile):
    command(bin_dir / "fp8-compile", folder / "step.mlir", "--recipe=none", "-o", folder / "again.so")
    assert (folder / "again.so").read_bytes() == (folder / "step.so").read_bytes()
    names = [kernel["name"] for kernel in profile["kernels"]]
    assert len(set(names)) == len(names) and all(len(name) <= 60 for name in names)
    symbols = command("nm", folder / "step.so").stdout
    for kernel in profile["kernels"]:
        if kernel["kind"] != "outside kernels":
            assert re.search(r" t kernel_%s$" % re.escape(kernel["name"]), symbols, re.M), kernel["name"]


# A product of 64 x 32 by 32 x 48, which are bf16 and cast to FP8, and tanh of its result.
GPU_PROGRAM = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<64x32xbf16>, %w: tensor<32x48xbf16>) -> (tensor<64x48xf32>, tensor<64x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x48xf32>) -> tensor<64x48xf32>
  %y = linalg.matmul ins(%x, %w : tensor<64x32xbf16>, tensor<32x48xbf16>) outs(%init : tensor<64x48xf32>) -> tensor<64x48xf32>
      loc("jit(step)/h0/fc1/dot_general")
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<64x48xf32>) outs(%empty : tensor<64x48xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.tanh %in : f32
    linalg.yield %0 : f32
  } -> tensor<64x48xf32> loc("jit(step)/h0/act/tanh")
  return %y, %t : tensor<64x48xf32>, tensor<64x48xf32>
}
"""


def test_launches_on_the_emulator(bin_dir, tmp_path):
    """All time of a step is that of kernels, those that the compiler builds too."""
    (tmp_path / "step.mlir").write_text(GPU_PROGRAM)
    done = command(bin_dir / "fp8-compile", tmp_path / "step.mlir", "--target=sm_89", "--recipe=delayed", "-o", tmp_path / "step.so")
    assert done.stderr == ""
    command(bin_dir / "fp8-run", tmp_path / "step.so", "--zero-missing", "--device=emulator", "--steps=2",
            "--profile=%s" % (tmp_path / "profile"))
    profile = json.loads((tmp_path / "profile").read_text())
    assert {kernel["name"] for kernel in profile["kernels"] if not kernel["calls"]} <= {"outside kernels"}
    product = line(profile, "product_fprop_h0_fc1")
    # Both operands are FP8, and each has a scale.
    assert (product["kind"], product["sites"], product["operations"]) == ("products", ["h0/fc1"], 2 * 64 * 32 * 48)
    assert product["bytes_read"] == 64 * 32 + 32 * 48 + 2 * 4
    casts = [kernel for kernel in profile["kernels"] if kernel["name"].startswith("quantize")]
    assert sum(kernel["bytes_read"] for kernel in casts) == 2 * (64 * 32 + 32 * 48) + 2 * 4
    for lines in profile["kernels"], profile["kinds"]:
        # Sums of doubles in another order.
        assert sum(entry["ms"] for entry in lines) == pytest.approx(profile["step"]["ms"], rel=1e-9)
