// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds out which kernels use a variable, and gives it the lowest offset at which it overlaps no other
// variable of these kernels.

#include "SharedLayout.h"

#include "fp8emu/Types.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

using namespace fp8emu;
using ptx::Operand;
using ptx::Space;

namespace {

using Set = std::vector<bool>;

/// A variable in shared memory.
struct Item {
  const ptx::Variable *variable;
  uint64_t *offset;
  Set functions; ///< that use it, later also those that call one that does
};

class SharedPlacer {
public:
  explicit SharedPlacer(const ptx::Module &module) : module(module), callees(module.functions.size()) {}

  SharedLayout run(uint64_t most);

private:
  void findItems(SharedLayout &layout);
  void findUses();
  void findUses(size_t function, const Operand &operand);
  void addCallers(Item &item);
  void place(Item &item, uint64_t most);
  bool shareKernel(const Item &a, const Item &b) const;

  const ptx::Module &module;
  std::vector<Set> callees; ///< of each function
  std::unordered_map<std::string, size_t> functionByName;
  std::vector<Item> items;
  std::vector<int> itemOfModule;
  std::vector<std::vector<int>> itemOfFunction;
  std::vector<const Item *> placed;
};

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

} // namespace

void SharedPlacer::findItems(SharedLayout &layout) {
  size_t count = module.functions.size();
  layout.ofModule.assign(module.variables.size(), 0);
  layout.ofFunctions.resize(count);
  layout.bytes.assign(count, 0);
  auto add = [&](const ptx::Variable &variable, uint64_t &offset) {
    if (variable.space != Space::Shared)
      return -1;
    items.push_back({&variable, &offset, Set(count, false)});
    return int(items.size()) - 1;
  };
  for (size_t i = 0; i < module.variables.size(); ++i)
    itemOfModule.push_back(add(module.variables[i], layout.ofModule[i]));
  itemOfFunction.resize(count);
  for (size_t f = 0; f < count; ++f) {
    const auto &variables = module.functions[f].variables;
    layout.ofFunctions[f].assign(variables.size(), 0);
    for (size_t i = 0; i < variables.size(); ++i) {
      itemOfFunction[f].push_back(add(variables[i], layout.ofFunctions[f][i]));
      if (itemOfFunction[f].back() >= 0)
        items[size_t(itemOfFunction[f].back())].functions[f] = true;
    }
  }
}

void SharedPlacer::findUses(size_t function, const Operand &operand) {
  if (operand.kind == Operand::Kind::Variable && !operand.local && itemOfModule[operand.index] >= 0)
    items[size_t(itemOfModule[operand.index])].functions[function] = true;
  if (operand.kind == Operand::Kind::Symbol) {
    auto callee = functionByName.find(operand.text);
    if (!operand.local && callee != functionByName.end())
      callees[function][callee->second] = true;
    if (operand.local) // an indirect call: of any function whose address may be known
      for (size_t f = 0; f < module.functions.size(); ++f)
        callees[function][f] = callees[function][f] || !module.functions[f].isEntry;
  }
  for (const Operand &part : operand.parts)
    findUses(function, part);
}

void SharedPlacer::findUses() {
  for (size_t f = 0; f < module.functions.size(); ++f) {
    callees[f].assign(module.functions.size(), false);
    if (!module.functions[f].isDeclaration)
      functionByName[module.functions[f].name] = f;
  }
  for (const auto &[alias, target] : module.aliases)
    if (auto found = functionByName.find(target); found != functionByName.end())
      functionByName[alias] = found->second;
  for (size_t f = 0; f < module.functions.size(); ++f)
    for (const ptx::Instruction &instruction : module.functions[f].instructions)
      for (const Operand &operand : instruction.operands)
        findUses(f, operand);
}

/// Adds the functions that call, through others too, one that uses the variable.
void SharedPlacer::addCallers(Item &item) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t f = 0; f < callees.size(); ++f)
      for (size_t callee = 0; !item.functions[f] && callee < callees.size(); ++callee)
        if (callees[f][callee] && item.functions[callee])
          changed = item.functions[f] = true;
  }
}

bool SharedPlacer::shareKernel(const Item &a, const Item &b) const {
  for (size_t f = 0; f < module.functions.size(); ++f)
    if (module.functions[f].isEntry && a.functions[f] && b.functions[f])
      return true;
  return false;
}

void SharedPlacer::place(Item &item, uint64_t most) {
  uint64_t alignment = std::max(item.variable->alignment, 1u), bytes = item.variable->bytes(), offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Item *other : placed)
      if (offset < *other->offset + other->variable->bytes() && *other->offset < offset + bytes &&
          shareKernel(item, *other)) {
        offset = alignUp(*other->offset + other->variable->bytes(), alignment);
        moved = true;
      }
  }
  if (offset + bytes > most)
    throw PtxError(item.variable->where,
                   "a kernel has more than " + std::to_string(most) + " bytes of shared variables");
  *item.offset = offset;
  placed.push_back(&item);
}

SharedLayout SharedPlacer::run(uint64_t most) {
  SharedLayout layout;
  findItems(layout);
  findUses();
  for (Item &item : items)
    addCallers(item);
  // Small variables first: the large ones that follow leave kernels that do not use them small.
  std::vector<Item *> order;
  for (Item &item : items)
    if (item.variable->count)
      order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Item *a, const Item *b) {
    return std::pair(a->variable->bytes(), a) < std::pair(b->variable->bytes(), b);
  });
  for (Item *item : order)
    place(*item, most);
  for (const Item *item : placed)
    for (size_t f = 0; f < module.functions.size(); ++f)
      if (item->functions[f])
        layout.bytes[f] = std::max(layout.bytes[f], uint32_t(*item->offset + item->variable->bytes()));
  // The memory that a launch adds begins at one offset in all kernels that name it.
  uint64_t start = 0, alignment = 16;
  auto forEachAdded = [&](const std::function<void(Item &)> &apply) {
    for (Item &item : items)
      if (!item.variable->count)
        apply(item);
  };
  forEachAdded([&](Item &item) {
    alignment = std::max<uint64_t>(alignment, item.variable->alignment);
    for (size_t f = 0; f < module.functions.size(); ++f)
      if (item.functions[f])
        start = std::max<uint64_t>(start, layout.bytes[f]);
  });
  start = alignUp(start, alignment);
  forEachAdded([&](Item &item) {
    *item.offset = start;
    for (size_t f = 0; f < module.functions.size(); ++f)
      if (item.functions[f])
        layout.bytes[f] = uint32_t(start);
  });
  return layout;
}

SharedLayout fp8emu::layOutShared(const ptx::Module &module, uint64_t most) {
  return SharedPlacer(module).run(most);
}
