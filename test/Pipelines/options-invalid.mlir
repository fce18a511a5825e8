// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of the recipe pipeline that are wrong, or contradict one another.
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{margin=x})' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=foo})' 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=auto target=sm_100a margin=1})' 2>&1 | FileCheck %s --check-prefix=AUTO
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
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{format=e5m2})' 2>&1 | FileCheck %s --check-prefix=E5M2
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=none wgrad=block})' 2>&1 | FileCheck %s --check-prefix=WGRAD
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=block dgrad-accumulation=fast})' 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{dgrad=bf16 dgrad-accumulation=fast})' 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{mx-rounding=floor})' 2>&1 | FileCheck %s --check-prefix=ROUNDING
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{recipe=block w-block-scaling-dim=3})' 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{site-recipe=head})' 2>&1 | FileCheck %s --check-prefix=PAIR
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{site-recipe=head=e4m3})' 2>&1 | FileCheck %s --check-prefix=SITE
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-recipe-pipeline{target=sm_99})' 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(func.func(fp8-ingest-pipeline))' 2>&1 | FileCheck %s --check-prefix=NESTED
// RUN: not fp8-opt %s --pass-pipeline='any(fp8-fusion-pipeline)' 2>&1 | FileCheck %s --check-prefix=ANY
// RUN: not fp8-opt %s --pass-pipeline='builtin.module(fp8-fusion-pipeline{x})' 2>&1 | FileCheck %s --check-prefix=NONE-SUCH

// NUMBER: error: --margin=x is not a whole number
// RECIPE: error: --recipe=foo is none of delayed, current
// AUTO: error: --margin belongs to --recipe=delayed, not to --recipe=auto ({{[a-z0-9]+}} for --target=sm_100a); drop one of the two
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
// E5M2: error: --format=e5m2 is none of hybrid, e4m3: E5M2 has too few bits for activations and weights; hybrid gives it to gradients
// WGRAD: error: --wgrad=block belongs to recipes that make FP8, not to --recipe=none; drop one of the two
// BLOCK: error: --dgrad-accumulation belongs to --recipe=delayed and current and row and mxfp8, not to --recipe=block; drop one of the two
// KEPT: error: --dgrad-accumulation belongs to delayed, current, row and mxfp8, not to --dgrad=bf16; drop one of the two
// ROUNDING: error: --mx-rounding belongs to --recipe=mxfp8, not to --recipe=delayed; drop one of the two
// DIM: error: --w-block-scaling-dim=3 is none of 1, 2
// TARGET: error: --target=sm_99 is none of cpu, sm_100a, sm_120a, sm_89, sm_90a and no attribute of a target
// NESTED: error: 'fp8-ingest-pipeline' runs on 'builtin.module', not on 'func.func'
// ANY: error: 'fp8-fusion-pipeline' runs on 'builtin.module', not on 'any'
// NONE-SUCH: no such option x
// PAIR: error: --site-recipe=head is not REGEX=RECIPE
// SITE: error: --site-recipe=head=e4m3: e4m3 is none of delayed, current, block, row, mxfp8, none, bf16, f16, f32, f64 and no attribute
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
