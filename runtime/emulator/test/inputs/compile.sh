#!/bin/sh
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Makes the PTX beside its sources again, by nvcc 13 and clang 22. They are compiled in a
# folder of always the same name, which the bytes of debugging information hold; where
# it stands as text it is taken out. No build or test needs this: the files are committed.
set -e
here=$(cd "$(dirname "$0")" && pwd)
neutral=${TMPDIR:-/tmp}/fp8emu
mkdir -p "$neutral"
cp "$here"/*.cu "$here"/*.cpp "$neutral"
cd "$neutral"
cuda() { # NAME ARCHITECTURE [OPTION...]
  name=$1 arch=$2
  shift 2
  nvcc -std=c++17 -ptx -arch="$arch" "$@" "$name.cu" -o "$here/$name.$arch.ptx"
}
cpp() { # NAME [OPTION...]
  name=$1
  shift
  clang++-22 --target=nvptx64-nvidia-cuda -march=sm_90a -Xclang -target-feature -Xclang +ptx86 \
    -std=c++17 -fno-exceptions -fno-rtti "$@" -S "$name.cpp" -o "$here/$name.llvm.ptx"
}
cuda branches sm_89 -lineinfo
cuda data sm_90a
cuda debug sm_120a -G
cuda fp8 sm_89
cuda groups sm_90a -lineinfo
cuda hopper sm_90a
cpp calls -O1 -g
cpp data -O2
cpp loops -O1 -gline-tables-only
sed -i "s|\"$neutral/|\"|" "$here"/*.ptx
