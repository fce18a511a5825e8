// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collects and prints the decisions on contractions.

#include "fp8/Pipelines/Report.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/LookAlikes.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fp8;

static constexpr llvm::StringLiteral kFP8Code = "packed f32 products of decoded FP8 (CPU)";

/// The product of the sizes of `dims`; unset where one is dynamic.
static std::optional<int64_t> extentOf(ArrayRef<unsigned> dims, ArrayRef<int64_t> ranges) {
  int64_t extent = 1;
  for (unsigned d : dims) {
    if (ShapedType::isDynamic(ranges[d]))
      return std::nullopt;
    extent *= ranges[d];
  }
  return extent;
}

/// What all products have: names, sizes and a place.
template <typename Op>
static SiteRecord describeProduct(Op op) {
  SiteRecord record;
  record.entry = op->template getParentOfType<func::FuncOp>().getName().str();
  record.site = op.getSite().value_or("").str();
  record.role = op.getRole().value_or(Role::other);
  ContractionDims dims = op.getContractionDims();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  record.batch = extentOf(dims.batch, ranges);
  record.m = extentOf(dims.m, ranges);
  record.n = extentOf(dims.n, ranges);
  record.k = extentOf(dims.k, ranges);
  record.location = describeLocation(op.getLoc());
  record.formats[0] = getFormatName(getElementTypeOrSelf(op.getLhs()));
  record.formats[1] = getFormatName(getElementTypeOrSelf(op.getRhs()));
  return record;
}

static SiteRecord describe(MatmulOp op, RecipeAttrInterface recipe) {
  SiteRecord record = describeProduct(op);
  record.isFP8 = !op.getKept();
  if (record.isFP8) {
    RecipeAttrInterface ofRole = recipe.getRecipeFor(record.role);
    record.recipe = ofRole.getRecipeName().str();
    TensorKind kinds[] = {*op.getLhsKind(), *op.getRhsKind()};
    for (unsigned i : {0u, 1u}) {
      auto own = getViewSource(op->getOperand(i)).getDefiningOp<DequantizeOp>();
      record.formats[i] =
          getFormatName(own ? getElementTypeOrSelf(own.getData()) : Type(ofRole.getFormat(kinds[i])));
      if (own)
        record.recipe = "own";
    }
    record.code = kFP8Code.str();
    return record;
  }
  record.reason = op.getKept()->str();
  record.recipe = "none";
  bool hasF64 =
      llvm::any_of(op->getOperands(), [](Value value) { return getElementTypeOrSelf(value).isF64(); });
  record.code = hasF64 ? "f64 loops (CPU)" : "packed f32 products (CPU)";
  return record;
}

/// A product that was in FP8 before our recipe: it has the scales that the program gave it.
static SiteRecord describe(ScaledMatmulOp op) {
  SiteRecord record = describeProduct(op);
  record.isFP8 = true;
  record.recipe = op.getRecipe() ? op.getRecipe()->getRecipeName().str() : "own";
  record.code = kFP8Code.str();
  return record;
}

std::vector<SiteRecord> fp8::collectSites(ModuleOp module, RecipeAttrInterface recipe) {
  std::vector<SiteRecord> sites;
  module.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      sites.push_back(describe(matmul, recipe));
    else if (auto scaled = dyn_cast<ScaledMatmulOp>(op))
      sites.push_back(describe(scaled));
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
        {"code", record.code},
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

llvm::json::Object fp8::optionsToJSON(const OptionValues &options) {
  llvm::json::Object object;
  for (const auto &[name, value] : options)
    object[name] = value;
  return object;
}

llvm::json::Object fp8::reportToJSON(const Report &report) {
  return llvm::json::Object{{"options", optionsToJSON(report.options)},
                            {"sites", sitesToJSON(report.sites)},
                            {"others", lookAlikesToJSON(report.others)},
                            {"memory", llvm::json::Object{{"state_bytes", report.stateBytes},
                                                          {"workspace_bytes", report.workspaceBytes},
                                                          {"traffic", trafficToJSON(report.traffic)}}}};
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string shapeOf(const SiteRecord &record) {
  auto text = [](std::optional<int64_t> size) { return size ? std::to_string(*size) : "?"; };
  std::string shape = text(record.m) + " x " + text(record.n) + " x " + text(record.k);
  return record.batch && *record.batch == 1 ? shape : text(record.batch) + " * " + shape;
}

/// Cells padded to the width of their column, the last one free.
static void printTable(ArrayRef<std::vector<std::string>> rows, raw_ostream &os) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto &row : rows)
    for (auto [c, cell] : llvm::enumerate(row))
      widths[c] = std::max(widths[c], cell.size());
  for (const auto &row : rows) {
    for (size_t c = 0; c + 1 < row.size(); ++c)
      os << llvm::left_justify(row[c], widths[c] + 2);
    os << row.back() << "\n";
  }
}

static std::vector<std::string> cellsOf(const SiteRecord &record) {
  return {record.site,
          stringifyRole(record.role).str(),
          shapeOf(record),
          record.isFP8 ? "FP8" : "high",
          record.formats[0] + " x " + record.formats[1],
          record.isFP8 ? record.recipe + " scaling" : record.reason};
}

/// How many became FP8, and why the others did not.
static void printSummary(ArrayRef<SiteRecord> sites, raw_ostream &os) {
  llvm::MapVector<StringRef, unsigned> reasons;
  for (const SiteRecord &record : sites)
    if (!record.isFP8)
      ++reasons[record.reason];
  auto inFP8 = llvm::count_if(sites, [](const SiteRecord &record) { return record.isFP8; });
  os << sites.size() << " contractions: " << inFP8 << " in FP8, " << sites.size() - inFP8
     << " in high precision\n";
  for (const auto &[reason, count] : reasons)
    os << "  " << count << " kept: " << reason << "\n";
}

/// What is no matrix product of floats, though it looks like one.
static void printLookAlikes(ArrayRef<LookAlikeRecord> records, raw_ostream &os) {
  if (records.empty())
    return;
  std::vector<std::vector<std::string>> rows{{"not a matrix product of floats", "why", "where"}};
  for (const LookAlikeRecord &record : records)
    rows.push_back({record.op, record.reason, record.location});
  os << "\n";
  printTable(rows, os);
}

/// "name=value" for each option, in lines of moderate length.
static void printOptions(const OptionValues &options, raw_ostream &os) {
  constexpr size_t kWidth = 100;
  std::string line = "options:";
  for (const auto &[name, value] : options) {
    std::string text;
    if (auto string = value.getAsString())
      text = string->str();
    else if (value != llvm::json::Value(nullptr))
      llvm::raw_string_ostream(text) << value;
    else
      text = "-";
    if (line.size() + name.size() + text.size() + 2 > kWidth) {
      os << line << "\n";
      line = " ";
    }
    line += " " + name + "=" + text;
  }
  os << line << "\n";
}

void fp8::printReport(const Report &report, raw_ostream &os) {
  // One table per entry, in the order of the program.
  llvm::MapVector<StringRef, std::vector<std::vector<std::string>>> tables;
  for (const SiteRecord &record : report.sites) {
    auto &rows = tables[record.entry];
    if (rows.empty())
      rows.push_back({"site", "role", "M x N x K", "decision", "formats", "why"});
    rows.push_back(cellsOf(record));
  }
  for (const auto &[entry, rows] : tables) {
    if (tables.size() > 1)
      os << "function " << entry << "\n";
    printTable(rows, os);
    os << "\n";
  }
  printSummary(report.sites, os);
  printOptions(report.options, os);
  if (report.stateBytes > 0)
    os << "FP8 state: " << report.stateBytes << " bytes\n";
  if (report.workspaceBytes > 0)
    os << "workspace: " << report.workspaceBytes << " bytes\n";
  printTraffic(report.traffic, os);
  printLookAlikes(report.others, os);
}
