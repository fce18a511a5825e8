// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects the decisions on contractions, and writes them as JSON.

#include "fp8/Report/Report.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/LookAlikes.h"
#include "fp8/Analysis/RowGroups.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Analysis/DataFlow/LivenessAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace fp8;

/// Returns the product of the sizes of `dims`; unset if one is dynamic.
static std::optional<int64_t> extentOf(ArrayRef<unsigned> dims, ArrayRef<int64_t> ranges) {
  int64_t extent = 1;
  for (unsigned d : dims) {
    if (ShapedType::isDynamic(ranges[d]))
      return std::nullopt;
    extent *= ranges[d];
  }
  return extent;
}

/// Fills in the fields that all matmuls have: names, sizes and location.
template <typename Op>
static SiteRecord describeMatmul(Op op) {
  SiteRecord record;
  record.entry = op->template getParentOfType<func::FuncOp>().getName().str();
  record.site = op.getSite().value_or("").str();
  record.role = op.getRole().value_or(Role::other);
  ContractionDims dims = op.getContractionDims();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  // The rows of all groups together are those of one matmul.
  if (std::optional<GroupedMatmul> grouped =
          matchGroupedMatmul(op.getLhs(), op.getRhs(), op.getIndexingMapsArray()))
    ranges[inferGroupedDims(grouped->maps)->group] = 1;
  record.batch = extentOf(dims.batch, ranges);
  record.m = extentOf(dims.m, ranges);
  record.n = extentOf(dims.n, ranges);
  record.k = extentOf(dims.k, ranges);
  record.location = describeLocation(op.getLoc());
  record.formats[0] = getFormatName(getElementTypeOrSelf(op.getLhs()));
  record.formats[1] = getFormatName(getElementTypeOrSelf(op.getRhs()));
  return record;
}

/// Returns the bytes of both operands, of `bits` per element; unset if a size is dynamic.
template <typename Op>
static std::optional<int64_t> countOperandBytes(Op op, ArrayRef<unsigned> bits) {
  Value operands[] = {op.getLhs(), op.getRhs()};
  if (std::optional<GroupedMatmul> grouped =
          matchGroupedMatmul(op.getLhs(), op.getRhs(), op.getIndexingMapsArray()))
    operands[0] = grouped->lhs, operands[1] = grouped->rhs;
  int64_t bytes = 0;
  for (auto [operand, width] : llvm::zip_equal(operands, bits)) {
    auto type = cast<ShapedType>(operand.getType());
    if (!type.hasStaticShape())
      return std::nullopt;
    bytes += type.getNumElements() * width / 8;
  }
  return bytes;
}

static SiteRecord describe(MatmulOp op) {
  SiteRecord record = describeMatmul(op);
  record.isFP8 = !op.getKept();
  if (record.isFP8) {
    RecipeAttrInterface recipe = *op.getRecipe();
    record.recipe = recipe.getRecipeName().str();
    TensorKind kinds[] = {*op.getLhsKind(), *op.getRhsKind()};
    for (unsigned i : {0u, 1u}) {
      auto own = getViewSource(op->getOperand(i)).getDefiningOp<DequantizeOp>();
      record.formats[i] =
          getFormatName(own ? getElementTypeOrSelf(own.getData()) : Type(recipe.getFormat(kinds[i])));
      if (own)
        record.recipe = "own";
    }
    record.operandBytes = countOperandBytes(op, {8, 8});
    return record;
  }
  record.operandBytes = countOperandBytes(op, {getElementTypeOrSelf(op.getLhs()).getIntOrFloatBitWidth(),
                                               getElementTypeOrSelf(op.getRhs()).getIntOrFloatBitWidth()});
  record.reason = op.getKept()->str();
  record.recipe = "none";
  return record;
}

/// Describes a matmul that the program has in FP8 with scales of its own.
static SiteRecord describe(ScaledMatmulOp op) {
  SiteRecord record = describeMatmul(op);
  record.isFP8 = true;
  record.recipe = op.getRecipe() ? op.getRecipe()->getRecipeName().str() : "own";
  record.operandBytes = countOperandBytes(op, {8, 8});
  return record;
}

std::vector<SiteRecord> fp8::collectSites(ModuleOp module) {
  std::vector<SiteRecord> sites;
  dataflow::RunLivenessAnalysis liveness(module);
  module.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      sites.push_back(describe(matmul));
    else if (auto scaled = dyn_cast<ScaledMatmulOp>(op))
      sites.push_back(describe(scaled));
    else
      return;
    sites.back().isNeeded = llvm::any_of(op->getResults(), [&](Value result) {
      const dataflow::Liveness *state = liveness.getLiveness(result);
      return !state || state->isLive;
    });
  });
  return sites;
}

std::vector<LookAlikeRecord> fp8::collectLookAlikes(ModuleOp module) {
  std::vector<LookAlikeRecord> records;
  module.walk([&](linalg::LinalgOp op) {
    if (std::string reason = explainLookAlike(op); !reason.empty())
      records.push_back({op->getParentOfType<func::FuncOp>().getName().str(),
                         op->getName().getStringRef().str(), reason, describeLocation(op->getLoc())});
  });
  return records;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Array fp8::sitesToJSON(const std::vector<SiteRecord> &sites) {
  llvm::json::Array list;
  for (const SiteRecord &record : sites)
    list.push_back(llvm::json::Object{
        {"entry", record.entry},
        {"site", record.site},
        {"role", stringifyRole(record.role).str()},
        {"batch", record.batch},
        {"m", record.m},
        {"n", record.n},
        {"k", record.k},
        {"decision", record.isFP8 ? "fp8" : "high"},
        {"reason", record.reason},
        {"recipe", record.recipe},
        {"formats", llvm::json::Array{record.formats[0], record.formats[1]}},
        {"operand_bytes", record.operandBytes},
        {"code", record.code.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(record.code)},
        {"location", record.location},
    });
  return list;
}

static llvm::json::Array lookAlikesToJSON(const std::vector<LookAlikeRecord> &records) {
  llvm::json::Array list;
  for (const LookAlikeRecord &record : records)
    list.push_back(llvm::json::Object{{"entry", record.entry},
                                      {"op", record.op},
                                      {"reason", record.reason},
                                      {"location", record.location}});
  return list;
}

static llvm::json::Array unusedToJSON(const std::vector<UnusedOption> &options) {
  llvm::json::Array list;
  for (const UnusedOption &unused : options)
    list.push_back(
        llvm::json::Object{{"option", unused.option}, {"place", unused.place}, {"message", unused.message}});
  return list;
}

llvm::json::Object fp8::optionsToJSON(const OptionValues &options) {
  llvm::json::Object object;
  for (const auto &[name, value] : options)
    object[name] = value;
  return object;
}

llvm::json::Object fp8::reportToJSON(const Report &report) {
  llvm::json::Object memory;
  for (const MemoryFigure &figure : report.memory)
    memory[figure.key] = figure.bytes;
  memory["traffic"] = trafficToJSON(report.traffic);
  if (!report.parameters.empty())
    memory["fp8_parameters"] = parametersToJSON(report.parameters);
  return llvm::json::Object{{"options", optionsToJSON(report.options)},
                            {"unused_options", unusedToJSON(report.unusedOptions)},
                            {"weighed_recipes", llvm::json::Array(report.weighedRecipes)},
                            {"sites", sitesToJSON(report.sites)},
                            {"attention", attentionToJSON(report.attention)},
                            {"others", lookAlikesToJSON(report.others)},
                            {"collectives", collectivesToJSON(report.collectives)},
                            {"memory", std::move(memory)},
                            {"predicted_steps", kernelsToJSON(report.steps)}};
}
