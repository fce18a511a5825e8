// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of an entry point as data. Most of what a launch needs is known when the program is compiled: its
// kernel, its grid, and parameters that are numbers, or addresses at a known distance from an argument. Words
// for @fp8_abi_launch_all (Target/Host/EntryPoints/LaunchHelpers.mlir) take less time to compile than code.

#ifndef FP8_LIB_TARGET_PTX_CODE_LAUNCHRECORDS_H
#define FP8_LIB_TARGET_PTX_CODE_LAUNCHRECORDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include <array>

namespace fp8 {

/// CUtensorMap: its largest rank.
inline constexpr int64_t kMaxMapRank = 5;

/// A known address: so many bytes behind the start of a buffer.
struct BufferPlace {
  unsigned buffer; ///< its number among the buffers of the entry point
  int64_t bytes;
};

/// The contents of a tensor map, the tensor's innermost dimension first (fp8rt_device::tensor_map).
struct TensorMapNumbers {
  int64_t type, rank, swizzle;
  std::array<int64_t, kMaxMapRank> sizes = {}, strides = {}; ///< strides in bytes
  std::array<int32_t, kMaxMapRank> box = {};
};

/// The records of one entry point, words of 64 bits. A record is:
///   0 its number of words   1 kernel   2 line in fp8_kernels, or -1
///   3, 4, 5 grid; where 3 is -1, the host has stored the grid
///   6 bytes from the slot of a parameter to that of the next   7 the number of parameters
/// then for every parameter its kind and two words:
///   0 constant: its bits, 0
///   1 address: the number of a buffer, bytes behind its start
///   2 tensor map: the same, and 16 more: type, rank, swizzle, 5 sizes, 5 strides, 5 i32 of the box
///   3 stored: the host has stored the parameter in its slot; 0, 0
class LaunchRecords {
public:
  explicit LaunchRecords(mlir::func::FuncOp entry) : entry(entry) {}

  /// Lets addresses in the memory of `buffer` be known: an argument, or a value that is the same all the
  /// time.
  void addBuffer(mlir::Value buffer) { isBuffer.insert(buffer); }
  /// Returns where the memory begins that `buffer` is a view of, before its offset, if that is known.
  std::optional<BufferPlace> findMemory(mlir::Value buffer);

  /// Starts the record of a launch; parameters follow.
  void begin(int64_t kernel, int64_t line, int64_t bytesOfSlot);
  void addConstant(int64_t bits) { add(0, bits, 0); }
  void addAddress(const BufferPlace &place) { add(1, place.buffer, place.bytes); }
  void addTensorMap(const BufferPlace &place, const TensorMapNumbers &numbers);
  void addStored() { add(3, 0, 0); }
  /// Sets the grid of the record; not called where the host stores the grid.
  void setGrid(llvm::ArrayRef<int64_t> grid);
  /// Ends the record. Returns its first word.
  size_t end();

  /// Builds the address of the record that begins at `word`.
  mlir::Value buildAddress(mlir::OpBuilder &builder, mlir::Location loc, size_t word);
  /// Adds the global of all words to the module, and stores the starts of buffers in `array`, behind the
  /// operation that has made it.
  void finish(mlir::Value array);

private:
  void add(int64_t kind, int64_t first, int64_t second);
  std::string getName() { return ("fp8_launches_" + entry.getName()).str(); }

  mlir::func::FuncOp entry;
  llvm::DenseSet<mlir::Value> isBuffer;
  llvm::MapVector<mlir::Value, unsigned> numbers; ///< of the buffers that records use
  llvm::SmallVector<int64_t> words;
  size_t current = 0; ///< the first word of the record that is being written
};

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_CODE_LAUNCHRECORDS_H
