// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the operands of launches the parameters of kernels: a buffer is one address or a descriptor's fields,
// as upstream lowers the kernel's argument, or a tensor map.

#include "LaunchParameters.h"
#include "../../Host/Memory.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "fp8/Dialect/FP8/IR/Marks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8;

/// CUtensorMap: its bytes and its alignment.
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64;
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
                                   ArrayRef<gpu::LaunchFuncOp> launches, ValueRange constants)
    : records(entry) {
  unsigned count = 1;
  for (gpu::LaunchFuncOp launch : launches) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<FunctionOpInterface>(launch, launch.getKernelAttr());
    if (!kernel)
      continue;
    unsigned needed = getTableSize(kernel).value_or(0);
    for (unsigned index : llvm::seq(kernel.getNumArguments())) {
      needed += countParameters(kernel, index);
      if (kernel.getArgAttr(index, kTensorMapAttrName))
        bytesOfSlot = kMapBytes;
    }
    count = std::max(count, needed);
  }
  Location loc = entry.getLoc();
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto allocate = [&](int64_t bytes) {
    return LLVM::AllocaOp::create(builder, loc, pointer, builder.getI8Type(), integer(builder, loc, bytes),
                                  kMapAlignment);
  };
  unsigned numBuffers = 0;
  auto addBuffer = [&](Value value) {
    if (isa<MemRefType>(value.getType()))
      records.addBuffer(value), ++numBuffers;
  };
  llvm::for_each(entry.getArguments(), addBuffer);
  llvm::for_each(constants, addBuffer);
  slots = allocate(count * bytesOfSlot);
  pointers = allocate(count * 8);
  buffers = allocate(numBuffers * 8);
  grid = allocate(3 * 8);
  if (bytesOfSlot == kMapBytes)
    mapNumbers = allocate(count * kMapNumberBytes);
}

SmallVector<Value> LaunchParameters::buildOperands(OpBuilder &builder, Location loc, size_t record,
                                                   int64_t count) {
  Value first = records.buildAddress(builder, loc, record);
  return {first, integer(builder, loc, count), buffers, slots, pointers, grid};
}

/// Lets host code store the next parameter. Returns its slot.
Value LaunchParameters::takeSlot(OpBuilder &builder, Location loc) {
  records.addStored();
  current.isStored = true;
  return offsetBy(builder, loc, slots, next++ * stride);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Returns the bits of `value` if it is a number that is known.
static std::optional<int64_t> findBits(Value value) {
  bool isBit = value.getType().isInteger(1);
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn(); // the bits that are cut are not read
  APInt integer;
  APFloat real(0.0f);
  if (matchPattern(value, m_ConstantInt(&integer)) && integer.getBitWidth() <= 64)
    return isBit ? integer.getSExtValue() & 1 : integer.getSExtValue();
  if (matchPattern(value, m_ConstantFloat(&real)))
    return real.bitcastToAPInt().getZExtValue();
  return std::nullopt;
}

/// Adds a number; `value` is as the memory of a parameter holds it.
void LaunchParameters::addValue(OpBuilder &builder, Location loc, Value value) {
  if (std::optional<int64_t> bits = findBits(value))
    return addConstant(*bits);
  Value slot = takeSlot(builder, loc);
  LLVM::StoreOp::create(builder, loc, value, slot);
}

void LaunchParameters::addIndex(OpBuilder &builder, Location loc, OpFoldResult index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return addConstant(*constant);
  addValue(builder, loc, toI64(builder, loc, index));
}

/// Returns `value` as the memory of a parameter holds it; null if kernels take no such values.
static Value toParameter(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  if (findBits(value) || isa<LLVM::LLVMPointerType>(type))
    return value;
  if (isa<IndexType>(type))
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
  if (type.isInteger(1))
    return arith::ExtUIOp::create(builder, loc, builder.getI8Type(), value);
  if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() > 64)
    return {};
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 16)
    return arith::BitcastOp::create(builder, loc, builder.getI8Type(), value);
  return value;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Adds the address that is `bytesBefore` before the first element of `buffer`.
void LaunchParameters::addAddress(OpBuilder &builder, Location loc, Value buffer, int64_t bytesBefore) {
  auto type = cast<MemRefType>(buffer.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t bytes = getElementBytes(type.getElementType());
  if (std::optional<BufferPlace> place = records.findMemory(buffer);
      place && !ShapedType::isDynamic(offset)) {
    records.addAddress({place->buffer, place->bytes + offset * bytes - bytesBefore});
    ++next;
    return;
  }
  Value address = buildAddress(builder, loc, buffer);
  if (bytesBefore != 0)
    address = arith::SubIOp::create(builder, loc, address, integer(builder, loc, bytesBefore));
  Value slot = takeSlot(builder, loc);
  LLVM::StoreOp::create(builder, loc, address, slot);
}

/// Adds the fields of upstream's descriptor: two pointers, offset, sizes, strides.
void LaunchParameters::addDescriptor(OpBuilder &builder, Location loc, Value buffer) {
  for (unsigned pointer = 0; pointer < 2; ++pointer) {
    if (std::optional<BufferPlace> place = records.findMemory(buffer)) {
      records.addAddress(*place);
      ++next;
    } else {
      addValue(builder, loc, buildAlignedAddress(builder, loc, buffer));
    }
  }
  auto type = cast<MemRefType>(buffer.getType());
  auto [strides, offset] = type.getStridesAndOffset();
  if (type.hasStaticShape() && !ShapedType::isDynamic(offset) && ShapedType::isStaticShape(strides)) {
    SmallVector<int64_t> numbers = {offset};
    llvm::append_range(numbers, type.getShape());
    llvm::append_range(numbers, strides);
    for (int64_t number : numbers)
      addIndex(builder, loc, builder.getIndexAttr(number));
    return;
  }
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  addIndex(builder, loc, parts.getConstifiedMixedOffset());
  for (OpFoldResult size : parts.getConstifiedMixedSizes())
    addIndex(builder, loc, size);
  for (OpFoldResult stride : parts.getConstifiedMixedStrides())
    addIndex(builder, loc, stride);
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

/// Lets host code write the tensor map of a buffer whose sizes, strides or place the running program knows.
TensorMapOperands LaunchParameters::storeTensorMap(OpBuilder &builder, Location loc, Value buffer,
                                                   const TensorMapNumbers &numbers) {
  auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  int64_t bytes = getElementBytes(cast<MemRefType>(buffer.getType()).getElementType());
  Value memory = offsetBy(builder, loc, mapNumbers, next * kMapNumberBytes);
  auto store = [&](Value value, int64_t place) {
    LLVM::StoreOp::create(builder, loc, value, offsetBy(builder, loc, memory, place));
  };
  auto atLeast = [&](Value value, int64_t least) {
    return builder.createOrFold<arith::MaxUIOp>(loc, value, integer(builder, loc, least));
  };
  for (int64_t dim : llvm::seq(numbers.rank)) {
    int64_t source = numbers.rank - 1 - dim;
    Value stride = toI64(builder, loc, parts.getConstifiedMixedStrides()[source]);
    stride = builder.createOrFold<arith::MulIOp>(loc, stride, integer(builder, loc, bytes));
    store(atLeast(toI64(builder, loc, parts.getConstifiedMixedSizes()[source]), 1), kSizesAt + 8 * dim);
    store(dim == 0 ? stride : atLeast(stride, kLeastStride), kStridesAt + 8 * dim);
    store(integer(builder, loc, numbers.box[dim], 32), kBoxAt + 4 * dim);
  }
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  TensorMapOperands map;
  map.place = takeSlot(builder, loc);
  map.type = integer(builder, loc, numbers.type, 32);
  map.rank = integer(builder, loc, numbers.rank, 32);
  map.base = LLVM::IntToPtrOp::create(builder, loc, pointer, buildAddress(builder, loc, buffer));
  map.sizes = offsetBy(builder, loc, memory, kSizesAt);
  map.strides = offsetBy(builder, loc, memory, kStridesAt);
  map.box = offsetBy(builder, loc, memory, kBoxAt);
  map.swizzle = integer(builder, loc, numbers.swizzle, 32);
  return map;
}

LogicalResult LaunchParameters::addTensorMap(OpBuilder &builder, Location loc, Value buffer,
                                             DictionaryAttr form) {
  auto type = cast<MemRefType>(buffer.getType());
  auto box = form.getAs<DenseI64ArrayAttr>("box");
  auto swizzle = form.getAs<IntegerAttr>("swizzle");
  std::optional<int64_t> elements = getMapType(type.getElementType());
  int64_t rank = type.getRank();
  if (!elements || rank == 0 || rank > kMaxMapRank || !box || box.size() != rank || !swizzle)
    return emitError(loc) << "no tensor map " << form << " of " << type
                          << ": it needs one to five dimensions, a box and a swizzle";
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t bytes = getElementBytes(type.getElementType());
  TensorMapNumbers numbers{*elements, rank, swizzle.getInt()};
  // A map has no empty dimension, but a tensor may have one: then kernels read nothing of it.
  for (int64_t dim : llvm::seq(rank)) {
    int64_t source = rank - 1 - dim; // innermost first
    numbers.sizes[dim] = std::max<int64_t>(type.getDimSize(source), 1);
    numbers.strides[dim] = std::max(strides[source] * bytes, dim == 0 ? 0 : kLeastStride);
    numbers.box[dim] = box[dim];
  }
  std::optional<BufferPlace> place = records.findMemory(buffer);
  if (!place || !type.hasStaticShape() || ShapedType::isDynamic(offset) ||
      !ShapedType::isStaticShape(strides)) {
    current.maps.push_back(storeTensorMap(builder, loc, buffer, numbers));
    return success();
  }
  records.addTensorMap({place->buffer, place->bytes + offset * bytes}, numbers);
  ++next;
  return success();
}

LogicalResult LaunchParameters::addBuffer(OpBuilder &builder, gpu::LaunchFuncOp launch, Value buffer,
                                          FunctionOpInterface kernel, unsigned index) {
  Location loc = launch.getLoc();
  Type wanted = kernel.getArgumentTypes()[index];
  if (auto form = kernel.getArgAttrOfType<DictionaryAttr>(index, kTensorMapAttrName))
    return addTensorMap(builder, loc, buffer, form);
  auto type = dyn_cast<MemRefType>(wanted);
  if (type && !kernel->hasAttr(kBarePointersAttrName)) {
    addDescriptor(builder, loc, buffer);
    return success();
  }
  int64_t offset = 0; // which the kernel adds
  SmallVector<int64_t> strides;
  if (type && (failed(type.getStridesAndOffset(strides, offset)) || ShapedType::isDynamic(offset)))
    return launch.emitError() << "argument " << index << " of kernel '" << kernel.getName() << "' has type "
                              << type << ", which is no plain pointer";
  addAddress(builder, loc, buffer, type ? offset * getElementBytes(type.getElementType()) : 0);
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Adds operand `index` of a launch; the entries of a table are the first slots, one after the other.
LogicalResult LaunchParameters::addOperand(OpBuilder &builder, gpu::LaunchFuncOp launch,
                                           FunctionOpInterface kernel, unsigned index) {
  Location loc = launch.getLoc();
  Value operand = launch.getKernelOperand(index);
  bool inTable = getTableSize(kernel).has_value(), isBuffer = isa<MemRefType>(operand.getType());
  if (isBuffer && !inTable)
    return addBuffer(builder, launch, operand, kernel, index);
  if (isBuffer) {
    addAddress(builder, loc, operand, 0);
    return success();
  }
  Value value = toParameter(builder, loc, operand);
  if (!value && inTable)
    return launch.emitError() << "operand " << index << " of type " << operand.getType()
                              << " does not fit into a table";
  if (!value || (!inTable && kernel.getArgumentTypes()[index] != operand.getType()))
    return launch.emitError() << "argument " << index << " of kernel '" << kernel.getName() << "' has type "
                              << kernel.getArgumentTypes()[index] << ", the launch passes "
                              << operand.getType();
  addValue(builder, loc, value);
  return success();
}

void LaunchParameters::addGrid(OpBuilder &builder, gpu::LaunchFuncOp launch) {
  Location loc = launch.getLoc();
  gpu::KernelDim3 sizes = launch.getGridSizeOperandValues();
  std::array<Value, 3> values = {sizes.x, sizes.y, sizes.z};
  SmallVector<int64_t> known;
  for (Value size : values)
    if (std::optional<int64_t> bits = findBits(size))
      known.push_back(*bits);
  if (known.size() == values.size() && known[0] >= 0)
    return records.setGrid(known);
  current.isStored = true;
  for (auto [dim, size] : llvm::enumerate(values))
    LLVM::StoreOp::create(builder, loc, toI64(builder, loc, getAsOpFoldResult(size)),
                          offsetBy(builder, loc, grid, dim * 8));
}

FailureOr<LaunchParameters::Launch> LaunchParameters::add(OpBuilder &builder, gpu::LaunchFuncOp launch,
                                                          FunctionOpInterface kernel, int64_t number) {
  auto line = launch->getAttrOfType<IntegerAttr>(kKernelNumberAttrName);
  current = Launch();
  next = 0;
  stride = getTableSize(kernel) ? 8 : bytesOfSlot;
  records.begin(number, line ? line.getInt() : -1, stride);
  for (unsigned index : llvm::seq(launch.getNumKernelOperands()))
    if (failed(addOperand(builder, launch, kernel, index)))
      return failure();
  addGrid(builder, launch);
  current.record = records.end();
  return current;
}
