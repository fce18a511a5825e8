// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers of one element that only copy an element of a vector, such as a scale of the state, or are copied
// into one, such as an amax, become views of that element: each copy would be a launch.

#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fp8 {
#define GEN_PASS_DEF_BINDELEMENTS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

static Value findRoot(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

namespace {
/// Where buffers are read and written: positions of operations in the entry point's body.
class Accesses {
public:
  explicit Accesses(Block &body) {
    for (auto [position, op] : llvm::enumerate(body)) {
      positions[&op] = position;
      op.walk([&, at = unsigned(position)](Operation *inner) { add(inner, at); });
    }
  }

  unsigned positionOf(Operation *op) const { return positions.lookup(op); }
  /// Positions of the operations that may write, or use at all, the memory of `root`, in order.
  ArrayRef<unsigned> writes(Value root) const { return find(written, root); }
  ArrayRef<unsigned> uses(Value root) const { return find(used, root); }

private:
  using Map = llvm::DenseMap<Value, SmallVector<unsigned>>;
  static ArrayRef<unsigned> find(const Map &map, Value root) {
    auto found = map.find(root);
    return found == map.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(found->second);
  }
  void add(Operation *op, unsigned position);

  llvm::DenseMap<Operation *, unsigned> positions;
  Map written, used;
};
} // namespace

void Accesses::add(Operation *op, unsigned position) {
  if (isa<ViewLikeOpInterface>(op))
    return;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  for (Value operand : op->getOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()))
      continue;
    Value root = findRoot(operand);
    used[root].push_back(position);
    // An operation without declared effects may write; for one with regions, the operations inside are asked.
    bool writes = effects ? effects.getEffectOnValue<MemoryEffects::Write>(operand).has_value()
                          : !isMemoryEffectFree(op);
    if (writes)
      written[root].push_back(position);
  }
}

namespace {
class ElementBinder {
public:
  explicit ElementBinder(Block &body) : body(body), accesses(body) {}
  void run();

private:
  void bindCopy(memref::StoreOp store);
  void bindCollected(memref::StoreOp store);
  bool isUntouched(Value root, unsigned from, unsigned to) const;
  void replace(memref::AllocOp alloc, Value vector, int64_t element, Operation *at);

  Block &body;
  Accesses accesses;
};
} // namespace

/// Returns whether nothing writes the memory of `root` after position `from` up to `to`.
bool ElementBinder::isUntouched(Value root, unsigned from, unsigned to) const {
  return llvm::none_of(accesses.writes(root), [&](unsigned at) { return at > from && at <= to; });
}

/// Returns the constant position that `indices` name in a vector.
static std::optional<int64_t> getElement(MemRefType type, ValueRange indices) {
  if (type.getRank() != 1 || !type.getLayout().isIdentity())
    return std::nullopt;
  return getConstantIntValue(indices[0]);
}

/// Returns the buffer of one element that `value` allocates in `body`; null for anything else.
static memref::AllocOp getElementBuffer(Value value, Block &body) {
  auto alloc = value.getDefiningOp<memref::AllocOp>();
  return alloc && alloc.getType().getRank() == 0 && alloc->getBlock() == &body ? alloc : memref::AllocOp();
}

/// Returns whether every use of `buffer` takes a view with any offset.
static bool takesViews(Value buffer) {
  return llvm::none_of(buffer.getUsers(), [](Operation *user) {
    return isa<ViewLikeOpInterface, memref::DeallocOp>(user) || user->hasTrait<OpTrait::IsTerminator>();
  });
}

void ElementBinder::replace(memref::AllocOp alloc, Value vector, int64_t element, Operation *at) {
  OpBuilder b(at);
  auto source = cast<MemRefType>(vector.getType());
  OpFoldResult one = b.getIndexAttr(1), offset = b.getIndexAttr(element);
  auto type = memref::SubViewOp::inferRankReducedResultType({}, source, {offset}, {one}, {one});
  Value view = memref::SubViewOp::create(b, alloc.getLoc(), type, vector, ArrayRef(offset), ArrayRef(one),
                                         ArrayRef(one));
  alloc.replaceAllUsesWith(view);
  alloc.erase();
}

/// `store` copies an element of a vector into a buffer of its own, which nothing else writes: the buffer
/// becomes a view, if the vector keeps the element as long as the buffer is used.
void ElementBinder::bindCopy(memref::StoreOp store) {
  auto load = store.getValue().getDefiningOp<memref::LoadOp>();
  memref::AllocOp alloc = getElementBuffer(store.getMemref(), body);
  if (!load || !alloc || load->getBlock() != &body || !takesViews(alloc))
    return;
  std::optional<int64_t> element = getElement(load.getMemRefType(), load.getIndices());
  ArrayRef<unsigned> uses = accesses.uses(alloc), writes = accesses.writes(alloc);
  if (!element || writes.size() != 1 || uses.front() != writes.front() ||
      !isUntouched(findRoot(load.getMemref()), accesses.positionOf(load), uses.back()))
    return;
  store.erase();
  replace(alloc, load.getMemref(), *element, load);
  if (load->use_empty())
    load.erase();
}

/// `store` copies a buffer of one element into a vector that nothing has used before: the buffer becomes a
/// view, if its element does not change afterwards.
void ElementBinder::bindCollected(memref::StoreOp store) {
  auto load = store.getValue().getDefiningOp<memref::LoadOp>();
  auto vector = store.getMemref().getDefiningOp<memref::AllocOp>();
  memref::AllocOp alloc = load ? getElementBuffer(load.getMemref(), body) : memref::AllocOp();
  if (!vector || !alloc || vector->getBlock() != &body || load->getBlock() != &body || !takesViews(alloc))
    return;
  std::optional<int64_t> element = getElement(store.getMemRefType(), store.getIndices());
  auto isOtherElement = [&](Operation *user) {
    auto other = dyn_cast<memref::StoreOp>(user);
    return other && other != store && other->getBlock() == &body && other.getMemref() == vector &&
           getElement(other.getMemRefType(), other.getIndices()).value_or(*element) != *element;
  };
  if (!element || !isUntouched(alloc, accesses.positionOf(load), ~0u))
    return;
  for (Operation *user : vector->getUsers()) {
    Operation *outer = body.findAncestorOpInBlock(*user);
    bool isView = isa<memref::SubViewOp>(user) && user != store; // of another element, by this pass
    if (user != store && !isView && !isOtherElement(user) &&
        accesses.positionOf(outer) < accesses.positionOf(store))
      return;
  }
  if (alloc->isBeforeInBlock(vector))
    vector->moveBefore(alloc);
  store.erase();
  replace(alloc, vector, *element, alloc);
  if (load->use_empty())
    load.erase();
}

void ElementBinder::run() {
  SmallVector<memref::StoreOp> stores(body.getOps<memref::StoreOp>());
  for (memref::StoreOp store : stores)
    if (store.getMemRefType().getRank() == 0)
      bindCopy(store);
    else
      bindCollected(store);
}

namespace {
struct BindElementsPass : public fp8::impl::BindElementsBase<BindElementsPass> {
  void runOnOperation() override {
    if (getOperation().isPublic() && getOperation().getBody().hasOneBlock())
      ElementBinder(getOperation().getBody().front()).run();
  }
};
} // namespace
