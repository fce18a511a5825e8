// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wgmma.mma_async under way: each warp of a warpgroup has an operation of its own on 16
// of the 64 rows. It first reads A and B, later adds their product to the accumulators;
// those of one warp come one after the other.

#include "MatrixDescriptor.h"
#include "SumModel.h"
#include "Wgmma.h"

#include "check/Agent.h"
#include "exec/Access.h"
#include "exec/Block.h"
#include "exec/Launch.h"

#include <cstring>

using namespace fp8emu;

namespace {

constexpr unsigned kWarpRows = 16;

/// The multiplicands in shared memory, read 16 bytes at a time.
class SharedMatrix {
public:
  SharedMatrix(Warp &warp, uint64_t descriptor, const Element &element, bool transposed,
               const check::Agent &agent)
      : warp(warp), descriptor(descriptor), element(element), transposed(transposed), agent(agent) {}

  /// The rows from `first` on, of K each.
  template <class V>
  void read(unsigned first, unsigned rows, unsigned k, Multiplicand<V> &out) {
    unsigned perChunk = 128 / element.bits;
    if (!transposed)
      return forChunks(rows, k / perChunk, [&](unsigned row, unsigned chunk) {
        const uint8_t *bytes = find(descriptor.alongK(first + row, chunk));
        unpack(element, bytes, perChunk, out.at(row, chunk * perChunk));
      });
    forChunks(rows / perChunk, k, [&](unsigned chunk, unsigned column) {
      V values[16];
      unpack(element, find(descriptor.acrossK(first / perChunk + chunk, column)), perChunk, values);
      for (unsigned i = 0; i < perChunk; ++i)
        *out.at(chunk * perChunk + i, column) = values[i];
    });
  }

private:
  template <class F>
  static void forChunks(unsigned outer, unsigned inner, F f) {
    for (unsigned i = 0; i < outer; ++i)
      for (unsigned j = 0; j < inner; ++j)
        f(i, j);
  }

  const uint8_t *find(uint32_t offset) {
    uint64_t address = warp.block().sharedBase() + offset;
    uint8_t *host;
    resolve(warp, MemorySpace::Shared, 1, &address, 16, AccessKind::Load, &host);
    agent.reads({&warp.block(), offset}, 16);
    return host;
  }

  Warp &warp;
  MatrixDescriptor descriptor;
  const Element &element;
  bool transposed;
  const check::Agent &agent;
};

template <class V>
void negate(Multiplicand<V> &values, unsigned rows) {
  if constexpr (std::is_floating_point_v<V>)
    for (unsigned i = 0; i < rows * values.stride; ++i)
      values.values[i] = -values.values[i];
}

template <class V>
class WarpProduct : public Operation {
public:
  WarpProduct(Warp &warp, const Op &op)
      : warp(warp), frame(warp.sharedFrame()), decoded(*static_cast<const WgmmaProduct *>(op.payload)),
        p(decoded.product), a(p.shape.k), b(p.shape.k) {
    const Ref *refs = warp.list(op);
    unsigned sums = p.registersOf(p.d);
    findRegisters(warp, refs, sums, accumulators);
    if (decoded.aInRegisters)
      findRegisters(warp, refs + sums, p.registersA(), registersA);
    else
      descriptorA = uniform(warp.values<uint64_t>(op.a), "the descriptor of A");
    descriptorB = uniform(warp.values<uint64_t>(op.b), "the descriptor of B");
    Mask scale = warp.predicate(op.c) ^ (op.flags ? kAllLanes : 0);
    if (scale && ~scale)
      warp.fault(FaultKind::IllegalOperand, "scale-d differs between the lanes of a warp");
    accumulate = scale != 0;
    number = warp.matrixQueue().start();
    group = warp.matrixGroups().add();
    agent = check::Agent::inGroup(warp, 0, check::GroupKind::Matrix, check::Proxy::Async);
  }

  bool ready() const override { return warp.matrixQueue().isNext(number); }

  bool step() override {
    if (!hasRead) {
      readSources();
      hasRead = true;
      --group->unread;
      return false;
    }
    Sums sums;
    if (accumulate)
      gatherSums(p, accumulators.data(), sums);
    else
      std::memset(sums.data(), 0, p.shape.m * p.shape.n * sizeof sums[0]);
    countProduct(warp, p.shape.m, p.shape.n, p.shape.k);
    multiply(p, sumModel(warp), a, b, sums);
    scatterSums(p, sums, accumulators.data());
    warp.matrixQueue().finish();
    --group->unfinished;
    return true;
  }

private:
  uint64_t uniform(const uint64_t *values, const char *what) {
    for (unsigned lane = 1; lane < kLanes; ++lane)
      if (values[lane] != values[0])
        warp.fault(FaultKind::IllegalOperand, std::string(what) + " differs between the lanes of a warp",
                   Mask(1) << lane);
    return values[0];
  }

  void readSources() {
    auto [m, n, k] = p.shape;
    if (decoded.aInRegisters)
      unpackFragments(p.a, registersA.data(), p.registersA(), m, k, a);
    else
      SharedMatrix(warp, descriptorA, p.a, decoded.transposeA, agent)
          .read(warp.index() % 4 * kWarpRows, m, k, a);
    SharedMatrix(warp, descriptorB, p.b, decoded.transposeB, agent).read(0, n, k, b);
    if (p.negateA)
      negate(a, m);
    if (p.negateB)
      negate(b, n);
  }

  Warp &warp;
  std::shared_ptr<Frame> frame;
  const WgmmaProduct &decoded;
  const Product &p;
  std::array<uint8_t *, 128> accumulators;
  std::array<uint8_t *, 4> registersA;
  uint64_t descriptorA = 0, descriptorB = 0;
  bool accumulate, hasRead = false;
  uint64_t number;
  std::shared_ptr<Groups::Group> group;
  check::Agent agent;
  Multiplicand<V> a, b;
};

/// Registers of products in flight that this one may not have: all but accumulators of
/// the same shape as its own (PTX ISA 9.7.15.7.1), and elements of A that are read only.
class GuardCheck {
public:
  GuardCheck(Warp &warp, const Op &op) : warp(warp) {
    const auto &decoded = *static_cast<const WgmmaProduct *>(op.payload);
    const Ref *refs = warp.list(op);
    unsigned sums = decoded.product.registersOf(decoded.product.d);
    use.frame = warp.sharedFrame();
    use.pc = warp.pc();
    use.shape = decoded.product.shape.n << 16 | decoded.product.shape.k;
    for (unsigned i = 0; i < op.count; ++i)
      if (refs[i].memory == Ref::Registers)
        (i < sums ? use.accumulators : use.inputs).push_back(refs[i].offset);
  }

  void run() {
    MatrixQueue &queue = warp.matrixQueue();
    if (!queue.fenced())
      warp.fault(FaultKind::RegistersInFlight, "wgmma.fence must come before the first wgmma.mma_async");
    for (uint32_t offset : use.accumulators)
      refuse(offset, [&](const MatrixQueue::Use &other) {
        return other.reads(offset) || (other.writes(offset) && other.shape != use.shape);
      });
    for (uint32_t offset : use.inputs)
      refuse(offset, [&](const MatrixQueue::Use &other) { return other.writes(offset); });
    queue.guard(std::move(use));
    warp.guardedRegistersChanged();
  }

private:
  template <class F>
  void refuse(uint32_t offset, F conflicts) {
    MatrixQueue &queue = warp.matrixQueue();
    if (!queue.guards(use.frame.get(), offset))
      return;
    const MatrixQueue::Use *other =
        queue.find([&](const MatrixQueue::Use &u) { return u.frame == use.frame && conflicts(u); });
    if (!other)
      return;
    Fault place;
    warp.block().launch().locate(place, other->pc);
    warp.fault(FaultKind::RegistersInFlight, "a register of the product started at line " +
                                                 std::to_string(place.line) +
                                                 " is used before wgmma.wait_group has waited for it");
  }

  Warp &warp;
  MatrixQueue::Use use;
};

template <class V>
void start(Warp &warp, const Op &op, Mask mask) {
  auto operation = std::make_unique<WarpProduct<V>>(warp, op);
  if (!warp.block().launch().settings().checks) {
    while (!operation->step())
      ;
    return;
  }
  GuardCheck(warp, op).run();
  warp.locate(operation->origin, mask);
  warp.block().cluster().operations().start(std::move(operation));
}

} // namespace

void fp8emu::startProduct(Warp &warp, const Op &op, Mask mask) {
  if (!wholeWarp(warp, mask))
    return;
  if ((warp.index() | 3) >= warp.block().warps().size())
    warp.fault(FaultKind::BarrierDivergence, "all four warps of a warpgroup must execute it, the block has " +
                                                 std::to_string(warp.block().warps().size()) + " warps");
  switch (static_cast<const WgmmaProduct *>(op.payload)->product.a.kind) {
  case Element::Integer:
    return start<int16_t>(warp, op, mask);
  case Element::Bit:
    return start<uint32_t>(warp, op, mask);
  default:
    return start<float>(warp, op, mask);
  }
}
