// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of the dialect: enumerations, recipes, and the CPU target.

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

def FP8_RoleEnum : FP8_Enum<"Role", "what a matmul computes in a training step", [
  I32EnumAttrCase<"fprop", 0>, I32EnumAttrCase<"dgrad", 1>, I32EnumAttrCase<"wgrad", 2>,
  I32EnumAttrCase<"other", 3>]>;
def FP8_Role : FP8_EnumAttr<FP8_RoleEnum, "role">;

def FP8_TensorKindEnum : FP8_Enum<"TensorKind", "which tensor of its site a quantized tensor is", [
  I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"weight", 1>, I32EnumAttrCase<"grad_output", 2>]>;
def FP8_TensorKind : FP8_EnumAttr<FP8_TensorKindEnum, "tensor_kind">;

def FP8_AccumulationEnum : FP8_Enum<"Accumulation", "how a scaled matmul accumulates along K", [
  I32EnumAttrCase<"fast", 0>, I32EnumAttrCase<"split", 1>]>;
def FP8_Accumulation : FP8_EnumAttr<FP8_AccumulationEnum, "accumulation">;

def FP8_AccumulationPolicyEnum : FP8_Enum<"AccumulationPolicy", "how the matmuls of a recipe accumulate along K", [
  I32EnumAttrCase<"by_role", 0>, I32EnumAttrCase<"fast", 1>, I32EnumAttrCase<"split", 2>]>;
def FP8_ScaleRoundingEnum : FP8_Enum<"ScaleRounding", "how the E8M0 scale of a block is rounded", [
  I32EnumAttrCase<"up", 0>, I32EnumAttrCase<"floor", 1>, I32EnumAttrCase<"even", 2>,
  I32EnumAttrCase<"ceil", 3>]>;

def FP8_FormatPolicyEnum : FP8_Enum<"FormatPolicy", "which FP8 format forward and gradient tensors use", [
  I32EnumAttrCase<"hybrid", 0>, I32EnumAttrCase<"e4m3", 1>, I32EnumAttrCase<"e5m2", 2>]>;
def FP8_AmaxComputeAlgoEnum : FP8_Enum<"AmaxComputeAlgo", "which amax of the history the next scale is computed from", [
  I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"most_recent", 1>]>;
def FP8_InitialScaleEnum : FP8_Enum<"InitialScale", "the scale of a tensor whose amax history is empty", [
  I32EnumAttrCase<"one", 0>, I32EnumAttrCase<"current", 1>]>;
def FP8_ReduceKindEnum : FP8_Enum<"ReduceKind", "how a collective combines values", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"mean", 3>,
  I32EnumAttrCase<"product", 4>]>; // the numbers are those of fp8rt/communicator.h
def FP8_ReduceKind : FP8_EnumAttr<FP8_ReduceKindEnum, "reduce_kind">;
def FP8_CollectiveKindEnum : FP8_Enum<"CollectiveKind", "what a collective does with the elements of the ranks", [
  I32EnumAttrCase<"all_reduce", 0>, I32EnumAttrCase<"all_gather", 1>, I32EnumAttrCase<"reduce_scatter", 2>,
  I32EnumAttrCase<"broadcast", 3>, I32EnumAttrCase<"shift", 4>, I32EnumAttrCase<"all_to_all", 5>]>; // as above
def FP8_CollectiveKind : FP8_EnumAttr<FP8_CollectiveKindEnum, "collective_kind">;

/// mma: warps, operands in registers (mma.sync). wgmma: groups of four warps, operands in shared memory
/// (wgmma.mma_async). tcgen05: one thread starts them, sums in tensor memory (tcgen05.mma).
def FP8_MatmulFamilyEnum : FP8_Enum<"MatmulFamily", "the instructions that matmuls of FP8 and 16-bit operands are made of", [
  I32EnumAttrCase<"mma", 0>, I32EnumAttrCase<"wgmma", 1>, I32EnumAttrCase<"tcgen05", 2>]>;

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

/// How the matmuls of the recipe accumulate: `by_role` is `fast` for fprop and `split` for gradients.
def FP8_AccumulationParam : FP8_EnumParam<"AccumulationPolicy", "by_role">;

/// 1 or 2: whether the blocks of tensors of a kind lie along the contracted dimension or are square.
class FP8_BlockDimParam<string default> : DefaultValuedParameter<"int64_t", default>;

/// A lower bound of the amax, as an f32; 0 by default.
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
    A cast uses the scale that was computed at the end of the previous step, so it
    reads its tensor once: `scale = (fp8_max · 2^-margin) / amax`. The amax is the
    largest of the last `amax_history_len` recorded amaxes (`amax_compute_algo = max`)
    or the newest one (`most_recent`).

    - `format`: `hybrid` (E4M3 forward, E5M2 gradients), `e4m3` or `e5m2`;
    - `margin`: binades left free above amax;
    - `reduce_amax`: combine amaxes over all ranks before the update;
    - `ignore_non_finite`: an amax that is Inf or NaN does not enter the history, and one
      that the history already holds is not counted. Without this option and with `max`,
      one Inf freezes the scale until the Inf has left the history;
    - `executed_mask`: the program records explicitly whether a site ran. Without the
      mask an amax of 0 means that the site did not run, and its column stays unchanged;
      with it a tensor of zeros that is cast counts, and its amax 0 enters the history;
    - `init`: the scale of a cast while the tensor's column of the history is all 0.
      `one`: the scale in the state, which starts at 1. `current`: the scale computed
      from the tensor's own amax, which takes a second read of the tensor and an
      `amax_history_len` of 2 or more;
    - `accumulation`: `fast` or `split` sums along K in matmuls of every role; `by_role`,
      the default, is `fast` for fprop and `split` for dgrad and wgrad.

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
    FP8_EnumParam<"InitialScale", "one">:$init,
    FP8_AccumulationParam:$accumulation);
}

def FP8_CurrentScalingAttr : FP8_Recipe<"CurrentScaling", "current_scaling", ["findOverruled"]> {
  let summary = "one scale per tensor, from the tensor itself";
  let description = [{
    `scale = fp8_max / max(amax, eps)`, or 1 where that maximum is 0, infinite or NaN.
    `power_2_scale` floors the scale to a power of two. The recipe keeps no state.

    `reduce_amax` combines the amaxes of the shards of a tensor that is sharded over
    ranks. It has no effect in a program for one rank. `accumulation` is as in
    `#fp8.delayed_scaling`.

    Example: `#fp8.current_scaling<power_2_scale = true>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "hybrid">:$format,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "false">:$power_2_scale,
    DefaultValuedParameter<"bool", "true">:$reduce_amax,
    FP8_AccumulationParam:$accumulation);
}

def FP8_RowScalingAttr : FP8_Recipe<"RowScaling", "row_scaling"> {
  let summary = "one scale per row of the first operand and per column of the second";
  let description = [{
    The formula of current scaling, applied to one amax per row of the first operand
    and per column of the second: a scale spans the contracted dimensions. `accumulation`
    is as in `#fp8.delayed_scaling`.

    Example: `#fp8.row_scaling<format = hybrid>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "e4m3">:$format,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "false">:$power_2_scale,
    FP8_AccumulationParam:$accumulation);
}

def FP8_BlockScalingAttr : FP8_Recipe<"BlockScaling", "block_scaling", ["getUnfitReason"]> {
  let summary = "a scale per 1×128 of activations and gradients, per 128×128 of weights";
  let description = [{
    Blocks lie along the contracted dimension; the shorter block at the end of a
    dimension has a scale of its own. Scales follow the formula of current scaling; they
    are f32 and by default rounded down to powers of two. Every matmul is summed in parts
    of one block (`split`), because each part has scales of its own.

    `x_block_scaling_dim`, `w_block_scaling_dim` and `grad_block_scaling_dim` are the
    dimensions of the blocks of inputs, weights and gradients: 1 for 1×128 along the
    contracted dimension, 2 for 128×128, whose FP8 bytes serve both directions. At most one
    operand of a matmul has blocks of two dimensions.

    Example: `#fp8.block_scaling<power_2_scale = false, w_block_scaling_dim = 1>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "e4m3">:$format,
    DefaultValuedParameter<"int64_t", "128">:$block,
    FP8_EpsParam:$eps,
    DefaultValuedParameter<"bool", "true">:$power_2_scale,
    FP8_BlockDimParam<"1">:$x_block_scaling_dim,
    FP8_BlockDimParam<"2">:$w_block_scaling_dim,
    FP8_BlockDimParam<"1">:$grad_block_scaling_dim);
}

def FP8_MXScalingAttr : FP8_Recipe<"MXScaling", "mx_scaling"> {
  let summary = "MXFP8: an E8M0 scale per 32 elements along the contracted dimension";
  let description = [{
    scale_inv is `f8E8M0FNU`, the format of the OCP Microscaling Formats specification 1.0:
    `2^clamp(e, -127, 127)`, where e follows from the amax of the block by `rounding`:

    - `up`: `ceil(log2(amax / fp8_max))`, the smallest e with which no element saturates;
    - `floor`: `floor(log2(amax)) - floor(log2(fp8_max))`, as that specification has it:
      elements above `fp8_max · 2^e` saturate;
    - `even`: as `floor`, from the amax rounded to the mantissa bits of the format, ties away
      from zero;
    - `ceil`: `ceil(log2(amax)) - floor(log2(fp8_max))`, which never saturates and may leave one
      bit more than `up` unused.

    `w_block_scaling_dim = 2` gives weights blocks of 32×32, whose FP8 bytes serve both
    directions. `accumulation` is as in `#fp8.delayed_scaling`.

    Example: `#fp8.mx_scaling<rounding = floor, w_block_scaling_dim = 2>`
  }];
  let parameters = (ins
    FP8_EnumParam<"FormatPolicy", "e4m3">:$format,
    FP8_EnumParam<"ScaleRounding", "up">:$rounding,
    FP8_BlockDimParam<"1">:$w_block_scaling_dim,
    FP8_AccumulationParam:$accumulation);
}

def FP8_CustomAttr : FP8_Recipe<"Custom", "custom",
    ["getRecipeFor", "getUnfitReason", "getReduceAmax", "getHistoryLength", "startsFromTensor", "getNoAmax",
     "buildRecorded", "buildPast", "readsHistory", "buildAmaxStart", "buildAmaxStep", "buildAmaxEnd",
     "readsWholeColumn", "buildAmaxOfColumn", "buildHistoryEntry", "hasOwnQuantize", "buildQuantize",
     "hasOwnDequantize", "buildDequantize", "getFunctions", "verifyFunctions"]> {
  let summary = "a recipe per role, or a user's own functions for amax, scale and casts";
  let description = [{
    `fprop`, `dgrad` and `wgrad` give the recipe of that role; `base` is the recipe of
    every other matmul. `scale` and `amax` name functions of the module that replace
    the formulas of `base`, and those of a role's recipe if it differs from `base` in its
    format or accumulation only:

    - `scale: (amax: f32, fp8_max: f32, old: f32) -> f32` returns the next scale. It
      replaces the whole formula, including its checks and `margin`, `eps` and
      `power_2_scale`: amax may be Inf, NaN, or (stateless `base`) 0. `old` is the
      previous scale, or 1 if `base` is stateless. The result is used unchecked.
    - `amax: (column: tensor<?xf32>) -> f32` returns the amax that the next scale is
      computed from, in place of `amax_compute_algo`. It takes one tensor's column of
      the history: the current amax, then the past ones from the oldest to the newest.
    - `quantize: (value: f32, scale: f32) -> i8` returns the byte of an element. It replaces
      the multiplication, rounding and saturation of the cast.
    - `dequantize: (data: i8, scale_inv: f32) -> f32` returns what a byte stands for. It
      replaces f32(data) · scale_inv. Matmuls add up what it returns in f32, with a fused
      multiply-add for each element along K.

    `quantize` and `dequantize` have a function for each kind of tensor that needs one:
    `{input = @f, weight = @g, grad_output = @h}`. The other kinds are cast as always. They
    need a `base` with one scale per tensor.

    The column of a site that did not run (its current amax is 0, unless `base` has an
    `executed_mask`) stays unchanged, whatever the functions return.
    The functions must be pure and may use structured control flow. They are not entry
    points of the compiled library, even where they are public. In a pipeline of your own
    make them public: ingest drops private functions that nothing calls.

    Example: `#fp8.custom<base = #fp8.current_scaling, dgrad = #fp8.delayed_scaling>`
  }];
  let parameters = (ins
    "::fp8::RecipeAttrInterface":$base,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$fprop,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$dgrad,
    OptionalParameter<"::fp8::RecipeAttrInterface">:$wgrad,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$scale,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$amax,
    OptionalParameter<"::mlir::DictionaryAttr">:$quantize,
    OptionalParameter<"::mlir::DictionaryAttr">:$dequantize);
  let assemblyFormat = "`<` struct(params) `>`";
  let extraClassDeclaration = [{
    /// Whether a function replaces a formula of `base`.
    bool hasFunctions() const { return getScale() || getAmax() || getQuantize() || getDequantize(); }
  }];
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

def FP8_CPUAttr
    : AttrDef<FP8_Dialect, "CPU",
              [DeclareAttrInterfaceMethods<FP8_TargetAttrInterface,
                                           ["describeMatmul", "getMatmulRate", "getMemoryRate",
                                            "getScoreBlockElements"]>]> {
  let mnemonic = "cpu";
  let summary = "the CPU of the host";
  let description = [{
    Any processor that LLVM generates code for; code generation chooses which one.
    Recipes must have one f32 scale per tensor. The size and the number of the vector
    registers decide the shape of the kernels of matmuls: by default those of AVX2.

    Example: `#fp8.cpu`, `#fp8.cpu<vectorBits = 512, vectorRegisters = 32>`
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "256">:$vectorBits,
                        DefaultValuedParameter<"int64_t", "16">:$vectorRegisters);
  let builders = [AttrBuilder<(ins), [{ return $_get($_ctxt, /*vectorBits=*/256, /*vectorRegisters=*/16); }]>];
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
}

def FP8_ChipAttr
    : AttrDef<FP8_Dialect, "Chip",
              [DeclareAttrInterfaceMethods<FP8_TargetAttrInterface,
                                           ["describeMatmul", "getMatmulRate", "getMemoryRate",
                                            "hasManyThreads", "hasOnlineAttention"]>]> {
  let mnemonic = "chip";
  let summary = "a GPU architecture of NVIDIA";
  let description = [{
    One of `sm_89`, `sm_90a`, `sm_100a` and `sm_120a`, the architectures with FP8 tensor
    cores. `getChip()` of Chips.h returns what is known about each.

    Example: `#fp8.chip<"sm_90a">`
  }];
  let parameters = (ins StringRefParameter<>:$name);
  let assemblyFormat = "`<` $name `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Matmuls of fused operations
//===----------------------------------------------------------------------===//

def FP8_MatmulSiteAttr : AttrDef<FP8_Dialect, "MatmulSite"> {
  let mnemonic = "matmul_site";
  let summary = "what a matmul of a fused operation is in the program";
  let description = [{
    The attributes of the `fp8.matmul` that a matmul of `fp8.attention` or `fp8.attention_grad` stands
    for: its site, role, and the kinds of its operands, and why it is in high precision.

    Example: `#fp8.matmul_site<site = "h0/scores", role = other, lhs_kind = input, rhs_kind = input, kept = "--recipe=none">`
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$site,
                        FP8_EnumParam<"Role", "other">:$role,
                        FP8_EnumParam<"TensorKind", "input">:$lhs_kind,
                        FP8_EnumParam<"TensorKind", "input">:$rhs_kind,
                        OptionalParameter<"::mlir::StringAttr">:$kept);
  let assemblyFormat = "`<` struct(params) `>`";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def FP8_GivenFamily : OptionalParameter<"std::optional<::fp8::MatmulFamily>"> {
  let parser = "::mlir::FieldParser<::fp8::MatmulFamily>::parse($_parser)";
  let printer = "$_printer << ::fp8::stringifyMatmulFamily(*$_self)";
}
def FP8_GivenBool : OptionalParameter<"std::optional<bool>"> {
  let parser = "::mlir::FieldParser<bool>::parse($_parser)";
  let printer = "$_printer << (*$_self ? \"true\" : \"false\")";
}

def FP8_MatmulConfigAttr : AttrDef<FP8_Dialect, "MatmulConfig"> {
  let mnemonic = "product_config";
  let summary = "how a kernel of a GPU computes a matmul";
  let description = [{
    The value of the attribute `fp8.config` of a matmul. `fp8-choose-configs` chooses what is not
    given, so a user or a tuner names only what is to differ from the compiler's choice.

    - `family`: the instructions: `wgmma` on sm_90a, `tcgen05` on sm_100a, `mma` on every chip.
    - `tile_m`, `tile_n`: rows and columns of the result that a block of threads computes at a time.
    - `stages`: buffers in shared memory that loads fill ahead of the matmuls.
    - `swapped`: whether the kernel computes the transposed matmul, so that `tile_m` counts columns of the
      result and `tile_n` rows; not for `mma`.

    Example: `#fp8.product_config<family = wgmma, tile_n = 64, swapped = true>`
  }];
  let parameters = (ins FP8_GivenFamily:$family, DefaultValuedParameter<"int64_t", "0">:$tile_m,
                        DefaultValuedParameter<"int64_t", "0">:$tile_n,
                        DefaultValuedParameter<"int64_t", "0">:$stages, FP8_GivenBool:$swapped);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // FP8_DIALECT_FP8_IR_FP8ATTRIBUTES_TD
