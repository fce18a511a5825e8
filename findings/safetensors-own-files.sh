#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# safetensors refuses files that it wrote itself: safetensors.numpy saves bf16 and FP8 arrays of ml_dtypes and cannot load them, and
# safetensors.torch saves E8M0 and E2M1 and loads them with safe_open, and not with load. A slice of E2M1 has
# twice the elements of the tensor that the same file returns.
#
# Expected: load returns what save was given, as it does for the other types.
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet safetensors==0.8.0 ml_dtypes==0.6.0 numpy==2.4.6 packaging==26.4 torch==2.15.0 # with the libraries of CUDA that torch is linked with
"$folder/venv/bin/python" - <<'END'
import sys
import tempfile
import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch

print("safetensors", safetensors.__version__, "torch", torch.__version__)


def loaded(module, tensor):
    try:
        return module.load(module.save({"x": tensor}))["x"].dtype
    except KeyError as error:
        return f"KeyError {error}"


def shapes(tensor):
    with tempfile.NamedTemporaryFile() as file:
        safetensors.torch.save_file({"x": tensor}, file.name)
        with safetensors.safe_open(file.name, "pt") as opened:
            return list(opened.get_tensor("x").shape), opened.get_slice("x").get_shape()


data = torch.arange(4, dtype=torch.uint8)
rows = [
    ("numpy, bf16", "bfloat16", "KeyError 'BF16'", loaded(safetensors.numpy, np.ones(4, ml_dtypes.bfloat16))),
    ("numpy, E4M3", "float8_e4m3fn", "KeyError 'F8_E4M3'", loaded(safetensors.numpy, np.ones(4, ml_dtypes.float8_e4m3fn))),
    ("torch, E8M0", torch.float8_e8m0fnu, "KeyError 'F8_E8M0'", loaded(safetensors.torch, data.view(torch.float8_e8m0fnu))),
    ("torch, E2M1", torch.float4_e2m1fn_x2, "KeyError 'F4'", loaded(safetensors.torch, data.view(torch.float4_e2m1fn_x2))),
    ("E2M1 of shape [4]: tensor, slice", ([4], [4]), ([4], [8]), shapes(data.view(torch.float4_e2m1fn_x2))),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
