// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names kernels after the lowering that created them, or after their operation; the site comes from
// the location, as the names of matmuls do.

#include "KernelNames.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Conversion/Kernel.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace fp8;

/// Leaves room for a suffix that makes the symbol unique: symbols have at most 60 characters.
static constexpr size_t kLongestSymbol = 54;

std::string KernelName::getSymbol() const {
  std::string symbol = kKernelPrefix.str();
  bool atBreak = true; // no two breaks in a row
  for (char c : computes + "_" + site) {
    bool isLetter = llvm::isAlnum(c);
    if (isLetter || !atBreak)
      symbol += isLetter ? c : '_';
    atBreak = !isLetter;
  }
  symbol.resize(std::min(symbol.size(), kLongestSymbol));
  while (StringRef(symbol).ends_with("_"))
    symbol.pop_back();
  return symbol;
}

std::string fp8::makeUnique(StringRef name, function_ref<bool(StringRef)> isTaken) {
  std::string unique = name.str();
  for (unsigned suffix = 2; isTaken(unique); ++suffix)
    unique = (name + "_" + Twine(suffix)).str();
  return unique;
}

/// Returns the kind of code that a lowering named; empty for other words.
static StringRef findKind(StringRef computes) {
  return llvm::StringSwitch<StringRef>(computes)
      .Case("epilogue", "epilogues")
      .Cases({"quantize", "dequantize", "amax"}, "casts")
      .Cases({"update_amax_history", "compute_scale", "all_reduce"}, "history")
      .Cases({"rows", "quantize_rows"}, "rows")
      .Cases({"copy", "fill", "transpose", "broadcast", "map"}, "copies")
      .Default("");
}

/// Returns the mark of the first matmul that `op` computes; null if it computes none.
static DictionaryAttr findMatmul(Operation *op) {
  DictionaryAttr matmul;
  op->walk([&](Operation *inner) {
    auto marks = inner->getAttrOfType<ArrayAttr>(kMatmulsAttrName);
    if (!marks || marks.empty())
      return WalkResult::advance();
    matmul = dyn_cast<DictionaryAttr>(marks[0]);
    return WalkResult::interrupt();
  });
  return matmul;
}

/// Returns the word that the lowering left on the operation itself or, around rows, on those inside.
static std::string findComputes(Operation *op) {
  if (auto word = op->getAttrOfType<StringAttr>(kComputesAttrName))
    return word.str();
  if (!op->hasAttr(kKernelAttrName))
    return "";
  bool quantizes = false;
  op->walk([&](Operation *inner) {
    auto word = inner->getAttrOfType<StringAttr>(kComputesAttrName);
    quantizes |= word && word.getValue() == "quantize";
  });
  return quantizes ? "quantize_rows" : "rows";
}

/// Names a kernel after the matmul that it computes.
static KernelName nameMatmul(DictionaryAttr matmul) {
  auto read = [&](StringRef field) {
    auto text = matmul.getAs<StringAttr>(field);
    return text ? text.str() : "";
  };
  return {"product_" + read("role"), read("site"), "products"};
}

/// Names a linalg op by what its body computes. A body of several operations is fused code, which
/// the primitive of its location, one of theirs, would not describe.
static std::string describeLinalg(linalg::LinalgOp op, StringRef primitive) {
  if (!isa<linalg::GenericOp>(op))
    return op->getName().stripDialect().str();
  size_t operations = op.getBlock()->getOperations().size() - 1;
  bool isWord =
      !primitive.empty() && llvm::all_of(primitive, [](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (op.getNumReductionLoops() != 0)
    return isWord && primitive.starts_with("reduce") ? primitive.str() : "reduce";
  if (operations == 0) {
    bool reads =
        llvm::any_of(op.getDpsInputs(), [](Value value) { return isa<MemRefType>(value.getType()); });
    return !reads                                                          ? "fill"
           : op.hasOnlyProjectedPermutations() && primitive == "transpose" ? "transpose"
                                                                           : "copy";
  }
  return operations == 1 && isWord ? primitive.str() : "elementwise";
}

/// Returns the name of the carried argument that `op` writes, or an empty string.
static std::string findUpdatedArgument(linalg::LinalgOp op) {
  for (Value out : op.getDpsInits()) {
    while (auto view = out.getDefiningOp<ViewLikeOpInterface>())
      out = view.getViewSource();
    auto argument = dyn_cast<BlockArgument>(out);
    auto entry = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    if (entry && entry.getArgAttr(argument.getArgNumber(), kCarriedAttrName))
      return getArgumentName(argument);
  }
  return "";
}

/// Returns the first function, such as exp, that the kernel computes; empty if there is none. It often
/// takes most of the time, and tells fused kernels apart.
static StringRef findFunction(Operation *op) {
  StringRef function;
  op->walk([&](Operation *inner) {
    if (!isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log1pOp, math::Log2Op, math::TanhOp,
             math::ErfOp, math::PowFOp, math::SinOp, math::CosOp, math::RsqrtOp>(inner))
      return WalkResult::advance();
    function = inner->getName().stripDialect();
    return WalkResult::interrupt();
  });
  return function;
}

KernelName fp8::nameKernel(Operation *op) {
  if (DictionaryAttr matmul = findMatmul(op)) {
    KernelName name = nameMatmul(matmul);
    if (op->hasAttr(kTasksAttrName)) // which compute more than a matmul
      name = {findComputes(op), name.site, "attention"};
    return name;
  }
  NameStack stack = parseNameStack(op->getLoc());
  KernelName name{findComputes(op), stack.site, ""};
  auto structured = dyn_cast<linalg::LinalgOp>(op);
  if (name.computes.empty())
    name.computes = structured                ? describeLinalg(structured, stack.primitive)
                    : isa<memref::CopyOp>(op) ? "copy"
                                              : "loop";
  bool isReduction = structured && structured.getNumReductionLoops() != 0;
  name.kind = findKind(name.computes);
  if (name.kind.empty())
    name.kind = isReduction ? "reductions" : "elementwise";
  if (name.site.empty() && structured)
    name.site = findUpdatedArgument(structured);
  if (stack.site.empty() && !name.site.empty() && name.computes == "elementwise")
    name.computes = "update";
  StringRef function = findFunction(op);
  if (!function.empty() && function != name.computes)
    name.computes += ("_" + function).str();
  return name;
}
