// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// clusterlaunchcontrol: a cluster takes over the work of one that has not begun (PTX
// ISA 9.7.13.17, 9.7.13.18). The response, which PTX leaves opaque, is the first
// block's index and whether there is one.

#include "exec/Block.h"
#include "exec/Launch.h"
#include "isa/Families.h"
#include "isa/copy/Bulk.h"

#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

namespace {

struct Response {
  uint32_t index[3];
  uint32_t isCanceled;
};
static_assert(sizeof(Response) == 16, "a response has 16 bytes");

class Cancel : public TransferToShared {
public:
  explicit Cancel(Cluster &cluster) : cluster(cluster) {}

private:
  uint32_t read() override {
    // Hardware may refuse at any time; so that both is seen, one time in four.
    if (cluster.random() % 4)
      if (auto index = cluster.launch().cancelCluster())
        response = {{(*index)[0], (*index)[1], (*index)[2]}, 1};
    return sizeof response;
  }
  void write(const SharedPlace &to) override {
    std::memcpy(resolveShared(to, sizeof response, AccessKind::Store), &response, sizeof response);
  }

  Cluster &cluster;
  Response response{};
};

/// op.flags: all blocks of the cluster get the response.
void tryCancel(Warp &warp, const Op &op, Mask mask) {
  const auto &target = *static_cast<const BulkTarget *>(op.payload);
  Cluster &cluster = warp.block().cluster();
  forLanes(mask, [&](unsigned lane) {
    auto operation = std::make_unique<Cancel>(cluster);
    operation->destinations = findDestinations(warp, target, sizeof(Response), sizeof(Response), lane);
    const auto own = operation->destinations[0];
    if (op.flags)
      for (auto &block : cluster.blocks())
        if (block.get() != own.place.block)
          operation->destinations.push_back(
              {{block.get(), own.place.offset},
               {block.get(), own.barrier.offset},
               check::Agent::untilMbarrier(warp, lane, *block, own.barrier.offset, check::Proxy::Async)});
    for (const auto &to : operation->destinations)
      to.agent.writes({to.place.block, to.place.offset}, sizeof(Response));
    start(warp, lane, std::move(operation));
  });
}

void decodeTryCancel(Decoder &decoder) {
  if (!decoder.take("async") || !decoder.take("mbarrier::complete_tx::bytes") || !decoder.take("b128"))
    decoder.fail(".async, .mbarrier::complete_tx::bytes and .b128 are needed");
  const MemorySpace space = takeSpace(decoder);
  decoder.op().flags = decoder.take("multicast::cluster::all");
  decoder.expectOperands(2);
  auto target = std::make_shared<BulkTarget>();
  target->ownBlock = true;
  target->to = decodeAddressOp(decoder, decoder.operand(0), space);
  target->barrier = decodeAddressOp(decoder, decoder.operand(1), space);
  decoder.keep<BulkTarget>(target);
  decoder.blocksCommunicate();
  decoder.op().handler = &tryCancel;
}

const Response *responses(Warp &warp, const Op &op) { return warp.values<Response>(op.a); }

void isCanceled(Warp &warp, const Op &op, Mask mask) {
  Mask canceled = 0;
  forLanes(mask, [&](unsigned lane) { canceled |= Mask(responses(warp, op)[lane].isCanceled != 0) << lane; });
  Mask &d = warp.predicate(op.d);
  d = (d & ~mask) | canceled;
}

/// The op's list are registers, op.flags the first one's dimension.
void firstBlock(Warp &warp, const Op &op, Mask mask) {
  const Ref *refs = warp.list(op);
  forLanes(mask, [&](unsigned lane) {
    const Response response = responses(warp, op)[lane];
    requireOperand(warp, response.isCanceled, lane, "the request had failed: no cluster was canceled");
    for (unsigned i = 0; i < op.count; ++i)
      warp.values<uint32_t>(refs[i])[lane] = op.flags + i < 3 ? response.index[op.flags + i] : 0;
  });
}

void decodeQueryCancel(Decoder &decoder) {
  Op &op = decoder.op();
  decoder.expectOperands(2);
  op.a = decoder.source(1, Type::B128);
  const int what = decoder.needOneOf(
      {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z", "get_first_ctaid", "is_canceled"});
  decoder.take("b128");
  if (what == 4) {
    decoder.take("pred");
    op.d = decoder.predicateDestination(decoder.operand(0));
    op.handler = &isCanceled;
    return;
  }
  decoder.take("b32");
  op.handler = &firstBlock;
  op.flags = uint8_t(what % 3);
  if (what < 3)
    return decoder.list({decoder.destination(0, Type::B32)});
  const Operand &vector = decoder.operand(0);
  if (!decoder.take("v4") || vector.kind != Operand::Kind::Vector || vector.parts.size() != 4)
    decoder.fail(vector, "four registers in braces are expected");
  for (const Operand &part : vector.parts)
    decoder.list({decoder.destination(part, Type::B32)});
}

void decodeLaunchControl(Decoder &decoder) {
  decoder.needOneOf({"try_cancel", "query_cancel"}) == 0 ? decodeTryCancel(decoder)
                                                         : decodeQueryCancel(decoder);
}

} // namespace

FamilyList fp8emu::launchControlInstructions() { return {{"clusterlaunchcontrol", decodeLaunchControl}}; }
