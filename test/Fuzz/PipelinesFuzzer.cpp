// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mistaken programs: whatever the pipelines do not compile ends in a diagnostic. The fuzzer of bytecode
// writes the program as bytecode first, which must be the same program when it is read. Mistakes are whole
// words and lines, not bytes: MLIR's own parser and reader crash on torn ones, in mlir-opt as here.

#include "fp8/InitAll.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/xxhash.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

/// Stages 1 to 5; the passes after them are those of a target, which depends on the input.
static constexpr llvm::StringLiteral kSharedStages = "fp8-ingest-pipeline,fp8-recipe-pipeline,fp8-fusion-"
                                                     "pipeline,fp8-batching-pipeline,fp8-bufferize-pipeline,";
static constexpr llvm::StringLiteral kTargetStages[] = {
    "fp8-cpu-kernels-pipeline,fp8-cpu-code-pipeline",
    "fp8-gpu-kernels-pipeline{chip=sm_89},fp8-gpu-code-pipeline",
    "fp8-cpu-kernels-pipeline,fp8-cpu-code-pipeline",
    "fp8-gpu-kernels-pipeline{chip=sm_90a},fp8-gpu-code-pipeline",
    "fp8-cpu-kernels-pipeline,fp8-cpu-code-pipeline",
    "fp8-gpu-kernels-pipeline{chip=sm_100a},fp8-gpu-code-pipeline"};

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllPasses();
  fp8::registerAllDialects(registry);
  fp8::registerAllPasses();
  return registry;
}

/// Ends the process, as a crash does.
[[noreturn]] static void report(const char *what) {
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// Returns the module as it is read from its bytecode.
static OwningOpRef<ModuleOp> writeAndRead(ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(module, stream)))
    report("a program can be written as bytecode");
  OwningOpRef<ModuleOp> read = parseSourceString<ModuleOp>(bytes, ParserConfig(module.getContext()));
  if (!read || print(*read) != print(module))
    report("bytecode is read as the program that was written");
  return read;
}

namespace {

/// A word of a program, of a kind within which words may change places.
struct Word {
  enum Kind { name, number, type } kind;
  size_t begin, end;
};

} // namespace

static bool isWord(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Returns the names of values, the numbers, and the element types.
static std::vector<Word> findWords(llvm::StringRef text) {
  static const llvm::StringSet<> types = {"f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2",
                                          "i64", "i32", "i8",  "i1",   "index"};
  std::vector<Word> words;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    bool isName = text[i] == '%';
    i += isName;
    // A number ends at the x of a shape.
    bool isNumber = !isName && llvm::isDigit(text[i]);
    while (i < text.size() && (isNumber ? llvm::isDigit(text[i]) : isWord(text[i])))
      ++i;
    if (isName || isNumber)
      words.push_back({isName ? Word::name : Word::number, begin, i});
    else if (llvm::StringRef word = text.slice(begin, i);
             types.contains(word) || types.contains(word.ltrim('x')))
      words.push_back({Word::type, begin + (word.starts_with("x") ? 1 : 0), i});
    i += i == begin;
    if (isNumber && i < text.size() && text[i] == 'x')
      ++i; // the x belongs to the shape, what follows is a word
  }
  return words;
}

/// Replaces a word by another of its kind, or by a number that is rare.
static std::string changeWord(llvm::StringRef text, std::mt19937 &random) {
  std::vector<Word> words = findWords(text);
  if (words.empty())
    return text.str();
  const Word &word = words[random() % words.size()];
  std::vector<std::string> others;
  for (const Word &other : words)
    if (other.kind == word.kind)
      others.push_back(text.slice(other.begin, other.end).str());
  if (word.kind == Word::number)
    others.insert(others.end(), {"0", "1", "7", "128", "9223372036854775807"});
  return (text.take_front(word.begin) + others[random() % others.size()] + text.drop_front(word.end)).str();
}

/// Leaves out a line, moves it, or repeats it.
static std::string changeLine(llvm::StringRef text, std::mt19937 &random) {
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  llvm::StringRef line = lines[random() % lines.size()];
  unsigned how = random() % 3;
  if (how != 2)
    lines.erase(llvm::find(lines, line));
  if (how != 0)
    lines.insert(lines.begin() + random() % (lines.size() + 1), line);
  return llvm::join(lines, "\n");
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
    text = random() % 3 ? changeWord(text, random) : changeLine(text, random);
  if (text.empty())
    text = "\n"; // libFuzzer takes no empty input
  text.resize(std::min(text.size(), capacity));
  llvm::copy(text, data);
  return text.size();
}

namespace {
/// Counts the errors of a context, and prints no diagnostic.
struct ErrorCounter : ScopedDiagnosticHandler {
  explicit ErrorCounter(MLIRContext *context) : ScopedDiagnosticHandler(context) {
    setHandler([this](Diagnostic &diagnostic) {
      count += diagnostic.getSeverity() == DiagnosticSeverity::Error;
      return success();
    });
  }
  unsigned count = 0;
};
} // namespace

/// Returns whether MLIR parses `program`. A child process tries it, because the parser of LLVM 22 writes to
/// freed memory when it refuses some programs: it frees a region before operations outside of the region
/// that use its values. The next programs of this process would die of that.
static bool isParsed(const DialectRegistry &registry, const std::string &program) {
  enum Outcome { parsed, refused, refusedInSilence };
  pid_t child = fork();
  if (child < 0)
    report("a child process can be started");
  if (child == 0) {
    for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE})
      std::signal(signal, SIG_DFL); // libFuzzer's handlers would write the program down as a crash
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    ErrorCounter errors(&context);
    bool isModule = bool(parseSourceString<ModuleOp>(program, ParserConfig(&context), "input"));
    _exit(isModule ? parsed : errors.count ? refused : refusedInSilence);
  }
  int status = 0;
  // libFuzzer's timer interrupts calls.
  if (llvm::sys::RetryAfterSignal(-1, waitpid, child, &status, 0) != child)
    report("a child process ends");
  if (!WIFEXITED(status) || WEXITSTATUS(status) > refusedInSilence)
    report("a program is parsed or refused");
  if (WEXITSTATUS(status) == refusedInSilence)
    report("a program that is not parsed has an error");
  return WEXITSTATUS(status) == parsed;
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const DialectRegistry registry = makeRegistry();
  // MLIR's lexer reads up to a null character, which std::string has at its end.
  std::string input(reinterpret_cast<const char *>(data), size);
  if (!isParsed(registry, input))
    return 0;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ErrorCounter errors(&context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(input, ParserConfig(&context), "input");
  if (!module)
    report("a program that was parsed once is parsed again");
  if (FUZZ_BYTECODE)
    module = writeAndRead(*module);
  PassManager passes(&context, "builtin.module");
  llvm::StringRef target = kTargetStages[llvm::xxHash64(input) % std::size(kTargetStages)];
  if (failed(parsePassPipeline((kSharedStages + target).str(), passes)))
    report("the pipeline is valid");
  if (failed(passes.run(*module)) && !errors.count)
    report("a program that is not compiled has an error");
  return 0;
}
