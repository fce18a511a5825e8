// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores the operands of launches as the parameters of kernels: a buffer is one address or a descriptor's
// fields, as upstream lowers the kernel's argument, or a tensor map.

#include "LaunchParameters.h"
#include "../Host/Memory.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Target/Host/CallingConvention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

/// CUtensorMap: its bytes, its alignment and its largest rank.
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64, kMaxMapRank = 5;
/// The bytes that every stride but the innermost is a multiple of.
static constexpr int64_t kLeastStride = 16;

/// Offsets in the `mapNumbers` of one slot: sizes, strides and box, which fp8_abi_tensor_map takes.
static constexpr int64_t kSizesAt = 0, kStridesAt = 40, kBoxAt = 80, kMapNumberBytes = 104;

static Value integer(OpBuilder &builder, Location loc, int64_t value, unsigned width = 64) {
  return arith::ConstantIntOp::create(builder, loc, value, width);
}

static Value toI64(OpBuilder &builder, Location loc, OpFoldResult index) {
  if (auto constant = getConstantIntValue(index))
    return integer(builder, loc, *constant);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), cast<Value>(index));
}

static Value offsetBy(OpBuilder &builder, Location loc, Value pointer, int64_t bytes) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(bytes)));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Builds the address of the buffer's memory, before its offset.
static Value buildAlignedAddress(OpBuilder &builder, Location loc, Value buffer) {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
}

Value fp8::buildAddress(OpBuilder &builder, Location loc, Value buffer, ValueRange indices) {
  auto type = cast<MemRefType>(buffer.getType());
  Value address = buildAlignedAddress(builder, loc, buffer);
  if (type.getLayout().isIdentity() && indices.empty())
    return address;
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  Value offset = toI64(builder, loc, parts.getConstifiedMixedOffset());
  for (auto [index, stride] : llvm::zip(indices, parts.getConstifiedMixedStrides())) {
    Value step = arith::MulIOp::create(builder, loc, toI64(builder, loc, index), toI64(builder, loc, stride));
    offset = arith::AddIOp::create(builder, loc, offset, step);
  }
  Value bytes = integer(builder, loc, getElementBytes(type.getElementType()));
  Value distance = arith::MulIOp::create(builder, loc, offset, bytes);
  return arith::AddIOp::create(builder, loc, address, distance);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

/// Returns the number of slots in the table that is the kernel's only argument, if it takes one.
static std::optional<unsigned> getTableSize(FunctionOpInterface kernel) {
  if (kernel.getNumArguments() != 1)
    return std::nullopt;
  auto slots = kernel.getArgAttrOfType<IntegerAttr>(0, kOperandTableAttrName);
  return slots ? std::optional<unsigned>(slots.getInt()) : std::nullopt;
}

unsigned fp8::countOperands(FunctionOpInterface kernel) {
  return getTableSize(kernel).value_or(kernel.getNumArguments());
}

/// Returns how many parameters the argument of a kernel has in the LLVM dialect.
static unsigned countParameters(FunctionOpInterface kernel, unsigned index) {
  auto type = dyn_cast<MemRefType>(kernel.getArgumentTypes()[index]);
  return !type || kernel->hasAttr(kBarePointersAttrName) ? 1 : 3 + 2 * type.getRank();
}

LaunchParameters::LaunchParameters(OpBuilder &builder, func::FuncOp entry,
                                   ArrayRef<gpu::LaunchFuncOp> launches) {
  unsigned count = 1;
  for (gpu::LaunchFuncOp launch : launches) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(launch, launch.getKernelAttr());
    if (!kernel)
      continue;
    unsigned needed = getTableSize(kernel).value_or(0);
    for (unsigned index : llvm::seq(kernel.getNumArguments())) {
      needed += countParameters(kernel, index);
      if (kernel.getArgAttr(index, kTensorMapAttrName))
        slotBytes = kMapBytes;
    }
    count = std::max(count, needed);
  }
  Location loc = entry.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto allocate = [&](int64_t bytes) {
    return LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), integer(builder, loc, bytes),
                                  kMapAlignment);
  };
  slots = allocate(count * slotBytes);
  pointers = allocate(count * 8);
  if (slotBytes == kMapBytes)
    mapNumbers = allocate(count * kMapNumberBytes);
  for (unsigned number : llvm::seq(count))
    LLVM::StoreOp::create(builder, loc, getSlot(builder, loc, number),
                          offsetBy(builder, loc, pointers, number * 8));
}

Value LaunchParameters::getSlot(OpBuilder &builder, Location loc, unsigned number) {
  return offsetBy(builder, loc, slots, number * slotBytes);
}

void LaunchParameters::storeNext(OpBuilder &builder, Location loc, Value value) {
  LLVM::StoreOp::create(builder, loc, value, getSlot(builder, loc, next++));
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Stores the fields of upstream's descriptor: two pointers, offset, sizes, strides.
void LaunchParameters::storeDescriptor(OpBuilder &builder, Location loc, Value buffer) {
  Value address = buildAlignedAddress(builder, loc, buffer);
  storeNext(builder, loc, address);
  storeNext(builder, loc, address);
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  storeNext(builder, loc, toI64(builder, loc, parts.getConstifiedMixedOffset()));
  for (OpFoldResult size : parts.getConstifiedMixedSizes())
    storeNext(builder, loc, toI64(builder, loc, size));
  for (OpFoldResult stride : parts.getConstifiedMixedStrides())
    storeNext(builder, loc, toI64(builder, loc, stride));
}

/// Returns FP8RT_MAP_… for an element type.
static std::optional<int64_t> getMapType(Type type) {
  if (getElementBytes(type) == 1)
    return 0;
  if (type.isBF16())
    return 1;
  if (type.isF16())
    return 2;
  if (type.isF32())
    return 3;
  return std::nullopt;
}

FailureOr<TensorMap> LaunchParameters::storeTensorMap(OpBuilder &builder, Location loc, Value buffer,
                                                      DictionaryAttr form) {
  auto type = cast<MemRefType>(buffer.getType());
  auto box = form.getAs<DenseI64ArrayAttr>("box");
  auto swizzle = form.getAs<IntegerAttr>("swizzle");
  std::optional<int64_t> elements = getMapType(type.getElementType());
  int64_t rank = type.getRank();
  if (!elements || rank == 0 || rank > kMaxMapRank || !box || box.size() != rank || !swizzle)
    return emitError(loc) << "no tensor map " << form << " of " << type
                          << ": it needs one to five dimensions, a box and a swizzle";
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  int64_t bytes = getElementBytes(type.getElementType());
  Value numbers = offsetBy(builder, loc, mapNumbers, next * kMapNumberBytes);
  auto store = [&](Value value, int64_t place) {
    LLVM::StoreOp::create(builder, loc, value, offsetBy(builder, loc, numbers, place));
  };
  // A map has no empty dimension, but a tensor may have one at run time: then kernels read nothing of it.
  auto atLeast = [&](Value value, int64_t least) {
    return builder.createOrFold<arith::MaxUIOp>(loc, value, integer(builder, loc, least));
  };
  for (int64_t dim : llvm::seq(rank)) {
    int64_t source = rank - 1 - dim; // innermost first
    Value stride = toI64(builder, loc, parts.getConstifiedMixedStrides()[source]);
    stride = builder.createOrFold<arith::MulIOp>(loc, stride, integer(builder, loc, bytes));
    store(atLeast(toI64(builder, loc, parts.getConstifiedMixedSizes()[source]), 1), kSizesAt + 8 * dim);
    store(dim == 0 ? stride : atLeast(stride, kLeastStride), kStridesAt + 8 * dim);
    store(integer(builder, loc, box[dim], 32), kBoxAt + 4 * dim);
  }
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  TensorMap map;
  map.place = getSlot(builder, loc, next++);
  map.type = integer(builder, loc, *elements, 32);
  map.rank = integer(builder, loc, rank, 32);
  map.base = LLVM::IntToPtrOp::create(builder, loc, pointer, buildAddress(builder, loc, buffer));
  map.sizes = offsetBy(builder, loc, numbers, kSizesAt);
  map.strides = offsetBy(builder, loc, numbers, kStridesAt);
  map.box = offsetBy(builder, loc, numbers, kBoxAt);
  map.swizzle = integer(builder, loc, swizzle.getInt(), 32);
  return map;
}

LogicalResult LaunchParameters::storeBuffer(OpBuilder &builder, gpu::LaunchFuncOp launch, Value buffer,
                                            FunctionOpInterface kernel, unsigned index,
                                            SmallVectorImpl<TensorMap> &maps) {
  Location loc = launch.getLoc();
  Type wanted = kernel.getArgumentTypes()[index];
  if (auto form = kernel.getArgAttrOfType<DictionaryAttr>(index, kTensorMapAttrName)) {
    FailureOr<TensorMap> map = storeTensorMap(builder, loc, buffer, form);
    if (succeeded(map))
      maps.push_back(*map);
    return map;
  }
  auto type = dyn_cast<MemRefType>(wanted);
  if (type && !kernel->hasAttr(kBarePointersAttrName)) {
    storeDescriptor(builder, loc, buffer);
    return success();
  }
  Value address = buildAddress(builder, loc, buffer);
  int64_t offset = 0; // which the kernel adds
  SmallVector<int64_t> strides;
  if (type && (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset)))
    return launch.emitError() << "argument " << index << " of kernel '" << kernel.getName() << "' has type "
                              << type << ", which is no plain pointer";
  if (offset != 0)
    address = arith::SubIOp::create(builder, loc, address,
                                    integer(builder, loc, offset * getElementBytes(type.getElementType())));
  storeNext(builder, loc, address);
  return success();
}

/// Returns `value` as the memory of a parameter holds it; null if kernels take no such values.
static Value toParameter(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  if (isa<IndexType>(type))
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  if (isa<LLVM::LLVMPointerType>(type))
    return value;
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
    return {};
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 16)
    return arith::BitcastOp::create(builder, loc, builder.getI8Type(), value);
  return value;
}

/// Stores the operands one after the other: the first slots are the table.
LogicalResult LaunchParameters::storeTable(OpBuilder &builder, gpu::LaunchFuncOp launch) {
  Location loc = launch.getLoc();
  for (auto [index, operand] : llvm::enumerate(launch.getKernelOperands())) {
    Value value = isa<MemRefType>(operand.getType()) ? buildAddress(builder, loc, operand)
                                                     : toParameter(builder, loc, operand);
    if (!value)
      return launch.emitError() << "operand " << index << " of type " << operand.getType()
                                << " does not fit into a table";
    LLVM::StoreOp::create(builder, loc, value, offsetBy(builder, loc, slots, index * 8));
  }
  return success();
}

FailureOr<SmallVector<TensorMap>> LaunchParameters::store(OpBuilder &builder, gpu::LaunchFuncOp launch,
                                                          FunctionOpInterface kernel) {
  next = 0;
  SmallVector<TensorMap> maps;
  if (getTableSize(kernel)) {
    if (failed(storeTable(builder, launch)))
      return failure();
    return maps;
  }
  for (auto [index, operand] : llvm::enumerate(launch.getKernelOperands())) {
    if (isa<MemRefType>(operand.getType())) {
      if (failed(storeBuffer(builder, launch, operand, kernel, index, maps)))
        return failure();
      continue;
    }
    Value value = toParameter(builder, launch.getLoc(), operand);
    if (!value || kernel.getArgumentTypes()[index] != operand.getType())
      return launch.emitError() << "argument " << index << " of kernel '" << kernel.getName() << "' has type "
                                << kernel.getArgumentTypes()[index] << ", the launch passes "
                                << operand.getType();
    storeNext(builder, launch.getLoc(), value);
  }
  return maps;
}
