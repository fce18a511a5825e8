// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest, from the IR after the recipe stage to JSON.

#include "fp8/Pipelines/Manifest.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace fp8;

/// Version of the manifest's layout.
static constexpr int64_t kManifestVersion = 1;

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

/// `attrs` are those of the argument or result; may be null.
static ManifestValue describeValue(Type type, std::string name, DictionaryAttr attrs) {
  StringAttr state = attrs ? attrs.getAs<StringAttr>(kStateAttrName) : StringAttr();
  ManifestValue value;
  value.name = state ? state.str() : std::move(name);
  value.kind = state ? "state" : attrs && attrs.contains(kResidualAttrName) ? "residual" : "user";
  value.type = typeName(getCallersType(type, attrs));
  if (auto shaped = dyn_cast<ShapedType>(type))
    value.shape = SmallVector<int64_t>(shaped.getShape());
  return value;
}

static ManifestEntry describeEntry(func::FuncOp function) {
  ManifestEntry entry;
  entry.name = function.getName().str();
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    entry.arguments.push_back(
        describeValue(argument.getType(), getArgumentName(argument), function.getArgAttrDict(i)));
    if (auto alias = function.getArgAttrOfType<IntegerAttr>(i, kCarriedAttrName))
      entry.arguments.back().alias = alias.getInt();
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    std::string name = "result" + std::to_string(i);
    if (auto info = function.getResultAttrOfType<StringAttr>(i, "jax.result_info"))
      name = info.str();
    entry.results.push_back(describeValue(type, name, function.getResultAttrDict(i)));
  }
  // An index that is no result's is an error of fp8-bind-results, later.
  auto resultCount = static_cast<int64_t>(entry.results.size());
  for (auto [i, argument] : llvm::enumerate(entry.arguments))
    if (argument.alias && *argument.alias >= 0 && *argument.alias < resultCount)
      entry.results[*argument.alias].alias = i;
  return entry;
}

/// The columns and tensors of the state.
static llvm::json::Object describeState(const StateLayout &layout) {
  llvm::json::Array columns;
  for (auto [i, column] : llvm::enumerate(layout.getColumns()))
    columns.push_back(llvm::json::Object{
        {"index", static_cast<int64_t>(i)},
        {"sites", llvm::json::Array(column.sites)},
        {"tensor", stringifyTensorKind(column.kind).str()},
        {"format", getFormatName(column.format)},
        {"fp8_max", getFP8Max(column.format)},
    });
  auto count = static_cast<int64_t>(columns.size());
  llvm::json::Array tensors;
  if (count > 0) {
    tensors.push_back(llvm::json::Object{
        {"name", "scale"}, {"type", "f32"}, {"shape", llvm::json::Array{count}}, {"initial", 1.0}});
    tensors.push_back(llvm::json::Object{{"name", "amax_history"},
                                         {"type", "f32"},
                                         {"shape", llvm::json::Array{layout.getHistoryLength(), count}},
                                         {"initial", 0.0}});
  }
  return llvm::json::Object{
      {"layout_hash", layout.getHash()}, {"columns", std::move(columns)}, {"tensors", std::move(tensors)}};
}

Manifest fp8::describeModule(ModuleOp module, StringRef recipe, StringRef target) {
  Manifest manifest;
  manifest.recipe = recipe.str();
  manifest.target = target.str();
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      manifest.entries.push_back(describeEntry(function));
  StateLayout layout = StateLayout::readFrom(module);
  manifest.state = describeState(layout);
  manifest.stateBytes =
      static_cast<int64_t>(layout.getColumns().size() * sizeof(float)) * (1 + layout.getHistoryLength());
  return manifest;
}

void fp8::addWorkspaceSizes(Manifest &manifest, ModuleOp module) {
  for (ManifestEntry &entry : manifest.entries)
    if (Operation *function = module.lookupSymbol("fp8_call_" + entry.name))
      if (auto bytes = function->getAttrOfType<IntegerAttr>(kWorkspaceBytesAttrName))
        entry.workspaceBytes = bytes.getInt();
}

/// Dynamic sizes are null.
static llvm::json::Array shapeToJSON(ArrayRef<int64_t> shape) {
  llvm::json::Array list;
  for (int64_t size : shape)
    list.push_back(ShapedType::isDynamic(size) ? llvm::json::Value(nullptr) : llvm::json::Value(size));
  return list;
}

static llvm::json::Object valueToJSON(const ManifestValue &value, int64_t index) {
  return llvm::json::Object{{"index", index},
                            {"name", value.name},
                            {"type", value.type},
                            {"shape", shapeToJSON(value.shape)},
                            {"kind", value.kind}};
}

static llvm::json::Object entryToJSON(const ManifestEntry &entry) {
  llvm::json::Array arguments, results;
  for (auto [i, value] : llvm::enumerate(entry.arguments)) {
    llvm::json::Object argument = valueToJSON(value, i);
    argument["carry"] = value.alias;
    argument["written"] = value.alias.has_value();
    arguments.push_back(std::move(argument));
  }
  for (auto [i, value] : llvm::enumerate(entry.results)) {
    llvm::json::Object result = valueToJSON(value, i);
    result["alias"] = value.alias;
    results.push_back(std::move(result));
  }
  return llvm::json::Object{{"name", entry.name},
                            {"arguments", std::move(arguments)},
                            {"results", std::move(results)},
                            {"workspace_bytes", entry.workspaceBytes},
                            {"workspace_alignment", static_cast<int64_t>(kWorkspaceAlignment)}};
}

static llvm::json::Value processorToJSON(const RequiredProcessor &processor) {
  if (processor.name.empty())
    return nullptr;
  return llvm::json::Object{{"name", processor.name}, {"features", llvm::json::Array(processor.features)}};
}

llvm::json::Object fp8::manifestToJSON(const Manifest &manifest, const std::vector<SiteRecord> &sites) {
  llvm::json::Array entries;
  for (const ManifestEntry &entry : manifest.entries)
    entries.push_back(entryToJSON(entry));
  return llvm::json::Object{{"version", kManifestVersion},
                            {"recipe", manifest.recipe},
                            {"target", manifest.target},
                            {"options", optionsToJSON(manifest.options)},
                            {"entries", std::move(entries)},
                            {"state", llvm::json::Object(manifest.state)},
                            {"cpu", processorToJSON(manifest.processor)},
                            {"sites", sitesToJSON(sites)}};
}
