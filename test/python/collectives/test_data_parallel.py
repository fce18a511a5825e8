# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile --data-parallel, by value: the means of loss and gradients, and what cannot be decided."""

import re
import subprocess

import numpy as np
import pytest
from ranks import Ranks, combine

from harness import F32, Program, assert_same_bits, load, random_generator
from net import initial_tensors

# Loss and gradients of mean((relu(x w1) w2 - t)^2) as results, and the gradient of x, which is each rank's own.
GRADIENTS = """
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (j)>
func.func @main(%w: tensor<12x5xf32> loc("w"), %b: tensor<5xf32> loc("b"), %x: tensor<16x12xf32> loc("x"), %t: tensor<16x5xf32> loc("t"))
    -> (tensor<f32>, tensor<12x5xf32>, tensor<5xf32>, tensor<16x12xf32>, tensor<16x5xf32>) {
  %z = arith.constant 0.0 : f32
  %ey = tensor.empty() : tensor<16x5xf32>
  %fy = linalg.fill ins(%z : f32) outs(%ey : tensor<16x5xf32>) -> tensor<16x5xf32>
  %xw = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<16x12xf32>, tensor<12x5xf32>) outs(%fy : tensor<16x5xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x5xf32> loc("jit(f)/jvp(fc)/dot_general")
  %y = linalg.generic {indexing_maps = [#all, #col, #all], iterator_types = ["parallel", "parallel"]}
      ins(%xw, %b : tensor<16x5xf32>, tensor<5xf32>) outs(%ey : tensor<16x5xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<16x5xf32>
  %d = arith.subf %y, %t : tensor<16x5xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [#all, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%d : tensor<16x5xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.mulf %a, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %two = arith.constant dense<2.0> : tensor<16x5xf32>
  %g = arith.mulf %d, %two : tensor<16x5xf32>
  %ew = tensor.empty() : tensor<12x5xf32>
  %fw = linalg.fill ins(%z : f32) outs(%ew : tensor<12x5xf32>) -> tensor<12x5xf32>
  %dw = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<16x12xf32>, tensor<16x5xf32>) outs(%fw : tensor<12x5xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<12x5xf32> loc("jit(f)/transpose(jvp(fc))/dot_general")
  %eb = tensor.empty() : tensor<5xf32>
  %fb = linalg.fill ins(%z : f32) outs(%eb : tensor<5xf32>) -> tensor<5xf32>
  %db = linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>], iterator_types = ["parallel", "reduction"]}
      ins(%g : tensor<16x5xf32>) outs(%fb : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %ex = tensor.empty() : tensor<16x12xf32>
  %fx = linalg.fill ins(%z : f32) outs(%ex : tensor<16x12xf32>) -> tensor<16x12xf32>
  %dx = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g, %w : tensor<16x5xf32>, tensor<12x5xf32>) outs(%fx : tensor<16x12xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<16x12xf32> loc("jit(f)/transpose(jvp(fc))/dot_general")
  return %loss, %dw, %db, %dx, %y : tensor<f32>, tensor<12x5xf32>, tensor<5xf32>, tensor<16x12xf32>, tensor<16x5xf32>
}
"""


@pytest.mark.parametrize("size", [2, 3, 4])
def test_means_of_loss_and_gradients(bin_dir, tmp_path, size):
    (tmp_path / "one").mkdir()
    single = Program(bin_dir, tmp_path / "one", GRADIENTS, "--recipe=none")
    program = Program(bin_dir, tmp_path, GRADIENTS, "--recipe=none", "--data-parallel=dp:x,t")
    rng = random_generator(180)
    common = {"w": rng.standard_normal([12, 5]), "b": rng.standard_normal(5)}
    inputs = [{**common, "x": rng.standard_normal([16, 12]), "t": rng.standard_normal([16, 5])} for _ in range(size)]
    alone = [single.call("main", *(np.float32(given[name]) for name in "wbxt")) for given in inputs]
    results, errors = Ranks(program.library, size).step(inputs)
    assert errors == [""] * size
    for rank, result in enumerate(results):
        for index in (0, 1, 2):  # loss, gradients of w and b
            assert_same_bits(result[index], combine([own[index] for own in alone], "mean"))
        for index in (3, 4):  # gradient of x, y
            assert_same_bits(result[index], alone[rank][index])
    arguments = program.manifest["entries"][0]["arguments"]
    assert [a.get("shard") for a in arguments] == [None, None, {"axis": 0, "dim": 0}, {"axis": 0, "dim": 0}]
    assert program.manifest["grid"] == {"shape": [None], "axes": ["dp"]}


@pytest.mark.parametrize("recipe", ["none", "delayed", "current"])
def test_equal_rows_give_the_single_run(bin_dir, source_dir, tmp_path, recipe):
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    (tmp_path / "one").mkdir()
    options = [f"--recipe={recipe}"] + (["--amax-history-len=3"] if recipe == "delayed" else [])
    single = Program(bin_dir, tmp_path / "one", text, *options)
    program = Program(bin_dir, tmp_path, text, *options, "--data-parallel=dp:x,t")
    tensors = initial_tensors()
    one, many, state = dict(tensors), dict(tensors), {}
    for _ in range(3):
        (outputs,) = Ranks(single.library, 1).step([{**one, **state}], alone=True)[0]
        results, errors = Ranks(program.library, 4).step([{**many, **state}] * 4)
        assert errors == [""] * 4
        for result in results:
            for actual, expected in zip(result, outputs):
                assert_same_bits(actual, expected)
        one |= {"w1": outputs[0], "w2": outputs[1]}
        many |= {"w1": results[0][0], "w2": results[0][1]}
        if recipe == "delayed":
            state = {"scale": outputs[-2], "amax_history": outputs[-1]}


def test_different_rows_leave_equal_weights_and_state(bin_dir, source_dir, tmp_path):
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    program = Program(bin_dir, tmp_path, text, "--recipe=delayed", "--amax-history-len=3", "--data-parallel=dp:x,t")
    tensors, rng = initial_tensors(), random_generator(181)
    inputs = [{**tensors, "x": rng.standard_normal([150, 140]), "t": rng.standard_normal([150, 5])} for _ in range(3)]
    results, errors = Ranks(program.library, 3).step(inputs)
    assert errors == [""] * 3
    for result in results[1:]:
        for actual, expected in zip(result, results[0]):
            assert_same_bits(actual, expected)
    columns = program.manifest["state"]["columns"]
    column = next(c["index"] for c in columns if c["sites"] == ["net/l1"] and c["tensor"] == "input")
    assert_same_bits(results[0][-1][-1][column], F32.type(max(np.abs(np.float32(given["x"])).max() for given in inputs)))


def means(program):
    collectives = next(e for e in program.manifest["entries"] if e["name"] == "main")["collectives"]
    return sorted((c["joined"], c["bytes"]) for c in collectives if c["reduction"] == "mean")


@pytest.mark.parametrize("size, expected", [
    (0, [(1, 4), (1, 20 * 5 * 4), (1, 140 * 20 * 4)]),
    (4096, [(1, 140 * 20 * 4), (2, 64 + 20 * 5 * 4)]),  # loss and the small gradient; parts begin at multiples of 64 bytes
    (None, [(3, 64 + 448 + 140 * 20 * 4)]),
])  # fmt: skip
def test_small_gradients_are_reduced_together(bin_dir, source_dir, tmp_path, size, expected):
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    options = ["--recipe=delayed", "--data-parallel=dp:x,t"]
    program = Program(bin_dir, tmp_path, text, *options, *([] if size is None else [f"--bucket-bytes={size}"]))
    assert means(program) == expected
    rng = random_generator(184)
    inputs = [{**initial_tensors(), "x": rng.standard_normal([150, 140]), "t": rng.standard_normal([150, 5])} for _ in range(3)]
    (tmp_path / "apart").mkdir()
    apart = Program(bin_dir, tmp_path / "apart", text, *options, "--bucket-bytes=0")
    for actual, wanted in zip(Ranks(program.library, 3).step(inputs)[0], Ranks(apart.library, 3).step(inputs)[0]):
        for value, expected_value in zip(actual, wanted):
            assert_same_bits(value, expected_value)


def test_a_bucket_is_under_way_while_the_next_gradient_is_computed(bin_dir, source_dir, tmp_path):
    source = source_dir / "test/python/inputs/net.mlir"
    options = ["--recipe=none", "--data-parallel=dp:x,t", "--bucket-bytes=4096", "--emit=kernels"]
    subprocess.run([bin_dir / "fp8-compile", source, "-o", tmp_path / "kernels.mlir", *options], check=True)
    main = (tmp_path / "kernels.mlir").read_text().split("func.func @main(")[1].split("func.func")[0]
    events = re.findall(r'call @fp8_cpu_gemm|wait_collective|(?<=of\()"[^"]*"(?=\) from)', main)
    product, wait = "call @fp8_cpu_gemm", "wait_collective"
    assert events == [*[product] * 3, '"gradient of net/l2 and 1 before"', *[product] * 2, '"gradient of net/l1"', wait, wait]


def test_the_report_tells_of_buckets(bin_dir, source_dir, tmp_path):
    source = source_dir / "test/python/inputs/net.mlir"
    command = [bin_dir / "fp8-compile", source, "-o", tmp_path / "p.so", "--report=text", "--recipe=none", "--data-parallel=dp:x,t"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "  main: all_reduce mean of f32: 1 in place of 3, 11 KiB of each rank\n" in done.stdout


STATISTICS = """
func.func @main(%m: tensor<5xf32> {{tf.aliasing_output = 0 : i32}} loc("mean"), %x: tensor<5xf32> loc("x"), %n: tensor<i32> {{tf.aliasing_output = 2 : i32}} loc("count")) -> (tensor<5xf32>, tensor<f32>, tensor<i32>) {{
  %k = arith.constant dense<0.5> : tensor<5xf32>
  %a = arith.addf %m, %x : tensor<5xf32>
  %next = arith.mulf %a, %k : tensor<5xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.extract %x[%c0] : tensor<5xf32>
  %loss = tensor.from_elements %e : tensor<f32>
  %i = arith.fptosi %e : f32 to i32
  %c = tensor.from_elements %i : tensor<i32>
  return %next, %loss, {count} : tensor<5xf32>, tensor<f32>, tensor<i32>
}}"""


def refuse(bin_dir, folder, text, *options):
    (folder / "p.mlir").write_text(text)
    done = subprocess.run([bin_dir / "fp8-compile", folder / "p.mlir", "-o", folder / "p.so", "--recipe=none", *options], capture_output=True, text=True)
    assert done.returncode in (1, 2) and not (folder / "p.so").exists(), done.stderr
    return done.returncode, done.stderr


def test_statistics_of_a_batch_need_a_decision(bin_dir, tmp_path):
    text = STATISTICS.format(count="%n")
    status, error = refuse(bin_dir, tmp_path, text, "--data-parallel=dp:x")
    assert status == 1 and "p.mlir:5:11: error: result 0, the next value of 'mean', depends on the batch" in error and "--average=0" in error
    program = Program(bin_dir, tmp_path, text, "--recipe=none", "--data-parallel=dp:x", "--average=0")
    rng = random_generator(182)
    inputs = [{"mean": np.ones(5), "x": rng.standard_normal(5), "count": 3} for _ in range(2)]
    results, errors = Ranks(program.library, 2).step(inputs)
    assert errors == [""] * 2
    half = [(np.float32(1) + given["x"].astype(F32)) * np.float32(0.5) for given in inputs]
    for result in results:
        assert_same_bits(result[0], combine(half, "mean"))
    _, error = refuse(bin_dir, tmp_path / "..", STATISTICS.format(count="%c"), "--data-parallel=dp:x", "--average=0")
    assert "result 2, the next value of 'count', depends on the batch" in error


@pytest.mark.parametrize("options, status, reason", [
    (["--data-parallel=dp"], 2, "must be AXIS:ARGUMENT"),
    (["--data-parallel=dp:x=a"], 2, "has a dimension that is no number: 'a'"),
    (["--data-parallel=dp:nothing"], 1, "no public function has an argument 'nothing'"),
    (["--data-parallel=dp:x=2"], 1, "argument 'x' has 2 dimensions, and 2 is none of them"),
    (["--data-parallel=dp:x,t", "--loss=1"], 1, "has no scalar of floating point as result 1"),
    (["--data-parallel=dp:x,t", "--average=9"], 1, "has no tensor of floating point as result 9"),
    (["--data-parallel=dp:x,t", "--reduce-amax-axes=tp"], 1, "'tp' is no axis of the program's grid"),
    (["--average=1"], 2, "--average without --data-parallel"),
    (["--reduce-amax-axes=0"], 1, "which has none: it is for one rank"),
    (["--reduce-amax=false", "--reduce-amax-axes=0"], 2, "--reduce-amax-axes with --reduce-amax=false"),
])  # fmt: skip
def test_what_is_refused(bin_dir, tmp_path, options, status, reason):
    code, error = refuse(bin_dir, tmp_path, GRADIENTS, *options)
    assert reason in error and code == status, error


def test_a_gradient_with_two_shapes_is_refused(bin_dir, tmp_path):
    # The gradient of x has the shape of w: only shapes tell whose gradient a result is.
    square = GRADIENTS.replace("12x5", "12x12").replace("16x5", "16x12").replace("tensor<5xf32>", "tensor<12xf32>").replace("16x12", "12x12")
    _, error = refuse(bin_dir, tmp_path, square, "--data-parallel=dp:x,t")
    assert re.search(r"p.mlir:\d+:\d+: error: result \d is a gradient with the shape of the parameter 'w' and of the batch '[xt]'", error), error


@pytest.mark.parametrize("recipe", ["none", "delayed"])
def test_processes_share_a_batch(bin_dir, source_dir, tmp_path, recipe):
    """fp8-run cuts the batch, and its ranks compute what those of this process do."""
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    program = Program(bin_dir, tmp_path, text, f"--recipe={recipe}", "--data-parallel=dp:x,t")
    tensors, rng = initial_tensors(), random_generator(183)
    batch = {"x": rng.standard_normal([300, 140]).astype(F32), "t": rng.standard_normal([300, 5]).astype(F32)}
    parts = [{**tensors, **{name: np.split(value, 2)[rank] for name, value in batch.items()}} for rank in range(2)]
    results, errors = Ranks(program.library, 2).step(parts)
    assert errors == [""] * 2
    program.run("main", {**tensors, **batch}, "--ranks=2", f"--outputs={tmp_path / 'outputs'}")
    outputs = load(tmp_path / "outputs")
    for index in range(3):
        assert_same_bits(outputs[str(index)], results[0][index])


def test_one_rank_on_a_gpu_computes_the_single_step(bin_dir, source_dir, tmp_path):
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    options = ["--recipe=delayed", "--amax-history-len=3", "--target=sm_89", "--ptxas=none"]
    outputs = []
    for folder, more in (("one", []), ("ranks", ["--data-parallel=dp:x,t"])):
        (tmp_path / folder).mkdir()
        program = Program(bin_dir, tmp_path / folder, text, *options, *more)
        tensors = initial_tensors()
        outputs.append(program.call("main", *(tensors[name] for name in ("w1", "w2", "x", "t"))))
    for actual, expected in zip(*outputs):
        assert_same_bits(actual, expected)
