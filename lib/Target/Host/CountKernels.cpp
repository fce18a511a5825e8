// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the kernels of a module for profiles: name, kind, sites, bytes and operations.

#include "KernelCost.h"
#include "KernelNames.h"
#include "fp8/Dialect/FP8/IR/KernelMarks.h"
#include "fp8/Dialect/FP8/IR/ProductMarks.h"
#include "fp8/Target/Host/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace fp8 {
#define GEN_PASS_DEF_COUNTKERNELS
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// A line of the list, and the calls that it counts.
struct Line {
  func::FuncOp kernel;
  SmallVector<func::CallOp> calls;
};

class KernelList {
public:
  explicit KernelList(ModuleOp module) : module(module), symbols(module) {}

  void add(func::CallOp call);
  ArrayAttr number();

private:
  DictionaryAttr describe(Line &line);
  ModuleOp module;
  SymbolTable symbols;
  llvm::StringSet<> names;
  llvm::MapVector<Attribute, Line> lines;
};
} // namespace

static StringRef getField(Attribute product, StringRef field) {
  auto text = cast<DictionaryAttr>(product).getAs<StringAttr>(field);
  return text ? text.getValue() : StringRef();
}

static ArrayRef<Attribute> getProducts(func::CallOp call) {
  auto products = call->getAttrOfType<ArrayAttr>(kProductsAttrName);
  return products ? products.getValue() : ArrayRef<Attribute>();
}

void KernelList::add(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || kernel.isExternal() || kernel.isPublic())
    return;
  Builder builder(module.getContext());
  SmallVector<Attribute> key = {call.getCalleeAttr()};
  for (Value operand : call.getOperands())
    key.push_back(describeOperand(operand));
  for (Attribute product : getProducts(call))
    key.push_back(builder.getStringAttr(getField(product, "role")));
  Line &line = lines.try_emplace(builder.getArrayAttr(key), Line{kernel, {}}).first->second;
  call->setAttr(kKernelNumberAttrName, builder.getI32IntegerAttr(std::distance(
                                           lines.begin(), lines.find(builder.getArrayAttr(key)))));
  line.calls.push_back(call);
}

/// Returns the sites of the line's calls, in the order of the program.
static SmallVector<StringRef> getSites(const Line &line) {
  llvm::SetVector<StringRef> sites;
  for (func::CallOp call : line.calls) {
    for (Attribute product : getProducts(call))
      sites.insert(getField(product, "site"));
    auto site = call->getAttrOfType<StringAttr>(kKernelSiteAttrName);
    if (site && getProducts(call).empty())
      sites.insert(site.getValue());
  }
  sites.remove("");
  return sites.takeVector();
}

/// Returns the operations of the products that a call computes; unset unless all are known.
static std::optional<int64_t> countProducts(ArrayRef<Attribute> products) {
  int64_t sum = 0;
  for (Attribute product : products) {
    auto operations = cast<DictionaryAttr>(product).getAs<IntegerAttr>("operations");
    if (!operations)
      return std::nullopt;
    sum += operations.getInt();
  }
  return sum;
}

DictionaryAttr KernelList::describe(Line &line) {
  Builder builder(module.getContext());
  ArrayRef<Attribute> products = getProducts(line.calls.front());
  SmallVector<StringRef> sites = getSites(line);
  KernelCost cost = countKernelCost(line.calls.front(), line.kernel);
  if (!products.empty()) // the other code of the kernel is an epilogue, or the product itself in loops
    cost.operations = countProducts(products);

  StringRef symbol = line.kernel.getName(), kind = "other";
  std::string name = symbol.str();
  if (auto known = line.kernel->getAttrOfType<StringAttr>(kKernelKindAttrName))
    kind = known.getValue();
  if (!products.empty()) {
    kind = "products";
    name = KernelName{("product_" + getField(products[0], "role")).str(), getField(products[0], "site").str(),
                      kind}
               .getSymbol();
  }
  name = makeUnique(StringRef(name).starts_with(kKernelPrefix) ? name.substr(kKernelPrefix.size()) : name,
                    [&](StringRef taken) { return names.contains(taken); });
  names.insert(name);

  SmallVector<NamedAttribute> fields = {builder.getNamedAttr("name", builder.getStringAttr(name)),
                                        builder.getNamedAttr("kind", builder.getStringAttr(kind)),
                                        builder.getNamedAttr("sites", builder.getStrArrayAttr(sites))};
  auto append = [&](StringRef field, std::optional<int64_t> value) {
    if (value)
      fields.push_back(builder.getNamedAttr(field, builder.getI64IntegerAttr(*value)));
  };
  append("read", cost.read);
  append("written", cost.written);
  append("operations", cost.operations);
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
        entry.walk([&](func::CallOp call) { kernels.add(call); });
    getOperation()->setAttr(kKernelsAttrName, kernels.number());
  }
};
} // namespace
