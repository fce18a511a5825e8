#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) computes fmod and floor_divide of floats from the rounded quotient: the remainder of 1
# by the f32 0.1 is 0 where it is almost 0.1, that of 1e9 by 3 is 0, and 1 // 0.1 is 10, for a number above a tenth.
#
# Expected: PyTorch's values. torch.fmod is C++'s std::fmod, which is exact; torch.floor_divide gives what Python's // gives.
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



rows = [
    ("fmod([1, 1e9], [0.1, 3])", [0.09999999403953552, 1.0], [0.0, 0.0], binary("fmod.Tensor", [1, 1e9], [0.1, 3])),
    ("floor_divide([1, 6], [0.1, 0.1])", [9.0, 59.0], [10.0, 60.0], binary("floor_divide", [1, 6], [0.1, 0.1])),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
