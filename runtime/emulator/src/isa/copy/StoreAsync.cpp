// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// st.async and red.async: registers that reach memory later, most often that of
// another block, whose mbarrier is told (PTX ISA 9.7.9.12, 9.7.13.7); st.bulk, which
// zeroes shared memory (9.7.9.13).

#include "StoreAsync.h"

#include "Bulk.h"

#include "check/Record.h"
#include "exec/Block.h"
#include "isa/Families.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

/// Elements of a vector in flight.
struct Elements {
  unsigned count = 0;
  uint8_t bytes[32];
};

struct AsyncStore {
  BulkTarget target;
  Reduction reduction = nullptr;
  /// Of an element in memory and in a register.
  unsigned elementBytes = 0, registerBytes = 0;
};

void combine(const AsyncStore &store, uint8_t *to, const Elements &elements) {
  store.reduction ? store.reduction(to, elements.bytes, elements.count)
                  : void(std::memcpy(to, elements.bytes, elements.count));
}

/// Says what it writes.
void announce(const check::Agent &agent, const AsyncStore &store, const Target &to, unsigned bytes) {
  store.reduction ? agent.updates(to, bytes) : agent.writes(to, bytes);
}

class ElementsToShared : public TransferToShared {
public:
  ElementsToShared(const AsyncStore &store, const Elements &elements) : store(store), elements(elements) {}

private:
  uint32_t read() override { return elements.count; }
  void write(const SharedPlace &to) override {
    AccessKind kind = store.reduction ? AccessKind::Atomic : AccessKind::Store;
    combine(store, resolveShared(to, elements.count, kind), elements);
  }
  const AsyncStore &store;
  Elements elements;
};

class ElementsToGlobal : public Operation {
public:
  ElementsToGlobal(const AsyncStore &store, const Elements &elements, uint8_t *to, Target target,
                   check::Agent agent)
      : store(store), elements(elements), to(to), target(target), agent(std::move(agent)) {
    announce(this->agent, store, target, elements.count);
  }
  bool step() override {
    combine(store, to, elements);
    agent.release(target);
    return true;
  }

private:
  const AsyncStore &store;
  Elements elements;
  uint8_t *to;
  Target target;
  check::Agent agent;
};

Elements gather(Warp &warp, const Op &op, const AsyncStore &store, unsigned lane) {
  Elements out;
  const Ref *refs = warp.list(op);
  for (unsigned i = 0; i < op.count; ++i, out.count += store.elementBytes)
    std::memcpy(out.bytes + out.count, warp.values<uint8_t>(refs[i]) + lane * store.registerBytes,
                store.elementBytes);
  return out;
}

void storeToShared(Warp &warp, const Op &op, Mask mask) {
  const auto &store = *static_cast<const AsyncStore *>(op.payload);
  forLanes(mask, [&](unsigned lane) {
    requireOperand(warp, warp.block().cluster().blocks().size() > 1, lane,
                   "asynchronous stores to shared memory need a cluster of several blocks");
    Elements elements = gather(warp, op, store, lane);
    auto operation = std::make_unique<ElementsToShared>(store, elements);
    operation->destinations =
        findDestinations(warp, store.target, elements.count, elements.count, lane, check::Proxy::Generic);
    const auto &to = operation->destinations[0];
    announce(to.agent, store, {to.place.block, to.place.offset}, elements.count);
    requireOperand(warp, !store.reduction || operation->destinations[0].place.block != &warp.block(), lane,
                   "red.async goes to another block of the cluster");
    start(warp, lane, std::move(operation));
  });
}

void storeToGlobal(Warp &warp, const Op &op, Mask mask) {
  const auto &store = *static_cast<const AsyncStore *>(op.payload);
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, store.target.to, mask, addresses);
  resolve(warp, spaceOf(store.target.to), mask, addresses, store.elementBytes,
          store.reduction ? AccessKind::Atomic : AccessKind::Store, host);
  forLanes(mask, [&](unsigned lane) {
    start(warp, lane,
          std::make_unique<ElementsToGlobal>(store, gather(warp, op, store, lane), host[lane],
                                             check::targetOf(warp, spaceOf(store.target.to), addresses[lane]),
                                             check::Agent::releasing(warp, lane, check::Level::Device)));
  });
}

/// The value: a register, or as many in braces as the vector has.
void decodeValue(Decoder &decoder, const Operand &operand, Type type, unsigned width, AsyncStore &store) {
  if (width > 1 && (operand.kind != Operand::Kind::Vector || operand.parts.size() != width))
    decoder.fail(operand, std::to_string(width) + " registers in braces are expected");
  for (unsigned i = 0; i < width; ++i) {
    decoder.list({decoder.source(width > 1 ? operand.parts[i] : operand, type)});
  }
  store.registerBytes = laneBytes(type);
  store.elementBytes = ptx::byteSize(type);
}

void decodeToShared(Decoder &decoder, MemorySpace space, AsyncStore &store) {
  if (space != MemorySpace::SharedCluster && space != MemorySpace::Generic)
    decoder.fail(".shared::cluster is expected");
  decoder.expectOperands(3);
  store.target.to = decodeAddressOp(decoder, decoder.operand(0), space);
  store.target.barrier = decodeAddressOp(decoder, decoder.operand(2), space);
  decoder.op().handler = &storeToShared;
}

void decodeToGlobal(Decoder &decoder, MemorySpace space, AsyncStore &store) {
  if (space != MemorySpace::Global && space != MemorySpace::Generic)
    decoder.fail(".global is expected with .release");
  decoder.expectOperands(2);
  store.target.to = decodeAddressOp(decoder, decoder.operand(0), space);
  decoder.blocksCommunicate();
  decoder.op().ordering = check::ordering::kInFlight;
  decoder.op().handler = &storeToGlobal;
}

/// Decodes the rest of st.async or, with `kind`, of red.async.
void decodeAsync(Decoder &decoder, const ReductionKind *kind) {
  AsyncStore store;
  const Ordering ordering = takeOrdering(decoder);
  const MemorySpace space = takeSpace(decoder);
  const bool tellsBarrier = decoder.take("mbarrier::complete_tx::bytes");
  const bool toGlobal = ordering.semantics == Semantics::Release;
  if (decoder.take("mmio") && !toGlobal)
    decoder.fail(".mmio needs .release");
  if (toGlobal == tellsBarrier && !(kind && !toGlobal))
    decoder.fail(toGlobal ? "a release store tells no mbarrier" : ".mbarrier::complete_tx::bytes is missing");
  const int vector = kind || toGlobal ? -1 : decoder.takeOneOf({"v2", "v4"});
  const Type type = decoder.takeType();
  if (ptx::byteSize(type) > 8 || (!toGlobal && ptx::byteSize(type) < 4))
    decoder.fail("elements of 4 or 8 bytes are expected");
  if (kind) {
    // Global memory only adds, signed 64-bit integers too, whose sum is .u64's.
    const bool exists = toGlobal ? *kind == ReductionKind::Add && isInteger(type) && ptx::byteSize(type) >= 4
                                 : reducesInShared(*kind, type);
    store.reduction = findReduction(*kind, toGlobal && type == Type::S64 ? Type::U64 : type);
    if (!exists || !store.reduction)
      decoder.fail("there is no ." + std::string(name(*kind)) + " of ." + ptx::name(type));
  }
  decodeValue(decoder, decoder.operand(1), type, vector < 0 ? 1 : 2u << vector, store);
  toGlobal ? decodeToGlobal(decoder, space, store) : decodeToShared(decoder, space, store);
  decoder.keep<AsyncStore>(std::make_shared<AsyncStore>(store));
}

/// op.b is the number of bytes, op.flags their register's bytes.
void zero(Warp &warp, const Op &op, Mask mask) {
  constexpr uint64_t kMost = 16777216;
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  laneAddresses(warp, op, mask, addresses);
  forLanes(mask, [&](unsigned lane) {
    uint64_t bytes = op.flags == 8 ? warp.values<uint64_t>(op.b)[lane] : warp.values<uint32_t>(op.b)[lane];
    requireOperand(warp, bytes % 8 == 0 && bytes <= kMost, lane,
                   std::to_string(bytes) + " bytes are to be zeroed, they must be a multiple of 8 up to " +
                       std::to_string(kMost));
    uint64_t address = addresses[lane];
    requireOperand(
        warp, spaceOf(op) != MemorySpace::Generic || classify(warp, address) == MemorySpace::SharedCluster,
        lane, "the address is not in shared memory");
    resolve(warp, spaceOf(op), Mask(1) << lane, addresses, unsigned(bytes), 8, AccessKind::Store, host);
    std::memset(host[lane], 0, bytes);
  });
}

void refuseMulticastObjects(Decoder &decoder) {
  decoder.fail("multicast objects, which several devices share, are not supported");
}

} // namespace

void fp8emu::decodeStoreAsync(Decoder &decoder) { decodeAsync(decoder, nullptr); }

void fp8emu::decodeReduceAsync(Decoder &decoder) {
  auto kind = ReductionKind(decoder.needOneOf({"add", "min", "max", "inc", "dec", "and", "or", "xor"}));
  decodeAsync(decoder, &kind);
}

void fp8emu::decodeStoreBulk(Decoder &decoder) {
  decoder.take("weak");
  const MemorySpace space = takeSpace(decoder);
  if (space != MemorySpace::Shared && space != MemorySpace::Generic)
    decoder.fail(".shared::cta is expected");
  decoder.expectOperands(3);
  decodeAddress(decoder, decoder.operand(0), space);
  const Operand &size = decoder.operand(1);
  const bool wide = size.kind != Operand::Kind::Register || laneBytes(decoder.registerType(size.index)) == 8;
  decoder.op().b = decoder.source(size, wide ? Type::U64 : Type::U32);
  decoder.op().flags = wide ? 8 : 4;
  if (decoder.integer(decoder.operand(2)) != 0)
    decoder.fail(decoder.operand(2), "memory is filled with 0 only");
  decoder.op().handler = &zero;
}

FamilyList fp8emu::multicastInstructions() { return {{"multimem", refuseMulticastObjects}}; }
