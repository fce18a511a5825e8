// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Construction of kernels: KernelTable creates kernels in the gpu.module and shares equal ones, KernelBuilder
// writes the code of one, launchKernel() starts it from the host. Private to the library.

#ifndef FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELBUILDER_H
#define FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELBUILDER_H

#include "fp8/Conversion/ExpandMath/Expr.h"
#include "fp8/Conversion/FP8ToGPU/Kernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"

namespace fp8 {

/// Why there is no kernel for more than kMostOfDimension rows, columns, batches or bytes along K.
inline constexpr llvm::StringLiteral kTooLarge = "a dimension has more than 2147483136 elements";

/// Writes the code of one kernel. Its operations are created at the end of the kernel's body, or of the body
/// of when() or loop() that is being written. Integers are i32 unless stated otherwise; positions in memory
/// are in bytes.
class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  /// Starts the body of `kernel`, which has none yet.
  explicit KernelBuilder(mlir::func::FuncOp kernel);

  mlir::func::FuncOp getKernel() const { return kernel; }
  Expr argument(unsigned number) { return Expr(*this, kernel.getArgument(number)); }
  /// The address that argument `number` passes, of type !llvm.ptr<1>.
  mlir::Value globalPointer(unsigned number);

  Expr expr(mlir::Value value) { return Expr(*this, value); }
  Expr number(int64_t value, unsigned bits = 32);
  Expr real(float value);

  // Where the thread is. Blocks have one dimension; grids have up to three, 0 to 2.
  Expr thread();
  Expr lane() { return thread() % 32; }
  Expr warp() { return thread() / 32; }
  Expr block(unsigned dimension);
  Expr numBlocks(unsigned dimension);

  /// Waits for all threads of the block.
  void barrier();

  /// Returns a static buffer in shared memory; `number` tells apart several of one type. `type` has no memory
  /// space: the result is memref<…, 3>.
  mlir::Value staticShared(mlir::MemRefType type, unsigned number = 0);
  /// Returns the start of the dynamic shared memory (`KernelSpec::sharedBytes`), aligned to 1024 bytes.
  mlir::Value dynamicShared();

  /// Returns the address `bytes` after `pointer`; `bytes` is an i32 or i64, taken as signed.
  mlir::Value at(mlir::Value pointer, Expr bytes);
  /// Loads from `pointer`, aligned to `alignment` bytes, or to those of the type for 0.
  Expr load(mlir::Type type, mlir::Value pointer, unsigned alignment = 0);
  void store(Expr value, mlir::Value pointer);

  /// Returns `value`, an f32, as FP8 of type `format`, in an i8: to nearest even, saturating; NaN becomes
  /// 0x7F.
  Expr encodeFP8(Expr value, mlir::Type format);
  /// As above, of two values: an i16 whose low byte is the first.
  Expr encodeFP8(Expr low, Expr high, mlir::Type format);
  /// Returns the bits of |value|, an f32 or a vector of them, as i32; 0 for NaN. They are ordered like the
  /// magnitudes.
  Expr magnitudeBits(Expr value);
  /// Returns `value`, an f32, of the lane whose number differs from this one's in `bits`. All lanes take
  /// part.
  Expr fromLane(Expr value, int64_t bits);
  /// Raises the unsigned i32 at `pointer` in global memory to the largest `value` of the warp. All lanes take
  /// part.
  void atomicMaxOfWarp(Expr value, mlir::Value pointer);

  /// Returns four words of which word j has bytes j of the words `rows`, four i32, in their order.
  llvm::SmallVector<Expr, 4> transposeBytes(llvm::ArrayRef<Expr> rows);

  /// Runs `body` where `condition`, an i1, is true.
  void when(Expr condition, llvm::function_ref<void()> body);
  /// Returns the values of `body` where `condition` is true, else `others`.
  llvm::SmallVector<mlir::Value> whenElse(Expr condition,
                                          llvm::function_ref<llvm::SmallVector<mlir::Value>()> body,
                                          mlir::ValueRange others);
  /// Returns the values of `ifTrue` where `condition` is true, else those of `ifFalse`; they have `types`.
  llvm::SmallVector<mlir::Value> either(Expr condition, mlir::TypeRange types,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> ifTrue,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> ifFalse);
  /// Runs `body` for i = lower, lower + 1, … below `upper`, both i32. The body gets i and the carried values,
  /// and returns those of the next iteration. Returns the values after the last one.
  llvm::SmallVector<mlir::Value>
  loop(Expr lower, Expr upper, mlir::ValueRange inits,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(Expr i, mlir::ValueRange carried)> body);

private:
  mlir::func::FuncOp kernel;
};

/// The signature and attributes of a kernel.
struct KernelSpec {
  std::string name; ///< words for what it computes and for whom: "product_fprop_h0/fc1"
  llvm::SmallVector<mlir::Type> arguments;
  int64_t threads = 256;   ///< of a block
  int64_t sharedBytes = 0; ///< dynamic shared memory of a block
  int64_t cluster = 1;     ///< blocks of a cluster, along x
  int64_t blocks = 0;      ///< that must fit on a multiprocessor at once; 0: ptxas chooses
  std::string instruction; ///< what computes matmuls, for the report; empty for other kernels
  llvm::StringRef kind;    ///< the group in a profile (kKernelKindAttrName)
};

/// The kernels of a program, in its gpu.module.
class KernelTable {
public:
  /// With `checksSharing` all kernels are built, and compared with those that start() has found.
  explicit KernelTable(mlir::ModuleOp module, bool checksSharing = false);

  /// Begins the lowering of `op`: if the table has the kernels of an operation with the same facts
  /// (KernelFacts.h), build() returns them one after the other and builds nothing. They are valid if the
  /// lowering of both operations asks for the same kernels in the same order.
  void start(mlir::Operation *op);
  /// Kernels that are built from now on belong to no operation.
  void finish() { current = nullptr; }
  /// Returns whether a check of sharing has failed and reported an error.
  bool hasErrors() const { return failed; }

  /// Builds the kernel, and returns it, or an equal one that the table has already.
  mlir::func::FuncOp build(mlir::Location loc, const KernelSpec &spec,
                           llvm::function_ref<void(KernelBuilder &)> body);

private:
  using Kernels = llvm::SmallVector<mlir::func::FuncOp, 1>;

  mlir::gpu::GPUModuleOp getModule();
  mlir::func::FuncOp buildOrFind(mlir::Location loc, const KernelSpec &spec,
                                 llvm::function_ref<void(KernelBuilder &)> body);

  mlir::ModuleOp module;
  bool checksSharing;
  mlir::gpu::GPUModuleOp kernels; ///< null until there is one
  llvm::DenseMap<size_t, Kernels> byHash;
  llvm::StringMap<Kernels> byFacts;
  Kernels *current = nullptr; ///< of the operation that is being lowered
  size_t next = 0;            ///< the one of `current` that build() returns next
  bool failed = false;
};

/// Creates a constant of host code, of type index.
mlir::Value constantIndex(mlir::OpBuilder &builder, mlir::Location loc, int64_t value);

/// Launches `kernel` on a grid of up to three sizes, of type index. A kernel's argument of type !llvm.ptr
/// takes a memref operand, others take operands of their own type (index for i64). The launch is marked with
/// its cost (KernelCost.h): the bytes of the buffers that the kernel reads and writes.
mlir::gpu::LaunchFuncOp launchKernel(mlir::OpBuilder &builder, mlir::Location loc, mlir::func::FuncOp kernel,
                                     mlir::ValueRange grid, mlir::ValueRange operands);

/// Marks `launch` with the bytes of its operands that `kernel` reads and writes.
void countLaunch(mlir::gpu::LaunchFuncOp launch, mlir::func::FuncOp kernel);

/// Marks a launch with the site that it works for, and with its matmuls (MatmulMarks.h), which may be null.
void markLaunch(mlir::gpu::LaunchFuncOp launch, llvm::StringRef site, mlir::ArrayAttr matmuls = {});

} // namespace fp8

#endif // FP8_LIB_CONVERSION_FP8TOGPU_KERNEL_KERNELBUILDER_H
