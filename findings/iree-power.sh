#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# IREE's code for the CPU computes powers of a tensor by a tensor as exponentials of logarithms: the cube of -2 is NaN, and so are the powers with exponent 0
# of 0 and of NaN.
#
# Expected: IEEE-754, 9.2.1 (pow), as in C, numpy and torch.pow: -8, 1 and 1.
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



nan = float("nan")
rows = [
    ("pow([-2, 0, nan], [3, 0, 0])", [-8.0, 1.0, 1.0], [nan, nan, nan], binary("pow.Tensor_Tensor", [-2, 0, nan], [3, 0, 0])),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
