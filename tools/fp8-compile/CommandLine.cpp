// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of fp8-compile: declared, parsed, checked against each other.

#include "CommandLine.h"
#include "../ToolSupport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
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
  fp8-compile step.mlir -o - --emit=recipe            the IR after a stage
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

/// The options themselves; a local object, so that nothing is global.
struct Options {
  cl::OptionCategory category{"fp8-compile options"};
  cl::opt<std::string> input{cl::Positional, cl::Required,
                             cl::desc("MODEL.mlir (text or bytecode; - is standard input)"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("The file to write (- is standard output, for IR)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> recipe{"recipe", cl::init("delayed"), cl::value_desc("recipe"), cl::cat(category),
                              cl::desc("delayed (default), current, block, row, mxfp8, auto (mxfp8 for "
                                       "sm_100a and sm_120a, else current), "
                                       "none, or an attribute")};
  std::vector<std::unique_ptr<cl::opt<std::string>>> parameters;
  cl::opt<std::string> sites{"sites", cl::init("linear"), cl::value_desc("linear|all|regex"),
                             cl::cat(category),
                             cl::desc("Products of weights, all, or those whose site name matches")};
  cl::opt<std::string> keep{"keep", cl::value_desc("regex"), cl::cat(category),
                            cl::desc("Sites that stay as they are")};
  cl::opt<std::string> require{"require", cl::value_desc("all|regex"), cl::cat(category),
                               cl::desc("Sites that must become FP8: an error where one does not")};
  cl::opt<int64_t> first{"first", cl::value_desc("N"), cl::cat(category),
                         cl::desc("Sites of the first N layers stay as they are")};
  cl::opt<int64_t> last{"last", cl::value_desc("N"), cl::cat(category),
                        cl::desc("Sites of the last N layers stay as they are")};
  cl::opt<std::string> fprop{"fprop", cl::init("fp8"), cl::value_desc("precision"), cl::cat(category),
                             cl::desc("Forward products: fp8, a format for both operands (e4m3, e5m2), "
                                      "or the type in which they stay (bf16, f16, f32, f64)")};
  cl::opt<std::string> dgrad{
      "dgrad", cl::init("fp8"), cl::value_desc("precision"), cl::cat(category),
      cl::desc("Input gradients, as --fprop; a format is that of the gradient operand")};
  cl::opt<std::string> wgrad{"wgrad", cl::init("fp8"), cl::value_desc("precision"), cl::cat(category),
                             cl::desc("Weight gradients, as --dgrad")};
  cl::opt<std::string> pair{"pair", cl::value_desc("FORWARD:BACKWARD[:K]"), cl::cat(category),
                            cl::desc("Two functions of one step: results K... (default 1) of the first "
                                     "are arguments 0... of the second")};
  cl::opt<bool> calibrate{"calibrate", cl::cat(category),
                          cl::desc("Entries without gradients update the state too")};
  cl::opt<std::string> target{"target", cl::init("cpu"), cl::cat(category),
                              cl::desc("cpu; sm_89, sm_90a, sm_100a, sm_120a are not available yet")};
  cl::opt<std::string> emit{
      "emit", cl::init("lib"), cl::cat(category), cl::value_desc("what"),
      cl::desc("lib (default), obj, llvm, or the IR after ingest, recipe, fusion, batching, "
               "bufferize or kernels")};
  cl::list<std::string> report{"report", cl::cat(category), cl::value_desc("text|json[:FILE]"),
                               cl::desc("Print or write what became of every product")};
  cl::opt<std::string> manifest{"manifest", cl::value_desc("file"), cl::cat(category),
                                cl::desc("Also write the manifest, which a library contains")};
  cl::list<std::string> carry{"carry", cl::CommaSeparated, cl::value_desc("A:R,..."), cl::cat(category),
                              cl::desc("Result R is argument A (index or name) of the next step")};

  Options() {
    for (const fp8::RecipeParameter &parameter : fp8::getRecipeParameters())
      parameters.push_back(std::make_unique<cl::opt<std::string>>(
          llvm::StringRef(parameter.option), cl::value_desc(parameter.values), cl::cat(category),
          cl::desc(parameter.help)));
  }
};

/// One line on standard error.
bool fail(const llvm::Twine &message) {
  std::string line = message.str();
  line = llvm::StringRef(line).trim().str();
  std::replace(line.begin(), line.end(), '\n', ' ');
  llvm::WithColor::error(llvm::errs(), "fp8-compile") << line << "\n";
  return false;
}

/// LLVM would take the last of two values.
bool checkGivenOnce() {
  for (auto &[name, option] : cl::getRegisteredOptions())
    if (option->getNumOccurrences() > 1 && option->getNumOccurrencesFlag() == cl::Optional)
      return fail("--" + name + " is given " + llvm::Twine(option->getNumOccurrences()) +
                  " times; give it once");
  return true;
}

/// What well-formed options ask for whose work is still to come; empty for nothing.
std::string findUnavailable(const Options &o) {
  if (o.target != "cpu")
    return "--target=" + o.target + " is not available yet; use --target=cpu";
  if (o.emit == "ptx")
    return "--emit=ptx is not available yet; --emit=kernels shows the last IR of the CPU's way";
  return "";
}

bool checkWord(llvm::StringRef option, llvm::StringRef value, llvm::ArrayRef<llvm::StringRef> words) {
  return llvm::is_contained(words, value) ||
         fail("--" + option + "=" + value + " is none of " + llvm::join(words, ", "));
}

bool parseReports(const Options &o, CommandLine &out) {
  for (llvm::StringRef text : o.report) {
    auto [kind, file] = text.split(':');
    if (kind != "text" && kind != "json")
      return fail("--report=" + text + " is neither text nor json, optionally with :FILE");
    out.reports.push_back({kind == "json", file.str()});
  }
  return true;
}

/// What two ways to write one file name have in common.
std::string findPlace(llvm::StringRef file) {
  llvm::SmallString<256> place(file);
  if (file == "-" || llvm::sys::fs::make_absolute(place))
    return file.str();
  llvm::sys::path::remove_dots(place);
  return place.str().str();
}

/// Nothing is decided when ingest ends: there is nothing to report yet.
bool checkStage(const CommandLine &c) {
  if (c.emit != "ingest" || (c.reports.empty() && c.manifestFile.empty()))
    return true;
  return fail((c.reports.empty() ? "--manifest" : "--report") +
              std::string(" says what is decided after --emit=ingest; use --emit=recipe or a later stage"));
}

/// Two outputs in one place would overwrite each other, or mix.
bool checkOutputs(const CommandLine &c) {
  std::vector<std::pair<std::string, std::string>> outputs = {{"-o " + c.output, c.output}};
  if (!c.manifestFile.empty())
    outputs.push_back({"--manifest=" + c.manifestFile, c.manifestFile});
  for (const ReportRequest &report : c.reports)
    outputs.push_back(
        {(report.json ? "--report=json" : "--report=text") + (report.file.empty() ? "" : ":" + report.file),
         report.file.empty() ? "-" : report.file});
  for (size_t i = 0; i < outputs.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const std::string &one = outputs[j].second, &other = outputs[i].second;
      if (one != "/dev/null" && findPlace(one) == findPlace(other))
        return fail(outputs[j].first + " and " + outputs[i].first + " both write to " +
                    (other == "-" ? "standard output" : other) + "; give one of them another file");
    }
  return true;
}

bool parseCarry(const Options &o, CommandLine &out) {
  for (llvm::StringRef text : o.carry) {
    auto [argument, result] = text.rsplit(':');
    unsigned index;
    if (argument.empty() || result.getAsInteger(10, index))
      return fail("--carry=" + text + " must be ARGUMENT:RESULT, an index or name and an index");
    out.carry.push_back({argument.str(), index});
  }
  return true;
}

bool parsePair(const Options &o, CommandLine &out) {
  if (!o.pair.getNumOccurrences())
    return true;
  llvm::Expected<fp8::PairRequest> request = fp8::parsePair(o.pair);
  if (!request)
    return fail(llvm::toString(request.takeError()));
  out.pair = std::move(*request);
  return true;
}

bool checkRegex(llvm::StringRef option, llvm::StringRef pattern) {
  std::string reason;
  if (pattern.empty() || llvm::Regex(pattern).isValid(reason))
    return true;
  return fail("--" + option + "=" + pattern + " is not a regular expression: " + reason);
}

bool parseRecipe(const Options &o, CommandLine &out) {
  fp8::RecipeOptions &recipe = out.recipe;
  recipe.recipe = o.recipe;
  recipe.target = o.target;
  recipe.fprop = o.fprop;
  recipe.dgrad = o.dgrad;
  recipe.wgrad = o.wgrad;
  recipe.sites = o.sites;
  recipe.keep = o.keep;
  recipe.first = o.first;
  recipe.last = o.last;
  recipe.require = o.require;
  recipe.calibrate = o.calibrate;
  if (o.first < 0 || o.last < 0)
    return fail("--first and --last count layers and cannot be negative");
  for (const auto &parameter : o.parameters)
    if (parameter->getNumOccurrences())
      recipe.parameters[parameter->ArgStr.str()] = *parameter;
  if (!checkRegex("sites", o.sites) || !checkRegex("keep", o.keep) || !checkRegex("require", o.require))
    return false;
  llvm::Expected<std::string> attribute = fp8::getRecipeAttribute(recipe);
  if (!attribute)
    return fail(llvm::toString(attribute.takeError()));
  out.recipeAttribute = *attribute;
  return true;
}

} // namespace

bool parseCommandLine(int argc, char **argv, CommandLine &out) {
  Options o;
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fp8-compile " FP8_VERSION "\n"; });
  if (auto problems = fp8tool::parseCommandLine(argc, argv, o.category, kOverview))
    return problems->empty() ? false : fail(*problems);
  if (!checkGivenOnce())
    return false;
  if (o.output.empty())
    return fail("-o is missing: name the file to write");
  out.input = o.input;
  out.output = o.output;
  out.emit = o.emit;
  out.target = o.target;
  out.manifestFile = o.manifest;
  if (!checkWord(
          "emit", o.emit,
          {"lib", "obj", "llvm", "ptx", "ingest", "recipe", "fusion", "batching", "bufferize", "kernels"}) ||
      !checkWord("target", o.target, {"cpu", "sm_89", "sm_90a", "sm_100a", "sm_120a"}))
    return false;
  if (o.output == "-" && llvm::is_contained({"lib", "obj", "llvm"}, o.emit))
    return fail("--emit=" + o.emit + " writes a file; give it a name with -o");
  out.unavailable = findUnavailable(o);
  return parseReports(o, out) && checkStage(out) && checkOutputs(out) && parseCarry(o, out) &&
         parsePair(o, out) && (!out.unavailable.empty() || parseRecipe(o, out));
}
