// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two seams. RecipeAttrInterface is all that the compiler asks a recipe, and
// TargetAttrInterface all that the stages before code generation ask a target. Another
// project implements either on an attribute of its own; no pass knows their classes.

#ifndef FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
#define FP8_DIALECT_FP8_IR_FP8INTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8_RecipeAttrInterface : AttrInterface<"RecipeAttrInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    How tensors become FP8: which format, at which granularity they share a
    scale, and where the scale comes from. Passes ask these questions and
    nothing else, so a recipe defined outside this project works throughout.

    The methods `build…` emit the recipe's rules as scalar f32 code at the builder's
    insertion point; a target decides on the loop over tensors, blocks or columns of
    the history around them (`fp8-expand-scaling` for targets without kernels of their
    own). The dialects of that code, other than arith, math, scf and memref, must be
    loaded by the dialect of the recipe.
  }];
  let methods = [
    InterfaceMethod<[{
      The format (`f8E4M3FN` or `f8E5M2`) of a tensor of this kind.
    }], "::mlir::FloatType", "getFormat", (ins "::fp8::TensorKind":$kind)>,
    InterfaceMethod<[{
      True where scales come from state kept between steps (an amax history),
      false where each step computes them from the tensor itself.
    }], "bool", "isStateful", (ins)>,
    InterfaceMethod<[{
      Rows of the amax history of a stateful recipe; a program has one length.
    }], "int64_t", "getHistoryLength", (ins), "", "return 1;">,
    InterfaceMethod<[{
      True where a stateful recipe casts a tensor whose column holds no amax yet
      with the scale of the tensor's own amax.
    }], "bool", "startsFromTensor", (ins), "", "return false;">,
    InterfaceMethod<[{
      What stands for an amax that a step did not record: 0, or below where 0 is an
      amax like any other.
    }], "float", "getNoAmax", (ins), "", "return 0.0f;">,
    InterfaceMethod<[{
      The recipe with its formats left at their defaults: equal for recipes that
      scale alike. Casts, columns and updates name their formats themselves, so this
      is the recipe that they carry and share.
    }], "::fp8::RecipeAttrInterface", "getScaling", (ins),
      "", "return ::llvm::cast<::fp8::RecipeAttrInterface>($_attr);">,
    InterfaceMethod<[{
      The extent of the blocks of a tensor that share one scale, one entry per
      dimension; an entry 0 spans the whole dimension. Empty: one scale for the
      whole tensor. `contracted` marks the dimensions that the matrix product
      reduces over.
    }], "::llvm::SmallVector<int64_t>", "getBlockShape",
      (ins "::fp8::TensorKind":$kind, "::llvm::ArrayRef<bool>":$contracted)>,
    InterfaceMethod<[{
      The element type of scale_inv: f32, or `f8E8M0FNU`.
    }], "::mlir::FloatType", "getScaleType", (ins)>,
    InterfaceMethod<[{
      How a product of this role adds up (by default fast for the
      forward, split for both gradients).
    }], "::fp8::Accumulation", "getAccumulation", (ins "::fp8::Role":$role)>,
    InterfaceMethod<[{
      The recipe that holds for products of this role: the recipe itself, unless
      it names another for the role.
    }], "::fp8::RecipeAttrInterface", "getRecipeFor", (ins "::fp8::Role":$role),
      "", "return ::llvm::cast<::fp8::RecipeAttrInterface>($_attr);">,
    InterfaceMethod<[{
      Whether amaxes are combined over all ranks before scales are computed.
    }], "bool", "getReduceAmax", (ins), "", "return true;">,
    InterfaceMethod<[{
      Emits the scale that follows from an amax. `user` is the operation that the
      code replaces.
    }], "::mlir::Value", "buildScale",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "const ::fp8::ScaleInputs &":$inputs)>,
    InterfaceMethod<[{
      Emits what an amax that this step recorded, or that an earlier cast staged,
      counts for. `getNoAmax()`: as if it had not been recorded.
    }], "::mlir::Value", "buildRecorded",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$amax), "", "return amax;">,
    InterfaceMethod<[{
      Emits what an amax of an earlier step, read from the history, counts for.
    }], "::mlir::Value", "buildPast",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$amax), "", "return amax;">,
    InterfaceMethod<[{
      Whether the amax that the next scale follows from depends on earlier steps. If
      so, it is folded over the history: it starts as `buildAmaxStart(current)`, becomes
      `buildAmaxStep(soFar, past)` for every earlier step from the oldest to the newest,
      and ends as `buildAmaxEnd(soFar, current)`.
    }], "bool", "readsHistory", (ins), "", "return false;">,
    InterfaceMethod<[{
      Emits the first value of the fold; of a recipe that does not read the history,
      the amax itself. `current` is the amax of this step.
    }], "::mlir::Value", "buildAmaxStart",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$current), "", "return current;">,
    InterfaceMethod<[{
      Emits one step of the fold; `past` is what `buildPast` made of an amax.
    }], "::mlir::Value", "buildAmaxStep",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$soFar, "::mlir::Value":$past),
      "", "return soFar;">,
    InterfaceMethod<[{
      Emits the end of the fold.
    }], "::mlir::Value", "buildAmaxEnd",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$soFar, "::mlir::Value":$current),
      "", "return soFar;">,
    InterfaceMethod<[{
      Whether the amax is chosen from a whole column at once, by
      `buildAmaxOfColumn`, in the place of the fold.
    }], "bool", "readsWholeColumn", (ins), "", "return false;">,
    InterfaceMethod<[{
      Emits the choice of the amax from `column`, an f32 memref with as many elements
      as the history has rows: the current amax, then the past ones from the oldest to
      the newest.
    }], "::mlir::Value", "buildAmaxOfColumn",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "::mlir::Value":$column), "", "return {};">,
    InterfaceMethod<[{
      Emits what enters the history as the newest step: by default the current amax.
      `chosen` is the amax that the scale followed from.
    }], "::mlir::Value", "buildHistoryEntry",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$current,
           "::mlir::Value":$chosen), "", "return current;">,
    InterfaceMethod<[{
      The functions of the module that the recipe's code calls or copies. They are no
      entries of the program, compute a value and have no effects.
    }], "::llvm::SmallVector<::mlir::FlatSymbolRefAttr>", "getFunctions", (ins), "", "return {};">,
    InterfaceMethod<[{
      Checks that those functions are there and take and return what they should.
      Errors are at `user`, of which the recipe is, or at the function.
    }], "::llvm::LogicalResult", "verifyFunctions",
      (ins "::mlir::Operation *":$user, "::mlir::SymbolTableCollection &":$symbols), "", "return ::llvm::success();">,
    InterfaceMethod<[{
      Names a parameter that has no effect where a function gives the scale, or chooses
      the amax, in the place of the recipe's rule; empty where there is none.
    }], "::llvm::StringRef", "findOverruled", (ins "bool":$scale, "bool":$amax), "", "return \"\";">,
    InterfaceMethod<[{
      Every parameter with the value in force, defaults included: for reports.
    }], "::llvm::SmallVector<::mlir::NamedAttribute>", "getParameters", (ins), "", "return {};">,
    InterfaceMethod<[{
      The word for reports: "delayed", "current", …
    }], "::llvm::StringRef", "getRecipeName", (ins)>
  ];
}

def FP8_TargetAttrInterface : AttrInterface<"TargetAttrInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    What a program is compiled for: the attribute `fp8.target` of its module, `#fp8.cpu`
    where there is none. The stages before code generation ask these questions and know
    no cache, thread or instruction themselves. How kernels and code are made is the
    target's `TargetBackendInterface`.
  }];
  let methods = [
    InterfaceMethod<[{
      The word of `--target=`: "cpu", "sm_90a", …
    }], "::llvm::StringRef", "getTargetName", (ins)>,
    InterfaceMethod<[{
      Why the target cannot run products of this recipe, and what to use instead, as
      in "row scales have no kernel on sm_89 yet; use …"; empty where it can.
    }], "::std::string", "getUnsupportedReason", (ins "::fp8::RecipeAttrInterface":$recipe)>,
    InterfaceMethod<[{
      How many bytes the temporaries of one row of a fused norm or softmax may take.
    }], "int64_t", "getMaxRowBytes", (ins)>,
    InterfaceMethod<[{
      How many tensors one fused loop may read.
    }], "unsigned", "getMaxFusedInputs", (ins)>,
    InterfaceMethod<[{
      Sums over rows are taken in chunks of at most this many elements, one chunk after
      the other.
    }], "int64_t", "getRowChunkElements", (ins)>,
    InterfaceMethod<[{
      Whether the target has kernels for casts and amaxes by rows. If not, they become
      loops over the rows before bufferization.
    }], "bool", "hasRowKernels", (ins), "", "return false;">,
    InterfaceMethod<[{
      The alignment of every buffer in bytes, a power of two.
    }], "int64_t", "getBufferAlignment", (ins)>
  ];
}

#endif // FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
