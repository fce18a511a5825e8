#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# mlir-opt does not read what it prints: after nvvm.barrier it takes the location for the beginning of a reduction, and knows
# no location aliases there. Only text with --mlir-print-debuginfo has locations.
#
# Expected: text that MLIR prints is read again (language reference); every operation may end in a location.
set -eu
command -v mlir-opt-22 >/dev/null || { echo "there is no mlir-opt-22 (apt.llvm.org: mlir-22-tools)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mlir-opt-22 --version | grep -i version
printed() { # the operation in a function, as mlir-opt prints it with locations
  echo "llvm.func @f() { $1
    llvm.return }" | mlir-opt-22 --mlir-print-debuginfo
}
printed nvvm.barrier0 >"$folder/barrier0.mlir"
printed nvvm.barrier >"$folder/barrier.mlir"
mlir-opt-22 "$folder/barrier0.mlir" >/dev/null && echo "nvvm.barrier0 with a location: read again"
echo "nvvm.barrier with a location"
echo "    expected it is read again"
if mlir-opt-22 "$folder/barrier.mlir" >/dev/null 2>"$folder/errors"; then
  echo "    seen     it is read again"
  echo "the behaviour changed"
  exit 1
fi
echo "    seen     $(head -1 "$folder/errors" | sed 's/.*error: //')"
grep -q "undefined symbol alias id" "$folder/errors" || { echo "the behaviour changed"; exit 1; }
