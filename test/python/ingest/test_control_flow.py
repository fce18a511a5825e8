# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FP8 products inside loops and branches: one site, amaxes combined with max, nothing recorded
by code that did not run.

Every program computes some of y[i] = x[i] · w, i < 4, and leaves the rest of y at 0.
"""
import numpy as np
import pytest

import reference
from harness import BF16, E4M3, F32, Program, assert_same_bits, load, random_generator

PROGRAM = """
func.func private @product(%xs: tensor<4x6x10xbf16>, %w: tensor<10x8xf32>, %ys: tensor<4x6x8xf32>, %i: index)
    -> tensor<6x8xf32> {
  %x = tensor.extract_slice %xs[%i, 0, 0] [1, 6, 10] [1, 1, 1] : tensor<4x6x10xbf16> to tensor<6x10xbf16>
  %b = arith.truncf %w : tensor<10x8xf32> to tensor<10x8xbf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = linalg.matmul ins(%x, %b : tensor<6x10xbf16>, tensor<10x8xbf16>) outs(%f : tensor<6x8xf32>)
      -> tensor<6x8xf32> loc("net/fc/dot_general")
  return %y : tensor<6x8xf32>
}
func.func private @layer(%xs: tensor<4x6x10xbf16>, %w: tensor<10x8xf32>, %ys: tensor<4x6x8xf32>, %i: index)
    -> tensor<4x6x8xf32> {
  %y = call @product(%xs, %w, %ys, %i)
      : (tensor<4x6x10xbf16>, tensor<10x8xf32>, tensor<4x6x8xf32>, index) -> tensor<6x8xf32>
  %r = tensor.insert_slice %y into %ys[%i, 0, 0] [1, 6, 8] [1, 1, 1] : tensor<6x8xf32> into tensor<4x6x8xf32>
  return %r : tensor<4x6x8xf32>
}
func.func @main(%w: tensor<10x8xf32>, %xs: tensor<4x6x10xbf16>, %count: tensor<i32>) -> tensor<4x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<4x6x8xf32>
  %ys = linalg.fill ins(%zero : f32) outs(%none : tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %n32 = tensor.extract %count[] : tensor<i32>
  %n = arith.index_cast %n32 : i32 to index
  BODY
  return %r : tensor<4x6x8xf32>
}
"""
LAYER = "func.call @layer(%xs, %w, {0}, {1}) : (tensor<4x6x10xbf16>, tensor<10x8xf32>, tensor<4x6x8xf32>, index) -> tensor<4x6x8xf32>"
PRODUCT = LAYER.replace("@layer", "@product").replace("-> tensor<4x6x8xf32>", "-> tensor<6x8xf32>")

FOR = """
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %ys) -> (tensor<4x6x8xf32>) {
    %1 = LAYER(%a, %i)
    scf.yield %1 : tensor<4x6x8xf32>
  }"""
# The weight goes through the loop, as in graphs from JAX; the first region computes too.
WHILE = """
  %r, %k, %u = scf.while (%a = %ys, %i = %c0, %v = %w)
      : (tensor<4x6x8xf32>, index, tensor<10x8xf32>) -> (tensor<4x6x8xf32>, index, tensor<10x8xf32>) {
    %more = arith.cmpi ult, %i, %n : index
    scf.condition(%more) %a, %i, %v : tensor<4x6x8xf32>, index, tensor<10x8xf32>
  } do {
  ^bb0(%a: tensor<4x6x8xf32>, %i: index, %v: tensor<10x8xf32>):
    %1 = LAYER(%a, %i)
    %next = arith.addi %i, %c1 : index
    scf.yield %1, %next, %v : tensor<4x6x8xf32>, index, tensor<10x8xf32>
  }""".replace("LAYER(%a, %i)", LAYER.format("%a", "%i").replace("%w", "%v"))
DO_WHILE = """
  %r, %k = scf.while (%a = %ys, %i = %c0) : (tensor<4x6x8xf32>, index) -> (tensor<4x6x8xf32>, index) {
    %1 = LAYER(%a, %i)
    %next = arith.addi %i, %c1 : index
    %more = arith.cmpi ult, %next, %n : index
    scf.condition(%more) %1, %next : tensor<4x6x8xf32>, index
  } do {
  ^bb0(%a: tensor<4x6x8xf32>, %i: index):
    scf.yield %a, %i : tensor<4x6x8xf32>, index
  }"""
IF = """
  %some = arith.cmpi ne, %n, %c0 : index
  %r = scf.if %some -> tensor<4x6x8xf32> {
    %1 = LAYER(%ys, %c0)
    scf.yield %1 : tensor<4x6x8xf32>
  } else {
    scf.yield %ys : tensor<4x6x8xf32>
  }"""
SWITCH = """
  %r = scf.index_switch %n -> tensor<4x6x8xf32>
  case 1 {
    %1 = LAYER(%ys, %c0)
    scf.yield %1 : tensor<4x6x8xf32>
  }
  case 2 {
    %1 = LAYER(%ys, %c0)
    %2 = LAYER(%1, %c1)
    scf.yield %2 : tensor<4x6x8xf32>
  }
  default {
    scf.yield %ys : tensor<4x6x8xf32>
  }"""
FORALL = """
  %r = scf.forall (%i) in (4) shared_outs(%a = %ys) -> (tensor<4x6x8xf32>) {
    %1 = PRODUCT(%a, %i)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %a[%i, 0, 0] [1, 6, 8] [1, 1, 1] : tensor<6x8xf32> into tensor<4x6x8xf32>
    }
  }"""
# Two iterations of the outer loop, the second of which ends inside.
NESTED = """
  %r = scf.for %o = %c0 to %n step %c2 iter_args(%a = %ys) -> (tensor<4x6x8xf32>) {
    %1 = LAYER(%a, %o)
    %i = arith.addi %o, %c1 : index
    %inside = arith.cmpi ult, %i, %n : index
    %2 = scf.if %inside -> tensor<4x6x8xf32> {
      %3 = scf.for %j = %i to %n step %c4 iter_args(%b = %1) -> (tensor<4x6x8xf32>) {
        %4 = LAYER(%b, %j)
        scf.yield %4 : tensor<4x6x8xf32>
      }
      scf.yield %3 : tensor<4x6x8xf32>
    } else {
      scf.yield %1 : tensor<4x6x8xf32>
    }
    scf.yield %2 : tensor<4x6x8xf32>
  }"""

REGION = """
  %r = scf.execute_region -> tensor<4x6x8xf32> {
    %1 = LAYER(%ys, %c0)
    scf.yield %1 : tensor<4x6x8xf32>
  }"""

# No region at all.
UNROLLED = """
  %1 = LAYER(%ys, %c0)
  %2 = LAYER(%1, %c1)
  %r = LAYER(%2, %c2)
"""

# How many of the products run, by the value of %count.
FORMS = {
    "unrolled": (UNROLLED, {0: 3}),
    "for": (FOR, {0: 0, 1: 1, 3: 3}),
    "while": (WHILE, {0: 0, 2: 2}),
    "do_while": (DO_WHILE, {0: 1, 1: 1, 4: 4}),
    "if": (IF, {0: 0, 1: 1}),
    "switch": (SWITCH, {0: 0, 1: 1, 2: 2}),
    "forall": (FORALL, {0: 4}),
    "region": (REGION, {0: 1}),
    "nested": (NESTED, {0: 0, 3: 3, 4: 4}),
}


def expand(body):
    """Fills in the calls: LAYER(accumulator, index)."""
    for name, call in (("LAYER", LAYER), ("PRODUCT", PRODUCT)):
        while f"{name}(" in body:
            before, after = body.split(f"{name}(", 1)
            arguments, after = after.split(")", 1)
            body = before + call.format(*arguments.split(", ")) + after
    return PROGRAM.replace("BODY", body)


@pytest.fixture(scope="module", params=FORMS)
def form(request, bin_dir, tmp_path_factory):
    body, counts = FORMS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return counts, lambda *options: Program(bin_dir, folder, expand(body), *options)


def make_inputs(salt):
    rng = random_generator(70, salt)
    w = rng.uniform(-1, 1, [10, 8]).astype(F32)
    x = (rng.uniform(-1, 1, [4, 6, 10]) * np.array([1, 9, 3, 40])[:, None, None]).astype(BF16)
    return w, x


def expected_results(w, x, ran, scales):
    """y, where `scales(kind, tensor)` is the scale a tensor is cast with."""
    y = np.zeros([4, 6, 8], F32)
    wb = w.astype(BF16)
    ws = scales("weight", wb)
    wq = reference.cast(wb, ws, E4M3)
    for i in range(ran):
        xs = scales("input", x[i])
        xq = reference.cast(x[i], xs, E4M3)
        y[i] = reference.scaled_matmul(xq, wq.T, reference.scale_inv(xs), reference.scale_inv(ws))
    return y


@pytest.mark.parametrize("init", ["one", pytest.param("current", marks=pytest.mark.slow)])
def test_delayed_scaling(form, init):
    counts, compile_form = form
    program = compile_form("--calibrate", "--amax-history-len=3", f"--init={init}")
    columns = [c["tensor"] for c in program.manifest["state"]["columns"]]
    assert sorted(columns) == ["input", "weight"]
    assert {s["site"] for s in program.manifest["sites"]} == {"net/fc"}
    state, outputs = program.folder / "state", program.folder / "outputs"
    for count, ran in counts.items():
        scale, history = np.ones(2, F32), np.zeros([3, 2], F32)
        options = []
        for step in range(3):
            w, x = make_inputs(step)
            inputs = [w, x, np.array(count, np.int32)]
            program.run("main", inputs, f"--outputs={outputs}", f"--save-state={state}", *options)
            options = [f"--state={state}"]

            def scale_of(kind, tensor, history=history, scale=scale):
                column = columns.index(kind)
                if init == "current" and (history[:, column] == 0).all():
                    return reference.delayed_scale(reference.amax(tensor), E4M3)
                return scale[column]

            assert_same_bits(load(outputs)["0"], expected_results(w, x, ran, scale_of))

            # A matmul that did not run leaves no trace, even where the weight is cast before the loop.
            amaxes = {"input": reference.amax(x[:ran]), "weight": reference.amax(w.astype(BF16)) if ran else np.float32(0)}
            scale, history = reference.update(scale, history, [0, 1], [amaxes[c] for c in columns], [E4M3, E4M3])
            saved = load(state)
            assert_same_bits(saved["scale"], scale)
            assert_same_bits(saved["amax_history"], history)


def test_zeros_count_where_a_mask_tells_what_ran(form):
    """With --executed-mask=true a product of zeros rotates its 0 in, one that did not run nothing."""
    counts, compile_form = form
    program = compile_form("--calibrate", "--amax-history-len=3", "--executed-mask=true")
    columns = [c["tensor"] for c in program.manifest["state"]["columns"]]
    w, x = make_inputs(20)
    for count, ran in counts.items():
        state, options = program.folder / "state", []
        scale, history = np.ones(2, F32), np.zeros([3, 2], F32)
        for factor in (1, 0, 0):
            program.run("main", [w, x * BF16.type(factor), np.array(count, np.int32)], f"--save-state={state}", *options)
            options = [f"--state={state}"]
            amaxes = {"input": reference.amax(x[:ran] * BF16.type(factor)), "weight": reference.amax(w.astype(BF16))}
            for column, name in enumerate(columns):
                recorded = [amaxes[name]] if ran else []
                scale[column], history[:, column] = reference.update_column(
                    scale[column], history[:, column], recorded, E4M3, executed_mask=True)
            assert_same_bits(load(state)["scale"], scale)
            assert_same_bits(load(state)["amax_history"], history)
        if ran:  # the amax of the first step has left the history: nothing to take a scale from
            assert history[:, columns.index("input")].tolist() == [0, 0, 0]


def test_an_amax_that_is_not_finite_is_ignored_with_all_it_is_combined_with(form):
    """Several amaxes of a column are one, their maximum, before --ignore-non-finite looks at it: what
    a step records must not hang on whether its microbatches are a loop."""
    counts, compile_form = form
    program = compile_form("--calibrate", "--amax-history-len=3", "--ignore-non-finite=true")
    tensors = [c["tensor"] for c in program.manifest["state"]["columns"]]
    inputs, weights, state = tensors.index("input"), tensors.index("weight"), program.folder / "state"
    for count, ran in counts.items():
        w, x = make_inputs(30)
        x[1, 2, 3] = np.inf
        program.run("main", [w, x, np.array(count, np.int32)], f"--save-state={state}")
        scale, history = (load(state)[name] for name in ("scale", "amax_history"))
        amax = reference.amax(x[0]) if ran == 1 else 0
        assert history[:, inputs].tolist() == [0, 0, amax]
        assert scale[inputs] == (np.float32(448) / amax if ran == 1 else 1)
        assert history[2, weights] == (reference.amax(w.astype(BF16)) if ran else 0)


def test_current_scaling(form):
    counts, compile_form = form
    program = compile_form("--recipe=current")
    for count, ran in counts.items():
        w, x = make_inputs(9)
        (y,) = program.call("main", w, x, np.array(count, np.int32))
        assert_same_bits(y, expected_results(w, x, ran, lambda _, tensor: reference.current_scale(reference.amax(tensor), E4M3)))


def test_no_recipe(form):
    counts, compile_form = form
    program = compile_form("--recipe=none")
    for count, ran in counts.items():
        w, x = make_inputs(5)
        (y,) = program.call("main", w, x, np.array(count, np.int32))
        expected = np.zeros([4, 6, 8], F32)
        expected[:ran] = reference.dot(x[:ran], np.broadcast_to(w.astype(BF16).T, [ran, 8, 10]))
        assert_same_bits(y, expected)


@pytest.mark.parametrize("body", [FOR, WHILE, NESTED])
def test_a_weight_is_cast_once_before_the_loop(body, run, tmp_path):
    (tmp_path / "program.mlir").write_text(expand(body))
    ir = run("fp8-compile", tmp_path / "program.mlir", "-o", "-", "--emit=batching", "--calibrate").stdout
    before, inside = ir.split("scf.while" if body is WHILE else "scf.for", 1)
    assert before.count("fp8.quantize") == 1
    assert "tensor<10x8xf8E4M3FN>" in before and "tensor<10x8xbf16>" not in inside
    assert not [line for line in inside.split("\n") if "fp8.quantize" in line and "tensor<10x8x" in line]


def test_a_loop_on_a_carried_argument_works_in_place(bin_dir, tmp_path):
    """Every row gets 1, 2, … added in turn; no copy of the tensor is made, neither out nor back."""
    text = """
func.func @main(%x: tensor<64x16xf32> {tf.aliasing_output = 0 : i32}) -> tensor<64x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 64 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<64x16xf32>) {
    %row = tensor.extract_slice %a[%i, 0] [1, 16] [1, 1] : tensor<64x16xf32> to tensor<16xf32>
    %integer = arith.index_cast %i : index to i32
    %number = arith.sitofp %integer : i32 to f32
    %sum = linalg.map ins(%row : tensor<16xf32>) outs(%row : tensor<16xf32>) (%e: f32, %init: f32) {
      %s = arith.addf %e, %number : f32
      linalg.yield %s : f32
    }
    %c = tensor.insert_slice %sum into %a[%i, 0] [1, 16] [1, 1] : tensor<16xf32> into tensor<64x16xf32>
    scf.yield %c : tensor<64x16xf32>
  }
  return %r : tensor<64x16xf32>
}
"""
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    x = np.arange(64 * 16, dtype=F32).reshape(64, 16)
    program.run("main", [x], "--steps=3", f"--outputs={tmp_path / 'outputs'}")
    np.testing.assert_array_equal(load(tmp_path / "outputs")["0"], x + 3 * np.arange(64, dtype=F32)[:, None])
    assert program.manifest["entries"][0]["workspace_bytes"] < x.nbytes
