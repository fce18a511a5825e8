# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stack that one loop fills and another casts slice by slice holds FP8 bytes, in one function too.

Every program is compiled twice: as it is, and with the stack among its results, which keeps it in
bf16. All other results and the state must agree bit for bit.
"""
import re

import numpy as np
import pytest

from harness import BF16, F32, Program, load, random_generator

LAYERS, M, K, N = 4, 6, 16, 8
XS, WS, TS = f"tensor<{LAYERS}x{M}x{K}xbf16>", f"tensor<{LAYERS}x{K}x{N}xf32>", f"tensor<{LAYERS}x{M}x{N}xf32>"
X, B, T, W = f"tensor<{M}x{K}xbf16>", f"tensor<{K}x{N}xbf16>", f"tensor<{M}x{N}xf32>", f"tensor<{K}x{N}xf32>"
D = f"tensor<{M}x{N}xbf16>"

# y = max(x, 0) · w for each layer; then, from the last layer to the first, dw = max(x, 0)ᵀ · (y - t).
# The stack of max(x, 0) is filled by the first loop, for the second.
PROGRAM = f"""
func.func @main(%ws: {WS} loc("w"), %xs: {XS}, %ts: {TS}) -> (RESULTS) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant {LAYERS - 1} : index
  %layers = arith.constant {LAYERS} : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0.0 : bf16
  %none = tensor.splat %low : {X}
  %es = tensor.empty() : {XS}
  %as0 = linalg.fill ins(%low : bf16) outs(%es : {XS}) -> {XS}
  %et = tensor.empty() : {TS}
  %ys0 = linalg.fill ins(%zero : f32) outs(%et : {TS}) -> {TS}
  %ew = tensor.empty() : {WS}
  %dws0 = linalg.fill ins(%zero : f32) outs(%ew : {WS}) -> {WS}
  %ey = tensor.empty() : {T}
  %fy = linalg.fill ins(%zero : f32) outs(%ey : {T}) -> {T}
  %ed = tensor.empty() : {W}
  %fd = linalg.fill ins(%zero : f32) outs(%ed : {W}) -> {W}
  FORWARD
  %dws = scf.for %j = %c0 to %layers step %c1 iter_args(%old = %dws0) -> ({WS}) {{
    %i = arith.subi %last, %j : index
    %a = tensor.extract_slice %as[%i, 0, 0] [1, {M}, {K}] [1, 1, 1] : {XS} to {X}
    %y = tensor.extract_slice %ys[%i, 0, 0] [1, {M}, {N}] [1, 1, 1] : {TS} to {T}
    %t = tensor.extract_slice %ts[%i, 0, 0] [1, {M}, {N}] [1, 1, 1] : {TS} to {T}
    %d32 = arith.subf %y, %t : {T}
    %d = arith.truncf %d32 : {T} to {D}
    %dw = linalg.matmul indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (m, n)>,
        affine_map<(k, n, m) -> (k, n)>] ins(%a, %d : {X}, {D}) outs(%fd : {W}) -> {W}
        loc("jit(f)/transpose(jvp())/while/body/fc/dot_general")
    %new = tensor.insert_slice %dw into %old[%i, 0, 0] [1, {K}, {N}] [1, 1, 1] : {W} into {WS}
    scf.yield %new : {WS}
  }}
  return %dws, %ysSTACK : RESULTS
}}
"""
BODY = f"""
    %x = tensor.extract_slice %xs[%i, 0, 0] [1, {M}, {K}] [1, 1, 1] : {XS} to {X}
    %a = arith.maximumf %x, %none : {X}
    %w = tensor.extract_slice %ws[%i, 0, 0] [1, {K}, {N}] [1, 1, 1] : {WS} to {W}
    %b = arith.truncf %w : {W} to {B}
    %y = linalg.matmul ins(%a, %b : {X}, {B}) outs(%fy : {T}) -> {T} loc("jit(f)/jvp()/while/body/fc/dot_general")
    %as1 = tensor.insert_slice %a into %oldas[%i, 0, 0] [1, {M}, {K}] [1, 1, 1] : {X} into {XS}
    %ys1 = tensor.insert_slice %y into %oldys[%i, 0, 0] [1, {M}, {N}] [1, 1, 1] : {T} into {TS}
"""
FOR = f"""
  %as, %ys = scf.for %i = %c0 to %layers step %c1 iter_args(%oldas = %as0, %oldys = %ys0) -> ({XS}, {TS}) {{
    {BODY}
    scf.yield %as1, %ys1 : {XS}, {TS}
  }}
"""
# As JAX writes it.
WHILE = f"""
  %start = arith.constant dense<0> : tensor<i32>
  %end = arith.constant dense<{LAYERS}> : tensor<i32>
  %one = arith.constant dense<1> : tensor<i32>
  %counter, %as, %ys = scf.while (%k = %start, %olda = %as0, %oldy = %ys0) : (tensor<i32>, {XS}, {TS}) -> (tensor<i32>, {XS}, {TS}) {{
    %less = arith.cmpi slt, %k, %end : tensor<i32>
    %more = tensor.extract %less[] : tensor<i1>
    scf.condition(%more) %k, %olda, %oldy : tensor<i32>, {XS}, {TS}
  }} do {{
  ^bb0(%k: tensor<i32>, %oldas: {XS}, %oldys: {TS}):
    %k32 = tensor.extract %k[] : tensor<i32>
    %i = arith.index_cast %k32 : i32 to index
    {BODY}
    %next = arith.addi %k, %one : tensor<i32>
    scf.yield %next, %as1, %ys1 : tensor<i32>, {XS}, {TS}
  }}
"""
RECIPES = {
    "delayed": ["--recipe=delayed", "--amax-history-len=3"],
    "own amaxes": ["--recipe=delayed", "--amax-history-len=3", "--init=current"],
    "executed mask": ["--recipe=delayed", "--amax-history-len=3", "--executed-mask=true"],
    "current": ["--recipe=current"],
}


def write(loop, with_stack):
    kinds = [WS, TS] + [XS] * with_stack
    text = PROGRAM.replace("RESULTS", ", ".join(kinds)).replace("STACK", ", %as" if with_stack else "")
    text = re.sub(r"return (.*) : .*", lambda found: f"return {found[1]} : {', '.join(kinds)}", text)
    return text.replace("FORWARD", loop)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("loop", [FOR, WHILE], ids=["for", "while"])
def test_bytes_change_nothing(loop, recipe, bin_dir, tmp_path, run):
    results, states = [], []
    for with_stack in (False, True):
        folder = tmp_path / str(with_stack)
        folder.mkdir()
        program = Program(bin_dir, folder, write(loop, with_stack), *RECIPES[recipe])
        assert [s["decision"] for s in program.manifest["sites"]] == ["fp8", "fp8"]
        ir = run("fp8-compile", program.source, "-o", "-", "--emit=recipe", *RECIPES[recipe]).stdout
        assert (f"{LAYERS}x{M}x{K}xf8E4M3FN" in ir) == (not with_stack)
        assert ir.count("fp8.quantize") == (3 if not with_stack else 4)

        rng = random_generator(95)
        growth = np.array([1, 5, 0.2], F32).reshape(3, 1, 1, 1)
        w, x, t = (rng.standard_normal(shape).astype(F32) for shape in ([LAYERS, K, N], [3, LAYERS, M, K], [3, LAYERS, M, N]))
        options = ["--stream=1=x", "--stream=2=t", "--steps=3", f"--outputs={folder / 'out'}", f"--save-state={folder / 'state'}"]
        program.run("main", {"0": w, "x": (x * growth).astype(BF16), "t": t}, *options)
        results.append(load(folder / "out"))
        states.append(load(folder / "state"))
    for key in ("0", "1"):
        assert results[0][key].tobytes() == results[1][key].tobytes(), key
    assert np.any(results[0]["0"])
    assert states[0].keys() == states[1].keys()
    for key in states[0]:
        assert states[0][key].tobytes() == states[1][key].tobytes(), key


def test_an_amax_that_only_backward_records_is_kept(bin_dir, tmp_path, run):
    """Forward's product stays in bf16 and casts nothing: the stack does, too."""
    options = [*RECIPES["delayed"], "--fprop=bf16"]
    program = Program(bin_dir, tmp_path, write(FOR, False), *options)
    ir = run("fp8-compile", program.source, "-o", "-", "--emit=recipe", *options).stdout
    assert f"{LAYERS}x{M}x{K}xf8E4M3FN" not in ir and ir.count("record_amax") == 2
