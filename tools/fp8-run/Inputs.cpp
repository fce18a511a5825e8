// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Setting arguments from the inputs file.

#include "Inputs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <map>

using namespace fp8run;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

bool Inputs::isStreamed(const Place &place) const {
  return llvm::any_of(streams, [&](const BoundStream &stream) {
    return stream.place.function == place.function && stream.place.index == place.index;
  });
}

bool Inputs::isStreamKey(StringRef key) const {
  return llvm::any_of(streams, [&](const BoundStream &stream) { return stream.option.key == key; });
}

Error Inputs::setArgument(const Place &place, const DLTensor &tensor) const {
  auto set = areOwn ? fp8rt_session_set_argument : fp8rt_session_set_whole_argument;
  return check(set(place.function->session.get(), place.index, &tensor));
}

Error Inputs::load(const Options &options, Program &program) {
  areOwn = options.inputsAreOwn;
  if (options.inputs.empty()) {
    if (options.streams.empty())
      return Error::success();
    return failure("--stream needs --inputs=FILE with the tensor to stream");
  }
  path = options.inputs;
  fp8rt_tensors *read = nullptr;
  if (Error error = check(fp8rt_tensors_read(path.c_str(), &read)))
    return error;
  tensors.reset(read);
  for (const Stream &stream : options.streams)
    if (Error error = bindStream(stream, program))
      return error;
  if (Error error = checkTypes(program))
    return error;
  if (Error error = setArguments(program))
    return error;
  keepStreams();
  return Error::success();
}

/// The error of a tensor whose dtype the runtime does not have.
static std::string describeType(StringRef key, StringRef dtype) {
  return ("tensor '" + key + "': its dtype '" + dtype + "' is not supported").str();
}

/// Ignores tensors of dtypes that the runtime does not have, unless somebody reads them.
Error Inputs::checkTypes(Program &program) {
  const char *dtype = nullptr;
  for (uint64_t i = 0; const char *key = fp8rt_tensors_unsupported(tensors.get(), i, &dtype); ++i) {
    Expected<Place> place = program.findArgument(key);
    if (place && !isStreamed(*place))
      return failure(path + ": " + describeType(key, dtype));
    if (!place)
      llvm::consumeError(place.takeError());
    ignored.push_back(key);
  }
  return Error::success();
}

static uint64_t countBytes(const DLTensor &tensor) {
  uint64_t bytes = tensor.dtype.bits / 8;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    bytes *= static_cast<uint64_t>(tensor.shape[i]);
  return bytes;
}

/// Frees the memory of the file, from which arguments were copied; streamed tensors are copied before, unless
/// they are most of it.
void Inputs::keepStreams() {
  uint64_t all = 0, streamed = 0;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors.get()); ++i)
    all += countBytes(*fp8rt_tensors_find(tensors.get(), fp8rt_tensors_name(tensors.get(), i)));
  for (const BoundStream &stream : streams)
    streamed += countBytes(stream.tensor);
  if (2 * streamed > all)
    return;
  for (BoundStream &stream : streams) {
    DLTensor &tensor = stream.tensor;
    const char *first = static_cast<const char *>(tensor.data) + tensor.byte_offset;
    stream.data.assign(first, first + countBytes(tensor));
    stream.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
    tensor.data = stream.data.data();
    tensor.byte_offset = 0;
    tensor.shape = stream.shape.data();
  }
  tensors.reset();
}

Error Inputs::bindStream(const Stream &stream, Program &program) {
  std::string option = "--stream=" + stream.argument + "=" + stream.key + ": ";
  Expected<Place> place = program.findArgument(stream.argument);
  if (!place)
    return failure(option + llvm::toString(place.takeError()));
  if (isStreamed(*place))
    return failure(option + "the argument already has a stream");
  const char *dtype = nullptr;
  for (uint64_t i = 0; const char *key = fp8rt_tensors_unsupported(tensors.get(), i, &dtype); ++i)
    if (stream.key == key)
      return failure(option + path + ": " + describeType(key, dtype));
  const DLTensor *tensor = fp8rt_tensors_find(tensors.get(), stream.key.c_str());
  if (!tensor)
    return failure(option + path + " has no tensor '" + stream.key + "'");
  if (tensor->ndim < 1 || tensor->shape[0] < 1)
    return failure(option + "tensor '" + stream.key + "' of " + path +
                   " has no leading dimension to take slices of");
  streams.push_back({stream, *place, *tensor});
  return Error::success();
}

/// The keys of the inputs by argument, to find an argument that is given twice,
/// by its name and by its number.
using Assignments = std::map<std::pair<Function *, uint32_t>, const char *>;

Error Inputs::setArguments(Program &program) {
  Assignments assigned;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors.get()); ++i) {
    const char *key = fp8rt_tensors_name(tensors.get(), i);
    if (isStreamKey(key))
      continue;
    Expected<Place> place = program.findArgument(key);
    if (!place) {
      llvm::consumeError(place.takeError());
      ignored.push_back(key);
      continue;
    }
    if (isStreamed(*place))
      continue;
    auto [other, isNew] = assigned.insert({{place->function, place->index}, key});
    if (!isNew)
      return failure(path + ": tensors '" + other->second + "' and '" + key + "' are the same argument");
    if (Error error = setArgument(*place, *fp8rt_tensors_find(tensors.get(), key)))
      return failure(path + ": tensor '" + key + "': " + llvm::toString(std::move(error)));
  }
  return Error::success();
}

std::string Inputs::describeIgnored() const {
  if (ignored.empty())
    return "";
  return path + " has tensors that are no arguments: " + llvm::join(ignored, ", ");
}

/// Returns slice `index` of the leading dimension; it shares `tensor`'s shape array.
static DLTensor slice(const DLTensor &tensor, uint64_t index) {
  DLTensor part = tensor;
  part.ndim -= 1;
  part.shape += 1;
  part.byte_offset += index * countBytes(part);
  return part;
}

Error Inputs::advance(uint64_t step) {
  for (const BoundStream &stream : streams) {
    uint64_t count = static_cast<uint64_t>(stream.tensor.shape[0]);
    DLTensor part = slice(stream.tensor, step % count);
    if (Error error = setArgument(stream.place, part))
      return failure(path + ": a slice of tensor '" + stream.option.key +
                     "': " + llvm::toString(std::move(error)));
  }
  return Error::success();
}
