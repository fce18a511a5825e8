#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# MLIR lowers arith.truncf from f32 to f8E8M0FNU in two ways with two results: --arith-expand takes the exponent, so that 3.9
# becomes 2 and -2 becomes 2; --convert-arith-to-apfloat rounds, so that 3.9 becomes 4 and the largest f32 NaN.
#
# Expected: one result. The description of arith.truncf: "it is rounded using the provided rounding mode or the default one if
# no rounding mode is provided". Open upstream: https://github.com/llvm/llvm-project/issues/215295.
set -eu
for tool in mlir-opt-22 mlir-runner-22; do
  command -v $tool >/dev/null || { echo "there is no $tool (apt.llvm.org: mlir-22-tools)"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mlir-opt-22 --version | grep -i version
{
  cat <<'END'
func.func private @printI64(i64)
func.func private @printComma()
func.func @byte(%x: f32) {
  %narrow = arith.truncf %x : f32 to f8E8M0FNU
  %bits = arith.bitcast %narrow : f8E8M0FNU to i8
  %wide = arith.extui %bits : i8 to i64
  call @printI64(%wide) : (i64) -> ()
  call @printComma() : () -> ()
  return
}
func.func @main() {
END
  for number in 1.0 1.5 3.0 3.9 -2.0 0x7F7FFFFF; do
    echo "  %x${number//[.-]/_} = arith.constant $number : f32"
    echo "  call @byte(%x${number//[.-]/_}) : (f32) -> ()"
  done
  echo "  return }"
} >"$folder/program.mlir"

bytes() { # of the numbers, by a pass
  mlir-opt-22 "$folder/program.mlir" "$1" --convert-arith-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts |
    mlir-runner-22 -e main --entry-point-result=void \
      --shared-libs=/usr/lib/llvm-22/lib/libmlir_c_runner_utils.so,/usr/lib/llvm-22/lib/libmlir_apfloat_wrappers.so
}
expand=$(bytes --arith-expand=include-f8e8m0)
apfloat=$(bytes --convert-arith-to-apfloat)
echo "bytes of 1, 1.5, 3, 3.9, -2 and the largest f32"
echo "    expected the same twice"
echo "    seen     $expand by --arith-expand"
echo "    seen     $apfloat by --convert-arith-to-apfloat"
if [ "$expand" != "127, 127, 128, 128, 128, 254, " ] || [ "$apfloat" != "127, 128, 129, 129, 128, 255, " ]; then
  echo "the behaviour changed"
  exit 1
fi
