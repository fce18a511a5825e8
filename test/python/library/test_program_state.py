# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Globals of a program (the state of random numbers) are state: saved and restored, never hidden memory."""
import subprocess

import numpy as np
import pytest

from harness import BF16, F16, F32, Program, assert_same_bits, load

# Dropout as torch-mlir exports it: a seed that every use moves on, here by Knuth's generator.
PROGRAM = """
ml_program.global private mutable @seed(dense<-9007199254740993> : tensor<i64>) : tensor<i64>
ml_program.global private mutable @table(dense<[[1.5, -2.0], [0.0, 3.25]]> : tensor<2x2xbf16>) : tensor<2x2xbf16>
func.func private @next() -> tensor<i64> {
  %a = arith.constant dense<6364136223846793005> : tensor<i64>
  %c = arith.constant dense<1442695040888963407> : tensor<i64>
  %seed = ml_program.global_load @seed : tensor<i64>
  %0 = arith.muli %seed, %a : tensor<i64>
  %1 = arith.addi %0, %c : tensor<i64>
  ml_program.global_store @seed = %1 : tensor<i64>
  return %1 : tensor<i64>
}
func.func @main(%w: tensor<64x32xf32> loc("w"), %x: tensor<16x64xf32> loc("x")) -> (tensor<16x32xf32>, tensor<i64>, tensor<i64>, tensor<2x2xbf16>) {
  %first = call @next() : () -> tensor<i64>
  %second = call @next() : () -> tensor<i64>
  %table = ml_program.global_load @table : tensor<2x2xbf16>
  %twice = arith.addf %table, %table : tensor<2x2xbf16>
  ml_program.global_store @table = %twice : tensor<2x2xbf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x32xf32>) outs(%fill : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y, %first, %second, %table : tensor<16x32xf32>, tensor<i64>, tensor<i64>, tensor<2x2xbf16>
}
func.func @evaluate() -> tensor<i64> {
  %seed = ml_program.global_load @seed : tensor<i64>
  return %seed : tensor<i64>
}
"""
SEED = -9007199254740993  # no double: 2**53 + 1
TABLE = np.array([[1.5, -2], [0, 3.25]], BF16)
INPUTS = {"w": np.eye(64, 32, dtype=F32), "x": np.ones((16, 64), F32)}


def seeds(count):
    """The first values of the generator."""
    values, seed = [], SEED
    for _ in range(count):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(np.array(seed, np.uint64).view(np.int64))
    return values


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    return Program(bin_dir, tmp_path_factory.mktemp("state"), PROGRAM, "--amax-history-len=4", "--calibrate")


def step(program, *options):
    program.run("main", INPUTS, f"--outputs={program.folder / 'out'}", *options)
    return load(program.folder / "out")


def test_the_manifest(program):
    tensors = {tensor["name"]: tensor for tensor in program.manifest["state"]["tensors"]}
    assert list(tensors) == ["scale", "amax_history", "seed", "table"]
    assert tensors["seed"] == {"name": "seed", "type": "i64", "shape": [], "initial": SEED}
    assert tensors["table"] == {"name": "table", "type": "bf16", "shape": [2, 2], "initial": [1.5, -2, 0, 3.25]}
    main, evaluate = program.manifest["entries"]
    kinds = [(a["name"], a["kind"], a["carry"], a["written"]) for a in main["arguments"]]
    assert kinds[:4] == [("w", "user", None, False), ("x", "user", None, False), ("seed", "state", 4, True), ("table", "state", 5, True)]
    assert [r["name"] for r in main["results"][4:6]] == ["seed", "table"]
    assert [(a["name"], a["written"]) for a in evaluate["arguments"]] == [("seed", False)]


def test_from_step_to_step(program):
    expected, table = seeds(10), TABLE
    for count in range(1, 6):
        results = step(program, f"--steps={count}")
        assert results["1"] == expected[2 * count - 2] and results["2"] == expected[2 * count - 1]
        assert_same_bits(results["3"], table)
        table = (table.astype(F32) * 2).astype(BF16)


def test_saved_and_restored(program):
    state = program.folder / "saved"
    step(program, "--steps=3", f"--save-state={state}")
    saved = load(state)
    assert saved["seed"] == seeds(6)[-1] and set(saved) == {"scale", "amax_history", "seed", "table"}
    results = step(program, "--steps=2", f"--state={state}")
    assert results["2"] == seeds(10)[-1]
    assert_same_bits(results["3"], (TABLE.astype(F32) * 16).astype(BF16))
    # Another entry reads the same state.
    program.run("evaluate", {}, f"--state={state}", f"--outputs={program.folder / 'out'}")
    assert load(program.folder / "out")["0"] == seeds(6)[-1]


def test_a_state_without_it_is_refused(program, bin_dir):
    without = Program(bin_dir, program.folder, PROGRAM.replace("@table", "@board"), "--amax-history-len=4", "--calibrate")
    without.run("main", INPUTS, f"--save-state={program.folder / 'other'}")
    again = Program(bin_dir, program.folder, PROGRAM, "--amax-history-len=4", "--calibrate")
    command = [bin_dir / "fp8-run", again.library, "--zero-missing", f"--state={program.folder / 'other'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "there is no tensor 'table'" in done.stderr


PAIR = """
ml_program.global private mutable @seed(dense<1> : tensor<i32>) : tensor<i32>
func.func @forward(%w: tensor<32x32xf32> loc("w"), %x: tensor<16x32xf32> loc("x")) -> (tensor<16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<i32>) {
  %c3 = arith.constant dense<3> : tensor<i32>
  %seed = ml_program.global_load @seed : tensor<i32>
  %next = arith.muli %seed, %c3 : tensor<i32>
  ml_program.global_store @seed = %next : tensor<i32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.matmul ins(%x, %w : tensor<16x32xf32>, tensor<32x32xf32>) outs(%fill : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y, %next, %x, %next : tensor<16x32xf32>, tensor<i32>, tensor<16x32xf32>, tensor<i32>
}
func.func @backward(%x: tensor<16x32xf32>, %mask: tensor<i32>, %dy: tensor<16x32xf32> loc("dy")) -> (tensor<32x32xf32>, tensor<i32>, tensor<i32>) {
  %c5 = arith.constant dense<5> : tensor<i32>
  %seed = ml_program.global_load @seed : tensor<i32>
  %next = arith.addi %seed, %c5 : tensor<i32>
  ml_program.global_store @seed = %next : tensor<i32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %xt = tensor.empty() : tensor<32x16xf32>
  %t = linalg.transpose ins(%x : tensor<16x32xf32>) outs(%xt : tensor<32x16xf32>) permutation = [1, 0]
  %dw = linalg.matmul ins(%t, %dy : tensor<32x16xf32>, tensor<16x32xf32>) outs(%fill : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %dw, %mask, %seed : tensor<32x32xf32>, tensor<i32>, tensor<i32>
}
"""


@pytest.mark.parametrize("recipe", ["none", "delayed", "current"])
def test_the_two_functions_of_a_pair_share_it(bin_dir, tmp_path, recipe):
    program = Program(bin_dir, tmp_path, PAIR, "--pair=forward:backward:2", f"--recipe={recipe}")
    inputs = {"w": np.eye(32, dtype=F32), "x": np.ones((16, 32), F32), "backward.dy": np.ones((16, 32), F32)}
    seed = 1
    for steps in range(1, 4):
        seed = seed * 3
        program.run("forward,backward", inputs, f"--steps={steps}", f"--outputs={tmp_path / 'out'}")
        results = load(tmp_path / "out")
        assert (results["forward.1"], results["backward.1"], results["backward.2"]) == (seed, seed, seed)
        # Exact values times scales and their reciprocals, which are rounded.
        np.testing.assert_allclose(results["forward.0"], np.ones((16, 32)), rtol=3e-7)
        np.testing.assert_allclose(results["backward.0"], np.full((32, 32), 16), rtol=3e-7)
        seed += 5


VALUES = {
    "i1": [True, False, True], "i8": [-128, 127, 3], "i16": [-32768, 32767, 0], "i32": [-2**31, 2**31 - 1, 1],
    "i64": [-2**63, 2**63 - 1, 2**53 + 1], "f16": [6e-8, -65504, 0.333251953125], "bf16": [1e-40, -3.3895e38, 0.33203125],
    "f32": [1e-45, -3.4028235e38, 0.1], "f64": [5e-324, -1.7976931348623157e308, 0.1],
}
DTYPES = {"i1": np.bool_, "f16": F16, "bf16": BF16, "f32": F32, "f64": np.float64, **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)}}


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("i8", "i16")])
def test_what_it_begins_with(name, bin_dir, tmp_path):
    """Every type, to the last bit; -0.0 too."""
    values = np.array(VALUES[name] + ([-0.0] if "f" in name else []), DTYPES[name])
    bits = values.tobytes().hex().upper() if name != "i1" else None
    type_ = f"tensor<{len(values)}x{name}>"
    dense = f'dense<"0x{bits}">' if bits else "dense<[true, false, true]>"
    text = f"""
    ml_program.global private mutable @state({dense} : {type_}) : {type_}
    func.func @main(%x: {type_}) -> {type_} {{
      %old = ml_program.global_load @state : {type_}
      ml_program.global_store @state = %x : {type_}
      return %old : {type_}
    }}"""
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    (result,) = program.call("main", np.zeros(len(values), DTYPES[name]))
    assert result.tobytes() == values.tobytes()


def test_memory_that_a_program_writes_is_an_error(run, tmp_path):
    text = """memref.global "private" @m : memref<4xf32> = dense<1.0>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %m = memref.get_global @m : memref<4xf32>
  %t = bufferization.to_tensor %m restrict writable : memref<4xf32> to tensor<4xf32>
  %y = arith.addf %t, %x : tensor<4xf32>
  bufferization.materialize_in_destination %y in restrict writable %m : (tensor<4xf32>, memref<4xf32>) -> ()
  return %y : tensor<4xf32>
}
"""
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", "--recipe=none", stdin=text)
    assert done.returncode == 1
    assert done.stderr == "<stdin>:3:8: error: global 'm' can be written: pass what 'main' keeps between calls as an argument and a result\n"
