// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RecipeAttrInterface: all that the compiler asks a recipe. A recipe of another
// project implements it on an attribute of its own; no pass knows the recipes by name.

#ifndef FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
#define FP8_DIALECT_FP8_IR_FP8INTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8_RecipeAttrInterface : AttrInterface<"RecipeAttrInterface"> {
  let cppNamespace = "::fp8";
  let description = [{
    How tensors become FP8: which format, at which granularity they share a
    scale, and where the scale comes from. Passes ask these questions and
    nothing else, so a recipe defined outside this project works throughout.
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
      A function of the module, `(amax: f32, fp8_max: f32, old: f32) -> f32`, that
      replaces the recipe's rule for the scale; null for none.
    }], "::mlir::FlatSymbolRefAttr", "getScaleFunction", (ins), "", "return {};">,
    InterfaceMethod<[{
      A function of the module, `(column: tensor<?xf32>) -> f32`, that replaces the
      recipe's choice of an amax from the history; null for none.
    }], "::mlir::FlatSymbolRefAttr", "getAmaxFunction", (ins), "", "return {};">,
    InterfaceMethod<[{
      Every parameter with the value in force, defaults included: for reports.
    }], "::llvm::SmallVector<::mlir::NamedAttribute>", "getParameters", (ins), "", "return {};">,
    InterfaceMethod<[{
      The word for reports: "delayed", "current", …
    }], "::llvm::StringRef", "getRecipeName", (ins)>
  ];
}

#endif // FP8_DIALECT_FP8_IR_FP8INTERFACES_TD
