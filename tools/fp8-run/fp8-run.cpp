// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-run: runs a compiled step, as often as requested, with its state in files.
// This file parses the command line; the runtime does the work.

#include "../ToolSupport.h"
#include "Options.h"
#include "Ranks.h"
#include "Runner.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InitLLVM.h"

#include <optional>

namespace cl = llvm::cl;
using namespace fp8run;

namespace {

cl::OptionCategory category("fp8-run options");

cl::opt<std::string> library(cl::Positional, cl::Required, cl::desc("<compiled library>"), cl::cat(category));
cl::opt<std::string> inputs("inputs", cl::value_desc("FILE"), cl::cat(category),
                            cl::desc("safetensors file with the arguments, keyed by index or name"));
cl::opt<std::string> entry("entry", cl::value_desc("F|F,B"), cl::init("main"), cl::cat(category),
                           cl::desc("function to run (default: main), or a pair: then the arguments "
                                    "of B that are not residuals are keyed B.0, ..., the outputs "
                                    "F.0, ..., B.0, ..."));
cl::opt<uint64_t> steps("steps", cl::value_desc("N"), cl::init(1), cl::cat(category),
                        cl::desc("number of steps to run (default: 1); carried arguments and FP8 "
                                 "state pass from step to step"));
cl::opt<uint64_t> firstStep("first-step", cl::value_desc("N"), cl::init(0), cl::cat(category),
                            cl::desc("number of the first step (default: 0) for --stream and "
                                     "--print, to resume a run"));
cl::list<std::string> streams("stream", cl::value_desc("ARG=KEY"), cl::cat(category),
                              cl::desc("step i gets slice i, wrapping round, of the leading "
                                       "dimension of tensor KEY of the inputs; repeatable"));
cl::opt<bool> zeroMissing("zero-missing", cl::cat(category),
                          cl::desc("arguments absent from the inputs are zero (otherwise an error)"));
cl::opt<std::string> outputs("outputs", cl::value_desc("FILE"), cl::cat(category),
                             cl::desc("write the results of the last step, keyed by index"));
cl::opt<std::string> print("print", cl::value_desc("R"), cl::cat(category),
                           cl::desc("after every step, print step<TAB>value of scalar result R"));
cl::opt<std::string> state("state", cl::value_desc("FILE"), cl::cat(category),
                           cl::desc("start from the FP8 state in FILE"));
cl::opt<std::string>
    history("history", cl::value_desc("newest|oldest"), cl::cat(category),
            cl::desc("if the amax history in the state file is longer or shorter than the program's, "
                     "import its newest or its oldest rows (default: an error)"));
cl::opt<std::string> saveState("save-state", cl::value_desc("FILE"), cl::cat(category),
                               cl::desc("write the FP8 state after the last step"));
cl::opt<uint64_t> saveEvery("save-every", cl::value_desc("N"), cl::cat(category),
                            cl::desc("also write the state of --save-state after every N-th step"));
cl::opt<uint32_t>
    keepLast("keep-last", cl::value_desc("K"), cl::init(1), cl::cat(category),
             cl::desc("with --save-every, keep the K last checkpoints (default: 1): FILE is the "
                      "newest, older ones have their step before the extension"));
cl::list<std::string> renames("rename", cl::value_desc("FROM=TO"), cl::cat(category),
                              cl::desc("site FROM of the state file, and what is below it, is called TO in "
                                       "the program; repeatable"));
cl::opt<bool> strict("strict", cl::cat(category),
                     cl::desc("any difference between the state file and the program is an error "
                              "(otherwise a warning)"));
cl::opt<bool> withCarry("with-carry", cl::cat(category),
                        cl::desc("state files also hold the carried arguments (weights, optimizer)"));
cl::opt<std::string> device("device", cl::value_desc("cpu|cuda[:N]|emulator"), cl::init("cpu"),
                            cl::cat(category),
                            cl::desc("where to run (default: cpu), as the library was compiled "
                                     "(fp8-compile --target): this processor, GPU N (default: 0), or the "
                                     "emulator of the library's GPU"));
cl::opt<std::string> profile("profile", cl::ValueOptional, cl::value_desc("FILE"), cl::cat(category),
                             cl::desc("measure the kernels of the steps after the first: a table on standard "
                                      "error, or JSON in FILE"));
cl::opt<std::string>
    comm("comm", cl::value_desc("none|local|mpi|tcp|nccl"), cl::init("none"), cl::cat(category),
         cl::desc("how the ranks of a program communicate (default: none, or local with "
                  "--ranks): local starts all of them on this machine; mpi is for processes that "
                  "mpirun has started; tcp for others, with --rendezvous; nccl moves the data from "
                  "GPU to GPU, one for each rank, and finds the ranks in any of these ways"));
cl::opt<std::string>
    rendezvous("rendezvous", cl::value_desc("HOST:PORT"), cl::cat(category),
               cl::desc("for --comm=tcp or nccl: rank 0 listens there, and the others come; FP8RT_RANK and "
                        "FP8RT_SIZE in the environment say which rank this is and how many there are"));
cl::opt<uint32_t> numRanks(
    "ranks", cl::value_desc("N"), cl::init(1), cl::cat(category),
    cl::desc(
        "number of ranks that --comm=local or nccl starts on this machine; {rank} in a "
        "file name is the rank's number, and without it rank 0 alone prints and writes. OpenMP's threads are "
        "divided among the ranks unless OMP_NUM_THREADS is set"));
cl::opt<double>
    deadline("deadline", cl::value_desc("S"), cl::init(30), cl::cat(category),
             cl::desc("seconds that a collective waits for another rank (default: 30): after that "
                      "all ranks end, and name those that did not arrive"));
cl::opt<std::string>
    monitor("monitor", cl::ValueOptional, cl::value_desc("FILE"), cl::cat(category),
            cl::desc("after each step, show the amax and scale of every quantized tensor: a table in the "
                     "terminal, or JSON lines in FILE (fp8-stats reads them). With a library of fp8-compile "
                     "--measure-errors also how many elements are lost, and the error"));
cl::opt<uint64_t> monitorEvery("monitor-every", cl::value_desc("N"), cl::init(1), cl::cat(category),
                               cl::desc("show only every N-th step, starting with step 0"));
cl::opt<bool> timing("timing", cl::cat(category), cl::desc("print the time per step on standard error"));

constexpr const char *kOverview = "runs a step that fp8-compile compiled, on tensors in safetensors files\n";

cl::extrahelp examples(
    "\nEXAMPLES:\n"
    "  Train 200 steps, one batch of 'data' [200, ...] per step, and follow result 9:\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=200 --stream=batch=data --print=9\n"
    "  Save everything that the next run needs, then go on from it:\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=4 --save-state=s.safetensors --with-carry\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=6 --state=s.safetensors --with-carry "
    "--first-step=4\n"
    "  Keep the last three checkpoints, written while the next steps run:\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=10000 --save-every=500 --keep-last=3 "
    "--save-state=s.safetensors --with-carry\n"
    "  See which kernels take the time of a step:\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=10 --profile\n"
    "  Watch the scales and the errors of casts, and keep them for fp8-stats:\n"
    "    fp8-compile step.mlir -o step.so --measure-errors\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=100 --monitor\n"
    "    fp8-run step.so --inputs=in.safetensors --steps=100 --monitor=log.jsonl --print=9\n"
    "  Run code for a GPU without one:\n"
    "    fp8-run step_sm_90a.so --inputs=in.safetensors --device=emulator\n"
    "  Train on four GPUs of this machine, and on two machines:\n"
    "    fp8-run step.so --inputs=in.safetensors --device=cuda --comm=nccl --ranks=4\n"
    "    FP8RT_RANK=0 FP8RT_SIZE=2 fp8-run step.so --inputs=in.safetensors --device=cuda --comm=nccl "
    "--rendezvous=first:4711    (and FP8RT_RANK=1 on the second)\n"
    "  Forward and backward as two functions:\n"
    "    fp8-run pair.so --entry=forward,backward --inputs=in.safetensors --outputs=out.safetensors\n"
    "\nENVIRONMENT, with --device=cuda or emulator: FP8RT_GRAPH=0 launches each kernel of each step; "
    "FP8RT_SYNC=1 also waits for each, so that an error names the kernel that failed; FP8RT_CUDA_DRIVER=FILE "
    "is another driver than libcuda.so.1; FP8RT_NCCL=FILE is another NCCL than libnccl.so.2; "
    "FP8RT_LOCAL_RANK=N with --rendezvous: --device=cuda is GPU N\n"
    "\nEXIT CODES: 0 done; 1 a file or the request is wrong; 2 the command line is wrong\n");

/// Prints one line to standard error.
void complain(llvm::StringRef message) {
  // At once: other ranks print too.
  std::string line = "fp8-run: error: " + fp8tool::oneLine(message) + "\n";
  llvm::errs() << line;
}

/// Returns whether `name` is one of --device's values.
bool isDevice(llvm::StringRef name) {
  if (name.consume_front("cuda:"))
    return !name.empty() && name.size() <= 4 && llvm::all_of(name, llvm::isDigit);
  return name == "cpu" || name == "cuda" || name == "emulator";
}

/// Returns the error if an option writes a file that another one writes or reads. Only --state and
/// --save-state may be one file.
std::optional<std::string> checkFiles() {
  const std::pair<llvm::StringRef, llvm::StringRef> written[] = {
      {"--outputs", outputs}, {"--save-state", saveState}, {"--profile", profile}, {"--monitor", monitor}};
  for (size_t i = 0; i < std::size(written); ++i) {
    auto [option, file] = written[i];
    if (file.empty())
      continue;
    std::string text = (option + "=" + file + ": ").str();
    if (fp8tool::areSameFile(file, library))
      return text + "would overwrite the library";
    if (fp8tool::areSameFile(file, inputs))
      return text + "would overwrite --inputs";
    if (option != "--save-state" && fp8tool::areSameFile(file, state))
      return text + "would overwrite --state";
    for (auto [otherOption, other] : llvm::ArrayRef(written).take_front(i))
      if (fp8tool::areSameFile(file, other))
        return text + otherOption.str() + " writes the same file";
  }
  return std::nullopt;
}

/// Reads --entry and --stream into `options`; returns the error if one is wrong.
std::optional<std::string> readEntries(Options &options) {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(entry).split(names, ',');
  if (names.size() > 2 || llvm::is_contained(names, ""))
    return "--entry=" + entry + ": expected F or F,B";
  for (llvm::StringRef name : names)
    options.entries.push_back(name.str());
  for (const std::string &stream : streams) {
    auto [argument, key] = llvm::StringRef(stream).split('=');
    if (argument.empty() || key.empty())
      return "--stream=" + stream + ": expected ARG=KEY";
    options.streams.push_back({argument.str(), key.str()});
  }
  return std::nullopt;
}

/// Returns the error if the options of several ranks are wrong.
std::optional<std::string> checkRanks() {
  if (!llvm::is_contained({"none", "local", "mpi", "tcp", "nccl"}, comm.getValue()))
    return "--comm=" + comm + ": expected none, local, mpi, tcp or nccl";
  if (comm == "nccl" && device == "cpu")
    return "--comm=nccl moves memory of GPUs: it needs --device=cuda or emulator";
  if (comm == "tcp" && rendezvous.empty())
    return "--comm=tcp needs --rendezvous=HOST:PORT";
  if (!rendezvous.empty() && comm != "tcp" && comm != "nccl")
    return "--rendezvous needs --comm=tcp or nccl";
  if (!rendezvous.empty() && numRanks.getNumOccurrences())
    return "--ranks=" + std::to_string(numRanks) +
           ": with --rendezvous, FP8RT_SIZE says how many ranks there are";
  if (comm == "mpi" && numRanks.getNumOccurrences())
    return "--ranks=" + std::to_string(numRanks) +
           ": with --comm=mpi, mpirun -n says how many ranks there are";
  if (numRanks < 1 || numRanks > 1024)
    return "--ranks=" + std::to_string(numRanks) + ": expected 1 to 1024";
  if (numRanks > 1 && comm.getNumOccurrences() && comm == "none")
    return "--ranks=" + std::to_string(numRanks) + " needs --comm=local";
  if (!(deadline > 0 && deadline <= 1e6))
    return "--deadline: expected a number of seconds above 0";
  return std::nullopt;
}

/// Reads --rename into `options`; returns the error if an option of the state is wrong.
std::optional<std::string> readState(Options &options) {
  if (history.getNumOccurrences() && history != "newest" && history != "oldest")
    return "--history=" + history + " is neither newest nor oldest";
  if (!history.empty() && state.empty())
    return "--history needs --state=FILE";
  if (saveEvery.getNumOccurrences() && saveEvery == 0)
    return "--save-every=0: expected at least 1";
  if (saveEvery && saveState.empty())
    return "--save-every needs --save-state=FILE";
  if (keepLast.getNumOccurrences() && (keepLast == 0 || !saveEvery))
    return "--keep-last=" + std::to_string(keepLast) + ": expected at least 1, and --save-every=N";
  if (strict && state.empty())
    return "--strict needs --state=FILE";
  if (!renames.empty() && state.empty())
    return "--rename needs --state=FILE";
  for (const std::string &rename : renames) {
    auto [from, to] = llvm::StringRef(rename).split('=');
    if (from.empty() || to.empty())
      return "--rename=" + rename + ": expected FROM=TO";
    options.renames.push_back({from.str(), to.str()});
  }
  if (withCarry && state.empty() && saveState.empty())
    return "--with-carry needs --state=FILE or --save-state=FILE";
  return std::nullopt;
}

/// Copies the options that need no reading.
void copyValues(Options &options) {
  options.library = library;
  options.inputs = inputs;
  options.steps = steps;
  options.firstStep = firstStep;
  options.zeroMissing = zeroMissing;
  options.outputs = outputs;
  options.print = print;
  options.state = state;
  options.history = history;
  options.saveState = saveState;
  options.saveEvery = saveEvery;
  options.keepLast = keepLast;
  options.strict = strict;
  options.withCarry = withCarry;
  options.device = device;
  options.comm = !comm.getNumOccurrences() && numRanks.getNumOccurrences() ? "local" : comm.getValue();
  options.ranks = numRanks;
  options.rendezvous = rendezvous;
  options.deadline = deadline;
  options.monitor = monitor.getNumOccurrences() != 0;
  options.monitorFile = monitor;
  options.monitorEvery = monitorEvery;
  options.timing = timing;
  options.profile = profile.getNumOccurrences() != 0;
  options.profileFile = profile;
}

/// Fills in `options`; returns the error if the command line is wrong.
std::optional<std::string> interpret(Options &options) {
  if (std::optional<std::string> problem = readEntries(options))
    return problem;
  if (std::optional<std::string> problem = checkRanks())
    return problem;
  if (!isDevice(device))
    return "--device=" + device + ": expected cpu, cuda, cuda:N or emulator";
  if (steps == 0)
    return "--steps=0: expected at least 1";
  if (std::optional<std::string> problem = readState(options))
    return problem;
  if (std::optional<std::string> problem = checkFiles())
    return problem;
  if (monitorEvery.getNumOccurrences() && (monitorEvery == 0 || !monitor.getNumOccurrences()))
    return "--monitor-every=" + std::to_string(monitorEvery) + ": expected at least 1, and --monitor";
  copyValues(options);
  return std::nullopt;
}

/// Runs as one of the ranks; returns the exit code.
int runRank(Options options, const Ranks &ranks) {
  ranks.fillIn(options);
  llvm::Error error = run(options, ranks);
  if (!error)
    return 0;
  std::string text = llvm::toString(std::move(error));
  ranks.tell(text);
  complain((ranks.areSeveral() ? "rank " + std::to_string(ranks.number()) + ": " : "") + text);
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fp8-run " FP8_VERSION "\n"; });
  if (auto problems = fp8tool::parseCommandLine(argc, argv, category, kOverview)) {
    if (!problems->empty())
      complain(*problems);
    return 2;
  }
  Options options;
  if (std::optional<std::string> problem = interpret(options)) {
    complain(*problem);
    return 2;
  }
  if (options.comm == "none")
    return runRank(options, Ranks());
  auto runJoined = [&](llvm::Expected<Ranks> ranks) {
    if (!ranks) {
      complain(llvm::toString(ranks.takeError()));
      return 1;
    }
    if (options.comm == "nccl")
      if (llvm::Error error = ranks->useNccl()) {
        std::string text = llvm::toString(std::move(error));
        ranks->tell(text);
        complain("rank " + std::to_string(ranks->number()) + ": " + text);
        return 1;
      }
    return runRank(options, *ranks);
  };
  if (!options.rendezvous.empty())
    return runJoined(Ranks::joinTcp(options.rendezvous, options.deadline));
  if (options.comm == "mpi" || (options.comm == "nccl" && !numRanks.getNumOccurrences()))
    return runJoined(Ranks::joinMpi(options.deadline));
  return runInProcesses(options, [&](int file, uint32_t number) {
    return runJoined(Ranks::join(file, number, options.deadline));
  });
}
