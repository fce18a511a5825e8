// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layout of the FP8 state, and its conversion from and to attributes of the module.

#include "fp8/Dialect/FP8/Transforms/StateColumns.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace fp8;

//===----------------------------------------------------------------------===//
// Finding columns
//===----------------------------------------------------------------------===//

static auto orderedKey(const ColumnKey &key) {
  return std::make_tuple(key.site, static_cast<unsigned>(key.kind), key.format.getAsOpaquePointer(),
                         key.recipe.getAsOpaquePointer(), key.operand);
}

unsigned ColumnFinder::indexOf(const ColumnKey &key) {
  auto [entry, isNew] = index.try_emplace(orderedKey(key), keys.size());
  if (isNew) {
    keys.push_back(key);
    classes.grow(keys.size());
  }
  return entry->second;
}

void ColumnFinder::addTensor(ArrayRef<ColumnKey> readers) {
  unsigned first = indexOf(readers.front());
  for (const ColumnKey &key : readers.drop_front())
    classes.join(first, indexOf(key));
}

/// Orders columns independently of the order of the program: by site (h2 before h10), then by
/// tensor kind (input before weight), format, further sites and recipe.
static bool comesBefore(const StateColumn &a, const StateColumn &b) {
  if (int order = StringRef(a.sites.front()).compare_numeric(b.sites.front()))
    return order < 0;
  auto rest = [](const StateColumn &column) {
    std::string recipe;
    llvm::raw_string_ostream(recipe) << column.recipe;
    return std::make_tuple(column.kind, getFormatName(column.format), ArrayRef<std::string>(column.sites),
                           recipe);
  };
  return rest(a) < rest(b);
}

void ColumnFinder::appendTo(StateLayout &layout) {
  classes.compress();
  SmallVector<StateColumn> found(classes.getNumClasses());
  for (auto [i, key] : llvm::enumerate(keys)) {
    StateColumn &column = found[classes[i]];
    if (column.sites.empty())
      column = {{}, key.kind, key.format, key.recipe};
    if (!llvm::is_contained(column.sites, key.site))
      column.sites.push_back(key.site);
  }
  for (StateColumn &column : found)
    llvm::sort(column.sites, [](StringRef a, StringRef b) { return a.compare_numeric(b) < 0; });

  // The two inputs of a matmul without a weight compare equal and stay in their order.
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, found.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return comesBefore(found[a], found[b]) || (a < b && !comesBefore(found[b], found[a]));
  });
  columns.resize(found.size());
  for (unsigned i : order)
    columns[i] = layout.add(std::move(found[i]));
}

int64_t ColumnFinder::getColumn(const ColumnKey &key) const {
  return columns[classes[index.at(orderedKey(key))]];
}

//===----------------------------------------------------------------------===//
// The layout
//===----------------------------------------------------------------------===//

std::string StateLayout::getHash() const {
  llvm::SHA256 hash;
  hash.update("fp8-state-2");
  for (const StateColumn &column : columns) {
    hash.update("\n");
    for (StringRef site : column.sites)
      hash.update((site + ";").str());
    hash.update(stringifyTensorKind(column.kind));
    hash.update(getFormatName(column.format));
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
}

void StateLayout::writeTo(ModuleOp module) const {
  Builder builder(module.getContext());
  SmallVector<Attribute> list;
  for (const StateColumn &column : columns) {
    SmallVector<StringRef> sites(column.sites.begin(), column.sites.end());
    list.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("sites", builder.getStrArrayAttr(sites)),
        builder.getNamedAttr("tensor", builder.getStringAttr(stringifyTensorKind(column.kind))),
        builder.getNamedAttr("format", TypeAttr::get(column.format)),
    }));
  }
  module->setAttr(kColumnsAttrName, builder.getArrayAttr(list));
  module->setAttr(kHistoryAttrName, builder.getI64IntegerAttr(historyLength));
}

StateLayout StateLayout::readFrom(ModuleOp module) {
  StateLayout layout;
  auto list = module->getAttrOfType<ArrayAttr>(kColumnsAttrName);
  auto length = module->getAttrOfType<IntegerAttr>(kHistoryAttrName);
  if (!list || !length)
    return layout;
  layout.historyLength = length.getInt();
  for (auto entry : list.getAsRange<DictionaryAttr>()) {
    StateColumn column;
    for (auto site : entry.getAs<ArrayAttr>("sites").getAsValueRange<StringAttr>())
      column.sites.push_back(site.str());
    column.kind = *symbolizeTensorKind(entry.getAs<StringAttr>("tensor").getValue());
    column.format = cast<FloatType>(entry.getAs<TypeAttr>("format").getValue());
    layout.columns.push_back(std::move(column));
  }
  return layout;
}
