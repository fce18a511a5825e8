// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Enumerations, the recipes, and the CPU as a target.

#ifndef FP8_DIALECT_FP8_IR_FP8ATTRIBUTES_TD
#define FP8_DIALECT_FP8_IR_FP8ATTRIBUTES_TD

include "fp8/Dialect/FP8/IR/FP8Dialect.td"
include "fp8/Dialect/FP8/IR/FP8Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class FP8_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::fp8";
  let genSpecializedAttr = 0;
}
class FP8_EnumAttr<EnumInfo info, string mnemonic> : EnumAttr<FP8_Dialect, info, mnemonic>;

def FP8_RoleEnum : FP8_Enum<"Role", "what a matrix product computes in a training step", [
  I32EnumAttrCase<"fprop", 0>, I32EnumAttrCase<"dgrad", 1>, I32EnumAttrCase<"wgrad", 2>,
  I32EnumAttrCase<"other", 3>]>;
def FP8_Role : FP8_EnumAttr<FP8_RoleEnum, "role">;

def FP8_TensorKindEnum : FP8_Enum<"TensorKind", "what a quantized tensor is to its site", [
  I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"weight", 1>, I32EnumAttrCase<"grad_output", 2>]>;
def FP8_TensorKind : FP8_EnumAttr<FP8_TensorKindEnum, "tensor_kind">;

def FP8_AccumulationEnum : FP8_Enum<"Accumulation", "how a scaled product adds up along K", [
  I32EnumAttrCase<"fast", 0>, I32EnumAttrCase<"split", 1>]>;
def FP8_Accumulation : FP8_EnumAttr<FP8_AccumulationEnum, "accumulation">;

def FP8_FormatPolicyEnum : FP8_Enum<"FormatPolicy", "which FP8 format forward and gradient tensors use", [
  I32EnumAttrCase<"hybrid", 0>, I32EnumAttrCase<"e4m3", 1>, I32EnumAttrCase<"e5m2", 2>]>;
def FP8_AmaxComputeAlgoEnum : FP8_Enum<"AmaxComputeAlgo", "which amax of the history the next scale follows from", [
  I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"most_recent", 1>]>;
def FP8_InitialScaleEnum : FP8_Enum<"InitialScale", "what a tensor without history is cast with", [
  I32EnumAttrCase<"one", 0>, I32EnumAttrCase<"current", 1>]>;
def FP8_ReduceKindEnum : FP8_Enum<"ReduceKind", "how a collective combines values", [
  I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"sum", 1>]>;
def FP8_ReduceKind : FP8_EnumAttr<FP8_ReduceKindEnum, "reduce_kind">;

//===----------------------------------------------------------------------===//
// Recipes
//===----------------------------------------------------------------------===//

class FP8_Recipe<string name, string mnemonicName, list<string> overridden = []>
    : AttrDef<FP8_Dialect, name, [DeclareAttrInterfaceMethods<FP8_RecipeAttrInterface,
                                                              !listconcat(["getScaling", "getParameters"], overridden)>]> {
  let mnemonic = mnemonicName;
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
}
class FP8_EnumParam<string type, string default>
    : DefaultValuedParameter<"::fp8::" # type, "::fp8::" # type # "::" # default>;

/// A smallest amax, as an f32; 0 by default.
def FP8_EpsParam : DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0f)"> {
  let comparator = "$_lhs.bitwiseIsEqual($_rhs)";
  let parser = "::fp8::parseF32($_parser)";
  let printer = "::fp8::printF32($_printer, $_self)";
}

def FP8_DelayedScalingAttr : FP8_Recipe<"DelayedScaling", "delayed_scaling",
    ["getHistoryLength", "startsFromTensor", "getNoAmax", "buildRecorded", "buildPast", "readsHistory",
     "buildAmaxStep", "findOverruled"]> {
  let summary = "one scale per tensor, from the amaxes of earlier steps";
  let description = [{
    The scale of a cast was computed at the end of the previous step:
    `scale = (fp8_max · 2^-margin) / amax`, where amax is the largest of the
    last `amax_history_len` recorded amaxes (`max`) or the newest
    (`most_recent`). One cast needs no second read of its tensor.

    - `format`: `hybrid` (E4M3 forward, E5M2 gradients), `e4m3` or `e5m2`;
    - `margin`: binades left free above amax;
    - `reduce_amax`: combine amaxes over all ranks before the update;
    - `ignore_non_finite`: a step's amax that is Inf or NaN is not entered in the
      history, nor are those counted that it holds. Without it one Inf keeps a scale
      of `max` as it is until it has left the history;
    - `executed_mask`: whether a site ran is told apart from what it recorded. Without
      it an amax of 0 means that it did not run, and leaves the column as it is; with
      it a tensor of zeros that is cast counts, and its 0 is rotated in;
    - `init`: what a tensor is cast with while its column of the history is all 0:
      the scale in the state, `one` at the start, or the scale that follows from its
      own amax (`current`), for which it is read twice. Needs two rows or more.

    Example: `#fp8.delayed_scaling<margin = 1, amax_history_len = 16, init = current>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "hybrid">:$format,
    DefaultValuedParameter<"int64_t", "0">:$margin,
    DefaultValuedParameter<"int64_t", "1024">:$amax_history_len,
    FP8_EnumParam<"AmaxComputeAlgo", "max">:$amax_compute_algo,
    DefaultValuedParameter<"bool", "true">:$reduce_amax,
    DefaultValuedParameter<"bool", "false">:$ignore_non_finite,
    DefaultValuedParameter<"bool", "false">:$executed_mask,
    FP8_EnumParam<"InitialScale", "one">:$init);
}

def FP8_CurrentScalingAttr : FP8_Recipe<"CurrentScaling", "current_scaling", ["findOverruled"]> {
  let summary = "one scale per tensor, from the tensor itself";
  let description = [{
    `scale = fp8_max / max(amax, eps)`; 1 where amax is 0, infinite or NaN.
    `power_2_scale` floors the scale to a power of two. No state.

    `reduce_amax` is about tensors that are sharded over ranks: it combines the
    amaxes of their shards. A program for one rank has no such tensor.

    Example: `#fp8.current_scaling<power_2_scale = true>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "hybrid">:$format,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "false">:$power_2_scale,
    DefaultValuedParameter<"bool", "true">:$reduce_amax);
}

def FP8_RowScalingAttr : FP8_Recipe<"RowScaling", "row_scaling"> {
  let summary = "one scale per row of the first operand and per column of the second";
  let description = [{
    The rule of current scaling, with one amax for everything that meets in one
    row (or column) of the product: a scale spans the contracted dimensions.

    Example: `#fp8.row_scaling<format = hybrid>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "e4m3">:$format,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "false">:$power_2_scale);
}

def FP8_BlockScalingAttr : FP8_Recipe<"BlockScaling", "block_scaling"> {
  let summary = "a scale per 1×128 of activations and gradients, per 128×128 of weights";
  let description = [{
    Blocks lie along the contracted dimension; ragged edges are blocks of their
    own. Scales are f32, by default rounded down to powers of two.

    Example: `#fp8.block_scaling<power_2_scale = false>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "e4m3">:$format,
    DefaultValuedParameter<"int64_t", "128">:$block,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "true">:$power_2_scale);
}

def FP8_MXScalingAttr : FP8_Recipe<"MXScaling", "mx_scaling"> {
  let summary = "MXFP8: an E8M0 scale per 32 elements along the contracted dimension";
  let description = [{
    scale_inv is `f8E8M0FNU`, rounded up, as the OCP microscaling format and
    its tensor cores have it.

    Example: `#fp8.mx_scaling<>`
  }];
  let parameters = (ins FP8_EnumParam<"FormatPolicy", "e4m3">:$format);
}

def FP8_CustomAttr : FP8_Recipe<"Custom", "custom",
    ["getRecipeFor", "getReduceAmax", "getHistoryLength", "startsFromTensor", "getNoAmax",
     "buildRecorded", "buildPast", "readsHistory", "buildAmaxStart", "buildAmaxStep", "buildAmaxEnd",
     "readsWholeColumn", "buildAmaxOfColumn", "buildHistoryEntry", "getFunctions", "verifyFunctions"]> {
  let summary = "a recipe per role, or a user's own function for amax or scale";
  let description = [{
    `fprop`, `dgrad` and `wgrad` name the recipe of that role; `base` holds
    for the rest. `scale` and `amax` name functions of the module that replace
    the rule of `base`, and of roles whose recipe differs from it in format only:

    - `scale: (amax: f32, fp8_max: f32, old: f32) -> f32` is the next scale. It
      replaces the formula whole, with its checks and `margin`, `eps` or
      `power_2_scale`: amax may be Inf, NaN, or (stateless `base`) 0. `old` is the
      scale so far, 1 for a `base` without state. What it returns is used as it is.
    - `amax: (column: tensor<?xf32>) -> f32` takes the rows of one tensor's history,
      the current amax first, then the oldest to the newest, and replaces
      `amax_compute_algo`.

    A column whose site did not run (whose current amax is 0, unless `base` has an
    `executed_mask`) stays as it is whatever the functions say.
    They are pure, may use structured control flow, and are no entries of the
    compiled library, even where they are public. In a pipeline of your own let them be
    public: ingest drops private functions that nothing calls.

    Example: `#fp8.custom<base = #fp8.current_scaling, dgrad = #fp8.delayed_scaling>`
  }];
  let parameters = (ins
    "::fp8::RecipeAttrInterface":$base,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$fprop,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$dgrad,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$wgrad,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$scale,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$amax);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Whether a function replaces a rule of `base`.
    bool hasFunctions() const { return getScale() || getAmax(); }
  }];
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def FP8_CPUAttr : AttrDef<FP8_Dialect, "CPU", [DeclareAttrInterfaceMethods<FP8_TargetAttrInterface>]> {
  let mnemonic = "cpu";
  let summary = "the processor of the host";
  let description = [{
    One scale per tensor. Every processor that LLVM generates code for; which one is
    chosen when code is made.

    Example: `#fp8.cpu`
  }];
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTRIBUTES_TD
