// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of a compilation: those of fp8-compile, except for the files, under the same
// names and with the same values. The command line and the C API read the same table.

#ifndef FP8_COMPILER_OPTIONS_H
#define FP8_COMPILER_OPTIONS_H

#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Pipelines/Pipelines.h"
#include "fp8/Target/Host/HostCode.h"
#include "llvm/ADT/STLExtras.h"
#include <string>
#include <vector>

namespace fp8 {

/// One pair of --carry: an argument (index or name) and the result that is its value in the
/// next step.
struct CarryRequest {
  std::string argument;
  unsigned result;
};

/// A tensor of --data-parallel or --shard: an index or name, and the dimension of which each rank has a part.
struct DividedTensor {
  std::string name;
  int64_t dim = 0;
};

/// --data-parallel and --shard: an axis of the grid of ranks, and the tensors that are divided along it.
struct DivisionRequest {
  std::string axis;
  std::vector<DividedTensor> tensors;
};

/// In which order kernels for GPUs take sums over the elements of tensors.
enum class SumOrder {
  kernel, ///< each kernel's own: parts first, then the parts; the same in every run
  program ///< one element after another, as the CPU's
};

/// All options of a compilation, with their defaults.
struct CompilerOptions {
  RecipeOptions recipe;
  /// off, bf16, f16 or tf32: the precision in which a program in f32 runs.
  std::string mixedPrecision = "off";
  /// The initial loss scale of dynamic loss scaling; unset for none.
  std::optional<double> lossScaling;
  /// The result that is the loss; unset for the only scalar of floating point.
  std::optional<int64_t> loss;
  BatchingOptions batching;
  /// The processor and the optimization of host code.
  HostCodeOptions hostCode;
  SumOrder order = SumOrder::kernel;
  /// Whether sums of `split` matmuls are added in parts of 128 on every GPU.
  bool strictAccumulation = false;
  /// The output: code that the target can emit (lib, obj, llvm), or the IR after a stage.
  std::string emit = "lib";
  std::vector<CarryRequest> carry;
  /// Data parallelism over ranks; unset for a program that is not changed so.
  std::optional<DivisionRequest> dataParallel;
  /// Arguments and results of which each rank has a part, by axes of the grid.
  std::vector<DivisionRequest> shards;
  /// With dataParallel: further results whose mean over the ranks is wanted.
  llvm::SmallVector<int64_t> average;
  /// The axes of the grid over which amaxes are combined; empty for all.
  std::vector<std::string> reduceAmaxAxes;
  std::optional<PairRequest> pair;

  /// The stages after which `emit` can ask for the IR, in their order.
  static llvm::ArrayRef<llvm::StringRef> getStages();

  /// True where the artifact is code of the target, not the IR after a stage.
  bool makesCode() const { return !llvm::is_contained(getStages(), emit); }
};

/// An option as a help text shows it.
struct OptionDescription {
  enum class Kind {
    value,    ///< given once, --name=value
    flag,     ///< --name, which is --name=true
    optional, ///< --name, or --name=value
    list      ///< may be given again: the values add up
  };
  llvm::StringRef name;   ///< without dashes
  llvm::StringRef values; ///< "linear|all|regex"
  llvm::StringRef help;
  Kind kind = Kind::value;
};

/// Every option that setOption knows.
std::vector<OptionDescription> getOptionDescriptions();

/// Sets the option `name` to what `value` says; of a flag an empty value is true, of an
/// option with an optional value its default. An error
/// is one sentence that starts with the option as it was given; nothing is set then.
llvm::Error setOption(CompilerOptions &options, llvm::StringRef name, llvm::StringRef value);

/// Every option with the value in force, defaults included, in the order of the help. `recipe`
/// is the recipe attribute of the options; null for none.
OptionValues describeOptions(const CompilerOptions &options, RecipeAttrInterface recipe);

} // namespace fp8

#endif // FP8_COMPILER_OPTIONS_H
