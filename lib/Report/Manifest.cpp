// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the manifest from the IR after stage 2, and writes it as JSON.

#include "fp8/Report/Manifest.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace fp8;

/// The version of the manifest's format.
static constexpr int64_t kManifestVersion = 1;

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << getElementTypeOrSelf(type);
  return text;
}

/// `attrs` are the attributes of the argument or result; may be null.
static ManifestValue describeValue(Type type, std::string name, DictionaryAttr attrs) {
  StringAttr state = attrs ? attrs.getAs<StringAttr>(kStateAttrName) : StringAttr();
  if (attrs && !state)
    state = attrs.getAs<StringAttr>(kProgramStateAttrName);
  ManifestValue value;
  value.name = state ? state.str() : std::move(name);
  value.kind = state ? "state" : attrs && attrs.contains(kResidualAttrName) ? "residual" : "user";
  value.type = typeName(getCallersType(type, attrs));
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    value.shape = SmallVector<int64_t>(shaped.getShape());
    value.bytes = getStoredBytes(shaped);
  }
  if (auto shards = attrs ? attrs.getAs<DenseI64ArrayAttr>(kShardAttrName) : DenseI64ArrayAttr())
    for (int64_t i = 0; i < shards.size(); i += 2)
      value.shards.emplace_back(shards[i], shards[i + 1]);
  return value;
}

static void describeCasts(func::FuncOp function, ManifestEntry &entry) {
  auto parameters = function->getAttrOfType<DictionaryAttr>(kParametersAttrName);
  if (!parameters)
    return;
  auto getNumbers = [](DictionaryAttr attrs) {
    return llvm::to_vector(attrs.getAs<DenseI64ArrayAttr>("arguments").asArrayRef());
  };
  entry.initializer = parameters.getAs<StringAttr>("entry").str();
  entry.initializerArguments = getNumbers(parameters);
  for (auto attrs : parameters.getAs<ArrayAttr>("casts").getAsRange<DictionaryAttr>()) {
    ManifestCast cast{getNumbers(attrs), {}};
    for (StringRef name : attrs.getAs<ArrayAttr>("tensors").getAsValueRange<StringAttr>())
      cast.tensors.push_back(name.str());
    entry.casts.push_back(std::move(cast));
  }
}

/// Notes that an argument of --data-parallel is a part of the batch, before other divisions of it.
static void describeBatch(func::FuncOp function, unsigned argument, ManifestValue &value) {
  auto dim = function.getArgAttrOfType<IntegerAttr>(argument, kBatchAttrName);
  auto axis = function->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(kBatchAxisAttrName);
  if (!dim || !axis)
    return;
  value.isBatch = true;
  if (dim.getInt() >= 0)
    value.shards.insert(value.shards.begin(), {axis.getInt(), dim.getInt()});
}

static ManifestEntry describeEntry(func::FuncOp function) {
  ManifestEntry entry;
  entry.name = function.getName().str();
  describeCasts(function, entry);
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    entry.arguments.push_back(
        describeValue(argument.getType(), getArgumentName(argument), function.getArgAttrDict(i)));
    if (auto alias = function.getArgAttrOfType<IntegerAttr>(i, kCarriedAttrName))
      entry.arguments.back().alias = alias.getInt();
    describeBatch(function, i, entry.arguments.back());
  }
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    std::string name = "result" + std::to_string(i);
    if (auto info = function.getResultAttrOfType<StringAttr>(i, "jax.result_info"))
      name = info.str();
    entry.results.push_back(describeValue(type, name, function.getResultAttrDict(i)));
  }
  // fp8-bind-results reports an index that is not the number of a result.
  auto resultCount = static_cast<int64_t>(entry.results.size());
  for (auto [i, argument] : llvm::enumerate(entry.arguments)) {
    if (argument.alias && *argument.alias >= 0 && *argument.alias < resultCount)
      entry.results[*argument.alias].alias = i;
    if (auto returned = function.getArgAttrOfType<IntegerAttr>(i, kReturnedAttrName))
      if (returned.getInt() >= 0 && returned.getInt() < resultCount)
        entry.results[returned.getInt()].alias = i;
  }
  return entry;
}

/// Writes as a string what JSON has no number for: NaN, and -0, which parsers read as an integer without
/// sign.
static llvm::json::Value realToJSON(double value) {
  return value == 0 && std::signbit(value) ? llvm::json::Value("-0.0") : llvm::json::Value(value);
}

/// Returns a number if all elements are equal, otherwise a list in row-major order; NaN is a string.
static llvm::json::Value initialToJSON(DenseElementsAttr values) {
  llvm::json::Array list;
  int64_t count = values.isSplat() ? 1 : values.getNumElements();
  bool isBool = values.getElementType().isInteger(1);
  if (isa<FloatType>(values.getElementType()))
    for (APFloat value :
         llvm::make_range(values.value_begin<APFloat>(), values.value_begin<APFloat>() + count))
      list.push_back(value.isNaN() ? llvm::json::Value("nan") : realToJSON(value.convertToDouble()));
  else
    for (APInt value : llvm::make_range(values.value_begin<APInt>(), values.value_begin<APInt>() + count))
      list.push_back(isBool ? int64_t(value.getZExtValue()) : value.getSExtValue());
  return values.isSplat() ? std::move(list.front()) : llvm::json::Value(std::move(list));
}

/// Describes the state tensors that globals of the program and casts of weights became, in the order of the
/// arguments. Tensors that can be computed from arguments are `derived`: they are not saved.
static void describeProgramState(ModuleOp module, llvm::json::Array &tensors) {
  llvm::StringSet<> known;
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments()) {
      unsigned i = argument.getArgNumber();
      auto name = function.getArgAttrOfType<StringAttr>(i, kProgramStateAttrName);
      auto initial = function.getArgAttrOfType<DenseElementsAttr>(i, kInitialAttrName);
      if (!name || !initial || !known.insert(name.getValue()).second)
        continue;
      llvm::json::Object tensor{{"name", name.str()},
                                {"type", typeName(initial.getType())},
                                {"shape", llvm::json::Array(initial.getType().getShape())},
                                {"initial", initialToJSON(initial)}};
      if (function.getArgAttr(i, kDerivedAttrName))
        tensor["derived"] = true;
      tensors.push_back(std::move(tensor));
    }
}

/// Describes the columns and tensors of the state.
static llvm::json::Object describeState(ModuleOp module, const StateLayout &layout) {
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
  describeProgramState(module, tensors);
  return llvm::json::Object{
      {"layout_hash", layout.getHash()}, {"columns", std::move(columns)}, {"tensors", std::move(tensors)}};
}

/// Describes the grid of ranks: {"shape": [4, null], "axes": ["0", "1"]}.
static llvm::json::Value describeGrid(ModuleOp module) {
  auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  if (!grid)
    return nullptr;
  llvm::json::Array shape, axes;
  for (int64_t size : grid.asArrayRef())
    shape.push_back(ShapedType::isDynamic(size) ? llvm::json::Value(nullptr) : llvm::json::Value(size));
  if (auto names = module->getAttrOfType<ArrayAttr>(kGridAxesAttrName))
    for (StringRef name : names.getAsValueRange<StringAttr>())
      axes.push_back(name);
  else
    for (int64_t axis = 0; axis < grid.size(); ++axis)
      axes.push_back(std::to_string(axis));
  return llvm::json::Object{{"shape", std::move(shape)}, {"axes", std::move(axes)}};
}

/// Returns 16 hexadecimal digits that depend on the code of the module's functions.
static std::string hashProgram(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto function : module.getOps<func::FuncOp>())
    function.print(os, OpPrintingFlags().useLocalScope());
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
}

void fp8::describeCollectives(Manifest &manifest, ModuleOp module,
                              const std::vector<CollectiveRecord> &collectives) {
  manifest.collectives = collectives;
  if (module->hasAttr(kGridAttrName))
    manifest.programHash = hashProgram(module);
}

Manifest fp8::describeModule(ModuleOp module, StringRef recipe, StringRef target) {
  Manifest manifest;
  manifest.recipe = recipe.str();
  manifest.target = target.str();
  manifest.workspaceAlignment = getTarget(module).getBufferAlignment();
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      manifest.entries.push_back(describeEntry(function));
  manifest.grid = describeGrid(module);
  if (auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName))
    manifest.gridShape = SmallVector<int64_t>(grid.asArrayRef());
  StateLayout layout = StateLayout::readFrom(module);
  manifest.state = describeState(module, layout);
  manifest.stateBytes =
      static_cast<int64_t>(layout.getColumns().size() * sizeof(float)) * (1 + layout.getHistoryLength());
  return manifest;
}

void fp8::describeCode(Manifest &manifest, ModuleOp module) {
  if (module.lookupSymbol(kDeviceCodeName) || module->hasAttr(kGridAttrName))
    manifest.callVersion = 2;
  for (ManifestEntry &entry : manifest.entries) {
    Operation *function = module.lookupSymbol("fp8_call_" + entry.name);
    if (!function)
      continue;
    if (auto bytes = function->getAttrOfType<IntegerAttr>(kWorkspaceBytesAttrName))
      entry.workspaceBytes = bytes.getInt();
    if (auto capturable = function->getAttrOfType<BoolAttr>(kCapturableAttrName))
      entry.isCapturable = capturable.getValue();
    if (auto checks = function->getAttrOfType<IntegerAttr>(kChecksAttrName))
      entry.checks = checks.getInt();
  }
}

/// Converts a shape to JSON; dynamic sizes are null.
static llvm::json::Array shapeToJSON(ArrayRef<int64_t> shape) {
  llvm::json::Array list;
  for (int64_t size : shape)
    list.push_back(ShapedType::isDynamic(size) ? llvm::json::Value(nullptr) : llvm::json::Value(size));
  return list;
}

/// Converts divisions to JSON: an object, a list of several.
static llvm::json::Value shardsToJSON(const ManifestValue &value) {
  llvm::json::Array list;
  for (auto [axis, dim] : value.shards)
    list.push_back(llvm::json::Object{{"axis", axis}, {"dim", dim}});
  if (list.size() > 1)
    return list;
  return list.empty() ? llvm::json::Value(nullptr) : std::move(list.front());
}

static llvm::json::Object valueToJSON(const ManifestValue &value, int64_t index) {
  llvm::json::Object object{{"index", index},
                            {"name", value.name},
                            {"type", value.type},
                            {"shape", shapeToJSON(value.shape)},
                            {"kind", value.kind}};
  if (value.isBatch || !value.shards.empty())
    object["shard"] = shardsToJSON(value);
  return object;
}

static llvm::json::Object entryToJSON(const ManifestEntry &entry, const Manifest &manifest) {
  llvm::json::Array arguments, results;
  for (auto [i, value] : llvm::enumerate(entry.arguments)) {
    llvm::json::Object argument = valueToJSON(value, i);
    argument["carry"] = value.alias;
    argument["written"] = value.alias.has_value();
    if (value.isBatch)
      argument["batch"] = true;
    arguments.push_back(std::move(argument));
  }
  for (auto [i, value] : llvm::enumerate(entry.results)) {
    llvm::json::Object result = valueToJSON(value, i);
    result["alias"] = value.alias;
    results.push_back(std::move(result));
  }
  std::vector<CollectiveRecord> collectives;
  llvm::copy_if(manifest.collectives, std::back_inserter(collectives),
                [&](const CollectiveRecord &record) { return record.entry == entry.name; });
  llvm::json::Object object{{"name", entry.name},
                            {"arguments", std::move(arguments)},
                            {"results", std::move(results)},
                            {"workspace_bytes", entry.workspaceBytes},
                            {"workspace_alignment", manifest.workspaceAlignment}};
  if (!manifest.programHash.empty())
    object["collectives"] = collectivesToJSON(collectives);
  if (entry.isCapturable)
    object["capturable"] = *entry.isCapturable;
  if (entry.checks)
    object["checks"] = entry.checks;
  if (entry.casts.empty())
    return object;
  llvm::json::Array casts;
  for (const ManifestCast &cast : entry.casts)
    casts.push_back(llvm::json::Object{{"arguments", llvm::json::Array(cast.arguments)},
                                       {"tensors", llvm::json::Array(cast.tensors)}});
  object["parameters"] = llvm::json::Object{{"entry", entry.initializer},
                                            {"arguments", llvm::json::Array(entry.initializerArguments)},
                                            {"casts", std::move(casts)}};
  return object;
}

static llvm::json::Value processorToJSON(const RequiredProcessor &processor) {
  if (processor.name.empty())
    return nullptr;
  return llvm::json::Object{{"name", processor.name}, {"features", llvm::json::Array(processor.features)}};
}

llvm::json::Object fp8::manifestToJSON(const Manifest &manifest, const std::vector<SiteRecord> &sites) {
  llvm::json::Array entries;
  for (const ManifestEntry &entry : manifest.entries)
    entries.push_back(entryToJSON(entry, manifest));
  llvm::json::Object object{{"version", kManifestVersion},
                            {"call", manifest.callVersion},
                            {"recipe", manifest.recipe},
                            {"target", manifest.target},
                            {"options", optionsToJSON(manifest.options)},
                            {"entries", std::move(entries)},
                            {"state", llvm::json::Object(manifest.state)},
                            {"cpu", processorToJSON(manifest.processor)},
                            {"sites", sitesToJSON(sites)}};
  if (manifest.programHash.empty())
    return object;
  object["grid"] = manifest.grid;
  object["program_hash"] = manifest.programHash;
  return object;
}
