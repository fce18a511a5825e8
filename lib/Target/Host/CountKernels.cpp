// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the kernels of a module for profiles: name, kind, sites, bytes and operations.

#include "KernelCost.h"
#include "KernelNames.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fp8 {
#define GEN_PASS_DEF_COUNTKERNELS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// A line of the list, and the calls or launches that it counts.
struct Line {
  func::FuncOp kernel;
  KernelCost cost; // of one call
  SmallVector<Operation *> calls;
};

class KernelList {
public:
  explicit KernelList(ModuleOp module) : module(module), symbols(module) {}

  void add(func::CallOp call);
  void add(gpu::LaunchFuncOp launch);
  ArrayAttr number();

private:
  /// Adds a call of `kernel` to the line of its `key`, which roles of matmuls are added to. Only the first
  /// call of a line is counted.
  void add(Operation *call, func::FuncOp kernel, SmallVector<Attribute> key,
           function_ref<KernelCost()> countCost);
  DictionaryAttr describe(Line &line);
  ModuleOp module;
  SymbolTable symbols;
  llvm::StringSet<> names;
  llvm::MapVector<Attribute, Line> lines;
};
} // namespace

static StringRef getField(Attribute matmul, StringRef field) {
  auto text = cast<DictionaryAttr>(matmul).getAs<StringAttr>(field);
  return text ? text.getValue() : StringRef();
}

static ArrayRef<Attribute> getMatmuls(Operation *call) {
  auto matmuls = call->getAttrOfType<ArrayAttr>(kMatmulsAttrName);
  return matmuls ? matmuls.getValue() : ArrayRef<Attribute>();
}

void KernelList::add(Operation *call, func::FuncOp kernel, SmallVector<Attribute> key,
                     function_ref<KernelCost()> countCost) {
  Builder builder(module.getContext());
  for (Attribute matmul : getMatmuls(call))
    key.push_back(builder.getStringAttr(getField(matmul, "role")));
  auto [line, isNew] = lines.try_emplace(builder.getArrayAttr(key), Line{kernel, {}, {}});
  if (isNew)
    line->second.cost = countCost();
  call->setAttr(kKernelNumberAttrName, builder.getI32IntegerAttr(std::distance(lines.begin(), line)));
  line->second.calls.push_back(call);
}

void KernelList::add(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || kernel.isExternal() || kernel.isPublic())
    return;
  SmallVector<Attribute> key = {call.getCalleeAttr()};
  for (Value operand : call.getOperands())
    key.push_back(describeOperand(operand));
  add(call, kernel, key, [&] { return countKernelCost(call, kernel); });
}

void KernelList::add(gpu::LaunchFuncOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(module, launch.getKernelAttr());
  if (!kernel)
    return;
  auto cost = dyn_cast_or_null<DictionaryAttr>(launch->removeAttr(kKernelCostAttrName));
  SmallVector<Attribute> key = {launch.getKernelAttr()};
  if (cost)
    key.push_back(cost);
  add(launch, kernel, key, [&] { return cost ? KernelCost::fromFields(cost) : KernelCost(); });
}

/// Returns the sites of the line's calls, in the order of the program. A launch may be for several.
static SmallVector<StringRef> getSites(const Line &line) {
  llvm::SetVector<StringRef> sites;
  for (Operation *call : line.calls) {
    for (Attribute matmul : getMatmuls(call))
      sites.insert(getField(matmul, "site"));
    if (!getMatmuls(call).empty())
      continue;
    Attribute site = call->getAttr(kKernelSiteAttrName);
    if (auto name = dyn_cast_or_null<StringAttr>(site))
      sites.insert(name.getValue());
    else if (auto names = dyn_cast_or_null<ArrayAttr>(site))
      sites.insert_range(names.getAsValueRange<StringAttr>());
  }
  sites.remove("");
  return sites.takeVector();
}

/// Returns the operations of the matmuls that a call computes; unset unless all are known.
static std::optional<int64_t> countMatmuls(ArrayRef<Attribute> matmuls) {
  int64_t sum = 0;
  for (Attribute matmul : matmuls) {
    auto operations = cast<DictionaryAttr>(matmul).getAs<IntegerAttr>("operations");
    if (!operations)
      return std::nullopt;
    sum += operations.getInt();
  }
  return sum;
}

DictionaryAttr KernelList::describe(Line &line) {
  Builder builder(module.getContext());
  ArrayRef<Attribute> matmuls = getMatmuls(line.calls.front());
  SmallVector<StringRef> sites = getSites(line);
  KernelCost cost = line.cost;
  if (!matmuls.empty()) // the other code of the kernel is an epilogue, or the matmul itself in loops
    cost.operations = countMatmuls(matmuls);

  StringRef symbol = line.kernel.getName(), kind = "other";
  std::string name = symbol.str();
  if (auto known = line.kernel->getAttrOfType<StringAttr>(kKernelKindAttrName))
    kind = known.getValue();
  if (!matmuls.empty() && kind != "attention") { // whose kernels have several
    kind = "products";
    name = KernelName{("product_" + getField(matmuls[0], "role")).str(), getField(matmuls[0], "site").str(),
                      kind}
               .getSymbol();
  }
  name = makeUnique(StringRef(name).starts_with(kKernelPrefix) ? name.substr(kKernelPrefix.size()) : name,
                    [&](StringRef taken) { return names.contains(taken); });
  names.insert(name);

  SmallVector<NamedAttribute> fields = {builder.getNamedAttr("name", builder.getStringAttr(name)),
                                        builder.getNamedAttr("kind", builder.getStringAttr(kind)),
                                        builder.getNamedAttr("sites", builder.getStrArrayAttr(sites))};
  llvm::append_range(fields, cost.getFields(module.getContext()));
  return builder.getDictionaryAttr(fields);
}

ArrayAttr KernelList::number() {
  SmallVector<Attribute> described;
  for (auto &[key, line] : lines)
    described.push_back(describe(line));
  return ArrayAttr::get(module.getContext(), described);
}

namespace {
struct CountKernelsPass : public fp8::impl::CountKernelsBase<CountKernelsPass> {
  void runOnOperation() override {
    KernelList kernels(getOperation());
    for (auto entry : getOperation().getOps<func::FuncOp>())
      if (entry.isPublic())
        entry.walk([&](Operation *op) {
          llvm::TypeSwitch<Operation *>(op).Case<func::CallOp, gpu::LaunchFuncOp>(
              [&](auto call) { kernels.add(call); });
        });
    getOperation()->setAttr(kKernelsAttrName, kernels.number());
  }
};
} // namespace
