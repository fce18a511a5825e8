#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) computes with torch.uint8 as if it were signed: 200 / 2 is 228, and 200 as a float becomes
# 127.
#
# Expected: PyTorch's values; its table of dtypes has torch.uint8 as unsigned, and the type in the IR, ui8, says so too.
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$folder/venv/bin/python" - <<'END'
import importlib.metadata
import sys
import iree.compiler
import iree.runtime
import numpy as np

print("iree-base-compiler", importlib.metadata.version("iree-base-compiler"))


def run(body, *arrays, type="f32"):
    """Runs ATen operations on arrays %a and %b, by torch-mlir in IREE's compiler; all tensors have one type."""
    tensor = f"!torch.vtensor<[{len(arrays[0])}],{type}>"
    arguments = ", ".join(f"%{name}: {tensor}" for name, _ in zip("ab", arrays))
    text = f"func.func @f({arguments}) -> {tensor} {{ {body.replace('TENSOR', tensor)}\n return %r : {tensor} }}"
    module = iree.compiler.compile_str(text, target_backends=["llvm-cpu"], input_type="torch", extra_args=["--iree-llvmcpu-target-cpu=generic"])
    return iree.runtime.load_vm_flatbuffer(module, driver="local-sync").f(*arrays).to_host().view(arrays[0].dtype).tolist()


def binary(name, a, b, type="f32"):
    dtype = np.uint8 if type == "ui8" else np.float32
    return run(f"%r = torch.aten.{name} %a, %b : TENSOR, TENSOR -> TENSOR", np.array(a, dtype), np.array(b, dtype), type=type)



trunc = "%s = torch.constant.str \"trunc\"\n %r = torch.aten.div.Tensor_mode %a, %b, %s : TENSOR, TENSOR, !torch.str -> TENSOR"
cast = """%type = torch.constant.int 0
  %no = torch.constant.bool false
  %none = torch.constant.none
  %u = torch.aten.to.dtype %a, %type, %no, %no, %none : TENSOR, !torch.int, !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[2],ui8>
  %wide = torch.constant.int 6
  %r = torch.aten.to.dtype %u, %wide, %no, %no, %none : !torch.vtensor<[2],ui8>, !torch.int, !torch.bool, !torch.bool, !torch.none -> TENSOR"""
a, b = np.array([200, 100], np.uint8), np.array([2, 7], np.uint8)
rows = [
    ("div([200, 100], [2, 7], rounding_mode='trunc')", [100, 14], [228, 14], run(trunc, a, b, type="ui8")),
    ("[200.0, 100.0] to uint8 and back", [200.0, 100.0], [127.0, 100.0], run(cast, a.astype(np.float32))),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
