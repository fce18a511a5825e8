// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-bench: measures the speed of parts of this project.

#include "Bench.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-bench options");
cl::SubCommand emulator("emulator", "how fast the PTX emulator is");
cl::opt<unsigned> threads("threads", cl::value_desc("N"), cl::init(0), cl::sub(emulator), cl::cat(category),
                          cl::desc("host threads (default: one per processor)"));
cl::opt<double> seconds("seconds", cl::value_desc("S"), cl::init(1), cl::sub(emulator), cl::cat(category),
                        cl::desc("measure each row for at least that long (default: 1)"));

cl::extrahelp examples(
    "\nfp8-bench emulator counts thread-instructions (32 for an instruction of a whole warp) by processor\n"
    "time, so that other programs on the machine matter little. Kernels: y = max(a x + y, 0) in f32, one\n"
    "element a thread, and the cast of four f32 by a scale to E4M3, with and without checks.\n"
    "Behind them seconds for a product of matrices in E4M3 by wgmma, which is compared first.\n");

/// Unregisters the options of LLVM's libraries, so that only ours are valid.
void dropForeignOptions() {
  llvm::SmallVector<cl::Option *> foreign;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &category) && !name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (cl::Option *option : foreign)
    option->removeArgument();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  dropForeignOptions();
  if (!cl::ParseCommandLineOptions(argc, argv, "measures what fp8-mlir promises to be fast\n", &llvm::errs()))
    return 2;
  if (!emulator) {
    llvm::errs() << "fp8-bench: error: say what to measure: fp8-bench emulator, fp8-bench --help\n";
    return 2;
  }
  fp8bench::benchEmulator(threads, seconds);
  return fp8bench::benchProduct(threads, seconds) ? 0 : 1;
}
