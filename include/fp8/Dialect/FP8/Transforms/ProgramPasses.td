// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first passes of stage 1, in the order in which a program meets them: types, loops, globals, sizes and
// assertions, until the program consists of tensor operations that the others of stage 1 read.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_PROGRAMPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_PROGRAMPASSES_TD

include "mlir/Pass/PassBase.td"

def ScopeMixedPrecision : Pass<"fp8-scope-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "copy fp8.mixed_precision from functions and calls to the operations inside";
  let description = [{
    Before: any module, before inlining. `fp8.mixed_precision = "off" | "bf16" | "f16" | "tf32"` may be on any
    operation, on one with regions (`scf.for`, `scf.execute_region`), on a function, on a call, and on the
    module. The innermost attribute holds; that of a function is inside that of a call.
    After: every operation in the scope of an attribute has it itself, so inlining loses none. A call with the
    attribute calls a copy of its function.

    Example:
    ```mlir
    // fp8-opt --fp8-scope-mixed-precision
    func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = math.absf %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %z = call @layer(%y) {fp8.mixed_precision = "off"} : (tensor<4xf32>) -> tensor<4xf32>
      return %y, %z : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %0 = call @layer(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = call @layer_0(%0) {fp8.mixed_precision = "off"} : (tensor<4xf32>) -> tensor<4xf32>
    ...
    func.func private @layer_0(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {fp8.mixed_precision = "off"} {
      %0 = math.absf %arg0 {fp8.mixed_precision = "off"} : tensor<4xf32>
      return {fp8.mixed_precision = "off"} %0 : tensor<4xf32>
    }
    ...
    ```
  }];
}

def MakeSignless : Pass<"fp8-make-signless", "::mlir::ModuleOp"> {
  let summary = "give signed and unsigned integers signless types";
  let description = [{
    Before: any module. Programs exported from StableHLO may keep unsigned integers
    (`ui32`, as in the keys of JAX's random numbers) as arguments, results and loop-carried
    values, and cast them to signless integers, the only ones that arith operations take.
    Upstream can neither bufferize these casts nor fold them across loops.
    After: all integers are signless, and the casts between the types are gone. Unsigned
    arguments and results of public functions are marked `fp8.unsigned`, so the manifest and
    the compiled library still call them `ui32`.

    Example:
    ```mlir
    // fp8-opt --fp8-make-signless
    func.func @f(%key: tensor<2xui32>, %x: tensor<2xi32>) -> tensor<2xui32> {
      %k = builtin.unrealized_conversion_cast %key : tensor<2xui32> to tensor<2xi32>
      %s = arith.addi %k, %x : tensor<2xi32>
      %r = builtin.unrealized_conversion_cast %s : tensor<2xi32> to tensor<2xui32>
      return %r : tensor<2xui32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%key: tensor<2xi32> {fp8.unsigned}, %x: tensor<2xi32>) -> (tensor<2xi32> {fp8.unsigned}) {
      %s = arith.addi %key, %x : tensor<2xi32>
      return %s : tensor<2xi32>
    }
    ```
  }];
}

def DivideConcatenations : Pass<"fp8-divide-concatenations"> {
  let summary = "compute on the parts of concatenations whose elements are reduced";
  let description = [{
    Before: tensors are concatenated or padded, computed with, and reduced along that dimension, as the scores of
    attention and a sink: one more score in each row, whose probability a slice cuts off.
    After: everything computed from such a tensor is computed on each of its parts, and a reduction goes on from one
    part to the next, so that all results have the bits they had. A concatenation of which something needs the whole,
    or that nothing reduces, stays.

    Example:
    ```mlir
    // fp8-opt --fp8-divide-concatenations
    func.func @sum(%scores: tensor<4x6xf32>, %sink: tensor<4x1xf32>, %zeros: tensor<4xf32>) -> tensor<4xf32> {
      %all = tensor.concat dim(1) %scores, %sink : (tensor<4x6xf32>, tensor<4x1xf32>) -> tensor<4x7xf32>
      %sum = linalg.reduce { arith.addf } ins(%all : tensor<4x7xf32>) outs(%zeros : tensor<4xf32>) dimensions = [1]
      return %sum : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #row = affine_map<(d0) -> (d0)>
    func.func @sum(%scores: tensor<4x6xf32>, %sink: tensor<4x1xf32>, %zeros: tensor<4xf32>) -> tensor<4xf32> {
      %part = linalg.reduce { arith.addf } ins(%scores : tensor<4x6xf32>) outs(%zeros : tensor<4xf32>) dimensions = [1]
      %last = tensor.collapse_shape %sink [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
      %empty = tensor.empty() : tensor<4xf32>
      %sum = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel"]}
          ins(%last, %part : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) {
      ^bb0(%x: f32, %before: f32, %out: f32):
        %y = arith.addf %before, %x : f32
        linalg.yield %y : f32
      } -> tensor<4xf32>
      return %sum : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CropPads : Pass<"fp8-crop-pads"> {
  let summary = "turn pads of negative width into slices";
  let description = [{
    Before: widths of `tensor.pad` may be negative, which cuts elements off, as in
    PyTorch's `F.pad`. No pass has folded yet: upstream folds such a pad incorrectly.
    After: all widths are 0 or more. A `tensor.extract_slice` before the pad leaves out
    the elements that a negative width cuts off. If widths are known only at run time,
    `cf.assert` checks that the size of the result is the one in its type, or not negative.

    Example:
    ```mlir
    // fp8-opt --fp8-crop-pads
    func.func @shift(%x: tensor<6xf32>) -> tensor<6xf32> {
      %zero = arith.constant 0.0 : f32
      %y = tensor.pad %x low[1] high[-1] {
      ^bb0(%i: index):
        tensor.yield %zero : f32
      } : tensor<6xf32> to tensor<6xf32>
      return %y : tensor<6xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %extracted_slice = tensor.extract_slice %arg0[0] [5] [1] : tensor<6xf32> to tensor<5xf32>
    %padded = tensor.pad %extracted_slice low[1] high[0] {
    ^bb0(%arg1: index):
      tensor.yield %cst : f32
    } : tensor<5xf32> to tensor<6xf32>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CountLoops : Pass<"fp8-count-loops", "::mlir::func::FuncOp"> {
  let summary = "turn an scf.while that counts into an scf.for";
  let description = [{
    Before: loops are `scf.while`, as StableHLO's loops become, whose counter and
    condition may be tensors of one element.
    After: a loop that counts is an `scf.for` over an index. The first value of its
    counter, the bound that the counter is compared with, and the step are known before
    the loop; the step is certainly positive, and the counter reaches the bound without
    wrapping around. Other loops stay unchanged, also those whose first half has effects
    or passes on values that it computes. Integers that the body computed in tensors of
    one element, and extracted, are computed without tensors.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-count-loops))'
    func.func @sum(%x: tensor<4xf32>) -> f32 {
      %zero = arith.constant dense<0> : tensor<i32>
      %none = arith.constant 0.0 : f32
      %one = arith.constant dense<1> : tensor<i32>
      %four = arith.constant dense<4> : tensor<i32>
      %r:2 = scf.while (%i = %zero, %s = %none) : (tensor<i32>, f32) -> (tensor<i32>, f32) {
        %below = arith.cmpi slt, %i, %four : tensor<i32>
        %more = tensor.extract %below[] : tensor<i1>
        scf.condition(%more) %i, %s : tensor<i32>, f32
      } do {
      ^bb0(%i: tensor<i32>, %s: f32):
        %k = tensor.extract %i[] : tensor<i32>
        %place = arith.index_cast %k : i32 to index
        %v = tensor.extract %x[%place] : tensor<4xf32>
        %sum = arith.addf %s, %v : f32
        %next = arith.addi %i, %one : tensor<i32>
        scf.yield %next, %sum : tensor<i32>, f32
      }
      return %r#1 : f32
    }
    ```
    becomes
    ```mlir
    ...
    %0 = scf.for %arg1 = %c0 to %c4 step %c1 iter_args(%arg2 = %cst_0) -> (f32) {
    %1 = arith.index_cast %arg1 : index to i32
    ...
    %2 = arith.index_cast %1 : i32 to index
    %extracted = tensor.extract %arg0[%2] : tensor<4xf32>
    %3 = arith.addf %arg2, %extracted : f32
    ...
    scf.yield %3 : f32
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GlobalsToState : Pass<"fp8-globals-to-state", "::mlir::ModuleOp"> {
  let summary = "turn globals that a program writes into arguments and results";
  let description = [{
    Before: functions, with calls inlined, that may use `ml_program` globals, as programs of
    torch-mlir do for the state of random numbers.
    After: no globals. A global that some function writes is an argument of the functions that
    use it and a result of those that write it: the last argument, and the last result before
    residuals. It is a tensor of the state, marked `fp8.program_state` with its name and
    `fp8.initial` with its initial value, and is saved and restored with the FP8 state. A global
    that no function writes is a constant.

    Errors: a global without an initial value or of dynamic shape; a write inside an operation
    other than scf.for and scf.if.

    Example:
    ```mlir
    // fp8-opt --fp8-globals-to-state
    ml_program.global private mutable @seed(dense<7> : tensor<i64>) : tensor<i64>
    func.func @f(%x: tensor<i64>) -> tensor<i64> {
      %seed = ml_program.global_load @seed : tensor<i64>
      %next = arith.addi %seed, %x : tensor<i64>
      ml_program.global_store @seed = %next : tensor<i64>
      return %seed : tensor<i64>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<i64>, %seed: tensor<i64> {fp8.initial = dense<7> : tensor<i64>,
                 fp8.program_state = "seed", tf.aliasing_output = 1 : i32})
        -> (tensor<i64>, tensor<i64> {fp8.program_state = "seed"}) {
      %next = arith.addi %seed, %x : tensor<i64>
      return %seed, %next : tensor<i64>, tensor<i64>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CheckSizes : Pass<"fp8-check-sizes", "::mlir::func::FuncOp"> {
  let summary = "assert that sizes fit together and indices are in range";
  let description = [{
    Before: operations on tensors of dynamic shape, whose sizes must fit together;
    `tensor.extract`, `tensor.insert` and slices with any indices, also in the
    bodies of other operations.
    After: a `cf.assert` checks every condition on sizes and indices that is not proved
    at compile time. If the condition depends on shapes of arguments only, it is checked at
    the start of the function and the message names the arguments; otherwise it is checked
    before the operation. Indices that are clamped, bounded by branches or assertions, or
    induction variables of loops need no check, nor do static shapes.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-check-sizes))'
    func.func @f(%x: tensor<?xf32> loc("x"), %t: tensor<?xf32> loc("t")) -> tensor<?xf32> {
      %d = arith.subf %x, %t : tensor<?xf32>
      %y = arith.mulf %d, %x : tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %x_size = tensor.dim %x, %c0 : tensor<?xf32>
    ...
    %t_size = tensor.dim %t, %c0_0 : tensor<?xf32>
    %same = arith.cmpi eq, %x_size, %t_size : index
    cf.assert %same, "argument 1 't': size 0 must be size 0 of argument 0 'x'"
    %d = arith.subf %x, %t : tensor<?xf32>
    %y = arith.mulf %d, %x : tensor<?xf32>
    return %y : tensor<?xf32>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect", "::mlir::tensor::TensorDialect"];
}

def HoistAsserts : Pass<"fp8-hoist-asserts"> {
  let summary = "move assertions out of the bodies of operations";
  let description = [{
    Before: `cf.assert` in the body of a linalg operation on tensors or a
    `tensor.generate`. PyTorch's exporters and fp8-check-sizes check indices in this way.
    After: a separate operation, over the inputs and dimensions that the condition needs,
    computes the condition of all elements; its result is asserted before the original
    operation. An assertion in a branch of the body counts as true for elements that do
    not take the branch.

    Errors: the condition depends on a result of the operation, or is in a loop of its body.

    Example:
    ```mlir
    // fp8-opt --fp8-hoist-asserts
    func.func @f(%ids: tensor<4xi64>, %table: tensor<9x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %c9 = arith.constant 9 : i64
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%id: i64, %out: f32):
        %good = arith.cmpi ult, %id, %c9 : i64
        cf.assert %good, "index out of bounds"
        %row = arith.index_cast %id : i64 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %table[%row, %column] : tensor<9x8xf32>
        linalg.yield %v : f32
      } -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %all = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction"]} ins(%ids : tensor<4xi64>) outs(%true : tensor<i1>) {
    ^bb0(%id: i64, %so_far: i1):
      %good = arith.cmpi ult, %id, %c9 : i64
      %both = arith.andi %so_far, %good : i1
      linalg.yield %both : i1
    } -> tensor<i1>
    %extracted = tensor.extract %all[] : tensor<i1>
    cf.assert %extracted, "index out of bounds"
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ExpandPacks : Pass<"fp8-expand-packs"> {
  let summary = "expand linalg.pack and linalg.unpack into pads, reshapes and transposes";
  let description = [{
    Before: operands and results of `linalg.mmt4d` and similar operations may be packed
    into tiles (data tiling of a host compiler).
    After: `linalg.pack` and `linalg.unpack` are pads, reshapes and transposes, which the
    later passes understand.

    Errors: tile sizes that are known only at run time.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-packs
    func.func @f(%x: tensor<16x32xf32>, %e: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
      %p = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [8, 4] into %e : tensor<16x32xf32> -> tensor<2x8x8x4xf32>
      return %p : tensor<2x8x8x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<16x32xf32>, %e: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
      %zero = arith.constant 0.0 : f32
      %padded = tensor.pad %x low[0, 0] high[0, 0] {
      ^bb0(%i: index, %j: index):
        tensor.yield %zero : f32
      } : tensor<16x32xf32> to tensor<16x32xf32>
      %tiles = tensor.expand_shape %padded [[0, 1], [2, 3]] output_shape [2, 8, 8, 4] : tensor<16x32xf32> into tensor<2x8x8x4xf32>
      %p = linalg.transpose ins(%tiles : tensor<2x8x8x4xf32>) outs(%e : tensor<2x8x8x4xf32>) permutation = [0, 2, 1, 3]
      return %p : tensor<2x8x8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_PROGRAMPASSES_TD
