// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of options: their names, values, help texts and the fields that they set.

#include "fp8/Compiler/Options.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <limits>

using namespace fp8;
using llvm::Error;
using llvm::StringRef;

static Error invalid(StringRef name, StringRef value, const llvm::Twine &what) {
  return llvm::createStringError("--" + name + "=" + value + " " + what);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Any text; Compiler::create() finds errors in it, when all options are known.
static Error setText(std::string &field, StringRef /*name*/, StringRef value) {
  field = value.str();
  return Error::success();
}

static Error setList(std::vector<std::string> &field, StringRef /*name*/, StringRef value) {
  field.push_back(value.str());
  return Error::success();
}

static Error setRegex(std::string &field, StringRef name, StringRef value) {
  std::string reason;
  if (!value.empty() && !llvm::Regex(value).isValid(reason))
    return invalid(name, value, "is not a regular expression: " + reason);
  field = value.str();
  return Error::success();
}

static Error setLayers(int64_t &field, StringRef name, StringRef value) {
  int64_t count;
  if (value.getAsInteger(10, count))
    return invalid(name, value, "is not a whole number");
  if (count < 0)
    return invalid(name, value, "counts layers and cannot be negative");
  field = count;
  return Error::success();
}

static Error setFlag(bool &field, StringRef name, StringRef value) {
  if (value != "" && value != "true" && value != "false")
    return invalid(name, value, "is neither true nor false");
  field = value != "false";
  return Error::success();
}

static Error setSwitch(bool &field, StringRef name, StringRef value) { return setFlag(field, name, value); }

/// One of some words, of which `words` has the meanings.
template <typename T>
static Error setWord(T &field, StringRef name, StringRef value,
                     std::initializer_list<std::pair<StringRef, T>> words) {
  llvm::SmallVector<StringRef> known;
  for (auto [word, meaning] : words) {
    known.push_back(word);
    if (value == word) {
      field = meaning;
      return Error::success();
    }
  }
  StringRef last = known.pop_back_val();
  return invalid(name, value, "must be " + llvm::join(known, ", ") + " or " + last);
}

static Error addCarry(std::vector<CarryRequest> &field, StringRef name, StringRef values) {
  std::vector<CarryRequest> requests;
  for (StringRef value : llvm::split(values, ',')) {
    auto [argument, result] = value.rsplit(':');
    unsigned index;
    if (argument.empty() || result.getAsInteger(10, index))
      return invalid(name, value, "must be ARGUMENT:RESULT, an index or name and an index");
    requests.push_back({argument.str(), index});
  }
  llvm::append_range(field, requests);
  return Error::success();
}

static Error setProcessor(HostCodeOptions &field, StringRef name, StringRef value) {
  field.processor.clear();
  if (value == "native")
    return Error::success();
  if (Error error = checkProcessor(value))
    return invalid(name, value, llvm::toString(std::move(error)));
  field.processor = value.str();
  return Error::success();
}

static Error setSums(MatmulSums &field, StringRef name, StringRef value) {
  return setWord<MatmulSums>(
      field, name, value,
      {{"exact", MatmulSums::exact}, {"auto", MatmulSums::fastest}, {"hardware", MatmulSums::hardware}});
}

static Error setOrder(SumOrder &field, StringRef name, StringRef value) {
  return setWord<SumOrder>(field, name, value,
                           {{"kernel", SumOrder::kernel}, {"program", SumOrder::program}});
}

static Error setMath(MathFunctions &field, StringRef name, StringRef value) {
  return setWord<MathFunctions>(field, name, value,
                                {{"expanded", MathFunctions::expanded}, {"libm", MathFunctions::libm}});
}

static Error setUnusedOptions(bool &field, StringRef name, StringRef value) {
  return setWord<bool>(field, name, value, {{"error", false}, {"report", true}});
}

static Error setMixedPrecision(std::string &field, StringRef name, StringRef value) {
  if (!isMixedPrecision(value))
    return invalid(name, value, "must be off, bf16, f16 or tf32");
  field = value.str();
  return Error::success();
}

static Error setLossScaling(std::optional<double> &field, StringRef name, StringRef value) {
  double scale = 65536;
  if (!value.empty() && value.getAsDouble(scale))
    return invalid(name, value, "is not a number");
  if (!(scale > 0 && scale <= static_cast<double>(std::numeric_limits<float>::max())))
    return invalid(name, value, "is no scale: give a positive, finite f32");
  field = scale;
  return Error::success();
}

static Error setLoss(std::optional<int64_t> &field, StringRef name, StringRef value) {
  int64_t index;
  if (value.getAsInteger(10, index) || index < 0)
    return invalid(name, value, "is not the index of a result");
  field = index;
  return Error::success();
}

/// Parses AXIS:TENSOR[=DIM],...
static llvm::Expected<DivisionRequest> parseDivision(StringRef name, StringRef value) {
  auto [axis, tensors] = value.split(':');
  DivisionRequest request;
  request.axis = axis.str();
  for (StringRef text : llvm::split(tensors, ',')) {
    DividedTensor tensor;
    auto [own, dim] = text.rsplit('=');
    if (!dim.empty() && (dim.getAsInteger(10, tensor.dim) || tensor.dim < 0))
      return invalid(name, value, "has a dimension that is no number: '" + dim + "'");
    tensor.name = own.str();
    if (tensor.name.empty())
      break;
    request.tensors.push_back(std::move(tensor));
  }
  if (axis.empty() || request.tensors.empty())
    return invalid(name, value, "must be AXIS:ARGUMENT[=DIMENSION],..., as dp:x,y");
  return request;
}

static Error setDataParallel(std::optional<DivisionRequest> &field, StringRef name, StringRef value) {
  llvm::Expected<DivisionRequest> request = parseDivision(name, value);
  if (!request)
    return request.takeError();
  field = std::move(*request);
  return Error::success();
}

static Error addShards(std::vector<DivisionRequest> &field, StringRef name, StringRef value) {
  llvm::Expected<DivisionRequest> request = parseDivision(name, value);
  if (!request)
    return request.takeError();
  field.push_back(std::move(*request));
  return Error::success();
}

static Error setBucketBytes(int64_t &field, StringRef name, StringRef value) {
  int64_t bytes;
  if (value.getAsInteger(10, bytes) || bytes < 0)
    return invalid(name, value, "is not a number of bytes");
  field = bytes;
  return Error::success();
}

static Error addAverages(llvm::SmallVectorImpl<int64_t> &field, StringRef name, StringRef values) {
  llvm::SmallVector<int64_t> results;
  for (StringRef value : llvm::split(values, ',')) {
    int64_t result;
    if (value.getAsInteger(10, result) || result < 0)
      return invalid(name, value, "is not the index of a result");
    results.push_back(result);
  }
  field.append(results);
  return Error::success();
}

static Error setAxes(std::vector<std::string> &field, StringRef /*name*/, StringRef value) {
  field.clear();
  for (StringRef axis : llvm::split(value, ','))
    field.push_back(axis.str());
  return Error::success();
}

static Error setPair(std::optional<PairRequest> &field, StringRef /*name*/, StringRef value) {
  llvm::Expected<PairRequest> request = parsePair(value);
  if (!request)
    return request.takeError();
  field = std::move(*request);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {
struct Option {
  OptionDescription description;
  Error (*set)(CompilerOptions &options, StringRef name, StringRef value);
};
} // namespace

using Kind = OptionDescription::Kind;

/// How the kinds of RecipeOptions.def are given.
static constexpr Kind kText = Kind::value, kRegex = Kind::value, kLayers = Kind::value, kFlag = Kind::flag,
                      kSwitch = Kind::optional, kList = Kind::list;

/// A function that hands the value to `setter`, for a field of the options.
#define FP8_SET(setter, field)                                                                               \
  [](CompilerOptions &options, StringRef name, StringRef value) -> Error {                                   \
    return setter(options.field, name, value);                                                               \
  }

static constexpr Option kOptions[] = {
#define FP8_RECIPE_OPTION(Kind, field, name, initial, values, help)                                          \
  {{name, values, help, k##Kind}, FP8_SET(set##Kind, recipe.field)},
#include "fp8/Pipelines/RecipeOptions.def"
    {{"mixed-precision", "off|bf16|f16|tf32",
      "Run a program in f32 in mixed precision: contractions in this type with f32 sums, functions that need "
      "it and sums in f32 (off)"},
     FP8_SET(setMixedPrecision, mixedPrecision)},
    {{"loss-scaling", "INIT",
      "Scale the gradient of the loss, skip steps with an Inf or NaN in a gradient, and adapt the scale: it "
      "starts at INIT (65536), doubles after 2000 good steps and halves after a skipped one",
      Kind::optional},
     FP8_SET(setLossScaling, lossScaling)},
    {{"loss", "R", "The result that is the loss (the only scalar of floating point that is not carried)"},
     FP8_SET(setLoss, loss)},
    {{"data-parallel", "AXIS:ARG[=DIM],...",
      "Several ranks run the step, each with its part of the batch, the arguments ARG cut along dimension "
      "DIM (0): loss and gradients become their means over the ranks. AXIS is a name, or the number of an "
      "axis of the program's grid"},
     FP8_SET(setDataParallel, dataParallel)},
    {{"shard", "AXIS:TENSOR[=DIM],...",
      "Tensors of which each rank has a part, cut along dimension DIM (0): arguments by name or number, "
      "results as result0. fp8-run cuts them out of its files and gathers them for those it writes. A "
      "carried argument's next value is divided as the argument. May be given for several axes",
      Kind::list},
     FP8_SET(addShards, shards)},
    {{"average", "R,...", "With --data-parallel: results that become their mean over the ranks, too",
      Kind::list},
     FP8_SET(addAverages, average)},
    {{"bucket-bytes", "N",
      "Sums and means over the ranks of small tensors, such as the gradients of biases, are joined to one of "
      "up to N bytes (1048576); 0 joins none. The results are the same"},
     FP8_SET(setBucketBytes, batching.bucketBytes)},
    {{"reduce-amax-axes", "AXIS,...", "The axes of the grid of ranks over which amaxes are combined (all)"},
     FP8_SET(setAxes, reduceAmaxAxes)},
    {{"pair", "FORWARD:BACKWARD[:K]",
      "Two functions of one step: results K... (default 1) of the first are arguments 0... of the second"},
     FP8_SET(setPair, pair)},
    {{"unused-options", "error|report",
      "Options that fit no matmul, such as a misspelt --sites: an error (default), or lines of the report, "
      "for programs that are parts of a model"},
     FP8_SET(setUnusedOptions, recipe.allowUnused)},
    {{"cpu", "native|NAME",
      "The processor whose instructions the library may use, as LLVM names it: x86-64-v3 runs on any with "
      "AVX2; native (default) is this one"},
     FP8_SET(setProcessor, hostCode)},
    {{"math", "expanded|libm",
      "Math functions of f32, f16 and bf16: by own code, with the same bits on every target (default), or by "
      "the C library"},
     FP8_SET(setMath, hostCode.math)},
    {{"sums", "exact|auto|hardware",
      "Sums of products of bf16 and FP8: one f32 sum in the order of K, with the same bits on every "
      "processor (default); as the processor's instruction for bf16 sums, of AMX or AVX512_BF16, whose order "
      "and denormals are its own (hardware); or so only where the instruction is much faster than f32 "
      "(auto)"},
     FP8_SET(setSums, hostCode.sums)},
    {{"order", "kernel|program",
      "Sums over elements on a GPU: in the order of the fastest kernel (default), or in the order of the "
      "program, as on the CPU and slow, to compare results bit for bit"},
     FP8_SET(setOrder, order)},
    {{"strict-accumulation", "",
      "Matmuls of gradients are summed in parts of 128 on every GPU, also where its tensor cores are as "
      "exact without (sm_100a), to compare results bit for bit",
      Kind::flag},
     FP8_SET(setFlag, strictAccumulation)},
    {{"separate-temporaries", "",
      "Every temporary has memory of its own, so that the emulator finds reads of what no kernel has written",
      Kind::flag},
     FP8_SET(setFlag, hostCode.separateTemporaries)},
    {{"emit", "what",
      "lib (default), obj, llvm, ptx (GPUs), or the IR after ingest, recipe, fusion, batching, bufferize or "
      "kernels"},
     FP8_SET(setText, emit)},
    {{"carry", "A:R,...", "Result R is argument A (index or name) of the next step", Kind::list},
     FP8_SET(addCarry, carry)},
};

llvm::ArrayRef<StringRef> CompilerOptions::getStages() {
  static constexpr StringRef stages[] = {"ingest", "recipe", "fusion", "batching", "bufferize", "kernels"};
  return stages;
}

std::vector<OptionDescription> fp8::getOptionDescriptions() {
  std::vector<OptionDescription> descriptions;
  for (const Option &option : kOptions)
    descriptions.push_back(option.description);
  for (const RecipeParameter &parameter : getRecipeParameters())
    descriptions.push_back({parameter.option, parameter.values, parameter.help});
  return descriptions;
}

Error fp8::setOption(CompilerOptions &options, StringRef name, StringRef value) {
  for (const Option &option : kOptions)
    if (option.description.name == name)
      return option.set(options, name, value);
  for (const RecipeParameter &parameter : getRecipeParameters())
    if (parameter.option == name) {
      options.recipe.parameters[name.str()] = value.str();
      return Error::success();
    }
  return invalid(
      name, value,
      "is no option of a compilation; fp8-compile --help lists them beside its own, which name files");
}

static std::string describeDivision(const DivisionRequest &request) {
  std::string text = request.axis + ":";
  for (const DividedTensor &tensor : request.tensors)
    text += (text.back() == ':' ? "" : ",") + tensor.name + "=" + std::to_string(tensor.dim);
  return text;
}

OptionValues fp8::describeOptions(const CompilerOptions &options, RecipeAttrInterface recipe) {
  OptionValues values = describeOptions(options.recipe, recipe);
  values.emplace_back("mixed_precision", options.mixedPrecision);
  values.emplace_back("loss_scaling",
                      options.lossScaling ? llvm::json::Value(*options.lossScaling) : nullptr);
  values.emplace_back("loss", options.loss ? llvm::json::Value(*options.loss) : nullptr);
  values.emplace_back("cpu", options.hostCode.processor.empty() ? "native" : options.hostCode.processor);
  values.emplace_back("math", options.hostCode.math == MathFunctions::libm ? "libm" : "expanded");
  StringRef sums[] = {"exact", "auto", "hardware"};
  values.emplace_back("sums", sums[static_cast<unsigned>(options.hostCode.sums)]);
  values.emplace_back("order", options.order == SumOrder::program ? "program" : "kernel");
  values.emplace_back("strict_accumulation", options.strictAccumulation);
  values.emplace_back("separate_temporaries", options.hostCode.separateTemporaries);
  llvm::json::Array carry;
  for (const CarryRequest &request : options.carry)
    carry.push_back(request.argument + ":" + std::to_string(request.result));
  values.emplace_back("carry", std::move(carry));
  values.emplace_back("data_parallel", options.dataParallel
                                           ? llvm::json::Value(describeDivision(*options.dataParallel))
                                           : nullptr);
  values.emplace_back("shard", llvm::json::Array(llvm::map_range(options.shards, describeDivision)));
  values.emplace_back("average", llvm::json::Array(options.average));
  values.emplace_back("bucket_bytes", options.batching.bucketBytes);
  values.emplace_back("reduce_amax_axes", llvm::json::Array(options.reduceAmaxAxes));
  if (options.pair)
    values.emplace_back("pair", options.pair->forward + ":" + options.pair->backward + ":" +
                                    std::to_string(options.pair->firstResidual));
  else
    values.emplace_back("pair", nullptr);
  return values;
}
