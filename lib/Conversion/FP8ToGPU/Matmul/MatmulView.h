// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Used by all kernels of matmuls: the view of an operation as a matmul of matrices [batch, M, K] ·
// [batch, N, K], its operands in the form that kernels read, and the order of tiles. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULVIEW_H
#define FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULVIEW_H

#include "../Kernel/KernelArguments.h"
#include "../Kernel/LoweringContext.h"
#include "../Kernel/OperandAlignment.h"
#include "fp8/Dialect/FP8/IR/ContractionDims.h"
#include "fp8/Dialect/FP8/IR/FP8.h"

namespace fp8 {

/// The groups of a grouped matmul (fp8.grouped_matmul): the ends of their rows, the dimension of the groups,
/// and whether rows of the result are divided among them, or those that are summed.
struct RowsOfGroups {
  mlir::Value ends;
  unsigned dim;
  bool ofResult;
};

/// Scales that differ along K.
enum class ScalesAlongK {
  none,   ///< all of K has one scale: the epilogue multiplies by it
  blocks, ///< f32, one for each part of K: the kernel multiplies the sums of the parts by them
  packed  ///< E8M0, one for each 32, as fp8.pack_scales arranges them: tensor cores multiply by them
};
/// The elements along K of a part: those that have one word of packed scales, and the parts of split sums.
/// Blocks with f32 scales may have another length: MatmulView::getPart().
inline constexpr int64_t kPart = 128;
/// The rows and the bytes of a tile of packed scales.
inline constexpr int64_t kPackedRows = 128, kPackedBytes = 512;

/// An fp8.matmul or fp8.scaled_matmul on memrefs as a matmul of matrices. A row or column index runs through
/// the M or N dimensions in the order of the result, the last one fastest; the index along K through the K
/// dimensions in the order of the iteration space.
struct MatmulView {
  explicit MatmulView(mlir::Operation *op);
  /// A matmul whose dimensions are `dims`; of a grouped matmul those of one group.
  MatmulView(mlir::Operation *op, const ContractionDims &dims);

  /// Makes it the transposed matmul.
  void swap();

  mlir::Operation *op;
  mlir::Value lhs, rhs, out;
  mlir::Value lhsScaleInv, rhsScaleInv; ///< null without scales
  /// The extent of a block that has one scale, per dimension of lhs and rhs, 0 for all of it; empty for one
  /// scale of the whole operand.
  llvm::SmallVector<int64_t> lhsBlock, rhsBlock;
  ScalesAlongK scalesAlongK = ScalesAlongK::none;
  bool split = false;
  bool isTF32 = false; ///< whether tensor cores may read f32 operands as TF32
  llvm::SmallVector<mlir::AffineMap> maps;
  ContractionDims dims;
  std::optional<RowsOfGroups> groups;
  std::string site, role;

  /// Returns the number of elements of `group`, one of `dims`, or kDynamic.
  int64_t knownSize(llvm::ArrayRef<unsigned> group) const;
  /// Returns it as an index value.
  mlir::Value buildSize(mlir::OpBuilder &builder, llvm::ArrayRef<unsigned> group) const;
  /// Returns the size of one dimension of the iteration space.
  mlir::OpFoldResult getSize(mlir::OpBuilder &builder, unsigned dim) const;
  /// Returns the extent of blocks along K; 0 if all of K has one scale.
  int64_t getBlockOfK() const;
  /// Returns the elements along K of a part.
  int64_t getPart() const { return scalesAlongK == ScalesAlongK::blocks ? getBlockOfK() : kPart; }
  /// Whether sums of parts are multiplied by the scale of rhs first: if lhs alone has blocks that span
  /// several of its rows.
  bool scalesRhsFirst() const;
  /// Adds to what the report says of the code, as "left operand copied: …".
  void addNote(const llvm::Twine &note) const;
  /// Returns the mark for code that `code` describes in words, with the notes.
  mlir::ArrayAttr mark(const llvm::Twine &code) const;
};

/// An operand as [batch, rows, K], the form that kernels with tensor cores read: K is contiguous, and base,
/// pitch and the distance of batches are multiples of 16 bytes. Bytes between K and the pitch are undefined.
struct MatmulOperand {
  mlir::Value memref;      ///< whose first element is that of the matrices
  mlir::Value pitch;       ///< bytes from row to row, of type index
  mlir::Value batchStride; ///< bytes from batch to batch, of type index
  mlir::Value kStride;     ///< bytes from element to element along K, of type index: their size
  /// Whether it is [batch, K, rows] instead: rows are contiguous, and the pitch is that along K.
  bool isTransposed = false;
  /// Where batches have two distances (the heads of attention), of type index, else null: batch b begins at
  /// b / innerBatches · batchStride + b % innerBatches · innerStride.
  mlir::Value innerBatches = {}, innerStride = {};
};

/// The arguments of a kernel that tell where a batch of an operand begins.
struct BatchArguments {
  BatchArguments(KernelArguments &arguments, const MatmulOperand &operand);
  /// Returns the address of `batch` of the operand at `pointer`.
  mlir::Value findStart(KernelBuilder &b, mlir::Value pointer, Expr batch) const;

  unsigned stride;
  std::optional<unsigned> innerBatches, innerStride;
};

/// Returns the operand of `matmul`, lhs or rhs, in that form: as it lies in memory, or else a copy, which a
/// remark tells. It is transposed only if the kernel can read it so (`mayTranspose`).
MatmulOperand prepareOperand(mlir::OpBuilder &builder, LoweringContext &context, const MatmulView &matmul,
                             bool isLhs, bool mayTranspose = false);

/// Returns the operand as it lies in memory, also [batch, K, rows], if it has the form.
std::optional<MatmulOperand> viewOperand(mlir::OpBuilder &builder, const MatmulView &matmul, bool isLhs);

/// Returns the description of a kernel for `matmul`, without threads, shared memory and instruction.
KernelSpec describeKernel(const MatmulView &matmul, const KernelArguments &arguments);

/// Launches `kernel` on `blocks` blocks, with the marks of `matmul`. Without `inParts` the kernel takes
/// split sums as one.
mlir::gpu::LaunchFuncOp launchMatmul(mlir::OpBuilder &builder, const MatmulView &matmul,
                                     mlir::func::FuncOp kernel, mlir::Value blocks,
                                     const KernelArguments &arguments, bool inParts = true);

/// Returns the operand for kernels that read any strides: not contiguous, not aligned. Copied where rows or K
/// have no one distance, or batches more than two.
MatmulOperand prepareStridedOperand(mlir::OpBuilder &builder, LoweringContext &context,
                                    const MatmulView &matmul, bool isLhs);

/// A tile of a matmul: the numbers of its batch, its block of rows and its block of columns.
struct Tile {
  Expr batch, m, n;
};

/// Returns tile number `number` of batches of tilesM · tilesN each. Blocks that run at the same time read the
/// same rows and columns: tiles are numbered in groups of eight blocks of rows.
Tile findTile(KernelBuilder &b, Expr number, Expr tilesM, Expr tilesN);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_MATMUL_MATMULVIEW_H
