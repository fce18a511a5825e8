# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiles kernels.py to PTX without a GPU: ptx/NAME.sm_ARCH.ptx and launches.json, which
# says how to launch each: threads, shared memory, arguments in their order. Made with
# Triton 3.9.0 from PyPI; `python make_ptx.py` in an environment that has it.

import json
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # no test reads it
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = pathlib.Path(__file__).resolve().parent
# Debug information names the folder of the source: let it be the same everywhere.
NEUTRAL = pathlib.Path(tempfile.gettempdir(), "emulator-kernels")
NEUTRAL.mkdir(exist_ok=True)
shutil.copy(HERE / "kernels.py", NEUTRAL)
sys.path.insert(0, str(NEUTRAL))
import kernels  # noqa: E402 - found by the path above

# name: (function, arguments with their types, constants, warps, stages, architectures)
# Types as Triton writes them; ":16" says that a value or pointer is a multiple of 16.
BOTH = (89, 90)
STRIDES = "M:i32:16 N:i32:16 K:i32:16 stride_a:i32:16 stride_b:i32:16 stride_c:i32:16"
FP8_ARGUMENTS = "a:*fp8e4nv:16 b:*fp8e4nv:16 c:*bf16:16 scale:*fp32:16 " + STRIDES
KERNELS = {
    "softmax": ("softmax", "x:*fp32:16 y:*fp32:16 columns:i32 stride:i32:16", dict(BLOCK=1024), 4, 2, BOTH),
    "layer_norm": ("layer_norm", "x:*bf16:16 weight:*fp32:16 bias:*fp32:16 y:*bf16:16 mean_out:*fp32:16 columns:i32 "
                   "epsilon:fp32", dict(BLOCK=512), 4, 2, BOTH),
    "matmul_bf16": ("matmul", "a:*bf16:16 b:*bf16:16 c:*bf16:16 " + STRIDES, dict(BM=64, BN=64, BK=32), 4, 3, BOTH),
    "matmul_f16_wide": ("matmul", "a:*fp16:16 b:*fp16:16 c:*fp32:16 " + STRIDES, dict(BM=128, BN=64, BK=64), 8, 3, BOTH),
    "matmul_tf32": ("matmul", "a:*fp32:16 b:*fp32:16 c:*fp32:16 " + STRIDES, dict(BM=32, BN=32, BK=32), 4, 2, BOTH),
    "matmul_fp8": ("matmul_fp8", FP8_ARGUMENTS, dict(BM=64, BN=64, BK=64), 4, 3, BOTH),
    "matmul_fp8_large": ("matmul_fp8", FP8_ARGUMENTS, dict(BM=128, BN=128, BK=128), 8, 3, BOTH),
    "matmul_descriptor": ("matmul_descriptor", "a:*bf16:16 b:*bf16:16 c:*bf16:16 M:i32:16 N:i32:16 K:i32:16",
                          dict(BM=64, BN=64, BK=64), 4, 3, (90,)),
    "scaled_dot": ("scaled_dot", "a:*fp8e4nv:16 a_scale:*u8:16 b:*fp8e4nv:16 b_scale:*u8:16 c:*fp32:16 K:i32:16",
                   dict(BM=64, BN=64, BK=64), 4, 2, BOTH),
    "quantize": ("quantize", "x:*bf16:16 y:*fp8e4nv:16 amax:*fp32:16 scale:*fp32:16 n:i32", dict(BLOCK=1024), 4, 2, BOTH),
    "running_sum": ("running_sum", "x:*i32:16 y:*i32:16", dict(BLOCK=256), 4, 2, BOTH),
}


def compile_kernel(function, arguments, constants, warps, stages, arch):
    signature, attributes, names = {}, {}, []
    for position, argument in enumerate(arguments.split()):
        name, kind, *multiple = argument.split(":")
        signature[name] = kind
        names.append([name, kind])
        if multiple:
            attributes[(position,)] = [["tt.divisibility", int(multiple[0])]]
    signature.update({name: "constexpr" for name in constants})
    source = ASTSource(getattr(kernels, function), signature, constants, attributes)
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options), names


def launch(compiled, names, constants):
    """The facts that a launcher must know. Behind the arguments named, Triton passes two pointers: to scratch
    memory in global memory, of global_scratch bytes per block, and to a profiler's."""
    data = compiled.metadata
    return {"kernel": data.name, "threads": 32 * data.num_warps, "shared": data.shared,
            "cluster": list(getattr(data, "cluster_dims", (1, 1, 1))), "global_scratch": data.global_scratch_size,
            "global_scratch_align": data.global_scratch_align, "arguments": names, "constants": constants}


def main():
    launches = {}
    (HERE / "ptx").mkdir(exist_ok=True)
    for name, (function, arguments, constants, warps, stages, architectures) in KERNELS.items():
        for arch in architectures:
            compiled, names = compile_kernel(function, arguments, constants, warps, stages, arch)
            file = "%s.sm_%s.ptx" % (name, "90a" if arch == 90 else arch)
            text = compiled.asm["ptx"].replace(str(pathlib.Path(triton.__file__).parent.parent), "")
            (HERE / "ptx" / file).write_text(text)
            launches[file] = launch(compiled, names, constants)
            print(file, len(text))
    lines = ["%s: %s" % (json.dumps(file), json.dumps(launch)) for file, launch in launches.items()]
    (HERE / "launches.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


main()
