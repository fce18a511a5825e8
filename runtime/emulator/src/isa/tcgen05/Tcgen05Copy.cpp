// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05.cp and .shift (PTX ISA 9.7.16.9), from shared to tensor memory and within it;
// tcgen05.commit (9.7.16.12), by which an mbarrier learns of their end.

#include "Tcgen05.h"

#include "async/Mbarrier.h"
#include "isa/Lanes.h"
#include "isa/memory/Memory.h"
#include "memory/SharedMatrix.h"

#include <cstring>

using namespace fp8emu;
using ptx::Type;

namespace {

// tcgen05.cp

/// How elements of less than 8 bits become bytes.
enum class Unpacking : uint8_t { None, Bits6, Bits4 };

/// The quarters of 32 lanes that the rows `32 q` to `32 q + 31` go to, as bits.
using Quarters = std::array<uint8_t, 4>;

struct CopyShape {
  const char *name;
  unsigned rows, parts;
  const char *multicast;
  Quarters quarters;
};

/// Rows of so many parts of 16 bytes. 4x256b has a row for each quarter.
const CopyShape kCopyShapes[] = {
    {"128x256b", 128, 2, "", {1, 2, 4, 8}},
    {"4x256b", 4, 2, "", {1, 2, 4, 8}},
    {"128x128b", 128, 1, "", {1, 2, 4, 8}},
    {"64x128b", 64, 1, "warpx2::02_13", {1 | 4, 2 | 8}},
    {"64x128b", 64, 1, "warpx2::01_23", {1 | 2, 4 | 8}},
    {"32x128b", 32, 1, "warpx4", {1 | 2 | 4 | 8}},
};

struct Copy {
  bool pair;
  const CopyShape *shape;
  Unpacking unpacking = Unpacking::None;
  TensorOperand to;
  Ref descriptor;

  /// Bytes of a part that hold elements; the ones behind them are padding, which is not read.
  unsigned dataBytes() const {
    return unpacking == Unpacking::None ? 16 : unpacking == Unpacking::Bits6 ? 12 : 8;
  }
};

/// 16 elements, each to the place that it has in a byte (PTX ISA 9.7.16.9.1): those of 6
/// bits to the lower ones, those of 4 to the middle.
void unpackElements(Unpacking unpacking, uint8_t *part) {
  if (unpacking == Unpacking::None)
    return;
  const unsigned bits = unpacking == Unpacking::Bits6 ? 6 : 4;
  uint8_t packed[18] = {};
  std::memcpy(packed, part, 16);
  for (unsigned i = 0; i < 16; ++i) {
    unsigned first = i * bits, both = packed[first / 8] | packed[first / 8 + 1] << 8;
    unsigned element = both >> first % 8 & ((1U << bits) - 1);
    part[i] = uint8_t(bits == 4 ? element << 2 : element);
  }
}

class TensorCopy : public TensorOperation {
public:
  TensorCopy(Warp &warp, unsigned lane, const Copy &copy)
      : TensorOperation(warp, lane, copy.pair), copy(copy), to(copy.to.address(warp, lane)) {
    if (const char *wrong = from.decodeTensor(warp.values<uint64_t>(copy.descriptor)[lane]))
      fail(FaultKind::IllegalOperand, std::string("matrix descriptor: ") + wrong);
    const CopyShape &shape = *copy.shape;
    if (shape.rows == 4 ? tensorLane(to) >= 32 : tensorLane(to) != 0)
      fail(FaultKind::IllegalOperand, "the lane of the address is " + std::to_string(tensorLane(to)) +
                                          (shape.rows == 4 ? ", it must be below 32" : ", it must be 0"));
    forRows([&](unsigned row, unsigned part, Block *block) {
      willRead(*block, from.part(false, row, part), copy.dataBytes());
    });
    for (unsigned quarter = 0; quarter < 4; ++quarter)
      willWrite(
          {quarter * 32 + tensorLane(to), tensorColumn(to), shape.rows == 4 ? 1U : 32U, shape.parts * 4});
  }

protected:
  void read() override {
    forRows([&](unsigned row, unsigned part, Block *block) {
      std::array<uint8_t, 16> bytes{};
      const unsigned count = copy.dataBytes();
      std::memcpy(bytes.data(), shared(*block, from.part(false, row, part), count), count);
      unpackElements(copy.unpacking, bytes.data());
      data.push_back(bytes);
    });
  }

  void write() override {
    size_t next = 0;
    forRows([&](unsigned row, unsigned part, Block *block) {
      TensorMemory &memory = block->tensorMemory();
      const auto &bytes = data[next++];
      unsigned column = tensorColumn(to) + part * 4;
      needs(memory, {0, column, 32, 4});
      bool single = copy.shape->rows == 4;
      unsigned quarters = copy.shape->quarters[single ? row : row / 32];
      for (unsigned quarter = 0; quarter < 4; ++quarter)
        if (quarters >> quarter & 1) {
          unsigned lane = quarter * 32 + tensorLane(to) + (single ? 0 : row % 32);
          std::memcpy(&memory.cell(lane, column), bytes.data(), 16);
        }
    });
  }

private:
  template <class F>
  void forRows(F f) {
    for (Block *block : blocks)
      for (unsigned row = 0; row < copy.shape->rows; ++row)
        for (unsigned part = 0; part < copy.shape->parts; ++part)
          f(row, part, block);
  }

  const Copy &copy;
  uint32_t to;
  SharedMatrix from;
  std::vector<std::array<uint8_t, 16>> data;
};

void startCopies(Warp &warp, const Op &op, Mask mask) {
  const auto &copy = *static_cast<const Copy *>(op.payload);
  checkPeer(warp, copy.pair, mask);
  forLanes(mask, [&](unsigned lane) {
    warp.block().cluster().operations().start(std::make_unique<TensorCopy>(warp, lane, copy));
  });
}

/// The shape, with the multicast that some need.
const CopyShape *takeCopyShape(Decoder &decoder) {
  int index = decoder.needOneOf({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  if (index < 3)
    return &kCopyShapes[index];
  if (index == 4) {
    decoder.needOneOf({"warpx4"});
    return &kCopyShapes[5];
  }
  return &kCopyShapes[3 + decoder.needOneOf({"warpx2::02_13", "warpx2::01_23"})];
}

// tcgen05.shift

struct Shift {
  bool pair;
  TensorOperand address;
};

/// 31 rows of 32 bytes each take what the row after them held; the last row of the warp's
/// lanes keeps it, to be filled by tcgen05.cp.4x256b.
class TensorShift : public TensorOperation {
public:
  TensorShift(Warp &warp, unsigned lane, const Shift &shift)
      : TensorOperation(warp, lane, shift.pair), address(shift.address.address(warp, lane)) {
    if (tensorLane(address) % 32)
      fail(FaultKind::IllegalOperand, "the lane of the address is " + std::to_string(tensorLane(address)) +
                                          ", it must be a multiple of 32");
    willWrite({tensorLane(address), tensorColumn(address), 32, kColumns});
  }

protected:
  void read() override {}
  void write() override {
    unsigned lane = tensorLane(address), column = tensorColumn(address);
    for (Block *block : blocks) {
      TensorMemory &memory = block->tensorMemory();
      needs(memory, {lane, column, 32, kColumns});
      for (unsigned row = 0; row < 31; ++row)
        std::memcpy(&memory.cell(lane + row, column), &memory.cell(lane + row + 1, column), 4 * kColumns);
    }
  }

private:
  static constexpr unsigned kColumns = 8;
  uint32_t address;
};

void startShifts(Warp &warp, const Op &op, Mask mask) {
  const auto &shift = *static_cast<const Shift *>(op.payload);
  checkPeer(warp, shift.pair, mask);
  forLanes(mask, [&](unsigned lane) {
    warp.block().cluster().operations().start(std::make_unique<TensorShift>(warp, lane, shift));
  });
}

// tcgen05.commit

enum Flags : uint8_t { Pair = 1, Multicast = 2 };

/// Arrives when all operations that the thread has started so far are over.
class TensorCommit : public Operation {
public:
  TensorCommit(TensorMemory &memory, unsigned thread) : memory(memory), count(memory.issuedBy(thread)) {}
  bool ready() const override { return memory.haveFinished(count); }
  bool step() override {
    for (const Place &place : places) {
      place.release();
      Mbarrier(*place.barrier.block, place.barrier.offset).arrive(1);
    }
    return true;
  }
  void tell(Warp &warp, unsigned lane, const SharedPlace &place) {
    places.push_back(
        {place, check::releaseGroups(warp, lane, check::GroupKind::Tensor, *place.block, place.offset)});
  }

private:
  TensorMemory &memory;
  uint64_t count;
  struct Place {
    SharedPlace barrier;
    /// Releases the reads and writes of the operations.
    std::function<void()> release;
  };
  std::vector<Place> places;
};

/// The mbarrier at the same offset in each of the blocks of the mask.
void multicast(Warp &warp, const SharedPlace &place, uint32_t blocks, unsigned lane,
               TensorCommit &operation) {
  auto &all = warp.block().cluster().blocks();
  for (unsigned rank = 0; rank < 16; ++rank) {
    if (!(blocks >> rank & 1))
      continue;
    if (rank >= all.size())
      warp.fault(FaultKind::IllegalOperand,
                 "block " + std::to_string(rank) + " is named, the cluster has " + std::to_string(all.size()),
                 Mask(1) << lane);
    operation.tell(warp, lane, {all[rank].get(), place.offset});
  }
}

/// op.b is the mask of blocks.
void commit(Warp &warp, const Op &op, Mask mask) {
  checkGroup(warp, op.flags & Pair, mask);
  uint64_t addresses[kLanes];
  laneAddresses(warp, op, mask, addresses);
  forLanes(mask, [&](unsigned lane) {
    SharedPlace place = findShared(warp, spaceOf(op), addresses[lane], 8, 8, lane);
    auto operation =
        std::make_unique<TensorCommit>(warp.block().tensorMemory(), warp.index() * kLanes + lane);
    warp.locate(operation->origin, Mask(1) << lane);
    if (op.flags & Multicast)
      multicast(warp, place, warp.values<uint16_t>(op.b)[lane], lane, *operation);
    else
      operation->tell(warp, lane, place);
    warp.block().cluster().operations().start(std::move(operation));
  });
}

} // namespace

void fp8emu::decodeTensorCopy(Decoder &decoder) {
  auto copy = std::make_shared<Copy>();
  copy->pair = takePair(decoder);
  copy->shape = takeCopyShape(decoder);
  if (decoder.take("b8x16"))
    copy->unpacking =
        decoder.needOneOf({"b6x16_p32", "b4x16_p64"}) == 0 ? Unpacking::Bits6 : Unpacking::Bits4;
  decoder.expectOperands(2);
  copy->to = tensorOperand(decoder, decoder.operand(0));
  copy->descriptor = decoder.source(1, Type::U64);
  decoder.keep<Copy>(copy);
  decoder.op().handler = &startCopies;
}

void fp8emu::decodeTensorShift(Decoder &decoder) {
  auto shift = std::make_shared<Shift>();
  shift->pair = takePair(decoder);
  decoder.needOneOf({"down"});
  decoder.expectOperands(1);
  shift->address = tensorOperand(decoder, decoder.operand(0));
  decoder.keep<Shift>(shift);
  decoder.op().handler = &startShifts;
}

void fp8emu::decodeTensorCommit(Decoder &decoder) {
  Op &op = decoder.op();
  op.flags = takePair(decoder) ? Pair : 0;
  decoder.needOneOf({"mbarrier::arrive::one"});
  MemorySpace space = takeSpace(decoder);
  if (decoder.take("multicast::cluster"))
    op.flags |= Multicast;
  decoder.needOneOf({"b64"});
  decoder.expectOperands(op.flags & Multicast ? 2 : 1);
  decodeAddress(decoder, decoder.operand(0), space);
  if (op.flags & Multicast)
    op.b = decoder.source(1, Type::B16);
  op.handler = &commit;
}
