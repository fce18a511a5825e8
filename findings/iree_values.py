# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of ATen operations by torch-mlir in IREE's compiler, on the CPU."""

import importlib.metadata

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
