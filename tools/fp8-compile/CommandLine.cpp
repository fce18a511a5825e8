// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of fp8-compile. Options of the compilation are declared from the compiler's table;
// options for files belong to this tool.

#include "CommandLine.h"
#include "../ToolSupport.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/WithColor.h"

namespace cl = llvm::cl;

static const char *const kOverview =
    R"(Compiles a training or inference step in MLIR (linalg on tensors) to FP8.

Every matrix product of the program is found, and each either becomes FP8 or is
listed with the reason why not: --report=text prints the list.

Examples:
  fp8-compile step.mlir -o step.so --report=text      delayed scaling, all linear layers
  fp8-compile step.mlir -o step.so --recipe=current --keep='embed|head'
  fp8-compile step.mlir -o step.so --wgrad=bf16 --first=1 --last=1
  fp8-compile step.mlir -o step.so --dgrad=current --site-recipe='head=none'
  fp8-compile step.mlir -o - --emit=recipe            the IR after a stage
  fp8-compile --print-support                         what every target supports
  fp8-compile pair.mlir -o pair.so --pair=forward:backward
  fp8-compile step.mlir -o step.so '--recipe=#fp8.delayed_scaling<margin = 1>'

An attribute says more than the options: #fp8.custom<base = #fp8.delayed_scaling,
wgrad = #fp8.current_scaling> has a recipe per role, and with scale = @f or
amax = @g functions of the module replace a rule:
  func.func @f(%amax: f32, %fp8_max: f32, %old: f32) -> f32
  func.func @g(%column: tensor<?xf32>) -> f32    rows of a history, the current first

Report and manifest list every option that was in force. The library is run by
fp8-run.
)";

namespace {

/// An option of the compiler, its declaration, and the values that were given.
struct CompilerOption {
  std::string name;
  std::shared_ptr<cl::Option> declared;
  std::function<std::vector<std::string>()> getValues;
};

/// The options themselves; a local object, so that nothing is global.
struct Options {
  cl::OptionCategory category{"fp8-compile options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("MODEL.mlir (text or bytecode; - is standard input)"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("The file to write (- is standard output, for IR)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::list<std::string> report{"report", cl::cat(category), cl::value_desc("text|json[:FILE]"),
                               cl::desc("Print or write what became of every product")};
  cl::opt<std::string> manifest{"manifest", cl::value_desc("file"), cl::cat(category),
                                cl::desc("Also write the manifest, which a library contains")};
  cl::opt<unsigned> threads{"threads", cl::init(0), cl::value_desc("N"), cl::cat(category),
                            cl::desc("Threads that compile; 0 (default) is one per core. The output is the "
                                     "same for any number")};
  cl::opt<bool> noCache{"no-cache", cl::cat(category),
                        cl::desc("Keep no object code for the next compilation (in $FP8_CACHE_DIR, else "
                                 "$XDG_CACHE_HOME/fp8-mlir, else ~/.cache/fp8-mlir)")};
  cl::opt<std::string> ptxas{
      "ptxas", cl::value_desc("PATH|none"), cl::cat(category),
      cl::desc("NVIDIA's assembler, which makes machine code of kernels now instead of "
               "when they are loaded; otherwise that of $CUDA_HOME, else on $PATH")};
  cl::opt<std::string> printSupport{
      "print-support", cl::ValueOptional, cl::value_desc("text|json"), cl::cat(category),
      cl::desc("Only print which recipes every target has code for, and which code or instruction")};
  cl::opt<bool> remarks{"remarks", cl::cat(category),
                        cl::desc("Print which fusions and kernels were declined where, and why")};
  std::vector<CompilerOption> compiler;

  Options() {
    for (const fp8::OptionDescription &option : fp8::getOptionDescriptions())
      compiler.push_back(declare(option));
  }
  ~Options() {
    fp8tool::dropOptions(category);
    input.removeArgument(); // it has no name
  }

private:
  CompilerOption declare(const fp8::OptionDescription &option) {
    switch (option.kind) {
    case fp8::OptionDescription::Kind::flag: {
      auto flag = std::make_shared<cl::opt<bool>>(option.name, cl::cat(category), cl::desc(option.help));
      return {option.name.str(), flag, [flag] { return std::vector<std::string>{*flag ? "true" : "false"}; }};
    }
    case fp8::OptionDescription::Kind::optional: {
      auto value = std::make_shared<cl::opt<std::string>>(option.name, cl::ValueOptional,
                                                          cl::value_desc(option.values), cl::cat(category),
                                                          cl::desc(option.help));
      return {option.name.str(), value, [value] { return std::vector<std::string>{*value}; }};
    }
    case fp8::OptionDescription::Kind::list: {
      auto list = std::make_shared<cl::list<std::string>>(option.name, cl::value_desc(option.values),
                                                          cl::cat(category), cl::desc(option.help));
      return {option.name.str(), list,
              [list] { return std::vector<std::string>(list->begin(), list->end()); }};
    }
    case fp8::OptionDescription::Kind::value:
      break;
    }
    auto value = std::make_shared<cl::opt<std::string>>(option.name, cl::value_desc(option.values),
                                                        cl::cat(category), cl::desc(option.help));
    return {option.name.str(), value, [value] { return std::vector<std::string>{*value}; }};
  }
};

/// The folder for the cache of objects; empty where none is known.
std::string findCacheFolder() {
  if (const char *folder = std::getenv("FP8_CACHE_DIR"))
    return folder;
  llvm::SmallString<128> folder;
  if (!llvm::sys::path::cache_directory(folder)) // $XDG_CACHE_HOME, else ~/.cache
    return "";
  llvm::sys::path::append(folder, "fp8-mlir");
  return folder.str().str();
}

/// Returns the path of ptxas: that of the option, else that of the CUDA toolkit; empty without one.
std::string findAssembler(llvm::StringRef option) {
  if (option == "none")
    return "";
  if (!option.empty())
    return option.str();
  if (const char *toolkit = std::getenv("CUDA_HOME")) {
    llvm::SmallString<128> folder(toolkit);
    llvm::sys::path::append(folder, "bin");
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas", {folder.str()}))
      return *found;
  }
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

/// Rejects options that are given twice, of which LLVM would take the last value.
bool checkGivenOnce() {
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() > 1 && option->getNumOccurrencesFlag() == cl::Optional)
      return rejectCommandLine("--" + name + " is given " + llvm::Twine(option->getNumOccurrences()) +
                               " times; give it once");
  return true;
}

bool parseReports(const Options &o, CommandLine &out) {
  for (llvm::StringRef text : o.report) {
    auto [kind, file] = text.split(':');
    if (kind != "text" && kind != "json")
      return rejectCommandLine("--report=" + text + " is neither text nor json, optionally with :FILE");
    out.reports.push_back({kind == "json", file.str()});
  }
  return true;
}

/// --print-support compiles nothing, and so goes with nothing else.
bool parsePrintSupport(const Options &o, CommandLine &out) {
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option != &o.printSupport && option->getNumOccurrences())
      return rejectCommandLine("--print-support prints what every target supports; drop --" + name);
  if (o.input.getNumOccurrences())
    return rejectCommandLine("--print-support reads no program; drop " + o.input);
  out.printSupport = o.printSupport.empty() ? "text" : o.printSupport.getValue();
  if (out.printSupport != "text" && out.printSupport != "json")
    return rejectCommandLine("--print-support=" + out.printSupport + " is neither text nor json");
  return true;
}

/// Rejects reports and manifests after ingest, when nothing is decided yet.
bool checkStage(const CommandLine &c) {
  if (c.options.emit != "ingest" || (c.reports.empty() && c.manifestFile.empty()))
    return true;
  return rejectCommandLine(
      (c.reports.empty() ? "--manifest" : "--report") +
      std::string(" says what is decided after --emit=ingest; use --emit=recipe or a later stage"));
}

/// Rejects two outputs in one place, where they would overwrite each other or mix, and one in the
/// place of the program.
bool checkOutputs(const CommandLine &c) {
  std::vector<std::pair<std::string, std::string>> outputs = {{"-o " + c.output, c.output}};
  if (!c.manifestFile.empty())
    outputs.push_back({"--manifest=" + c.manifestFile, c.manifestFile});
  for (const ReportRequest &report : c.reports)
    outputs.push_back(
        {(report.json ? "--report=json" : "--report=text") + (report.file.empty() ? "" : ":" + report.file),
         report.file.empty() ? "-" : report.file});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &other = outputs[i].second;
    if (c.input != "-" && fp8tool::areSameFile(c.input, other))
      return rejectCommandLine(outputs[i].first + " would overwrite the program " + c.input +
                               "; give the output another file");
    for (size_t j = 0; j < i; ++j)
      if (fp8tool::areSameFile(outputs[j].second, other))
        return rejectCommandLine(outputs[j].first + " and " + outputs[i].first + " both write to " +
                                 (other == "-" ? "standard output" : other) +
                                 "; give one of them another file");
  }
  return true;
}

/// Hands every option that was given to the compiler.
bool parseCompilerOptions(const Options &o, CommandLine &out) {
  for (const CompilerOption &option : o.compiler) {
    if (!option.declared->getNumOccurrences())
      continue;
    for (const std::string &value : option.getValues())
      if (llvm::Error error = fp8::setOption(out.options, option.name, value))
        return rejectCommandLine(llvm::toString(std::move(error)));
  }
  if (!o.ptxas.empty() && o.ptxas != "none" && out.options.recipe.target == "cpu")
    return rejectCommandLine("--ptxas=" + o.ptxas +
                             " belongs to a --target that is a GPU, not to --target=cpu; "
                             "drop one of the two");
  bool isText = !out.options.makesCode() || out.options.emit == "ptx" || out.options.emit == "llvm";
  if (out.output == "-" && !isText)
    return rejectCommandLine("--emit=" + out.options.emit + " writes a file; give it a name with -o");
  return true;
}

} // namespace

bool rejectCommandLine(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "fp8-compile") << fp8tool::oneLine(message.str()) << "\n";
  return false;
}

bool parseCommandLine(int argc, char **argv, CommandLine &out) {
  // The linker's libraries have an option of this name.
  if (cl::Option *foreign = cl::getRegisteredOptions().lookup("threads"))
    foreign->removeArgument();
  Options o;
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fp8-compile " FP8_VERSION "\n"; });
  if (auto problems = fp8tool::parseCommandLine(argc, argv, o.category, kOverview))
    return problems->empty() ? false : rejectCommandLine(*problems);
  if (!checkGivenOnce())
    return false;
  if (o.printSupport.getNumOccurrences())
    return parsePrintSupport(o, out);
  if (!o.input.getNumOccurrences())
    return rejectCommandLine("a positional argument is missing: MODEL.mlir, the program to compile");
  if (o.output.empty())
    return rejectCommandLine("-o is missing: name the file to write");
  out.input = o.input;
  out.output = o.output;
  out.manifestFile = o.manifest;
  out.threads = o.threads;
  out.remarks = o.remarks;
  if (!o.noCache)
    out.options.hostCode.cacheFolder = findCacheFolder();
  if (!parseCompilerOptions(o, out))
    return false;
  // PTX text holds no machine code; an assembler that is named warns of spilled registers all the same.
  if (out.options.emit != "ptx" || !o.ptxas.empty())
    out.options.hostCode.ptxas = findAssembler(o.ptxas);
  return parseReports(o, out) && checkStage(out) && checkOutputs(out);
}
