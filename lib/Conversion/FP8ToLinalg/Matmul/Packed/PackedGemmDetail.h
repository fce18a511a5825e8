// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of a packed matmul: operands as matrices, functions that pack panels, the micro-kernel.
// Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMDETAIL_H
#define FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMDETAIL_H

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {

//===----------------------------------------------------------------------===//
// Arithmetic on sizes, folded where they are constants
//===----------------------------------------------------------------------===//

mlir::OpFoldResult multiplySizes(mlir::OpBuilder &builder, mlir::Location loc,
                                 mlir::ArrayRef<mlir::OpFoldResult> sizes);
mlir::OpFoldResult addSizes(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult a,
                            mlir::OpFoldResult b);
mlir::OpFoldResult ceilDivSize(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                               int64_t width);
/// Returns min(width, size - begin).
mlir::OpFoldResult remainingSize(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                                 mlir::OpFoldResult begin, int64_t width);

//===----------------------------------------------------------------------===//
// PackedGemmOperand.cpp: operands as matrices
//===----------------------------------------------------------------------===//

/// One operand as [batch][outer][K], where outer is M or N. Each group lists positions of
/// the operand's own dimensions, in the order in which the matmul runs through them.
struct PackedOperand {
  mlir::Value source;
  mlir::SmallVector<unsigned> batch, outer, reduction;

  mlir::MemRefType type() const { return mlir::cast<mlir::MemRefType>(source.getType()); }
};

/// Returns whether one stride leads from each element of the dimensions at `group` to the next.
bool hasOneStride(mlir::MemRefType type, mlir::ArrayRef<unsigned> group);

/// Returns `operand`, or a copy of it whose dimensions are in the order batch, outer, K if panels
/// cannot be packed from it: the last `rowDims` outer dimensions or those of K have no common
/// stride, or neither is contiguous.
PackedOperand makePackable(mlir::OpBuilder &builder, mlir::Location loc, PackedOperand operand,
                           unsigned rowDims);

/// A matrix in the source of an operand.
struct OperandMatrix {
  mlir::Value view; ///< [outer][K] if alongK, else [K][outer]; the last dimension has stride 1
  bool alongK;
};

/// Returns the matrix of the last `rowDims` outer dimensions and of K that begins at `offsets` (one per
/// dimension of the operand) and has `rows` rows.
OperandMatrix viewAsMatrix(mlir::OpBuilder &builder, mlir::Location loc, const PackedOperand &operand,
                           unsigned rowDims, mlir::ArrayRef<mlir::OpFoldResult> offsets,
                           mlir::OpFoldResult rows);

/// The least rows of a block, of matmuls with as many: enough to use each panel of B several times.
inline constexpr int64_t kLeastRows = 64;

//===----------------------------------------------------------------------===//
// PackedGemmPanels.cpp: packing
//===----------------------------------------------------------------------===//

/// Emits a call that packs `matrix` into `panels`, a memref<?x?x{width}xf32> [panel][K][width]: as many
/// panels as that has, from panel `first` of the matrix on. Rows beyond the last one are copies of it or
/// zero. With options.hasPairs(), an element of `panels` is a pair of bf16 elements adjacent along K, and the
/// panels have half as many elements along K; where they have more, these are zero.
void buildPack(mlir::OpBuilder &builder, mlir::Location loc, const OperandMatrix &matrix, mlir::Value panels,
               const PackedMatmulOptions &options, mlir::OpFoldResult first = {});

//===----------------------------------------------------------------------===//
// PackedGemmVectors.cpp: the vectors that packing loads and stores
//===----------------------------------------------------------------------===//

/// Returns the pairs of the bf16 values `low` and `high`, which are in f32: scalars or vectors.
mlir::Value buildPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value low, mlir::Value high);

/// Returns the pairs of adjacent elements of `vector`, of a type that is exact in bf16.
mlir::Value buildAdjacentPairs(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector);

/// Extends an element or a vector to f32; fp8-expand-casts expands arith.extf from FP8.
mlir::Value extendToF32(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

/// Transposes the square matrix whose rows are `rows`, a power of two of vectors of as many elements.
mlir::SmallVector<mlir::Value> transposeSquare(mlir::OpBuilder &builder, mlir::Location loc,
                                               mlir::SmallVector<mlir::Value> rows);

//===----------------------------------------------------------------------===//
// PackedGemmTilePanels.cpp: packing for tile registers
//===----------------------------------------------------------------------===//

/// As buildPack(), for the first operand of a matmul on tile registers: for every 16 pairs along K, the rows
/// of a panel one after the other. Pairs beyond K are zero.
void buildTilePack(mlir::OpBuilder &builder, mlir::Location loc, const OperandMatrix &matrix,
                   mlir::Value panels, mlir::OpFoldResult first);

//===----------------------------------------------------------------------===//
// PackedGemmScales.cpp: scales of packed operands
//===----------------------------------------------------------------------===//

/// Emits a call that multiplies the elements of `panels` by those of `scales`, panels of as many rows, of
/// which one is for `length` indices of K. With options.hasPairs(), elements of `panels` are pairs, and
/// `length` is even.
void buildScalePanels(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value panels, mlir::Value scales,
                      int64_t length, const PackedMatmulOptions &options);

/// As buildScalePanels(), for `panels` of buildTilePack(); `length` is a multiple of 32.
void buildScaleTilePanels(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value panels,
                          mlir::Value scales, int64_t length);

//===----------------------------------------------------------------------===//
// PackedGemmKernel.cpp: the micro-kernel
//===----------------------------------------------------------------------===//

/// The number of products in a partial sum of `split` accumulation.
inline constexpr int64_t kSplitLength = 128;

/// The tile of sums, rows x columns, that the micro-kernel keeps in registers; panels of lhs have
/// `rows` elements across K, those of rhs `columns`.
struct PackedGemmTile {
  int64_t rows;
  int64_t columns;
};

/// Elements of a panel of B that stay in the L1 cache, 32 KiB or more, while the panels of A run past.
inline constexpr int64_t kBlockElements = 8192;

/// Returns the most elements of a panel, along K, between two stores of the sums of a tile.
inline int64_t mostInBlock(const PackedGemmTile &tile) { return kBlockElements / tile.columns; }

/// The scales of blocks of K, in panels like the operands: a [panels of M][blocks][tile.rows], b [panels of
/// N][blocks][tile.columns].
struct BlockPanels {
  mlir::Value a, b;
  int64_t length = 0;    ///< indices of K in a block; 0: there are no scales
  bool rowsFirst = true; ///< whether a sum is multiplied by the scale in a first
};

/// Returns the number of elements of a panel, along K, that are summed from zero; 0 if all are one sum.
int64_t partLength(const BlockPanels &blocks, const PackedMatmulOptions &options);

/// Returns one of `panels` as a row of elements.
mlir::Value viewPanel(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value panels, mlir::Value number);

/// Emits a call that computes c = a · b, and returns it: a [panels of M][K][tile.rows], b [panels of
/// N][K][tile.columns], c [rows][panels of N * tile.columns] with rows <= panels of M * tile.rows. The sums
/// in c go on if they have summands already: `before` is the number of indices of K before these. With
/// options.hasPairs(), elements of a and b are pairs; with options.hasTiles(), a is packed by
/// buildTilePack(). With `blocks`, every block of K is scaled.
mlir::func::CallOp buildGemm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b,
                             mlir::Value c, mlir::Value before, const BlockPanels &blocks,
                             const PackedMatmulOptions &options, const PackedGemmTile &tile);

//===----------------------------------------------------------------------===//
// PackedGemmPlan.cpp: how a matmul is cut into tasks
//===----------------------------------------------------------------------===//

/// Chooses the tile for a matrix of sums of at most `rows` x `columns` (or a dynamic size).
PackedGemmTile chooseTile(const VectorRegisters &registers, int64_t rows, int64_t columns);

/// The sizes of a matmul; ShapedType::kDynamic where a size is known at run time only.
struct MatmulSizes {
  int64_t batch;                ///< number of matmuls
  llvm::SmallVector<int64_t> m; ///< per dimension of M
  int64_t n, k;
};

/// A task computes all columns, or those of some panels, of a block of rows of one matmul: a range of
/// the dimension `cut` of M at one index of each dimension before it and at all of those after it.
struct MatmulPlan {
  unsigned cut = 0;          ///< position of the dimension of M
  int64_t inner = 1;         ///< rows per index of that dimension
  int64_t step = 1;          ///< indices of that dimension in a block
  int64_t panelsPerTask = 0; ///< panels of N; 0: all
  int64_t panelsPerPart = 1; ///< panels of N whose sums a task computes before it goes on to others
  int64_t segment = 0;       ///< indices of K that are packed at a time; 0: all
  bool isParallel = false;
  PackedGemmTile tile;
};

/// Chooses the plan. `rowDims` is the number of last dimensions of M that rows of one block may run
/// through; `mayCutColumns` allows to cut N. Segments of K are multiples of `scaleLength`, unless that is 0.
MatmulPlan choosePlan(const MatmulSizes &sizes, unsigned rowDims, bool mayCutColumns, bool onOneThread,
                      int64_t scaleLength, const VectorRegisters &registers);

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Returns the private function `name` of the module around the builder; creates it with `build` (which
/// emits the body in front of the return) on first use.
mlir::func::FuncOp getOrCreateFunction(mlir::OpBuilder &builder, llvm::StringRef name,
                                       mlir::ArrayRef<mlir::Type> inputs,
                                       llvm::function_ref<void(mlir::OpBuilder &, mlir::ValueRange)> build);

/// Returns the type memref<?x…x?x`element`> of `rank` dimensions with dynamic strides and offset; the
/// last dimension has stride 1, and size `last` unless that is dynamic. With three dimensions, it is an array
/// of panels: the last two are contiguous.
mlir::MemRefType getStridedType(mlir::Type element, unsigned rank, int64_t last = mlir::ShapedType::kDynamic);

/// Calls `function`, casting memrefs to the types of its parameters.
mlir::func::CallOp callFunction(mlir::OpBuilder &builder, mlir::Location loc, mlir::func::FuncOp function,
                                mlir::ValueRange arguments);

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOLINALG_MATMUL_PACKED_PACKEDGEMMDETAIL_H
