// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stages 1 to 5, in the order in which they run. Each description states
// what the pass expects, what it guarantees, and shows IR before and after.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Stage 1: ingest
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/ProgramPasses.td"
include "fp8/Dialect/FP8/Transforms/SitePasses.td"
include "fp8/Dialect/FP8/Transforms/PrecisionPasses.td"

//===----------------------------------------------------------------------===//
// Stage 2: recipe
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/RecipePasses.td"
include "fp8/Dialect/FP8/Transforms/KeptCastPasses.td"

//===----------------------------------------------------------------------===//
// Stage 3: fusion
//===----------------------------------------------------------------------===//

def MergeQuantizes : Pass<"fp8-merge-quantizes", "::mlir::func::FuncOp"> {
  let summary = "merge quantizes of the same tensor, format and scale";
  let description = [{
    Before: common subexpressions are eliminated, so equal tensors are one value.
    After: of several quantizes of one tensor to one format with one scale, in
    one block, only the first is left; it records the amax, and has the copy in
    another order, if any of them did.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-merge-quantizes))'
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
        -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>) {
      %q0, %i0 = fp8.quantize ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e : tensor<4xf8E4M3FN>, tensor<f32>) -> tensor<4xf8E4M3FN>, tensor<f32>
      %q1, %i1, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e, %e : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
      return %q0, %q1, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>, %s: tensor<f32>, %d: tensor<4xf8E4M3FN>, %e: tensor<f32>)
        -> (tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>) {
      %z = tensor.empty() : tensor<f32>
      %q0, %i0, %a = fp8.quantize record_amax ins(%x : tensor<4xf32>) scale(%s : tensor<f32>)
        outs(%d, %e, %z : tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>)
        -> tensor<4xf8E4M3FN>, tensor<f32>, tensor<f32>
      return %q0, %q0, %a : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

include "fp8/Dialect/FP8/Transforms/ElementwisePasses.td"
include "fp8/Dialect/FP8/Transforms/FusionPasses.td"

//===----------------------------------------------------------------------===//
// Stage 4: batching
//===----------------------------------------------------------------------===//

def SelectLayouts : Pass<"fp8-select-layouts", "::mlir::func::FuncOp"> {
  let summary = "casts also write the layouts that matmuls on tensor cores read";
  let description = [{
    For a target whose matmuls read FP8 operands only as rows along the contracted dimensions
    (`Chips.h`); others are left alone.

    Before: scaled matmuls read what casts write, in any order of its dimensions.
    After: an `fp8.quantize` whose data a matmul reads in another order than batches, rows, contracted
    dimensions has a `data_t` in this order, and the matmul reads that. Matmuls that want the same order share it;
    an `fp8.quantize` has one such layout. An `fp8.quantize_blocks` has a direction with a transposition for every order
    that its matmuls want; a direction that nothing reads in the tensor's own order is left out. The matmuls'
    `lhs_block` and `rhs_block` follow. Other operands are copied before the matmul (`convert-fp8-to-gpu`).

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-select-layouts))'
    module attributes {fp8.target = #fp8.chip<"sm_89">} {
      func.func @f(%x: tensor<8x16xf8E4M3FN>, %w: tensor<16x32xbf16>, %s: tensor<f32>,
                   %o: tensor<8x32xf32>) -> tensor<8x32xf32> {
        %d = tensor.empty() : tensor<16x32xf8E4M3FN>
        %i = tensor.empty() : tensor<f32>
        %q, %si = fp8.quantize ins(%w : tensor<16x32xbf16>) scale(%s : tensor<f32>)
            outs(%d, %i : tensor<16x32xf8E4M3FN>, tensor<f32>) -> tensor<16x32xf8E4M3FN>, tensor<f32>
        %y = fp8.scaled_matmul fast
            ins(%x, %q : tensor<8x16xf8E4M3FN>, tensor<16x32xf8E4M3FN>)
            scales(%s, %si : tensor<f32>, tensor<f32>) outs(%o : tensor<8x32xf32>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                              affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.target = #fp8.chip<"sm_89">} {
      func.func @f(%x: tensor<8x16xf8E4M3FN>, %w: tensor<16x32xbf16>, %s: tensor<f32>,
                   %o: tensor<8x32xf32>) -> tensor<8x32xf32> {
        %d = tensor.empty() : tensor<16x32xf8E4M3FN>
        %i = tensor.empty() : tensor<f32>
        %t = tensor.empty() : tensor<32x16xf8E4M3FN>
        %q:3 = fp8.quantize ins(%w : tensor<16x32xbf16>) scale(%s : tensor<f32>)
            outs(%d, %t, %i : tensor<16x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>, tensor<f32>)
            {transposition = array<i64: 1, 0>}
            -> tensor<16x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>, tensor<f32>
        %y = fp8.scaled_matmul fast
            ins(%x, %q#1 : tensor<8x16xf8E4M3FN>, tensor<32x16xf8E4M3FN>)
            scales(%s, %q#2 : tensor<f32>, tensor<f32>) outs(%o : tensor<8x32xf32>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>]} -> tensor<8x32xf32>
        return %y : tensor<8x32xf32>
      }
    }
    ```
  }];
  let options = [
    Option<"weightsOnly", "weights-only", "bool", "false",
           "only casts that have the attribute fp8.weight, before fp8-keep-parameters">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

def PackScales : Pass<"fp8-pack-scales", "::mlir::func::FuncOp"> {
  let summary = "E8M0 scales of matmuls in the order that tensor cores read";
  let description = [{
    For a target whose matmuls read E8M0 scales packed (`Chips.h`); others are left alone.

    Before: scaled matmuls read E8M0 scales in the dimensions of their operands.
    After: they read the result of `fp8.pack_scales` of these scales as [batches, rows, contracted dimension], rows and
    batches in the order of the result; scales in another order are transposed first, and scales of blocks of several rows
    are repeated for each row; an operand without rows has one. The groups of a grouped matmul are batches of the operand
    that has them.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-pack-scales))'
    module attributes {fp8.target = #fp8.chip<"sm_120a">} {
      func.func @f(%x: tensor<40x256xf8E4M3FN>, %w: tensor<24x256xf8E4M3FN>, %sx: tensor<40x8xf8E8M0FNU>,
                   %sw: tensor<24x8xf8E8M0FNU>, %o: tensor<40x24xf32>) -> tensor<40x24xf32> {
        %y = fp8.scaled_matmul fast
            ins(%x, %w : tensor<40x256xf8E4M3FN>, tensor<24x256xf8E4M3FN>)
            scales(%sx, %sw : tensor<40x8xf8E8M0FNU>, tensor<24x8xf8E8M0FNU>) outs(%o : tensor<40x24xf32>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>],
             lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>} -> tensor<40x24xf32>
        return %y : tensor<40x24xf32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.target = #fp8.chip<"sm_120a">} {
      func.func @f(%x: tensor<40x256xf8E4M3FN>, %w: tensor<24x256xf8E4M3FN>, %sx: tensor<40x8xf8E8M0FNU>,
                   %sw: tensor<24x8xf8E8M0FNU>, %o: tensor<40x24xf32>) -> tensor<40x24xf32> {
        %a = tensor.empty() : tensor<1024xf8E8M0FNU>
        %p = fp8.pack_scales ins(%sx : tensor<40x8xf8E8M0FNU>) outs(%a : tensor<1024xf8E8M0FNU>)
            -> tensor<1024xf8E8M0FNU>
        %b = tensor.empty() : tensor<1024xf8E8M0FNU>
        %q = fp8.pack_scales ins(%sw : tensor<24x8xf8E8M0FNU>) outs(%b : tensor<1024xf8E8M0FNU>)
            -> tensor<1024xf8E8M0FNU>
        %y = fp8.scaled_matmul fast
            ins(%x, %w : tensor<40x256xf8E4M3FN>, tensor<24x256xf8E4M3FN>)
            scales(%p, %q : tensor<1024xf8E8M0FNU>, tensor<1024xf8E8M0FNU>) outs(%o : tensor<40x24xf32>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>],
             lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>} -> tensor<40x24xf32>
        return %y : tensor<40x24xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BatchAmaxUpdates : Pass<"fp8-batch-amax-updates", "::mlir::func::FuncOp"> {
  let summary = "one amax vector, one reduction and one history update of each recipe per update point";
  let description = [{
    Before: each column has its own `fp8.all_reduce` and
    `fp8.update_amax_history`; the updates form a chain.
    After: each chain is one `fp8.update_amax_history`, or one for each recipe. All amaxes
    of the chain are in one vector, which one `fp8.all_reduce` combines over the ranks.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-batch-amax-updates))'
    func.func @f(%a: tensor<1xf32>, %b: tensor<1xf32>, %e: tensor<1xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>)
        -> (tensor<2xf32>, tensor<4x2xf32>) {
      %ra = fp8.all_reduce max on(4) axes [0] ins(%a : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
      %s0, %h0 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [0] formats [f8E4M3FN] ins(%ra : tensor<1xf32>)
        outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      %rb = fp8.all_reduce max on(4) axes [0] ins(%b : tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
      %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [1] formats [f8E5M2] ins(%rb : tensor<1xf32>)
        outs(%s0, %h0 : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%a: tensor<1xf32>, %b: tensor<1xf32>, %e: tensor<1xf32>, %s: tensor<2xf32>, %h: tensor<4x2xf32>)
        -> (tensor<2xf32>, tensor<4x2xf32>) {
      %v = tensor.empty() : tensor<2xf32>
      %v0 = tensor.insert_slice %a into %v[0] [1] [1] : tensor<1xf32> into tensor<2xf32>
      %v1 = tensor.insert_slice %b into %v0[1] [1] [1] : tensor<1xf32> into tensor<2xf32>
      %e2 = tensor.empty() : tensor<2xf32>
      %r = fp8.all_reduce max on(4) axes [0] ins(%v1 : tensor<2xf32>) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
      %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = 4>)
        columns [0, 1] formats [f8E4M3FN, f8E5M2] ins(%r : tensor<2xf32>)
        outs(%s, %h : tensor<2xf32>, tensor<4x2xf32>) -> tensor<2xf32>, tensor<4x2xf32>
      return %s1, %h1 : tensor<2xf32>, tensor<4x2xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Stage 5: bufferization
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/BufferizePasses.td"

//===----------------------------------------------------------------------===//
// Pairs: forward and backward functions that are compiled together
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/PairPasses.td"

//===----------------------------------------------------------------------===//
// Several ranks
//===----------------------------------------------------------------------===//

include "fp8/Dialect/FP8/Transforms/CollectivePasses.td"

//===----------------------------------------------------------------------===//
// Between the stages
//===----------------------------------------------------------------------===//

def VerifyStage : Pass<"fp8-verify-stage", "::mlir::ModuleOp"> {
  let summary = "check what a stage promises to the next";
  let description = [{
    Changes nothing. An operation that violates the exit contract of `stage` is an error
    at its location:
    - `ingest`: no linalg operation is a contraction of floats; every `fp8.matmul`
      has a site and a role;
    - `recipe`: every `fp8.matmul` has `kept`, the reason why it is not FP8; an
      `fp8.scaled_matmul` with a recipe has an operand that is the result of
      `fp8.quantize` (or an argument), one without reads FP8 tensors of the program;
      the state is in the last arguments of public functions;
    - `fusion`: one quantize per tensor, format and scale; no named elementwise operation
      but `linalg.fill`; no matmul reads a transposed copy of an FP8 tensor;
    - `batching`: at most one `fp8.update_amax_history` per update point (one per
      function now) and one `fp8.all_reduce` before it;
    - `bufferize`: no tensors;
    - `kernels`: no operation of the fp8 dialect;
    - `gpu-kernels`: no linalg either; outside of gpu.modules, memory is accessed by
      `gpu.launch_func` and `memref.load` only.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(fp8-verify-stage{stage=ingest})'
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"stage", "stage", "std::string", "\"ingest\"",
           "ingest, recipe, fusion, batching, bufferize, kernels or gpu-kernels">
  ];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PASSES_TD
