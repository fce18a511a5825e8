// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 3 on code between casts and matmuls: what it needs not compute goes, what is left becomes
// few loops. Included by Passes.td.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_ELEMENTWISEPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_ELEMENTWISEPASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandLossScaling : Pass<"fp8-expand-loss-scaling", "::mlir::func::FuncOp"> {
  let summary = "turn fp8.unscale and fp8.update_loss_scale into elementwise operations and amaxes";
  let description = [{
    Before: `fp8.unscale` and `fp8.update_loss_scale` on tensors, from `fp8-scale-loss` or the program.
    After: there are none. The division is elementwise, so that it fuses with what reads the gradient. A check for
    Inf and NaN is the `fp8.amax` of a tensor that is 1 there and 0 elsewhere, which is fused as the producer
    of the amax and never stored; the flag is the maximum of these, in the memory of the device. The next
    scale and tracker are elementwise, too.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-expand-loss-scaling))'
    func.func @f(%g: tensor<8xf32>, %s: tensor<f32>, %i: tensor<8xf32>, %f: tensor<f32>)
        -> (tensor<8xf32>, tensor<f32>) {
      %u, %found = fp8.unscale ins(%g : tensor<8xf32>) scale(%s : tensor<f32>)
          outs(%i, %f : tensor<8xf32>, tensor<f32>) -> tensor<8xf32>, tensor<f32>
      return %u, %found : tensor<8xf32>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    ...
    %3 = linalg.generic {...} ins(%arg0, %1 : tensor<8xf32>, tensor<f32>) outs(%2 : tensor<8xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.mulf %in, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<8xf32>
    ...
    %5 = linalg.generic {...} ins(%arg0 : tensor<8xf32>) outs(%4 : tensor<8xf32>) {
    ...
    } -> tensor<8xf32>
    ...
    %7 = fp8.amax ins(%5 : tensor<8xf32>) outs(%6 : tensor<f32>) -> tensor<f32>
    return %3, %7 : tensor<8xf32>, tensor<f32>
    ...
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def SinkIntoBranches : Pass<"fp8-sink-into-branches", "::mlir::func::FuncOp"> {
  let summary = "move operations that only one branch reads into the branch";
  let description = [{
    Before: any function.
    After: an operation without side effects, such as a cast to FP8, whose results are read
    in one region of an `scf.if` (or of another branch) only, is in that region. Nothing
    moves into loops, or into branches inside the body of a linalg operation, which run
    once per element.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-sink-into-branches))'
    func.func @f(%p: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %s = arith.addf %x, %y : tensor<4xf32>
      %r = scf.if %p -> tensor<4xf32> {
        scf.yield %s : tensor<4xf32>
      } else {
        scf.yield %x : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%p: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %r = scf.if %p -> tensor<4xf32> {
        %s = arith.addf %x, %y : tensor<4xf32>
        scf.yield %s : tensor<4xf32>
      } else {
        scf.yield %x : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
  }];
}

def FoldTransposes : Pass<"fp8-fold-transposes", "::mlir::func::FuncOp"> {
  let summary = "fold transposes of FP8 operands into matmuls";
  let description = [{
    Before: an operand of `fp8.scaled_matmul` may be a transposed copy of an FP8 tensor
    (`linalg.transpose`, or a generic that only permutes).
    After: the matmul reads the FP8 tensor itself; the permutation is in its
    indexing maps. Operands with scales per block stay unchanged.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fold-transposes))'
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>,
                 %e: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %t = linalg.transpose ins(%w : tensor<16x8xf8E4M3FN>) outs(%e : tensor<8x16xf8E4M3FN>) permutation = [1, 0]
      %y = fp8.scaled_matmul fast ins(%x, %t : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4x8xf8E4M3FN>, %w: tensor<16x8xf8E4M3FN>, %s: tensor<f32>,
                 %e: tensor<8x16xf8E4M3FN>, %i: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
      %y = fp8.scaled_matmul fast ins(%x, %w : tensor<4x8xf8E4M3FN>, tensor<16x8xf8E4M3FN>)
        scales(%s, %s : tensor<f32>, tensor<f32>) outs(%i : tensor<4x16xbf16>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x16xbf16>
      return %y : tensor<4x16xbf16>
    }
    ```
  }];
}

def RecomputeElements : Pass<"fp8-recompute-elements", "mlir::func::FuncOp"> {
  let summary = "compute cheap values of forward again in backward";
  let description = [{
    Before: forward and backward are one function, in this order; backward begins with the first matmul
    or attention that computes a gradient. Elementwise code of backward reads what elementwise code
    of forward wrote, which is kept in memory until then: of a GELU in f32, eight bytes for two of its
    operand in bf16.
    After: backward computes such values again, from values of which fewer bytes are kept: the minimum
    cut between what forward must write and what backward reads. A tensor that is in memory until
    backward in any case (arguments, operands of matmuls of backward) costs nothing. Computing an
    element again costs an eighth of a byte for an operation, half a byte for a division and two bytes
    for a function such as tanh: random numbers stay kept. No bit of any result changes.
    Unchanged: matmuls, gathers, reductions and the code that reads their results (norms and softmaxes of
    forward are fused by rows), and values that matmuls, reductions, casts to FP8, loops or branches of
    backward read. The code of loops is not looked into. An optimization remark of the category `fp8-fusion`
    tells of each copy at the location of its value.

    With `attention`, the gradient of attention reads copies in place of elementwise code: where a program
    scales queries in f32, only those in bf16 are kept. The copies are written before it reads them, which
    takes far less time than attention does. Elimination of common code leaves them alone, because they
    are marked `fp8.again`.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-recompute-elements))'
    #id = affine_map<(i, j) -> (i, j)>
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %dy: tensor<4x8xf32>, %e: tensor<4x8xf32>)
        -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
        ^bb0(%a: f32, %o: f32):
          %v = math.tanh %a : f32
          linalg.yield %v : f32
      } -> tensor<4x8xf32>
      %y = fp8.matmul role(fprop) ins(%t, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x8xf32>
      %dt = fp8.matmul role(dgrad) ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x8xf32>
      %dx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%dt, %t : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %v = arith.mulf %a, %b : f32
          linalg.yield %v : f32
      } -> tensor<4x8xf32>
      return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %dy: tensor<4x8xf32>, %e: tensor<4x8xf32>)
        -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
        ^bb0(%a: f32, %o: f32):
          %v = math.tanh %a : f32
          linalg.yield %v : f32
      } -> tensor<4x8xf32>
      %y = fp8.matmul role(fprop) ins(%t, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x8xf32>
      %dt = fp8.matmul role(dgrad) ins(%dy, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%e : tensor<4x8xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                          affine_map<(m, n, k) -> (m, n)>]} -> tensor<4x8xf32>
      %again = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
        ^bb0(%a: f32, %o: f32):
          %v = math.tanh %a : f32
          linalg.yield %v : f32
      } -> tensor<4x8xf32>
      %dx = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%dt, %again : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %v = arith.mulf %a, %b : f32
          linalg.yield %v : f32
      } -> tensor<4x8xf32>
      return %y, %dx : tensor<4x8xf32>, tensor<4x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
  let options = [
    Option<"attention", "attention", "bool", "false", "copies for the gradient of attention, instead of those for elementwise code">
  ];
  let statistics = [Statistic<"recomputed", "recomputed", "Values that backward computes again">];
}

def FuseElementwise : Pass<"fp8-fuse-elementwise", "mlir::func::FuncOp"> {
  let summary = "fuse chains of elementwise operations into one loop";
  let description = [{
    Before: linalg on tensors.
    After: elementwise operations (`linalg.add`, `linalg.map`, `linalg.broadcast`,
    `linalg.transpose`, … except `linalg.fill`), `linalg.reduce` and `linalg.softmax` are
    fused `linalg.generic` operations. An operation that read the result of a matmul
    through a reshape works on the matmul's own dimensions. No bit of any result changes.

    The fusion is upstream's, with a control function of our own: a producer moves into its
    consumer if nothing is computed more often than before, or if computing it again is
    cheaper than reading it back. Computing again is always cheaper for constants,
    broadcasts and widening casts, which read less than they write; other casts are computed
    again if `recompute` is set. exp, tanh, divisions and square roots are never duplicated.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fuse-elementwise))'
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %s = arith.addf %a, %b : f32
          linalg.yield %s : f32
      } -> tensor<4xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%sum : tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %o: f32):
          %t = math.tanh %a : f32
          linalg.yield %t : f32
      } -> tensor<4xf32>
      return %r : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
          ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %s = arith.addf %a, %b : f32
          %t = math.tanh %s : f32
          linalg.yield %t : f32
      } -> tensor<4xf32>
      return %r : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"recompute", "recompute", "bool", "true",
           "compute cheap code once per reader; false: only code that reads less than it writes">
  ];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::affine::AffineDialect", "mlir::linalg::LinalgDialect",
                           "mlir::tensor::TensorDialect"];
}

def FoldUnitReductions : Pass<"fp8-fold-unit-reductions", "::mlir::func::FuncOp"> {
  let summary = "turn reductions along dimensions of size 1 into elementwise code";
  let description = [{
    Before: linalg on tensors.
    After: a reduction all of whose reduced dimensions have size 1 is elementwise code on the
    other dimensions. If its result starts from a constant, the code computes with the
    constant: a sum still adds 0, which turns -0 into 0.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fold-unit-reductions,canonicalize))'
    func.func @f(%x: tensor<1x8xf32>) -> tensor<8xf32> {
      %zero = arith.constant 0.0 : f32
      %0 = tensor.empty() : tensor<8xf32>
      %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
      %2 = linalg.reduce ins(%x : tensor<1x8xf32>) outs(%1 : tensor<8xf32>) dimensions = [0]
        (%in: f32, %sum: f32) {
          %s = arith.addf %in, %sum : f32
          linalg.yield %s : f32
        }
      return %2 : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<1x8xf32>) -> tensor<8xf32> {
      %zero = arith.constant 0.0 : f32
      %0 = tensor.collapse_shape %x [[0, 1]] : tensor<1x8xf32> into tensor<8xf32>
      %1 = tensor.empty() : tensor<8xf32>
      %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%0 : tensor<8xf32>) outs(%1 : tensor<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %s = arith.addf %in, %zero : f32
        linalg.yield %s : f32
      } -> tensor<8xf32>
      return %2 : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_ELEMENTWISEPASSES_TD
