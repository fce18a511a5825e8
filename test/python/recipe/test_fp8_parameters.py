# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--fp8-parameters: weights that are cast by the step that computes them, bit for bit as without."""

import subprocess

import numpy as np
import pytest

from harness import BF16, F32, Program, assert_same_bits, load, random_generator, save

# A layer with its gradients and an optimizer in f32, and the evaluation of the same weight.
PROGRAM = """
func.func @main(%w: tensor<64x32xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<16x64xbf16> loc("x"),
                %g: tensor<16x32xbf16> loc("g")) -> (tensor<64x32xf32>, tensor<16x32xbf16>, tensor<16x64xbf16>) {
  %c = arith.truncf %w : tensor<64x32xf32> to tensor<64x32xbf16>
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<16x32xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<16x32xbf16>) -> tensor<16x32xbf16>
  %y = linalg.matmul ins(%x, %c : tensor<16x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<16x32xbf16>) -> tensor<16x32xbf16>
  %d = arith.addf %y, %g : tensor<16x32xbf16>
  %e2 = tensor.empty() : tensor<16x64xbf16>
  %f2 = linalg.fill ins(%zero : bf16) outs(%e2 : tensor<16x64xbf16>) -> tensor<16x64xbf16>
  %dx = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%d, %c : tensor<16x32xbf16>, tensor<64x32xbf16>) outs(%f2 : tensor<16x64xbf16>) -> tensor<16x64xbf16>
  %e3 = tensor.empty() : tensor<64x32xbf16>
  %f3 = linalg.fill ins(%zero : bf16) outs(%e3 : tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %dw = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %d : tensor<16x64xbf16>, tensor<16x32xbf16>) outs(%f3 : tensor<64x32xbf16>) -> tensor<64x32xbf16>
  %dwf = arith.extf %dw : tensor<64x32xbf16> to tensor<64x32xf32>
  %lr = arith.constant dense<0.01> : tensor<64x32xf32>
  %s = arith.mulf %dwf, %lr : tensor<64x32xf32>
  %n = arith.subf %w, %s : tensor<64x32xf32>
  return %n, %y, %dx : tensor<64x32xf32>, tensor<16x32xbf16>, tensor<16x64xbf16>
}
func.func @evaluate(%w: tensor<64x32xf32> loc("w"), %x: tensor<16x64xbf16> loc("x")) -> tensor<16x32xbf16> {
  %c = arith.truncf %w : tensor<64x32xf32> to tensor<64x32xbf16>
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<16x32xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<16x32xbf16>) -> tensor<16x32xbf16>
  %y = linalg.matmul ins(%x, %c : tensor<16x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<16x32xbf16>) -> tensor<16x32xbf16>
  return %y : tensor<16x32xbf16>
}
"""
DELAYED = ("--recipe=delayed", "--amax-history-len=4")
STEPS = 5

on_each = pytest.mark.parametrize("target", ["cpu", *(pytest.param(chip, marks=pytest.mark.slow(one_of=3)) for chip in ("sm_89", "sm_100a"))])


def inputs():
    random = random_generator(16)
    return {
        "w": 0.1 * random.standard_normal((64, 32), F32),
        "x": random.standard_normal((STEPS, 16, 64), F32).astype(BF16),
        "g": random.standard_normal((STEPS, 16, 32), F32).astype(BF16),
    }


def compile_program(bin_dir, folder, *options, text=PROGRAM):
    folder.mkdir()
    return Program(bin_dir, folder, text, *options)


def train(program, *options, steps=STEPS, values=None):
    """The results and the state after some steps."""
    files = [f"--outputs={program.folder / 'out'}", f"--save-state={program.folder / 'state'}", "--with-carry"]
    program.run("main", values or inputs(), "--stream=x=x", "--stream=g=g", f"--steps={steps}", *files, *options)
    return load(program.folder / "out"), load(program.folder / "state")


def assert_same(actual, expected):
    for a, e in zip(actual, expected):
        assert a.keys() == e.keys()
        for key in e:
            assert_same_bits(a[key], e[key])


@on_each
@pytest.mark.parametrize("recipe", [DELAYED, (*DELAYED, "--init=current"), ("--recipe=current",), ("--recipe=row",), ("--recipe=block",), ("--recipe=mxfp8",)])
def test_every_step_is_bit_for_bit_the_same(bin_dir, tmp_path, recipe, target):
    if target == "sm_89" and "--recipe=mxfp8" in recipe:
        pytest.skip("sm_89 has no MXFP8")
    target = f"--target={target}"
    plain = compile_program(bin_dir, tmp_path / "plain", *recipe, target)
    kept = compile_program(bin_dir, tmp_path / "kept", *recipe, target, "--fp8-parameters")
    for steps in (1, 2, STEPS):
        assert_same(train(kept, steps=steps), train(plain, steps=steps))


def test_evaluation_casts_nothing_and_computes_the_same(bin_dir, tmp_path):
    plain = compile_program(bin_dir, tmp_path / "plain", *DELAYED)
    kept = compile_program(bin_dir, tmp_path / "kept", *DELAYED, "--fp8-parameters")
    train(plain)
    state = f"--state={plain.folder / 'state'}"
    values = {"w": inputs()["w"], "x": inputs()["x"][0]}
    results = []
    for program in (plain, kept):
        program.run("evaluate", values, "--steps=2", f"--outputs={program.folder / 'out'}", state)
        results.append(load(program.folder / "out"))
    assert_same(results[1:], results[:1])
    entries = {entry["name"]: entry for entry in kept.manifest["entries"]}
    written = [a["name"] for a in entries["evaluate"]["arguments"] if a["written"]]
    assert written == []
    casts = {name: entries[name]["parameters"]["casts"] for name in ("main", "evaluate")}
    names = ["weight/w/data", "weight/w/scale_inv", "weight/w/amax"]
    assert casts == {"main": [{"arguments": [0], "tensors": names}], "evaluate": [{"arguments": [0], "tensors": names[:2]}]}


def test_training_goes_on_from_a_checkpoint_that_has_no_casts(bin_dir, tmp_path):
    kept = compile_program(bin_dir, tmp_path / "kept", *DELAYED, "--fp8-parameters")
    straight = train(kept)
    begun = train(kept, steps=2)
    assert set(begun[1]) == {"scale", "amax_history", "carry.w"}
    save(tmp_path / "begun", begun[1], {"version": "1", "layout_hash": kept.manifest["state"]["layout_hash"], "columns": "[]"})
    values = inputs()
    rest = values | {"x": values["x"][2:], "g": values["g"][2:]}
    resumed = train(kept, f"--state={tmp_path / 'begun'}", steps=STEPS - 2, values=rest)
    assert_same(resumed, straight)


def test_the_state_begins_as_nan(bin_dir, tmp_path):
    """A caller that does not cast the weights gets NaN, not numbers that look right."""
    program = compile_program(bin_dir, tmp_path / "kept", "--recipe=mxfp8", "--fp8-parameters")
    tensors = program.manifest["state"]["tensors"]
    assert [(t["type"], t["initial"], t["derived"]) for t in tensors] == [("f8E4M3FN", "nan", True), ("f8E8M0FNU", "nan", True)] * 2


@pytest.mark.parametrize("target, layouts", [("sm_90a", ["data(1,0)", "data"]), ("sm_100a", ["data"])])
def test_weights_are_kept_in_the_layouts_that_products_read(bin_dir, tmp_path, target, layouts):
    """The forward product of sm_90a reads w transposed, which no step does."""
    program = compile_program(bin_dir, tmp_path / "kept", "--recipe=current", "--fp8-parameters", f"--target={target}")
    names = [f"weight/w/{name}" for name in ("data", *layouts[:-1], "scale_inv")]
    assert [t["name"] for t in program.manifest["state"]["tensors"]] == names
    evaluate = next(e for e in program.manifest["entries"] if e["name"] == "evaluate")
    assert evaluate["parameters"]["casts"][0]["tensors"] == [f"weight/w/{layouts[0]}", "weight/w/scale_inv"]
    command = [bin_dir / "fp8-compile", program.source, "-o", "-", "--emit=kernels", "--recipe=current", "--fp8-parameters", f"--target={target}"]
    kernels = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "kernel_product" in kernels and "kernel_transpose" not in kernels


def read_report(program, *options):
    import json

    path = program.folder / "report.json"
    command = [program.bin_dir / "fp8-compile", program.source, "-o", program.library, f"--report=json:{path}", *options]
    subprocess.run(command, check=True)
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    "recipe, stored",
    [
        ("current", 64 * 32 + 4),
        # One layout of 128x128 blocks serves both directions; rows and columns have their own.
        ("block", 64 * 32 + 4),
        ("row", 2 * 64 * 32 + 4 * (64 + 32)),
    ],
)
def test_the_report_says_what_is_stored_and_saved(bin_dir, tmp_path, recipe, stored):
    program = compile_program(bin_dir, tmp_path / "kept", f"--recipe={recipe}")
    plain = read_report(program, f"--recipe={recipe}")
    kept = read_report(program, f"--recipe={recipe}", "--fp8-parameters")
    assert kept["memory"]["fp8_parameter_bytes"] == stored
    assert kept["memory"]["weight_copy_bytes_saved"] == 2 * 64 * 32
    casts = 2 if recipe == "row" else 1
    assert [(p["entry"], p["site"], p["kept"]) for p in kept["memory"]["fp8_parameters"]] == [("main", "w", True)] * casts + [("evaluate", "w", True)]
    assert "fp8_parameter_bytes" not in plain["memory"]
    drop = lambda sites: [{k: v for k, v in site.items() if k != "code"} for site in sites]
    assert drop(kept["sites"]) == drop(plain["sites"])


OWN_CAST = """
func.func private @truncate(%value: f32, %scale: f32) -> i8 {
  %scaled = arith.mulf %value, %scale : f32
  %short = arith.truncf %scaled : f32 to f8E4M3FN
  %bits = arith.bitcast %short : f8E4M3FN to i8
  return %bits : i8
}
"""


def test_weights_that_a_function_of_the_recipe_casts_are_not_kept(bin_dir, tmp_path):
    (tmp_path / "p.mlir").write_text(PROGRAM + OWN_CAST)
    recipe = "--recipe=#fp8.custom<base = #fp8.current_scaling, quantize = {weight = @truncate}>"
    command = [bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so", recipe, "--fp8-parameters"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "--fp8-parameters keeps no weight in FP8; that of site 'w': a function of the recipe casts it" in done.stderr


def test_without_fp8_there_is_nothing_to_keep(bin_dir, tmp_path):
    (tmp_path / "p.mlir").write_text(PROGRAM)
    command = [bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so", "--recipe=none", "--fp8-parameters"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--fp8-parameters keeps weights in FP8, and --recipe=none casts none to FP8: choose another recipe, or leave out --fp8-parameters" in done.stderr
    assert not (tmp_path / "p.so").exists()


# A loop over layers, whose weights are slices of one argument, and the loop of its gradients, which reads them backwards.
LAYERS = """
func.func @main(%w: tensor<3x32x32xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<16x32xbf16> loc("x"), %g: tensor<16x32xbf16> loc("g"))
    -> (tensor<3x32x32xf32>, tensor<16x32xbf16>, tensor<16x32xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<16x32xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<16x32xbf16>) -> tensor<16x32xbf16>
  %e2 = tensor.empty() : tensor<32x32xbf16>
  %f2 = linalg.fill ins(%zero : bf16) outs(%e2 : tensor<32x32xbf16>) -> tensor<32x32xbf16>
  %none = arith.constant dense<0.0> : tensor<3x16x32xbf16>
  %nothing = arith.constant dense<0.0> : tensor<3x32x32xf32>
  %y, %inputs = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %x, %stack = %none) -> (tensor<16x32xbf16>, tensor<3x16x32xbf16>) {
    %slice = tensor.extract_slice %w[%i, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<3x32x32xf32> to tensor<1x32x32xf32>
    %matrix = tensor.collapse_shape %slice [[0, 1], [2]] : tensor<1x32x32xf32> into tensor<32x32xf32>
    %c = arith.truncf %matrix : tensor<32x32xf32> to tensor<32x32xbf16>
    %p = linalg.matmul ins(%h, %c : tensor<16x32xbf16>, tensor<32x32xbf16>) outs(%f : tensor<16x32xbf16>) -> tensor<16x32xbf16>
    %next = tensor.insert_slice %h into %stack[%i, 0, 0] [1, 16, 32] [1, 1, 1] : tensor<16x32xbf16> into tensor<3x16x32xbf16>
    scf.yield %p, %next : tensor<16x32xbf16>, tensor<3x16x32xbf16>
  }
  %d0 = arith.addf %y, %g : tensor<16x32xbf16>
  %dx, %dw = scf.for %i = %c0 to %c3 step %c1 iter_args(%d = %d0, %stack = %nothing) -> (tensor<16x32xbf16>, tensor<3x32x32xf32>) {
    %last = arith.subi %c2, %i : index
    %slice = tensor.extract_slice %w[%last, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<3x32x32xf32> to tensor<1x32x32xf32>
    %matrix = tensor.collapse_shape %slice [[0, 1], [2]] : tensor<1x32x32xf32> into tensor<32x32xf32>
    %c = arith.truncf %matrix : tensor<32x32xf32> to tensor<32x32xbf16>
    %h = tensor.extract_slice %inputs[%last, 0, 0] [1, 16, 32] [1, 1, 1] : tensor<3x16x32xbf16> to tensor<16x32xbf16>
    %p = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%d, %c : tensor<16x32xbf16>, tensor<32x32xbf16>) outs(%f : tensor<16x32xbf16>) -> tensor<16x32xbf16>
    %own = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%h, %d : tensor<16x32xbf16>, tensor<16x32xbf16>) outs(%f2 : tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %wide = arith.extf %own : tensor<32x32xbf16> to tensor<32x32xf32>
    %next = tensor.insert_slice %wide into %stack[%last, 0, 0] [1, 32, 32] [1, 1, 1] : tensor<32x32xf32> into tensor<3x32x32xf32>
    scf.yield %p, %next : tensor<16x32xbf16>, tensor<3x32x32xf32>
  }
  %lr = arith.constant dense<0.01> : tensor<3x32x32xf32>
  %s = arith.mulf %dw, %lr : tensor<3x32x32xf32>
  %n = arith.subf %w, %s : tensor<3x32x32xf32>
  return %n, %y, %dx : tensor<3x32x32xf32>, tensor<16x32xbf16>, tensor<16x32xbf16>
}
"""


def layer_inputs():
    random = random_generator(17)
    return {
        "w": 0.2 * random.standard_normal((3, 32, 32), F32),
        "x": random.standard_normal((STEPS, 16, 32), F32).astype(BF16),
        "g": random.standard_normal((STEPS, 16, 32), F32).astype(BF16),
    }


@on_each
@pytest.mark.parametrize("recipe", [DELAYED, ("--recipe=current",), ("--recipe=row",), ("--recipe=block",), ("--recipe=mxfp8",)])
def test_layers_of_a_loop_are_cast_as_a_stack(bin_dir, tmp_path, recipe, target):
    if target == "sm_89" and "--recipe=mxfp8" in recipe:
        pytest.skip("sm_89 has no MXFP8")
    options = (*recipe, f"--target={target}")
    plain = compile_program(bin_dir, tmp_path / "plain", *options, text=LAYERS)
    kept = compile_program(bin_dir, tmp_path / "kept", *options, "--fp8-parameters", text=LAYERS)
    assert {cast["arguments"][0] for cast in kept.manifest["entries"][0]["parameters"]["casts"]} == {0}
    for steps in (1, STEPS):
        assert_same(train(kept, steps=steps, values=layer_inputs()), train(plain, steps=steps, values=layer_inputs()))


def test_layers_of_a_loop_keep_scales_of_their_own_under_current_scaling(bin_dir, tmp_path):
    """Of a small layer, a common one, and one of zeros, which keeps the scale 1."""
    values = layer_inputs()
    values["w"] *= np.array([2**-20, 1, 0], F32)[:, None, None]
    plain = compile_program(bin_dir, tmp_path / "plain", "--recipe=current", text=LAYERS)
    kept = compile_program(bin_dir, tmp_path / "kept", "--recipe=current", "--fp8-parameters", text=LAYERS)
    tensors = [(tensor["name"], tensor["shape"]) for tensor in kept.manifest["state"]["tensors"]]
    assert tensors == [("weight/w/data(1x0x0)", [3, 32, 32]), ("weight/w/scale_inv(1x0x0)", [3, 1, 1])]
    assert_same(train(kept, steps=STEPS, values=values), train(plain, steps=STEPS, values=values))


def test_layers_of_a_loop_on_two_ranks(bin_dir, tmp_path):
    """Each rank has its part of the batch, and all have the weights, whose scales are those of the slices."""
    text = LAYERS.replace("-> (tensor<3x32x32xf32>, tensor<16x32xbf16>, tensor<16x32xbf16>) {", "-> (tensor<3x32x32xf32>, tensor<f32>) {", 1)
    text = text.replace("  return %n, %y, %dx : tensor<3x32x32xf32>, tensor<16x32xbf16>, tensor<16x32xbf16>", """  %first = tensor.extract %y[%c0, %c0] : tensor<16x32xbf16>
  %wide = arith.extf %first : bf16 to f32
  %loss = tensor.from_elements %wide : tensor<f32>
  return %n, %loss : tensor<3x32x32xf32>, tensor<f32>""")
    values = {name: value if name == "w" else np.concatenate(value[:2]) for name, value in layer_inputs().items()}
    values["w"] *= np.array([2**-20, 1, 0], F32)[:, None, None]
    options, results = ("--recipe=current", "--data-parallel=dp:x,g"), []
    for folder, more in (("plain", []), ("kept", ["--fp8-parameters"])):
        program = compile_program(bin_dir, tmp_path / folder, *options, *more, text=text)
        program.run("main", values, f"--steps={STEPS}", "--ranks=2", f"--outputs={tmp_path / 'outputs'}")
        results.append(load(tmp_path / "outputs"))
    assert [tensor["name"] for tensor in program.manifest["state"]["tensors"]] == ["weight/w/data(1x0x0)", "weight/w/scale_inv(1x0x0)"]
    for name, expected in results[0].items():
        assert_same_bits(results[1][name], expected)
