// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of the recipe pipeline that are wrong, or contradict one another.
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{margin=x})' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=foo})' 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=auto target=sm_100a eps=1e-3})' 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current eps=-1})' 2>&1 | FileCheck %s --check-prefix=EPS
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{power-2-scale=true})' 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{init=current amax-history-len=1})' 2>&1 | FileCheck %s --check-prefix=INIT
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{dgrad=e3m4})' 2>&1 | FileCheck %s --check-prefix=ROLE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=none dgrad=e4m3})' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=current margin=1})' 2>&1 | FileCheck %s --check-prefix=MARGIN
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=none format=e4m3})' 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{amax-history-len=0})' 2>&1 | FileCheck %s --check-prefix=LENGTH
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{amax-compute-algo=mean})' 2>&1 | FileCheck %s --check-prefix=ALGO
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{reduce-amax=maybe})' 2>&1 | FileCheck %s --check-prefix=REDUCE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{keep=(})' 2>&1 | FileCheck %s --check-prefix=KEEP

// NUMBER: error: --margin=x is not a whole number
// RECIPE: error: --recipe=foo is none of delayed, current
// AUTO: error: --eps belongs to --recipe=current and block and row, not to --recipe=auto (mxfp8 for --target=sm_100a); drop one of the two
// EPS: error: --eps=-1 is not a finite number, 0 or above
// POWER: error: --power-2-scale belongs to --recipe=current and block and row, not to --recipe=delayed; drop one of the two
// INIT: error: --init=current needs an --amax-history-len of 2 or more
// ROLE: error: --dgrad=e3m4 is none of fp8, e4m3, e5m2, bf16, f16, f32, f64
// NONE: error: --dgrad=e4m3 belongs to recipes that make FP8, not to --recipe=none; drop one of the two
// MARGIN: error: --margin belongs to --recipe=delayed, not to --recipe=current; drop one of the two
// FORMAT: error: --format belongs to recipes that make FP8, not to --recipe=none; drop one of the two
// LENGTH: error: --amax-history-len=0: the length must be at least 1
// ALGO: error: --amax-compute-algo=mean is none of max, most_recent
// REDUCE: error: --reduce-amax=maybe is none of true, false
// KEEP: error: --keep=( is not a regular expression
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
