// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-ptx: runs PTX files on the emulator. This file parses the command line.

#include "../ToolSupport.h"
#include "Coverage.h"
#include "Options.h"
#include "Runner.h"

#include "llvm/Support/InitLLVM.h"

#include <optional>

namespace cl = llvm::cl;
using namespace fp8ptx;

namespace {

cl::OptionCategory category("fp8-ptx options");
cl::SubCommand runCommand("run", "run one kernel on tensors of a safetensors file");
cl::SubCommand coverageCommand("coverage", "list the instructions that PTX files need, and what is missing");

cl::opt<std::string> file(cl::Positional, cl::Required, cl::desc("<PTX file, - for standard input>"),
                          cl::sub(runCommand), cl::cat(category));
cl::opt<std::string> kernel("kernel", cl::value_desc("NAME"), cl::sub(runCommand), cl::cat(category),
                            cl::desc("the kernel (default: the file's only one)"));
cl::opt<std::string> grid("grid", cl::value_desc("X[,Y,Z]"), cl::init("1"), cl::sub(runCommand),
                          cl::cat(category), cl::desc("blocks of the grid (default: 1)"));
cl::opt<std::string> block("block", cl::value_desc("X[,Y,Z]"), cl::init("1"), cl::sub(runCommand),
                           cl::cat(category), cl::desc("threads of a block (default: 1)"));
cl::opt<std::string> cluster("cluster", cl::value_desc("X[,Y,Z]"), cl::init("1"), cl::sub(runCommand),
                             cl::cat(category),
                             cl::desc("blocks of a cluster (default: the kernel's, or 1)"));
cl::opt<uint32_t> shared("shared", cl::value_desc("BYTES"), cl::sub(runCommand), cl::cat(category),
                         cl::desc("dynamic shared memory of a block (default: 0)"));
cl::opt<bool> cooperative("cooperative", cl::sub(runCommand), cl::cat(category),
                          cl::desc("cooperative launch: the grid may synchronise as a whole"));
cl::list<std::string> arguments("arg", cl::value_desc("ARG"), cl::sub(runCommand), cl::cat(category),
                                cl::desc("the next parameter, see below; repeatable"));
cl::opt<std::string> inputs("inputs", cl::value_desc("FILE"), cl::sub(runCommand), cl::cat(category),
                            cl::desc("safetensors file with the tensors that arguments name"));
cl::opt<std::string> outputs("outputs", cl::value_desc("FILE"), cl::sub(runCommand), cl::cat(category),
                             cl::desc("write the tensors of out: and inout: arguments"));
cl::opt<std::string> chip("chip", cl::value_desc("sm_NN"), cl::sub(runCommand), cl::cat(category),
                          cl::desc("sm_89, sm_90a, sm_100a or sm_120a (default: one that runs the file)"));
cl::opt<uint64_t> seed("seed", cl::value_desc("N"), cl::sub(runCommand), cl::cat(category),
                       cl::desc("selects the order of warps and of asynchronous completions (default: 0)"));
cl::opt<bool> noChecks("no-checks", cl::sub(runCommand), cl::cat(category),
                       cl::desc("compute values only: several times faster, but finds no mistakes"));
cl::opt<std::string> sums("sums", cl::value_desc("MODEL"), cl::init("hardware"), cl::sub(runCommand),
                          cl::cat(category),
                          cl::desc("sums of tensor cores: hardware (as the chip's, default), exact (one "
                                   "rounding), korder (f32, in the order of K)"));
cl::opt<std::string>
    profile("profile", cl::ValueOptional, cl::value_desc("json:FILE"), cl::sub(runCommand), cl::cat(category),
            cl::desc("count instructions, bytes, sectors, bank conflicts, tensor operations and "
                     "waits by line: a table, or JSON in FILE"));

cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("<PTX files>"), cl::sub(coverageCommand),
                            cl::cat(category));
cl::opt<bool> missing("missing", cl::sub(coverageCommand), cl::cat(category),
                      cl::desc("list what is missing and nothing else"));

constexpr const char *kOverview =
    "runs PTX on the CPU, exactly, and says what is wrong with a kernel\n\n"
    "  fp8-ptx run FILE        one kernel on tensors of a safetensors file\n"
    "  fp8-ptx coverage FILE…  the instructions a file needs, and what is missing\n\n"
    "  fp8-ptx run --help and fp8-ptx coverage --help list the options of each.\n";

cl::extrahelp examples(
    "\nARGUMENTS of fp8-ptx run, one --arg for each parameter of the kernel, in its order:\n"
    "  --arg=KEY                  the address of tensor KEY of --inputs (in:KEY is the same)\n"
    "  --arg=out:NAME:f32[4,8]    the address of a zeroed tensor, written to --outputs as NAME\n"
    "  --arg=inout:KEY            tensor KEY, which the kernel changes: written to --outputs too\n"
    "  --arg=i32:5                a number: bool, i8 … i64, u8 … u64, f16, bf16, f32, f64,\n"
    "                             e4m3, e5m2, e8m0\n"
    "  --arg=value:KEY            the bytes of tensor KEY themselves: a structure\n"
    "\nEXAMPLES:\n"
    "  y = a x + y with 300 threads, and what a kernel does wrong, with its line:\n"
    "    fp8-ptx run saxpy.ptx --kernel=saxpy --grid=3 --block=100 --inputs=in.safetensors \\\n"
    "      --arg=f32:2 --arg=x --arg=inout:y --outputs=out.safetensors\n"
    "    saxpy.ptx:31: error: out-of-bounds access: 4 bytes at 0x… are read, 0 bytes behind the\n"
    "      1024 bytes of argument x at 0x…, by ld.global.f32 in saxpy, block (2,0,0), thread (56,0,0)\n"
    "  The same kernel with its warps in other orders:\n"
    "    for s in 1 2 3; do fp8-ptx run k.ptx --block=256 --arg=out:y:f32[256] --seed=$s; done\n"
    "  What a kernel does, by line: sectors of global memory, bank conflicts, tensor operations:\n"
    "    fp8-ptx run k.ptx --block=256 --arg=out:y:f32[256] --profile\n"
    "  What the emulator lacks for these files:\n"
    "    fp8-ptx coverage --missing *.ptx\n"
    "\nEXIT CODES: 0 done, nothing missing; 1 a file, the kernel or the request is wrong, or something\n"
    "is missing; 2 the command line is wrong\n");

int complain(llvm::Error error) {
  llvm::errs() << llvm::toString(std::move(error)) << "\n";
  return 1;
}

bool parseSize(llvm::StringRef text, Dim3 &out) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  if (parts.size() > 3)
    return false;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].getAsInteger(10, out[i]) || out[i] == 0)
      return false;
  return true;
}

/// Fills in `options`; returns the error if the command line is wrong.
std::optional<std::string> interpret(RunOptions &options) {
  const std::pair<const cl::opt<std::string> &, Dim3 &> sizes[] = {
      {grid, options.grid}, {block, options.block}, {cluster, options.cluster}};
  for (auto &[option, size] : sizes)
    if (!parseSize(option, size))
      return "--" + option.ArgStr.str() + "=" + option + ": expected X[,Y,Z], each at least 1";
  options.file = file;
  options.kernel = kernel;
  options.shared = shared;
  options.cooperative = cooperative;
  options.arguments = arguments;
  options.inputs = inputs;
  options.outputs = outputs;
  options.chip = chip;
  options.seed = seed;
  options.checks = !noChecks;
  options.sums = sums;
  if (sums != "hardware" && sums != "exact" && sums != "korder")
    return "--sums=" + sums + " is none of hardware, exact, korder";
  options.profile = profile.getNumOccurrences();
  llvm::StringRef target = profile;
  if (!target.empty() && (!target.consume_front("json:") || target.empty()))
    return "--profile=" + profile + ": expected --profile or --profile=json:FILE";
  options.profileFile = target.str();
  if (!outputs.empty() && outputs == options.profileFile)
    return "--outputs and --profile name the same file";
  return std::nullopt;
}

int wrongCommandLine(llvm::StringRef problem) {
  llvm::errs() << "fp8-ptx: error: " << problem << "\n";
  return 2;
}

int runKernel() {
  RunOptions options;
  if (std::optional<std::string> problem = interpret(options))
    return wrongCommandLine(*problem);
  if (llvm::Error error = run(options))
    return complain(std::move(error));
  return 0;
}

int coverFiles() {
  int code = 0;
  for (const std::string &one : files) {
    llvm::Expected<bool> complete = coverage(one, missing);
    if (!complete)
      code = complain(complete.takeError());
    else if (!*complete)
      code = 1;
  }
  return code;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fp8-ptx " FP8_VERSION "\n"; });
  if (auto problems = fp8tool::parseCommandLine(argc, argv, category, kOverview))
    return problems->empty() ? 2 : wrongCommandLine(fp8tool::oneLine(*problems));
  if (runCommand)
    return runKernel();
  if (coverageCommand)
    return coverFiles();
  return wrongCommandLine("say what to do: fp8-ptx run FILE …, fp8-ptx coverage FILE …, fp8-ptx --help");
}
