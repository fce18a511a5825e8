#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# One-shot bufferization lets an operation overwrite the memory of a tensor that a branch of scf.index_switch yields, before the
# result of the switch is read: the result has the values that were written later. The same program with scf.if is right.
#
# Expected: the result of a branch is the tensor that the branch yields. mlir/docs/Bufferization.md: "a tensor SSA value is
# immutable", and the analysis inserts copies where memory would be overwritten that is still read.
set -eu
for tool in mlir-opt-22 mlir-runner-22; do
  command -v $tool >/dev/null || { echo "there is no $tool (apt.llvm.org: mlir-22-tools)"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mlir-opt-22 --version | grep -i version

switch='scf.index_switch %number -> tensor<2xi64>
    case 0 { scf.yield %sevens : tensor<2xi64> }
    default { scf.yield %argument : tensor<2xi64> }'
branch='scf.if %is_zero -> tensor<2xi64> {
      scf.yield %sevens : tensor<2xi64>
    } else {
      scf.yield %argument : tensor<2xi64>
    }'

# The first element of a tensor of sevens that a branch yields, and of that tensor with 9 written over it.
program() { # BRANCH
  cat <<END
func.func private @printI64(i64)
func.func private @printComma()
func.func @choose(%number: index, %argument: tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>) {
  %zero = arith.constant 0 : index
  %seven = arith.constant 7 : i64
  %nine = arith.constant 9 : i64
  %is_zero = arith.cmpi eq, %number, %zero : index
  %empty = tensor.empty() : tensor<2xi64>
  %sevens = linalg.fill ins(%seven : i64) outs(%empty : tensor<2xi64>) -> tensor<2xi64>
  %chosen = $1
  %written = tensor.insert %nine into %sevens[%zero] : tensor<2xi64>
  return %chosen, %written : tensor<2xi64>, tensor<2xi64>
}
func.func @main() {
  %zero = arith.constant 0 : index
  %argument = arith.constant dense<1> : tensor<2xi64>
  %chosen, %written = call @choose(%zero, %argument) : (index, tensor<2xi64>) -> (tensor<2xi64>, tensor<2xi64>)
  %first = tensor.extract %chosen[%zero] : tensor<2xi64>
  %second = tensor.extract %written[%zero] : tensor<2xi64>
  call @printI64(%first) : (i64) -> ()
  call @printComma() : () -> ()
  call @printI64(%second) : (i64) -> ()
  return
}
END
}

values() { # BRANCH
  program "$1" |
    mlir-opt-22 --one-shot-bufferize=bufferize-function-boundaries --convert-linalg-to-loops --convert-scf-to-cf \
      --expand-strided-metadata --convert-to-llvm --reconcile-unrealized-casts |
    mlir-runner-22 -e main --entry-point-result=void --shared-libs=/usr/lib/llvm-22/lib/libmlir_c_runner_utils.so
}
by_switch=$(values "$switch")
by_if=$(values "$branch")
echo "the yielded tensor's first element, and that of the tensor written over it"
echo "    expected 7, 9 twice"
echo "    seen     $by_switch by scf.index_switch"
echo "    seen     $by_if by scf.if"
if [ "$by_switch" != "9, 9" ] || [ "$by_if" != "7, 9" ]; then
  echo "the behaviour changed"
  exit 1
fi
