// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dependences between launches by the buffers that they read and write, and a lazy order: a launch that could
// be joined with others waits until everything else that is ready has been emitted.

#include "LaunchOrder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace fp8;

namespace {
/// How a kernel accesses the memory of an argument.
struct Access {
  bool reads = false, writes = false;
};

/// The launches between two operations that none of them may pass.
class Segment {
public:
  Segment(const SymbolTable &kernels, llvm::DenseMap<Attribute, SmallVector<Access>> &accesses)
      : kernels(kernels), accesses(accesses) {}

  void add(gpu::LaunchFuncOp launch, Attribute key);
  /// Puts the launches in front of `end` in their new order; appends the groups.
  void emit(Operation *end, SmallVectorImpl<SmallVector<gpu::LaunchFuncOp>> &groups);

private:
  struct Node {
    gpu::LaunchFuncOp launch;
    Attribute key;
    SmallVector<unsigned> later; ///< nodes that depend on this one
    unsigned waitsFor = 0;
  };
  struct Users {
    std::optional<unsigned> writer;
    SmallVector<unsigned> readers; ///< since the last write
  };

  /// The uses of one buffer: of all of it, and of single elements.
  struct Memory {
    Users whole;
    llvm::MapVector<int64_t, Users> elements;
  };

  ArrayRef<Access> getAccesses(gpu::LaunchFuncOp launch);
  void use(Users &of, Access access, unsigned node);
  void order(const Users &of, Access access, unsigned node);
  void depend(unsigned node, unsigned earlier);
  SmallVector<unsigned> takeGroup(std::set<unsigned> &ready, const llvm::DenseMap<Attribute, unsigned> &left);

  const SymbolTable &kernels;
  llvm::DenseMap<Attribute, SmallVector<Access>> &accesses;
  std::vector<Node> nodes;
  llvm::MapVector<Value, Memory> memories;
  SmallVector<unsigned> unknown; ///< nodes that may access any memory
};
} // namespace

/// Adds what the code does to `buffer`; anything but loads, stores and views may read and write.
static void findAccess(Value buffer, Access &access) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<memref::DimOp>(user))
      continue;
    if (isa<memref::LoadOp, vector::LoadOp>(user)) {
      access.reads = true;
    } else if (isa<memref::StoreOp, vector::StoreOp>(user) && user->getOperand(0) != buffer) {
      access.writes = true; // operand 0 is what it stores
    } else if (auto view = dyn_cast<ViewLikeOpInterface>(user); view && user->getNumResults() == 1) {
      findAccess(user->getResult(0), access);
    } else {
      access = {true, true};
      return;
    }
  }
}

ArrayRef<Access> Segment::getAccesses(gpu::LaunchFuncOp launch) {
  auto [entry, isNew] = accesses.try_emplace(launch.getKernelName());
  if (!isNew)
    return entry->second;
  auto kernel = kernels.lookup<func::FuncOp>(launch.getKernelName());
  entry->second.assign(launch.getNumKernelOperands(), Access{true, true});
  if (kernel && kernel.getNumArguments() == launch.getNumKernelOperands())
    for (auto [argument, access] : llvm::zip_equal(kernel.getArguments(), entry->second))
      if (isa<MemRefType>(argument.getType())) {
        access = {};
        findAccess(argument, access);
      }
  return entry->second;
}

/// Returns the only element of a vector that `value` is a view of; nothing if it is more than one, or not
/// known.
static std::optional<int64_t> findElement(Value value) {
  if (auto metadata = value.getDefiningOp<memref::ExtractStridedMetadataOp>())
    return findElement(metadata.getSource());
  auto view = value.getDefiningOp<memref::SubViewOp>();
  if (!view || !view.getSourceType().getLayout().isIdentity() || view.getSourceType().getRank() != 1 ||
      view.getStaticSizes()[0] != 1 || ShapedType::isDynamic(view.getStaticOffsets()[0]))
    return std::nullopt;
  return view.getStaticOffsets()[0];
}

/// Returns the buffer that `value` is a view of if it is separate memory: an allocation, a constant, or an
/// argument of the entry point. Null for any other.
static Value findMemory(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  if (auto metadata = value.getDefiningOp<memref::ExtractStridedMetadataOp>())
    return findMemory(metadata.getSource());
  if (Operation *op = value.getDefiningOp())
    return isa<memref::AllocOp, memref::GetGlobalOp>(op) ? value : Value();
  return isa<func::FuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp()) ? value : Value();
}

void Segment::depend(unsigned node, unsigned earlier) {
  if (node == earlier || llvm::is_contained(nodes[earlier].later, node))
    return;
  nodes[earlier].later.push_back(node);
  ++nodes[node].waitsFor;
}

/// Puts `node`, which has this access to a buffer, after those whose access conflicts with it.
void Segment::order(const Users &of, Access access, unsigned node) {
  if (of.writer && (access.reads || access.writes))
    depend(node, *of.writer);
  if (access.writes)
    for (unsigned reader : of.readers)
      depend(node, reader);
}

/// The same, and records the access.
void Segment::use(Users &of, Access access, unsigned node) {
  order(of, access, node);
  if (access.writes) {
    of.readers.clear();
    of.writer = node;
  } else if (access.reads) {
    of.readers.push_back(node);
  }
}

void Segment::add(gpu::LaunchFuncOp launch, Attribute key) {
  unsigned number = nodes.size();
  nodes.push_back({launch, key, {}, 0});
  bool isUnknown = false;
  for (auto [operand, access] : llvm::zip_equal(launch.getKernelOperands(), getAccesses(launch))) {
    if (!isa<BaseMemRefType>(operand.getType()))
      continue;
    Value memory = findMemory(operand);
    isUnknown |= !memory;
    if (!memory)
      continue;
    Memory &uses = memories[memory];
    if (std::optional<int64_t> element = findElement(operand)) {
      order(uses.whole, access, number);
      use(uses.elements[*element], access, number);
    } else {
      for (auto &[position, users] : uses.elements)
        order(users, access, number);
      use(uses.whole, access, number);
    }
  }
  for (unsigned earlier : unknown)
    depend(number, earlier);
  if (!isUnknown)
    return;
  for (unsigned earlier : llvm::seq(number))
    depend(number, earlier);
  unknown.push_back(number);
}

/// Removes and returns the launches to emit next: the first one that cannot be joined; else all ready ones of
/// a kind of which none is missing; else those of the first one's kind.
SmallVector<unsigned> Segment::takeGroup(std::set<unsigned> &ready,
                                         const llvm::DenseMap<Attribute, unsigned> &left) {
  llvm::MapVector<Attribute, SmallVector<unsigned>> kinds;
  for (unsigned node : ready) {
    if (!nodes[node].key || left.lookup(nodes[node].key) == 1) {
      ready.erase(node);
      return {node};
    }
    kinds[nodes[node].key].push_back(node);
  }
  auto isWhole = [&](const auto &kind) { return kind.second.size() == left.lookup(kind.first); };
  auto *whole = llvm::find_if(kinds, isWhole);
  SmallVector<unsigned> group = (whole == kinds.end() ? kinds.front() : *whole).second;
  for (unsigned node : group)
    ready.erase(node);
  return group;
}

void Segment::emit(Operation *end, SmallVectorImpl<SmallVector<gpu::LaunchFuncOp>> &groups) {
  llvm::DenseMap<Attribute, unsigned> left; // of each kind, not emitted yet
  std::set<unsigned> ready;
  for (auto [number, node] : llvm::enumerate(nodes)) {
    if (node.key)
      ++left[node.key];
    if (node.waitsFor == 0)
      ready.insert(number);
  }
  while (!ready.empty()) {
    SmallVector<unsigned> group = takeGroup(ready, left);
    SmallVector<gpu::LaunchFuncOp> launches;
    for (unsigned number : group) {
      Node &node = nodes[number];
      node.launch->moveBefore(end);
      launches.push_back(node.launch);
      if (node.key)
        --left[node.key];
      for (unsigned later : node.later)
        if (--nodes[later].waitsFor == 0)
          ready.insert(later);
    }
    if (launches.size() > 1)
      groups.push_back(launches);
  }
  nodes.clear();
  memories.clear();
  unknown.clear();
}

/// Returns whether launches may pass `op`: it accesses no memory, or makes new one.
static bool isFree(Operation *op) {
  return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
         (isMemoryEffectFree(op) || isa<memref::AllocOp>(op));
}

SmallVector<SmallVector<gpu::LaunchFuncOp>>
fp8::groupLaunches(Block &block, const SymbolTable &kernels, function_ref<Attribute(gpu::LaunchFuncOp)> key) {
  SmallVector<SmallVector<gpu::LaunchFuncOp>> groups;
  llvm::DenseMap<Attribute, SmallVector<Access>> accesses;
  Segment segment(kernels, accesses);
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op))
      segment.add(launch, key(launch));
    else if (!isFree(&op))
      segment.emit(&op, groups);
  }
  return groups;
}
