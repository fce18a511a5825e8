// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes of stage 6, which lower the fp8 dialect for a target.

#ifndef FP8_CONVERSION_PASSES_TD
#define FP8_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertFP8ToLinalg : Pass<"convert-fp8-to-linalg", "::mlir::ModuleOp"> {
  let summary = "lower the fp8 dialect on memrefs to linalg, scf and arith, bit for bit";
  let description = [{
    Before: bufferized; all operands are memrefs.
    After: no operation of the fp8 dialect is left. Matrix products are packed f32
    products (`PackedGemm.h`); casts are exact integer arithmetic; a quantize reads
    its tensor once for bytes and amax. An operation without lowering (row, block
    and MX scales, grouped products, loss scaling, gathers) is an error at its
    location.

    Example:
    ```mlir
    // fp8-opt --convert-fp8-to-linalg
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      fp8.all_reduce max group("amax") ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) {
      memref.copy %x, %y : memref<4xf32> to memref<4xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandCasts : Pass<"fp8-expand-casts"> {
  let summary = "expand arith casts that upstream does not lower into integer arithmetic";
  let description = [{
    Before: `arith.extf` from and `arith.truncf` to `f8E4M3FN` and `f8E5M2` on scalars
    or vectors, which upstream does not lower; `arith.extf` from `f8E8M0FNU`.
    After: the same conversions in integer and f32 arithmetic. `arith.truncf` keeps
    upstream's meaning where the value is in range; out of range it saturates, and
    NaN becomes 0x7F, as FP8 casts do throughout this project. From f64 the value is
    rounded once: to f32 with an odd last bit first. Casts from f64 to bf16 are
    expanded so, too: upstream calls a function that need not be there.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-casts
    func.func @f(%x: f8E5M2) -> f16 {
      %y = arith.extf %x : f8E5M2 to f16
      return %y : f16
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f8E5M2) -> f16 {
      %b = arith.bitcast %x : f8E5M2 to i8
      %w = arith.extui %b : i8 to i32
      ...
      %rf = arith.bitcast %r : i32 to f32
      %y = arith.truncf %rf : f32 to f16
      return %y : f16
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // FP8_CONVERSION_PASSES_TD
