// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect itself, and the base class of its operations.

#ifndef FP8_DIALECT_FP8_IR_FP8DIALECT_TD
#define FP8_DIALECT_FP8_IR_FP8DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def FP8_Dialect : Dialect {
  let name = "fp8";
  let summary = "FP8 training: quantization, scaling state and scaled matmuls";
  let description = [{
    The `fp8` dialect models what a training step needs to run in 8-bit
    floating point: the cast of a tensor with its scale, the largest magnitude of the
    tensor (amax), the history of amaxes from which the next scale is computed, and
    matmuls on scaled operands. Data uses MLIR's builtin types
    (`f8E4M3FN`, `f8E5M2`, `f8E8M0FNU`); the dialect has no types of its own.

    All operations that compute are in destination style, on tensors before
    bufferization and on memrefs after it. They implement `TilingInterface`, so
    upstream transforms can tile and fuse them: "Tiling" in an operation's description
    lists the dimensions that can be tiled; tiling is refused where a tile would not
    compute the same values as the whole. State (scales and histories) is made of plain
    SSA values: there is no hidden or global state. RationaleFP8.md in
    `lib/Dialect/FP8` gives the reasons for these decisions.

    Terms: quantize multiplies by **scale**, dequantize by **scale_inv** (1 / scale).
    **amax** is the largest magnitude of a tensor. A **site** is one matmul of
    the forward pass together with the backward matmuls derived from it: **fprop**
    computes the output, **dgrad** the gradient of the input, **wgrad** that of the weight.
  }];
  let cppNamespace = "::fp8";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect"];
  let extraClassDeclaration = [{
    /// Version written into bytecode. Increase it whenever a change of an operation
    /// or attribute makes older files need an upgrade.
    static constexpr int64_t kBytecodeVersion = 1;

    void registerAttributes();
    void registerBytecode();
  }];
}

/// An operation of the dialect in destination style: its `outs` operands are
/// tied one to one to its results as long as they are tensors.
class FP8_DpsOp<string mnemonic, list<Trait> traits = []> :
    Op<FP8_Dialect, mnemonic, !listconcat([
      DestinationStyleOpInterface,
      DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
      DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>
    ], traits)> {
  let hasVerifier = 1;
}

def FP8_FloatShaped : AnyTypeOf<[RankedTensorOf<[AnyFloat]>, MemRefOf<[AnyFloat]>], "ranked tensor or memref of floats">;
def FP8_Data : AnyTypeOf<[RankedTensorOf<[F8E4M3FN, F8E5M2]>, MemRefOf<[F8E4M3FN, F8E5M2]>], "ranked tensor or memref of f8E4M3FN or f8E5M2">;
def FP8_Scale : AnyTypeOf<[RankedTensorOf<[F32, F8E8M0FNU]>, MemRefOf<[F32, F8E8M0FNU]>], "ranked tensor or memref of f32 or f8E8M0FNU">;
def FP8_F32Shaped : AnyTypeOf<[RankedTensorOf<[F32]>, MemRefOf<[F32]>], "ranked tensor or memref of f32">;
def FP8_Random : AnyTypeOf<[RankedTensorOf<[I64]>, MemRefOf<[I64]>], "ranked tensor or memref of i64">;
def FP8_E8M0Shaped : AnyTypeOf<[RankedTensorOf<[F8E8M0FNU]>, MemRefOf<[F8E8M0FNU]>], "ranked tensor or memref of f8E8M0FNU">;
def FP8_Shaped : AnyTypeOf<[AnyRankedTensor, AnyMemRef], "ranked tensor or memref">;

#endif // FP8_DIALECT_FP8_IR_FP8DIALECT_TD
