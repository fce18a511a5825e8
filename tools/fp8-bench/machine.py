# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine that is measured, and how its peers are held to the same instructions."""

import os
import platform
import re

# Settings that keep XLA, oneDNN (both peers), ATen and MKL (PyTorch) to the instructions of an LLVM processor.
LIMITS: dict[str, dict[str, str]] = {
    "x86-64-v3": {
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    "x86-64-v4": {
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
    },
}

# Vector extensions from the widest, by the word of /proc/cpuinfo.
VECTORS = [("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2"), ("sve", "SVE"), ("asimd", "NEON")]
NARROW_TYPES = [("amx_bf16", "AMX"), ("avx512_fp16", "FP16"), ("avx512_bf16", "BF16"), ("avx512_vnni", "VNNI")]


def cores() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0))


def vectors(flags: set[str]) -> str:
    """The widest vector extension among the flags of /proc/cpuinfo: "AVX-512 (BF16, VNNI)"."""
    kind = next((name for flag, name in VECTORS if flag in flags), "unknown vectors")
    extra = [name for flag, name in NARROW_TYPES if flag in flags]
    return f"{kind} ({', '.join(extra)})" if extra else kind


def describe(llvm_name: str, cpuinfo: str) -> dict[str, object]:
    """The processor's name, LLVM's name of it, cores and vectors, from the text of /proc/cpuinfo."""
    name = re.search(r"^model name\s*: (.*)$", cpuinfo, re.M)
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", cpuinfo, re.M)
    return {
        "name": name[1].strip() if name else platform.machine(),
        "llvm_name": llvm_name,
        "cores": cores(),
        "vectors": vectors(set(flags[1].split()) if flags else set()),
    }


def environment(cpu: str) -> dict[str, str]:
    """The environment of a peer that may use the instructions of `cpu` alone."""
    values = dict(os.environ)
    for key, value in LIMITS.get(cpu, {}).items():
        values[key] = f"{values[key]} {value}" if key == "XLA_FLAGS" and key in values else value
    return values
