#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiles the kernels of this folder to PTX: ptx/NAME.sm_ARCH.ptx, committed, so that
# tests need no CUDA. Made with nvcc 13.0 (V13.0.88, PTX ISA 9.0) and the CCCL 3.0 that
# comes with it. `./make_ptx.sh [NAME…]` makes all or those named; $NVCC names another
# nvcc. Where ptxas lies beside nvcc, it must accept what was made. Only debug has debug information: no test
# reads that of others.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
NVCC=${NVCC:-/usr/local/cuda/bin/nvcc}
PTXAS=${PTXAS:-$(dirname "$NVCC")/ptxas}

# name, architectures, options beside -O3
KERNELS="
elementwise    sm_89,sm_120a
reductions     sm_89,sm_90a
groups         sm_89,sm_90a
clusters       sm_90a
cub_block      sm_89
wmma           sm_89
fp8_convert    sm_89,sm_90a,sm_100a
narrow_convert sm_120a
half_math      sm_89,sm_90a
math           sm_89
integers       sm_89
control        sm_89
debug          sm_90a                -G
pipelines      sm_89,sm_90a
tma            sm_90a,sm_100a
tensor_cores   sm_89,sm_90a
wgmma          sm_90a
dependent      sm_90a
block_scaled   sm_120a
tcgen05        sm_100a
"

# Debug information names the folder of the source: let it be the same everywhere.
NEUTRAL=${TMPDIR:-/tmp}/emulator-kernels

make() { # name architecture options…
    local name=$1 arch=$2 output=$PWD/ptx/$1.$2.ptx
    shift 2
    (cd "$NEUTRAL" && "$NVCC" -std=c++17 -O3 -arch="$arch" -ptx "$@" "$name.cu" -o "$output")
    sed -i "s|\"$NEUTRAL/|\"|" "$output"
    [[ ! -x $PTXAS ]] || "$PTXAS" -arch="$arch" "$output" -o /dev/null
    echo "ptx/$name.$arch.ptx"
}

mkdir -p ptx "$NEUTRAL"
cp ./*.cu "$NEUTRAL"
while read -r name architectures options; do
    [[ -n $name ]] || continue
    [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
    # shellcheck disable=SC2086
    for arch in ${architectures//,/ }; do make "$name" "$arch" $options; done
done <<<"$KERNELS"
