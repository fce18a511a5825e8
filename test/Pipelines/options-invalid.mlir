// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of the recipe pipeline that are wrong, or contradict one another.
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{margin=x})' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=foo})' 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=auto})' 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current margin=1})' 2>&1 | FileCheck %s --check-prefix=MARGIN
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=none format=e4m3})' 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{amax-history-len=0})' 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{amax-compute-algo=mean})' 2>&1 | FileCheck %s --check-prefix=ALGO
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{reduce-amax=maybe})' 2>&1 | FileCheck %s --check-prefix=REDUCE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{keep=(})' 2>&1 | FileCheck %s --check-prefix=KEEP

// NUMBER: error: 'x' is not a whole number
// RECIPE: error: --recipe=foo is none of delayed, current
// AUTO: error: --recipe=auto is not available yet
// MARGIN: error: --margin belongs to --recipe=delayed, not to --recipe=current; drop one of the two
// FORMAT: error: --format belongs to recipes that make FP8, not to --recipe=none; drop one of the two
// LENGTH: error: --amax-history-len must be at least 1
// ALGO: error: --amax-compute-algo=mean is neither max nor most_recent
// REDUCE: error: --reduce-amax=maybe is neither true nor false
// KEEP: error: --keep=( is not a regular expression
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
