// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the records of launches, and finds addresses that are known when the program is compiled.

#include "LaunchRecords.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

/// Places of fields in a record.
static constexpr size_t kNumWordsAt = 0, kGridAt = 3, kNumParametersAt = 7;

std::optional<BufferPlace> LaunchRecords::findMemory(Value buffer) {
  int64_t bytes = 0;
  while (!isBuffer.contains(buffer)) {
    Operation *op = buffer.getDefiningOp();
    if (auto view = dyn_cast_or_null<memref::ViewOp>(op)) {
      std::optional<int64_t> shift = getConstantIntValue(view.getByteShift());
      if (!shift)
        return std::nullopt;
      bytes += *shift;
    } else if (!isa_and_nonnull<memref::SubViewOp, memref::ReinterpretCastOp, memref::ExpandShapeOp,
                                memref::CollapseShapeOp, memref::CastOp>(op)) {
      return std::nullopt;
    }
    buffer = cast<ViewLikeOpInterface>(op).getViewSource();
  }
  return BufferPlace{numbers.insert({buffer, numbers.size()}).first->second, bytes};
}

void LaunchRecords::begin(int64_t kernel, int64_t line, int64_t bytesOfSlot) {
  current = words.size();
  words.append({/*words=*/0, kernel, line, /*grid=*/-1, -1, -1, bytesOfSlot, /*parameters=*/0});
}

void LaunchRecords::add(int64_t kind, int64_t first, int64_t second) {
  ++words[current + kNumParametersAt];
  words.append({kind, first, second});
}

void LaunchRecords::addTensorMap(const BufferPlace &place, const TensorMapNumbers &numbers) {
  add(2, place.buffer, place.bytes);
  words.append({numbers.type, numbers.rank, numbers.swizzle});
  words.append(numbers.sizes.begin(), numbers.sizes.end());
  words.append(numbers.strides.begin(), numbers.strides.end());
  for (int64_t i = 0; i < kMaxMapRank; i += 2) { // two in a word, the first in its lower half
    uint64_t second = i + 1 < kMaxMapRank ? static_cast<uint32_t>(numbers.box[i + 1]) : 0;
    words.push_back(second << 32 | static_cast<uint32_t>(numbers.box[i]));
  }
}

void LaunchRecords::setGrid(ArrayRef<int64_t> grid) { llvm::copy(grid, words.begin() + current + kGridAt); }

size_t LaunchRecords::end() {
  words[current + kNumWordsAt] = words.size() - current;
  return current;
}

Value LaunchRecords::buildAddress(OpBuilder &builder, Location loc, size_t word) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value first = LLVM::AddressOfOp::create(builder, loc, pointer, getName());
  return LLVM::GEPOp::create(builder, loc, pointer, builder.getI64Type(), first,
                             ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(word)));
}

void LaunchRecords::finish(Value array) {
  if (words.empty())
    return;
  Location loc = entry.getLoc();
  OpBuilder builder(entry);
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), words.size());
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, getName(),
                         builder.getI64TensorAttr(words));
  for (auto [buffer, number] : numbers) {
    builder.setInsertionPointAfterValue(isa<BlockArgument>(buffer) ? array : buffer);
    Value start = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
    Value place = LLVM::GEPOp::create(builder, loc, array.getType(), builder.getI64Type(), array,
                                      ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(number)));
    start = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), start);
    LLVM::StoreOp::create(builder, loc, start, place);
  }
}
