// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two extension points. RecipeAttrInterface is all that the compiler asks a recipe;
// TargetAttrInterface is all that the stages before code generation ask a target. Another
// project can implement either on an attribute of its own: no pass refers to a recipe or
// target by its class.

#ifndef FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
#define FP8_DIALECT_FP8_IR_FP8INTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8_RecipeAttrInterface : AttrInterface<"RecipeAttrInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    A recipe decides how tensors become FP8: in which format, which elements share a
    scale, and what the scale is computed from. Passes use these methods and
    nothing else, so a recipe defined outside this project works throughout.

    The methods `build…` emit the recipe's formulas as scalar f32 code at the builder's
    insertion point. The target emits the loop over tensors, blocks or columns of the
    history around that code (`fp8-expand-scaling` for targets without kernels of their
    own). The recipe's dialect must load the dialects that the code uses, other than
    arith, math, scf and memref.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the format (`f8E4M3FN` or `f8E5M2`) of a tensor of this kind.
    }], "::mlir::FloatType", "getFormat", (ins "::fp8::TensorKind":$kind)>,
    InterfaceMethod<[{
      Returns true if scales come from state kept between steps (an amax history),
      false if each step computes them from the tensor itself.
    }], "bool", "isStateful", (ins)>,
    InterfaceMethod<[{
      Returns the number of rows of a stateful recipe's amax history. All recipes of
      one program must agree on it.
    }], "int64_t", "getHistoryLength", (ins), "", "return 1;">,
    InterfaceMethod<[{
      Returns true if a stateful recipe computes the scale of a tensor whose column
      holds no amax yet from the tensor's own amax.
    }], "bool", "startsFromTensor", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns the value that stands for an amax that a step did not record: 0, or a
      negative value if the recipe treats 0 as an amax like any other.
    }], "float", "getNoAmax", (ins), "", "return 0.0f;">,
    InterfaceMethod<[{
      Returns the recipe with its formats reset to their defaults, so that recipes that
      differ in format only compare equal. Operations and state columns that record
      their format separately carry this recipe.
    }], "::fp8::RecipeAttrInterface", "getScaling", (ins),
      "", "return ::llvm::cast<::fp8::RecipeAttrInterface>($_attr);">,
    InterfaceMethod<[{
      Returns the extent of a block, the elements that share one scale: one entry per
      dimension of the tensor, 0 for the whole dimension. Empty: one scale for the
      whole tensor. `contracted` marks the dimensions that the matmul
      reduces over.
    }], "::llvm::SmallVector<int64_t>", "getBlockShape",
      (ins "::fp8::TensorKind":$kind, "::llvm::ArrayRef<bool>":$contracted)>,
    InterfaceMethod<[{
      Returns the element type of scale_inv: f32 or `f8E8M0FNU`.
    }], "::mlir::FloatType", "getScaleType", (ins)>,
    InterfaceMethod<[{
      Returns how a matmul of this role accumulates along K. The recipes of this dialect
      use `split` for dgrad and wgrad and `fast` for the rest unless their parameter
      `accumulation` says otherwise; block scaling always uses `split`.
    }], "::fp8::Accumulation", "getAccumulation", (ins "::fp8::Role":$role)>,
    InterfaceMethod<[{
      Returns why the recipe cannot multiply tensors of these two kinds and what to change;
      "" if it can.
    }], "::std::string", "getUnfitReason", (ins "::fp8::TensorKind":$lhs, "::fp8::TensorKind":$rhs),
      "", "return \"\";">,
    InterfaceMethod<[{
      Returns the recipe of matmuls of this role: this recipe itself, unless it
      contains another one for the role.
    }], "::fp8::RecipeAttrInterface", "getRecipeFor", (ins "::fp8::Role":$role),
      "", "return ::llvm::cast<::fp8::RecipeAttrInterface>($_attr);">,
    InterfaceMethod<[{
      Returns whether amaxes are combined over all ranks before scales are computed.
    }], "bool", "getReduceAmax", (ins), "", "return true;">,
    InterfaceMethod<[{
      Emits the scale of `inputs.amax` and returns it, an f32. `user` is the operation
      that the code replaces; symbols are looked up from there.
    }], "::mlir::Value", "buildScale",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "const ::fp8::ScaleInputs &":$inputs)>,
    InterfaceMethod<[{
      Emits the value to use for an amax that this step recorded, or that an earlier
      cast left in row 0 of the history: the amax itself by default, `getNoAmax()` to
      discard it.
    }], "::mlir::Value", "buildRecorded",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$amax), "", "return amax;">,
    InterfaceMethod<[{
      Emits the value to use for an amax of an earlier step, read from the history: the
      amax itself by default.
    }], "::mlir::Value", "buildPast",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$amax), "", "return amax;">,
    InterfaceMethod<[{
      Returns whether the amax that the next scale is computed from depends on earlier
      steps. If so, it is a fold over the history: `soFar` starts as
      `buildAmaxStart(current)`, becomes `buildAmaxStep(soFar, past)` for every earlier
      step, and the result is `buildAmaxEnd(soFar, current)`. The step is associative and
      commutative, so that earlier steps are combined in any order.
    }], "bool", "readsHistory", (ins), "", "return false;">,
    InterfaceMethod<[{
      Emits the first value of the fold; for a recipe that does not read the history,
      the amax that the next scale is computed from. `current` is the amax of this step.
    }], "::mlir::Value", "buildAmaxStart",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$current), "", "return current;">,
    InterfaceMethod<[{
      Emits one step of the fold; `past` is a result of `buildPast`.
    }], "::mlir::Value", "buildAmaxStep",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$soFar, "::mlir::Value":$past),
      "", "return soFar;">,
    InterfaceMethod<[{
      Emits the end of the fold.
    }], "::mlir::Value", "buildAmaxEnd",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$soFar, "::mlir::Value":$current),
      "", "return soFar;">,
    InterfaceMethod<[{
      Returns whether `buildAmaxOfColumn` computes the amax from a whole column at
      once, in place of the fold.
    }], "bool", "readsWholeColumn", (ins), "", "return false;">,
    InterfaceMethod<[{
      Emits the amax that the next scale is computed from, given the whole `column`: an
      f32 memref with as many elements as the history has rows, the current amax first,
      then the past ones from the oldest to the newest.
    }], "::mlir::Value", "buildAmaxOfColumn",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "::mlir::Value":$column), "", "return {};">,
    InterfaceMethod<[{
      Emits the value that enters the history for this step: by default the current
      amax. `chosen` is the amax that the scale was computed from.
    }], "::mlir::Value", "buildHistoryEntry",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Value":$current,
           "::mlir::Value":$chosen), "", "return current;">,
    InterfaceMethod<[{
      Returns whether the recipe's own code, `buildQuantize`, turns elements of tensors of this
      kind into bytes. Such tensors have one scale.
    }], "bool", "hasOwnQuantize", (ins "::fp8::TensorKind":$kind), "", "return false;">,
    InterfaceMethod<[{
      Emits the byte, an i8, of `value`, an f32, with `scale`, an f32. `user` as for `buildScale`.
    }], "::mlir::Value", "buildQuantize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "::fp8::TensorKind":$kind, "::mlir::Value":$value, "::mlir::Value":$scale), "", "return {};">,
    InterfaceMethod<[{
      Returns whether the recipe's own code, `buildDequantize`, says what the bytes of tensors
      of this kind stand for. Matmuls then multiply what it returns, in f32: no FP8
      instruction computes them.
    }], "bool", "hasOwnDequantize", (ins "::fp8::TensorKind":$kind), "", "return false;">,
    InterfaceMethod<[{
      Emits the f32 that `data`, an i8, stands for; `scaleInv`, an f32, is 1 / scale. `user` as
      for `buildScale`.
    }], "::mlir::Value", "buildDequantize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::Operation *":$user,
           "::fp8::TensorKind":$kind, "::mlir::Value":$data, "::mlir::Value":$scaleInv), "", "return {};">,
    InterfaceMethod<[{
      Returns the functions of the module that the recipe's code calls or copies. They
      must return one value and have no side effects; they are not entry points of the
      compiled library.
    }], "::llvm::SmallVector<::mlir::FlatSymbolRefAttr>", "getFunctions", (ins), "", "return {};">,
    InterfaceMethod<[{
      Checks that the functions of `getFunctions` exist and have the right signatures.
      Errors are reported at `user`, the operation with the recipe, or at the function.
    }], "::llvm::LogicalResult", "verifyFunctions",
      (ins "::mlir::Operation *":$user, "::mlir::SymbolTableCollection &":$symbols), "", "return ::llvm::success();">,
    InterfaceMethod<[{
      Returns the name of a parameter that is set but has no effect once a user's function
      replaces the recipe's formula of the scale (`scale`) or its choice of the amax
      (`amax`); empty if there is none.
    }], "::llvm::StringRef", "findOverruled", (ins "bool":$scale, "bool":$amax), "", "return \"\";">,
    InterfaceMethod<[{
      Returns every parameter with its value, defaults included, for reports.
    }], "::llvm::SmallVector<::mlir::NamedAttribute>", "getParameters", (ins), "", "return {};">,
    InterfaceMethod<[{
      Returns the name of the recipe in reports: "delayed", "current", …
    }], "::llvm::StringRef", "getRecipeName", (ins)>
  ];
}

def FP8_TargetAttrInterface : AttrInterface<"TargetAttrInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    A target is what a program is compiled for: the attribute `fp8.target` of its
    module, or `#fp8.cpu` if there is none. The stages before code generation take the
    limits of caches, threads and instructions from these methods only. Kernels and code
    are generated by the target's `TargetBackendInterface`.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the name of the target in `--target=`: "cpu", "sm_90a", …
    }], "::llvm::StringRef", "getTargetName", (ins)>,
    InterfaceMethod<[{
      Returns why the target cannot run matmuls of this recipe and what to use instead
      ("row scales have no kernel on sm_89 yet; use …"), or "" if it can.
    }], "::std::string", "getUnsupportedReason", (ins "::fp8::RecipeAttrInterface":$recipe)>,
    InterfaceMethod<[{
      Returns what computes matmuls of this role with this recipe, or why nothing does. A null
      recipe stands for matmuls of bf16.
    }], "::fp8::MatmulSupport", "describeMatmul",
      (ins "::fp8::RecipeAttrInterface":$recipe, "::fp8::Role":$role), "", [{
        return {"", recipe ? $_attr.getUnsupportedReason(recipe) : ""};
      }]>,
    InterfaceMethod<[{
      Returns how many multiplications with an addition such matmuls take per second, on the
      largest machine of this kind; 0 if that is not known.
    }], "double", "getMatmulRate", (ins "::fp8::RecipeAttrInterface":$recipe, "::fp8::Role":$role),
      "", "return 0;">,
    InterfaceMethod<[{
      Returns how many bytes per second kernels read and write in memory; 0 if that is not known.
    }], "double", "getMemoryRate", (ins), "", "return 0;">,
    InterfaceMethod<[{
      Returns the limit in bytes on the temporaries of one row of a fused norm or softmax.
    }], "int64_t", "getMaxRowBytes", (ins)>,
    InterfaceMethod<[{
      Returns the largest number of tensors that one fused loop may read.
    }], "unsigned", "getMaxFusedInputs", (ins)>,
    InterfaceMethod<[{
      Returns the largest number of elements in a chunk of rows. Sums over rows are taken
      chunk by chunk.
    }], "int64_t", "getRowChunkElements", (ins)>,
    InterfaceMethod<[{
      Returns the largest number of scores of attention in memory at a time, where it has no kernel of its
      own: a block of whole rows, but one row at least.
    }], "int64_t", "getScoreBlockElements", (ins), "", "return std::numeric_limits<int64_t>::max();">,
    InterfaceMethod<[{
      Returns whether the target has kernels that compute attention block by block of keys, with a running
      softmax (`fp8.online_attention`).
    }], "bool", "hasOnlineAttention", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns whether the target has kernels for `fp8.quantize` and `fp8.amax` with
      `rows`. If not, these become loops over the rows before bufferization.
    }], "bool", "hasRowKernels", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns whether threads cost nothing and there are thousands: code without a kernel of
      its own is then a thread per element or row, however small it is. If not, loops run
      in parallel where that pays, and matmuls are packed.
    }], "bool", "hasManyThreads", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns the alignment of every buffer in bytes, a power of two.
    }], "int64_t", "getBufferAlignment", (ins)>
  ];
}

def FP8_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    A collective in destination style: every rank of a group gives `input` and receives
    `outs`. The ranks are laid out on the grid `grid`, row by row, with one extent per
    axis (dynamic: the number of ranks divided by the other extents); ranks that differ
    only along `axes` form a group.
  }];
  let methods = [
    InterfaceMethod<"The tensor or buffer that this rank gives.", "::mlir::Value", "getInput", (ins)>,
    InterfaceMethod<"The tensor or buffer that this rank receives into.", "::mlir::Value", "getOuts", (ins)>,
    InterfaceMethod<"The extents of the grid.", "::mlir::DenseI64ArrayAttr", "getGridAttr", (ins)>,
    InterfaceMethod<"The axes of the grid along which the ranks of a group differ.",
                    "::mlir::DenseI64ArrayAttr", "getAxesAttr", (ins)>,
    InterfaceMethod<"What messages call the collective; null for the place in the program.",
                    "::mlir::StringAttr", "getLabelAttr", (ins)>,
    InterfaceMethod<"What is done, as `fp8.start_collective` says it.", "::fp8::CollectiveStep", "getStep", (ins)>
  ];
  let verify = "return ::fp8::verifyCollective($_op);";
}

#endif // FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
