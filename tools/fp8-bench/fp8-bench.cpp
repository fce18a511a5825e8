// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-bench: measures the speed of this project. The emulator is measured here; the compiler and
// its code, beside peers, by the Python files of this folder (bench.py).

#include "Bench.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <unistd.h>

namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("fp8-bench options");
cl::SubCommand emulator("emulator", "how fast the PTX emulator is");
cl::SubCommand compile("compile", "how fast the compiler is, beside XLA");
cl::SubCommand step("step", "how fast training steps are, beside XLA and PyTorch");
cl::SubCommand products("products", "how fast matrix products are, by shape, beside XLA and PyTorch");
cl::SubCommand kernels("kernels", "registers and traffic of a program's GPU kernels, without a GPU");
cl::SubCommand predict("predict", "the time of a step on a GPU, predicted without one, and where it goes");
cl::SubCommand collectives("collectives", "how fast ranks reduce, beside MPI_Allreduce");
cl::SubCommand python("python", "the Python package beside jax.jit: calls and training steps");
cl::SubCommand attention("attention", "training steps with attention beside PyTorch: times and memory");
cl::SubCommand recipes("recipes", "losses of the example GPT, trained under every recipe");
cl::SubCommand checkpoint("checkpoint",
                          "how fast checkpoints are saved and loaded, beside a copy of the file");
cl::opt<unsigned> threads("threads", cl::value_desc("N"), cl::init(0), cl::sub(emulator), cl::cat(category),
                          cl::desc("host threads (default: one per processor)"));
cl::opt<double> seconds("seconds", cl::value_desc("S"), cl::init(1), cl::sub(emulator), cl::cat(category),
                        cl::desc("measure each row for at least that long (default: 1)"));

cl::extrahelp examples(
    "\nfp8-bench emulator counts thread-instructions (32 for an instruction of a whole warp) by processor\n"
    "time, so that other programs on the machine matter little. Kernels: y = max(a x + y, 0) in f32, one\n"
    "element a thread, and the cast of four f32 by a scale to E4M3, with and without checks.\n"
    "Behind them seconds for a product of matrices in E4M3 by wgmma, which is compared first.\n"
    "\nfp8-bench compile, step, products, recipes, collectives, checkpoint, kernels, predict, python and "
    "attention "
    "explain their own options: fp8-bench step --help\n");

/// Unregisters the options of LLVM's libraries, so that only ours are valid.
void dropForeignOptions() {
  llvm::SmallVector<cl::Option *> foreign;
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &category) && !name.starts_with("help") && name != "version")
      foreign.push_back(option);
  for (cl::Option *option : foreign)
    option->removeArgument();
}

/// Becomes bench.py, with the arguments of the command line. Returns the exit code where that fails.
int runPython(int argc, char **argv) {
  llvm::SmallString<256> folder(llvm::sys::path::parent_path(
      llvm::sys::fs::getMainExecutable(argv[0], reinterpret_cast<void *>(&runPython))));
  const std::string bin = ("--bin=" + folder).str(), host = ("--host=" + llvm::sys::getHostCPUName()).str();
  llvm::sys::path::append(folder, "..", FP8_BENCH_FROM_BIN, "bench.py");
  llvm::ErrorOr<std::string> python = llvm::sys::findProgramByName("python3");
  if (!python || !llvm::sys::fs::exists(folder)) {
    llvm::errs() << "fp8-bench: error: there is no " << (python ? folder.str() : "python3 on PATH") << "\n";
    return 1;
  }
  // The user's own options come later, and so count.
  llvm::SmallVector<const char *> arguments = {python->c_str(), folder.c_str(), argv[1], bin.c_str(),
                                               host.c_str()};
  arguments.append(argv + 2, argv + argc);
  arguments.push_back(nullptr);
  execv(python->c_str(), const_cast<char *const *>(arguments.data()));
  llvm::errs() << "fp8-bench: error: " << *python << " does not run\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (argc > 1 && llvm::is_contained({"compile", "step", "products", "recipes", "collectives", "checkpoint",
                                      "kernels", "predict", "python", "attention"},
                                     llvm::StringRef(argv[1])))
    return runPython(argc, argv);
  dropForeignOptions();
  if (!cl::ParseCommandLineOptions(argc, argv, "measures what fp8-mlir promises to be fast\n", &llvm::errs()))
    return 1;
  if (!emulator) {
    llvm::errs() << "fp8-bench: error: say what to measure: fp8-bench compile, step, products, recipes, "
                    "collectives, checkpoint, kernels, predict, python, attention or emulator; see --help\n";
    return 1;
  }
  fp8bench::benchEmulator(threads, seconds);
  return fp8bench::benchMatmul(threads, seconds) ? 0 : 1;
}
