// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one kernel: checks arguments against its parameters, places them in device memory, and
// writes those that are results.

#include "Runner.h"

#include "Arguments.h"
#include "LoadedKernel.h"

#include "fp8rt/owned.h"

#include "llvm/ADT/Twine.h"

#include <cstring>

using namespace fp8ptx;
using fp8rt::owned::Tensors;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace {

Error check(fp8rt_status status) {
  return status == FP8RT_OK ? Error::success() : failure(fp8rt_last_error());
}

class Runner {
public:
  explicit Runner(const RunOptions &options) : options(options) {}
  Error run();

private:
  Error prepare();
  Error place(const Argument &argument);
  Error checkSize(const Argument &argument, size_t bytes) const;
  Expected<const DLTensor *> input(const Argument &argument) const;
  Expected<uint64_t> upload(const Argument &argument, const void *data, uint64_t bytes);
  Error addOutput(const Argument &argument, DLTensor tensor, uint64_t address);
  Error checkOutputs() const;

  const RunOptions &options;
  std::unique_ptr<LoadedKernel> loaded;
  std::vector<Argument> arguments;
  std::vector<std::vector<uint8_t>> parameters;
  Tensors inputs, outputs;
};

Error Runner::prepare() {
  for (const std::string &text : options.arguments) {
    auto argument = parseArgument(text);
    if (!argument)
      return argument.takeError();
    arguments.push_back(std::move(*argument));
  }
  if (Error error = checkOutputs())
    return error;
  fp8rt_tensors *made = nullptr;
  if (!options.inputs.empty()) {
    if (Error error = check(fp8rt_tensors_read(options.inputs.c_str(), &made)))
      return error;
    inputs.reset(made);
  }
  if (Error error = check(fp8rt_tensors_create(&made)))
    return error;
  outputs.reset(made);
  auto kernel = LoadedKernel::load(options);
  if (!kernel)
    return kernel.takeError();
  loaded = std::move(*kernel);
  return Error::success();
}

Error Runner::checkOutputs() const {
  if (!options.profileFile.empty())
    if (Error error = check(fp8rt_check_writable(options.profileFile.c_str())))
      return error;
  bool any = false;
  for (const Argument &argument : arguments)
    any |= argument.kind == Argument::Out || argument.kind == Argument::InOut;
  if (options.outputs.empty())
    return Error::success();
  if (!any)
    return failure("--outputs=" + options.outputs +
                   ": no argument is out:… or inout:…, nothing would be written");
  return check(fp8rt_check_writable(options.outputs.c_str()));
}

Expected<const DLTensor *> Runner::input(const Argument &argument) const {
  if (!inputs)
    return failure("--arg=" + argument.text + " needs --inputs=FILE with tensor '" + argument.name + "'");
  if (const DLTensor *tensor = fp8rt_tensors_find(inputs.get(), argument.name.c_str()))
    return tensor;
  return failure("--arg=" + argument.text + ": " + options.inputs + " has no tensor '" + argument.name + "'");
}

Error Runner::checkSize(const Argument &argument, size_t bytes) const {
  size_t index = parameters.size(), wanted = loaded->kernel().parameters[index].bytes;
  if (bytes == wanted)
    return Error::success();
  return failureAt(options.file, loaded->kernel().parameters[index].where,
                   "parameter " + Twine(index + 1) + " of " + loaded->kernel().name + " has " +
                       Twine(wanted) + " bytes, --arg=" + argument.text + " has " + Twine(bytes));
}

Expected<uint64_t> Runner::upload(const Argument &argument, const void *data, uint64_t bytes) {
  auto address = loaded->allocate(bytes, "argument " + argument.name);
  if (address && data)
    std::memcpy(reinterpret_cast<void *>(*address), data, bytes);
  return address;
}

/// Adds a result without a copy: device addresses are addresses of the host.
Error Runner::addOutput(const Argument &argument, DLTensor tensor, uint64_t address) {
  tensor.data = reinterpret_cast<void *>(address);
  return check(fp8rt_tensors_add(outputs.get(), argument.name.c_str(), &tensor));
}

Error Runner::place(const Argument &argument) {
  if (argument.kind == Argument::Scalar) {
    if (Error error = checkSize(argument, argument.bytes.size()))
      return error;
    parameters.push_back(argument.bytes);
    return Error::success();
  }
  DLTensor tensor{};
  if (argument.kind == Argument::Out) {
    tensor.dtype = argument.type;
    tensor.ndim = int32_t(argument.shape.size());
    tensor.shape = const_cast<int64_t *>(argument.shape.data());
    tensor.device = {kDLCPU, 0};
  } else {
    auto found = input(argument);
    if (!found)
      return found.takeError();
    tensor = **found;
  }
  const auto *data = static_cast<const uint8_t *>(tensor.data);
  data = data ? data + tensor.byte_offset : nullptr;
  tensor.byte_offset = 0;
  uint64_t bytes = byteSize(tensor.dtype, {tensor.shape, size_t(tensor.ndim)});
  if (Error error = checkSize(argument, argument.kind == Argument::Value ? bytes : 8))
    return error;
  if (argument.kind == Argument::Value) {
    parameters.emplace_back(data, data + bytes);
    return Error::success();
  }
  auto address = upload(argument, data, bytes);
  if (!address)
    return address.takeError();
  const auto *raw = reinterpret_cast<const uint8_t *>(&*address);
  parameters.emplace_back(raw, raw + 8);
  return argument.kind == Argument::In ? Error::success() : addOutput(argument, tensor, *address);
}

Error Runner::run() {
  if (Error error = prepare())
    return error;
  size_t wanted = loaded->kernel().parameters.size();
  if (arguments.size() != wanted)
    return failureAt(options.file, loaded->kernel().where,
                     loaded->kernel().name + " has " + Twine(wanted) + " parameters, --arg is given " +
                         Twine(arguments.size()) + " times");
  for (const Argument &argument : arguments)
    if (Error error = place(argument))
      return error;
  if (Error error = loaded->launch(parameters))
    return error;
  if (options.outputs.empty())
    return Error::success();
  return check(fp8rt_tensors_write(outputs.get(), options.outputs.c_str()));
}

} // namespace

Error fp8ptx::run(const RunOptions &options) { return Runner(options).run(); }
