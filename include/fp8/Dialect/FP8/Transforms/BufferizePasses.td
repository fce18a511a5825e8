// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 5, bufferization: from tensors to memrefs that are bound to the
// arguments and results of entry points. Passes.td has the other stages.

#ifndef FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZEPASSES_TD
#define FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZEPASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertBitcasts : Pass<"fp8-convert-bitcasts", "mlir::func::FuncOp"> {
  let summary = "turn tensor.bitcast into arith.bitcast";
  let description = [{
    Before: `tensor.bitcast`, which upstream does not bufferize.
    After: `arith.bitcast` on tensors, if both shapes are the same.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-convert-bitcasts))'
    func.func @f(%x: tensor<4xi8>) -> tensor<4xf8E4M3FN> {
      %y = tensor.bitcast %x : tensor<4xi8> to tensor<4xf8E4M3FN>
      return %y : tensor<4xf8E4M3FN>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xi8>) -> tensor<4xf8E4M3FN> {
      %y = arith.bitcast %x : tensor<4xi8> to tensor<4xf8E4M3FN>
      return %y : tensor<4xf8E4M3FN>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect"];
}

def CollectElements : Pass<"fp8-collect-elements", "mlir::func::FuncOp"> {
  let summary = "access the elements of a vector as scalars, and insert them in one operation";
  let description = [{
    Before: any function.
    After: a chain of `tensor.insert_slice`s at constant offsets that fills a whole vector
    is one `tensor.from_elements`, at the end of the chain. The operations that compute the
    elements then do not refer to their offsets, so equal ones become the same kernel. A
    `tensor.extract_slice` of one element at a constant offset, outside of loops, is a
    `tensor.extract`, so that bufferization has no views of the vector to compare.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-collect-elements))'
    func.func @f(%a: tensor<f32>, %b: tensor<1xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tensor.insert_slice %a into %v[0] [1] [1] : tensor<f32> into tensor<2xf32>
      %1 = tensor.insert_slice %b into %0[1] [1] [1] : tensor<1xf32> into tensor<2xf32>
      return %1 : tensor<2xf32>
    }
    func.func @g(%v: tensor<2xf32>) -> tensor<f32> {
      %0 = tensor.extract_slice %v[1] [1] [1] : tensor<2xf32> to tensor<f32>
      return %0 : tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%a: tensor<f32>, %b: tensor<1xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
      %0 = tensor.extract %a[] : tensor<f32>
      %c0 = arith.constant 0 : index
      %1 = tensor.extract %b[%c0] : tensor<1xf32>
      %2 = tensor.from_elements %0, %1 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }
    func.func @g(%v: tensor<2xf32>) -> tensor<f32> {
      %c1 = arith.constant 1 : index
      %0 = tensor.extract %v[%c1] : tensor<2xf32>
      %1 = tensor.from_elements %0 : tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::tensor::TensorDialect"];
}

def FoldEmptyReshapes : Pass<"fp8-fold-empty-reshapes", "mlir::func::FuncOp"> {
  let summary = "replace reshapes of tensors without elements by empty tensors";
  let description = [{
    Before: any function.
    After: a `tensor.collapse_shape` that collapses a dimension of size zero with one of
    dynamic size is a `tensor.empty`, because its result has no elements. Upstream's
    bufferization gives the collapsed dimension a static size, which the verifier of
    `memref.collapse_shape` rejects.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-fold-empty-reshapes))'
    func.func @f(%x: tensor<0x?x3xf32>) -> tensor<?x3xf32> {
      %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<0x?x3xf32> into tensor<?x3xf32>
      return %0 : tensor<?x3xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<0x?x3xf32>) -> tensor<?x3xf32> {
      %c0 = arith.constant 0 : index
      %0 = tensor.empty(%c0) : tensor<?x3xf32>
      return %0 : tensor<?x3xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::tensor::TensorDialect"];
}

def ExpandSwitches : Pass<"fp8-expand-switches", "mlir::func::FuncOp"> {
  let summary = "turn switches that yield tensors into branches of two";
  let description = [{
    Before: any function.
    After: an `scf.index_switch` with a tensor among its results is a nest of `scf.if`, in the
    order of its cases. One-shot bufferization of LLVM 22 lets an operation overwrite the memory
    of a tensor that a branch of a switch yields before the result of the switch is read; of
    `scf.if` it knows that the result shares that memory.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-expand-switches))'
    func.func @f(%i: index, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = scf.index_switch %i -> tensor<4xf32>
      case 2 {
        scf.yield %x : tensor<4xf32>
      }
      default {
        scf.yield %y : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%i: index, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %c2 = arith.constant 2 : index
      %is = arith.cmpi eq, %i, %c2 : index
      %0 = scf.if %is -> (tensor<4xf32>) {
        scf.yield %x : tensor<4xf32>
      } else {
        scf.yield %y : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def SeparateDestinations : Pass<"fp8-separate-destinations", "mlir::func::FuncOp"> {
  let summary = "give every use of a tensor.empty a tensor.empty of its own";
  let description = [{
    Before: any function.
    After: a `tensor.empty` with several uses is cloned before each use; one without uses
    is gone. Bufferization, which comes next, would otherwise analyse all uses of a shared
    one as uses of one buffer. A destination that is also needed elsewhere is replaced by a
    `tensor.empty`, or by a copy if the operation reads it: the elimination of empty tensors
    would put both into one buffer.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-separate-destinations))'
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %e = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %1 = linalg.log ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %e0 = tensor.empty() : tensor<4xf32>
      %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
      %e1 = tensor.empty() : tensor<4xf32>
      %1 = linalg.log ins(%x : tensor<4xf32>) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"];
}

def BindResults : Pass<"fp8-bind-results", "mlir::func::FuncOp"> {
  let summary = "give every result of an entry point the memory it is computed in";
  let description = [{
    Before: a public function on tensors and scalars, in one block.
    After: scalar arguments and results are tensors of rank 0.
    - A result that an argument carries to the next step (`tf.aliasing_output`, also on
      state) is materialized in that argument. If it has a dynamic size, `cf.assert` checks
      that the size is the argument's.
    - A residual that is an argument of the pair's forward (`fp8.returned`) stays in that
      argument's memory, and is not copied.
    - Any other result of static shape is materialized in a destination argument that is
      appended at the end and marked `fp8.result`.
    - A result of dynamic shape stays a result.

    Destinations and carried arguments are `bufferization.writable`, all other arguments
    are not. Values that share memory with a carried argument are copied before the
    argument is overwritten. A tensor that a branch yields and that is used after it is
    copied in the branch, as is a constant.

    Errors: types that cannot be an element type of a tensor, a result that is carried twice
    or by an argument of another type, an argument that is marked as a result but is not
    one, control flow between blocks, mutable globals.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-bind-results))'
    func.func @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %next = arith.addf %w, %x : tensor<4xf32>
      %y = arith.mulf %w, %x : tensor<4xf32>
      return %next, %y : tensor<4xf32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(
        %w: tensor<4xf32> {bufferization.writable = true, tf.aliasing_output = 0 : i32},
        %x: tensor<4xf32> {bufferization.writable = false},
        %out: tensor<4xf32> {bufferization.writable = true, fp8.result = 1 : i32})
        -> (tensor<4xf32>, tensor<4xf32>) {
      %next = arith.addf %w, %x : tensor<4xf32>
      %y = arith.mulf %w, %x : tensor<4xf32>
      %0 = bufferization.materialize_in_destination %next in %w
          : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = bufferization.materialize_in_destination %y in %out
          : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::bufferization::BufferizationDialect",
                           "mlir::cf::ControlFlowDialect", "mlir::tensor::TensorDialect"];
}

def PinLoopBuffers : Pass<"fp8-pin-loop-buffers", "mlir::func::FuncOp"> {
  let summary = "keep each value that a loop carries in one buffer";
  let description = [{
    Before: bufferized loops (`scf.for`, `scf.while`) that may pass a new allocation to every
    iteration.
    After: every carried buffer is allocated and filled before the loop, and each iteration
    copies its value into it; values that change places go through temporaries. A value that
    every iteration computes in the buffer that it was given, or only passes on, stays in
    that buffer. A value of dynamic shape must keep its size, which `cf.assert` checks.

    Errors: a value of dynamic shape that `scf.while` computes before its condition, unless
    it is an allocation whose sizes are known before the loop.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-pin-loop-buffers))'
    func.func @f(%x: memref<4xf32>, %c0: index, %c1: index, %n: index) {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %x) -> memref<4xf32> {
        %new = memref.alloc() : memref<4xf32>
        linalg.exp ins(%old : memref<4xf32>) outs(%new : memref<4xf32>)
        scf.yield %new : memref<4xf32>
      }
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<4xf32>, %c0: index, %c1: index, %n: index) {
      %pin = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
      memref.copy %x, %pin : memref<4xf32> to memref<4xf32>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%old = %pin) -> memref<4xf32> {
        %new = memref.alloc() : memref<4xf32>
        linalg.exp ins(%old : memref<4xf32>) outs(%new : memref<4xf32>)
        memref.copy %new, %pin : memref<4xf32> to memref<4xf32>
        scf.yield %pin : memref<4xf32>
      }
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::cf::ControlFlowDialect",
                           "mlir::memref::MemRefDialect"];
}

def ReinterpretReshapes : Pass<"fp8-reinterpret-reshapes", "mlir::func::FuncOp"> {
  let summary = "turn reshapes to several dynamic sizes into memref.reinterpret_cast";
  let description = [{
    Before: bufferized code.
    After: a `memref.expand_shape` that splits one dimension of its source into more than one
    dynamic dimension is a `memref.reinterpret_cast` with the same sizes. So is a
    `memref.reshape`; sizes that have been stored for it alone are no longer stored.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-reinterpret-reshapes))'
    func.func @f(%x: memref<?x4xf32>, %b: index, %s: index) -> memref<?x?x4xf32> {
      %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 4] : memref<?x4xf32> into memref<?x?x4xf32>
      return %y : memref<?x?x4xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %arg0 : memref<?x4xf32> -> memref<f32>, index, index, index, index, index
    %0 = affine.apply #map()[%arg2]
    %reinterpret_cast = memref.reinterpret_cast %base_buffer to offset: [0], sizes: [%arg1, %arg2, 4], strides: [%0, 4, 1] : memref<f32> to memref<?x?x4xf32>
    ...
    ```
  }];
  let dependentDialects = ["mlir::affine::AffineDialect", "mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

def DropBoundResults : Pass<"fp8-drop-bound-results", "mlir::func::FuncOp"> {
  let summary = "drop results that are in their destination arguments";
  let description = [{
    Before: entry points after `fp8-bind-results` and bufferization.
    After: public functions return only results of dynamic shape, each an allocation of its
    own in the function's block and marked `fp8.result` with its number. Results that
    `fp8-bind-results` saved, and whose memory nothing overwrites before they are written
    to their destination, are copied there directly, or not at all if they are there already.

    Errors: a returned buffer of static shape that is not the destination of its result.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-drop-bound-results))'
    func.func @main(%x: memref<4xf32>, %out: memref<4xf32> {fp8.result = 0 : i32}) -> memref<4xf32> {
      memref.copy %x, %out : memref<4xf32> to memref<4xf32>
      return %out : memref<4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @main(%x: memref<4xf32>, %out: memref<4xf32> {fp8.result = 0 : i32}) {
      memref.copy %x, %out : memref<4xf32> to memref<4xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect"];
}

#endif // FP8_DIALECT_FP8_TRANSFORMS_BUFFERIZEPASSES_TD
