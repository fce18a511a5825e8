// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits a module in the LLVM dialect as LLVM IR, an object, or a shared library with the C ABI
// of fp8rt/call.h. All targets use it: a library that launches kernels on a device is host code
// too.

#ifndef FP8_TARGET_HOST_HOSTCODE_H
#define FP8_TARGET_HOST_HOSTCODE_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace fp8 {

/// The function of a library that describes its device code (fp8rt/device.h).
inline constexpr llvm::StringLiteral kDeviceCodeName = "fp8_device_code";

/// The code of the math functions of f32, and of f16 and bf16, which are computed in f32.
enum class MathFunctions {
  expanded, ///< fp8-expand-math: the same bits on every target
  libm      ///< the C library of the machine that runs the code
};

/// The order and the rounding of the sums in matmuls of bf16 and FP8.
enum class MatmulSums {
  exact,   ///< one f32 sum in the order of K: the same bits on every processor
  fastest, ///< as `hardware` where that instruction is at least 1.3 times as fast as f32's, else exact
  hardware ///< as the processor's fastest instruction for bf16 does, which also takes denormals for zero
};

/// The machine that the code is for, and its optimization.
struct HostCodeOptions {
  /// An LLVM processor name; empty selects the processor of this machine, with its features.
  /// checkProcessor checks whether the name is valid.
  std::string processor;
  /// LLVM features added to the processor's, as "+avx2,-avx512f".
  std::string features;
  /// The vector width in bits that the vectorizer prefers; 0 leaves the choice to LLVM.
  unsigned vectorWidth = 0;
  MathFunctions math = MathFunctions::expanded;
  /// checkMatmulSums checks whether the processor has the instructions.
  MatmulSums sums = MatmulSums::exact;
  /// Whether every temporary has memory of its own: a read of what was not written is found then.
  bool separateTemporaries = false;
  /// 0 to 3, as clang's -O.
  unsigned optimizationLevel = 3;
  /// A folder where objects are kept for the next compilation, 2 GiB of them; empty keeps none. A folder
  /// that cannot be written is no error.
  std::string cacheFolder;
  /// The path of NVIDIA's assembler, which makes machine code of kernels at compile time; empty leaves that
  /// to the driver that loads them. Other targets than GPUs ignore it.
  std::string ptxas;
};

/// The processor that the code of a library needs.
struct RequiredProcessor {
  std::string name;
  /// LLVM features that the code may use and that a processor of this kind may lack.
  std::vector<std::string> features;
};

/// Returns the processor that code for `options` needs; empty if no code can be generated.
RequiredProcessor getRequiredProcessor(const HostCodeOptions &options);

/// The vector registers of a processor.
struct VectorRegisterFile {
  int64_t bits = 128;
  int64_t count = 16;
};

/// Returns the registers that code for `options` can use, those of the smallest processor if no code
/// can be generated.
VectorRegisterFile getVectorRegisters(const HostCodeOptions &options);

/// An error where LLVM knows no processor `name` that runs the programs of this machine: the
/// end of a sentence about `name`, which lists those that are most like it.
llvm::Error checkProcessor(llvm::StringRef name);

/// Returns the instruction that matmuls of bf16 and FP8 may use, by LLVM's name of its feature, "amx-bf16" or
/// "avx512bf16"; empty for exact sums, and where the processor has none of them. Code for this machine's own
/// processor uses AMX only where the kernel lends it tile registers.
llvm::StringRef getMatrixInstruction(const HostCodeOptions &options);

/// An error where the processor of `options` lacks the instructions that `options.sums` needs.
llvm::Error checkMatmulSums(const HostCodeOptions &options);

/// Translates `module` (the result of stage 7) to optimized LLVM IR text, an object, or a
/// shared library, and writes it to `out`. A library exports every `fp8_call_<entry>` and
/// `fp8_manifest`, which returns `manifest`. Errors are diagnostics at the module; the bytes
/// written to `out` before an error are useless. The linker works in the system's folder for
/// temporary files and leaves nothing there.
///
/// emitSharedLibrary generates code in the threads of `module`'s context; the bytes of the library do not
/// depend on their number. Only it uses the cache, and only it runs
/// the linker (lld, in this process): calls in several threads
/// take turns, and LLVM's own command line options (llvm::cl) get their default values.
llvm::LogicalResult emitLLVMIR(mlir::ModuleOp module, llvm::StringRef manifest,
                               const HostCodeOptions &options, llvm::raw_pwrite_stream &out);
llvm::LogicalResult emitObject(mlir::ModuleOp module, llvm::StringRef manifest,
                               const HostCodeOptions &options, llvm::raw_pwrite_stream &out);
llvm::LogicalResult emitSharedLibrary(mlir::ModuleOp module, llvm::StringRef manifest,
                                      const HostCodeOptions &options, llvm::raw_pwrite_stream &out);

} // namespace fp8

#endif // FP8_TARGET_HOST_HOSTCODE_H
