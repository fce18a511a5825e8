#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiles kernels.c to ptx/kernels.sm_ARCH.ptx with Clang 22 (22.1.8); committed, so that
# tests need no Clang. $CLANG names another.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
CLANG=${CLANG:-/usr/lib/llvm-22/bin/clang-22}

mkdir -p ptx
for arch in sm_89 sm_90a; do
    # Blocks have no more than 256 threads; loops stay loops, to keep the text short.
    "$CLANG" --target=nvptx64-nvidia-cuda -march=$arch -Xclang -target-feature -Xclang +ptx85 -nogpulib \
        -O2 -fno-unroll-loops -Wno-unused -S kernels.c -o ptx/kernels.$arch.ptx
    echo ptx/kernels.$arch.ptx
done
