#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# MLIR's --convert-arith-to-apfloat refuses f64: it widens or truncates its 64 bits to i64, and the verifier does not take a cast
# from i64 to i64. Narrower types work, so f64 cannot even be the result of a conversion.
#
# Expected: a call of the library, for the pass's description ("Convert Arith ops to APFloat runtime library calls") has no such limit.
set -eu
command -v mlir-opt-22 >/dev/null || { echo "there is no mlir-opt-22 (apt.llvm.org: mlir-22-tools)"; exit 77; }
mlir-opt-22 --version | grep -i version
changed=0
for operation in "addf %f32, %f32 : f32" "addf %f64, %f64 : f64" "extf %f8 : f8E4M3FN to f64"; do
  errors=$(mlir-opt-22 --convert-arith-to-apfloat 2>&1 >/dev/null <<END || true
func.func @f(%f8: f8E4M3FN, %f32: f32, %f64: f64) {
  %result = arith.$operation
  return
}
END
)
  first=$(head -1 <<<"$errors" | sed 's/.*error: //')
  echo "arith.$operation"
  echo "    expected a call of the library"
  echo "    seen     ${first:-a call of the library}"
  [ "${first:+error}" = "$([[ $operation != *f64 ]] || echo error)" ] || changed=1
done
[ $changed = 0 ] || { echo "the behaviour changed"; exit 1; }
