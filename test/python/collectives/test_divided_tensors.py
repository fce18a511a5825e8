# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile --shard: fp8-run cuts divided tensors out of its files, gathers them for those it writes, and goes on
from them on another number of ranks. Beside the program that has the whole tensors, bit for bit."""

import json
import re
import subprocess

import pytest
from test_quantize_before_gather import ROWS, K, N, training_step

from harness import F32, Program, assert_same_bits, load, random_generator, save

DELAYED = ["--recipe=delayed", "--amax-history-len=2", "--cpu=x86-64-v3"]


def make_inputs(salt):
    rng = random_generator(salt)
    shapes = {"w": [N, K], "x": [ROWS, K], "g": [ROWS, N]}
    return {name: rng.standard_normal(shape).astype(F32) for name, shape in shapes.items()}


class Programs:
    """The step with the whole weight, and with a part of it on each rank."""

    def __init__(self, bin_dir, tmp_path, options):
        self.bin_dir, self.tmp_path, self.options = bin_dir, tmp_path, options

    def make(self, dim, ranks, *more):
        folder = self.tmp_path / f"program{len(list(self.tmp_path.iterdir()))}"
        folder.mkdir()
        shard = [] if dim is None else [f"--shard=0:w={dim}"]
        return Program(self.bin_dir, folder, training_step(dim, ranks), *self.options, *shard, *more)


@pytest.mark.parametrize("dim, options", [
    (0, DELAYED),
    (1, DELAYED),
    (0, [*DELAYED, "--fp8-parameters"]),
    (1, ["--recipe=current", "--fp8-parameters"]),
    (1, ["--recipe=none"]),
])  # fmt: skip
def test_checkpoints_have_whole_tensors(bin_dir, tmp_path, dim, options):
    programs, inputs = Programs(bin_dir, tmp_path, options), make_inputs(210)
    whole, halves, quarters = programs.make(None, 1), programs.make(dim, 2), programs.make(dim, 4)

    def run(program, name, ranks, *more):
        given = {"x": inputs["x"], "g": inputs["g"]} if more else inputs
        where = [f"--save-state={tmp_path / name}", f"--outputs={tmp_path / 'outputs'}", "--with-carry", *more]
        program.run("main", given, "--steps=2", *where, *([f"--ranks={ranks}"] if ranks > 1 else []))
        return {**load(tmp_path / name), **load(tmp_path / "outputs")}

    first = [run(whole, "whole", 1), run(halves, "halves", 2)]
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "halves").read_bytes()
    # Each goes on from the file of the other, and on another number of ranks.
    goes_on = [
        run(whole, "whole1", 1, f"--state={tmp_path / 'halves'}"),
        run(halves, "halves1", 2, f"--state={tmp_path / 'whole'}"),
        run(quarters, "quarters1", 4, f"--state={tmp_path / 'halves'}"),
    ]
    for expected, *others in (first, goes_on):
        assert expected["carry.w"].shape == expected["2"].shape == (N, K)
        for other in others:
            assert other.keys() == expected.keys()
            for name, value in expected.items():
                assert_same_bits(other[name], value)


@pytest.mark.parametrize("recipe", [["--recipe=none"], DELAYED])
def test_results_are_gathered(bin_dir, tmp_path, recipe):
    """Rows of x and g divided too: y and dx have the rows of all ranks."""
    inputs = make_inputs(211)
    programs = Programs(bin_dir, tmp_path, recipe)
    whole = programs.make(None, 1)
    expected = whole.call("main", *(inputs[name] for name in "wxg"))
    text = training_step(0).replace("48x", "24x")
    program = Program(bin_dir, tmp_path, text, *recipe, "--shard=0:w,x,g=0,result0,result1=0")
    program.run("main", inputs, "--ranks=2", f"--outputs={tmp_path / 'outputs'}")
    outputs = load(tmp_path / "outputs")
    for index in (0, 1):
        assert_same_bits(outputs[str(index)], expected[index])
    described = program.manifest["entries"][0]
    part = {"axis": 0, "dim": 0}
    assert [a.get("shard") for a in described["arguments"] if a["kind"] == "user"] == [part] * 3
    assert [r.get("shard") for r in described["results"] if r["kind"] == "user"] == [part] * 3


def fail(program, inputs, *options):
    save(program.folder / "inputs", inputs)
    command = [program.bin_dir / "fp8-run", program.library, f"--inputs={program.folder / 'inputs'}", f"--outputs={program.folder / 'o'}", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and not (program.folder / "o").exists()
    return done.stderr


def test_what_does_not_fit_is_an_error(bin_dir, tmp_path):
    program = Programs(bin_dir, tmp_path, ["--recipe=none"]).make(0, 2)
    inputs = make_inputs(212)
    odd = {**inputs, "w": inputs["w"][:-1]}
    assert "tensor 'w': dimension 0 is 255, which is not divisible by 2 ranks" in fail(program, odd, "--ranks=2")
    short = {**inputs, "w": inputs["w"][:-2]}
    assert "argument 0 'w' is f32[128,192], the given tensor f32[127,192]" in fail(program, short, "--ranks=2")
    assert "the program's grid is 2, which does not fit 4 ranks" in fail(program, inputs, "--ranks=4")


TWO_AXES = """
shard.grid @grid(shape = 2x2)
func.func @main(%x: tensor<3x4xf32> {tf.aliasing_output = 1 : i32} loc("x")) -> (tensor<f32>, tensor<3x4xf32>, tensor<6x4xf32>) {
  %y = shard.all_reduce %x on @grid grid_axes = [0, 1] : tensor<3x4xf32> -> tensor<3x4xf32>
  %i = arith.constant 0 : index
  %e = tensor.extract %y[%i, %i] : tensor<3x4xf32>
  %s = tensor.from_elements %e : tensor<f32>
  %two = arith.addf %x, %x : tensor<3x4xf32>
  %column = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<3x4xf32> -> tensor<6x4xf32>
  return %s, %two, %column : tensor<f32>, tensor<3x4xf32>, tensor<6x4xf32>
}
"""


def test_a_tensor_on_two_axes(bin_dir, tmp_path):
    program = Program(bin_dir, tmp_path, TWO_AXES, "--recipe=none", "--shard=0:x=0", "--shard=1:x=1,result2=1")
    x = random_generator(213).standard_normal([6, 8]).astype(F32)
    program.run("main", {"x": x}, "--ranks=4", f"--outputs={tmp_path / 'outputs'}", f"--save-state={tmp_path / 'state'}", "--with-carry")
    outputs = load(tmp_path / "outputs")
    assert_same_bits(outputs["0"], ((x[0, 0] + x[0, 4]) + x[3, 0]) + x[3, 4])
    assert_same_bits(outputs["1"], x + x)
    assert_same_bits(outputs["2"], x)
    assert_same_bits(load(tmp_path / "state")["carry.x"], x + x)
    (argument,) = program.manifest["entries"][0]["arguments"]
    assert argument["shard"] == [{"axis": 0, "dim": 0}, {"axis": 1, "dim": 1}]


@pytest.mark.parametrize("options, status, reason", [
    (["--shard=0"], 2, "must be AXIS:ARGUMENT"),
    (["--shard=0:x=a"], 2, "has a dimension that is no number: 'a'"),
    (["--shard=tp:x"], 1, "--shard: 'tp' is no axis of the program's grid; its axes are numbers, from 0"),
    (["--shard=0:nothing"], 1, "--shard: no public function has an argument or result 'nothing'"),
    (["--shard=0:result9"], 1, "no public function has an argument or result 'result9'"),
    (["--shard=0:x=2"], 1, "p.mlir:3:17: error: --shard: 'x' has 2 dimensions, and 2 is none of them"),
    (["--shard=0:result0"], 1, "'result0' has 0 dimensions, and 0 is none of them"),
    (["--shard=0:x,x=1"], 1, "p.mlir:3:17: error: --shard: 'x' is divided along one axis twice"),
    (["--shard=0:x", "--data-parallel=0:0"], 1, "is divided along the axis of --data-parallel"),
])  # fmt: skip
def test_what_is_refused(bin_dir, tmp_path, options, status, reason):
    (tmp_path / "p.mlir").write_text(TWO_AXES.replace(" {tf.aliasing_output = 1 : i32}", "") if "--data-parallel=0:0" in options else TWO_AXES)
    done = subprocess.run([bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so", "--recipe=none", *options], capture_output=True, text=True)
    assert done.returncode == status and reason in done.stderr and not (tmp_path / "p.so").exists(), done.stderr


def test_the_report_tells_what_a_rank_keeps(bin_dir, tmp_path):
    (tmp_path / "p.mlir").write_text(training_step(0))
    command = [bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so", "--recipe=delayed", "--fp8-parameters", "--shard=0:w"]
    done = subprocess.run([*command, "--report=json"], capture_output=True, text=True, check=True)
    memory = json.loads(done.stdout)["memory"]
    part = N * K // 2
    assert (memory["carried_bytes"], memory["carried_bytes_whole"]) == (4 * part, 8 * part)
    scales = memory["fp8_parameter_bytes"] % part
    copies = memory["fp8_parameter_bytes"] // part  # one for each layout that products read
    assert memory["fp8_parameter_bytes_whole"] == 2 * copies * part + scales and copies in (1, 2) and scales <= 8
    done = subprocess.run([*command, "--report=text"], capture_output=True, text=True, check=True)
    for line in (r"carried by each rank: parameters, optimizer +96 KiB", r"the same, were nothing divided +192 KiB"):
        assert re.search(rf"\n  {line}\n", done.stdout), done.stdout
