// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads a compiled library and runs steps of its entry points.

#include "Program.h"

#include "llvm/ADT/Twine.h"

using namespace fp8run;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Error fp8run::failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

Error fp8run::check(fp8rt_status status) {
  if (status == FP8RT_OK)
    return Error::success();
  return failure(fp8rt_last_error());
}

/// Returns the indices of the residuals among arguments or results.
static std::vector<uint32_t> residuals(const std::vector<fp8rt_value> &values) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < values.size(); ++i)
    if (values[i].kind == FP8RT_KIND_RESIDUAL)
      found.push_back(i);
  return found;
}

Expected<const DLTensor *> Place::getResultValue() const {
  if (const DLTensor *value = fp8rt_session_result(function->session.get(), index))
    return value;
  return failure(fp8rt_last_error());
}

Error Program::load(const std::string &path, const std::vector<std::string> &entries,
                    const std::string &device) {
  fp8rt_library *loaded = nullptr;
  if (Error error = check(fp8rt_library_load(path.c_str(), &loaded)))
    return error;
  library.reset(loaded);
  if (device != "cpu") {
    fp8rt_gpu *opened = nullptr;
    if (Error error = check(fp8rt_gpu_open(device.c_str(), loaded, &opened)))
      return failure(path + ": --device=" + device + ": " + llvm::toString(std::move(error)));
    gpu.reset(opened);
  }
  if (Error error = createState())
    return error;
  steps.reserve(entries.size()); // places point into it
  for (const std::string &entry : entries)
    if (Error error = addFunction(entry))
      return error;
  return checkResiduals();
}

Error Program::createState() {
  fp8rt_state *created = nullptr;
  Error error =
      check(gpu ? fp8rt_state_create_on(gpu.get(), &created) : fp8rt_state_create(library.get(), &created));
  fp8State.reset(created);
  return error;
}

Error Program::createSession(Function &function) {
  fp8rt_session *created = nullptr;
  const char *name = function.name.c_str();
  Error error = check(gpu ? fp8rt_session_create_on(gpu.get(), name, fp8State.get(), &created)
                          : fp8rt_session_create(library.get(), name, fp8State.get(), &created));
  function.session.reset(created);
  return error;
}

Error Program::addFunction(const std::string &name) {
  Function function;
  function.name = name;
  uint32_t numArguments = 0, numResults = 0;
  if (Error error = check(fp8rt_library_counts(library.get(), name.c_str(), &numArguments, &numResults)))
    return error;
  function.arguments.resize(numArguments);
  function.results.resize(numResults);
  for (uint32_t i = 0; i < numArguments; ++i)
    if (Error error = check(fp8rt_library_argument(library.get(), name.c_str(), i, &function.arguments[i])))
      return error;
  for (uint32_t i = 0; i < numResults; ++i)
    if (Error error = check(fp8rt_library_result(library.get(), name.c_str(), i, &function.results[i])))
      return error;
  if (Error error = createSession(function))
    return error;
  steps.push_back(std::move(function));
  return Error::success();
}

Error Program::checkResiduals() const {
  size_t wanted = residuals(steps.back().arguments).size();
  size_t given = steps.size() == 1 ? 0 : residuals(steps[0].results).size();
  if (wanted == given)
    return Error::success();
  const std::string &name = steps.back().name;
  if (steps.size() == 1)
    return failure("entry '" + name + "' takes residuals of another: run both, " + "--entry=FORWARD," + name);
  return failure("entries '" + steps[0].name + "' and '" + name + "' are no pair: " + llvm::Twine(given) +
                 " residuals given, " + llvm::Twine(wanted) + " taken");
}

Function &Program::select(StringRef &key) {
  if (steps.size() > 1)
    for (Function &function : steps) {
      StringRef rest = key;
      if (rest.consume_front(function.name) && rest.consume_front(".")) {
        key = rest;
        return function;
      }
    }
  return steps[0];
}

Expected<Place> Program::findArgument(StringRef key) {
  Place place{&select(key), 0};
  if (Error error =
          check(fp8rt_session_find_argument(place.function->session.get(), key.str().c_str(), &place.index)))
    return error;
  return place;
}

Expected<Place> Program::findResult(StringRef key) {
  Place place{&select(key), 0};
  if (Error error =
          check(fp8rt_session_find_result(place.function->session.get(), key.str().c_str(), &place.index)))
    return error;
  return place;
}

Error Program::handOverResiduals() {
  std::vector<uint32_t> from = residuals(steps[0].results);
  std::vector<uint32_t> to = residuals(steps[1].arguments);
  for (size_t i = 0; i < from.size(); ++i) {
    const DLTensor *value = fp8rt_session_result_in_place(steps[0].session.get(), from[i]);
    if (Error error = check(fp8rt_session_bind_argument(steps[1].session.get(), to[i], value)))
      return error;
  }
  return Error::success();
}

Error Program::startProfile() {
  fp8rt_profiler *created = nullptr;
  if (Error error = check(fp8rt_profiler_create(library.get(), &created)))
    return error;
  kernelTimes.reset(created);
  for (Function &function : steps)
    if (Error error = check(fp8rt_session_profile(function.session.get(), created)))
      return error;
  return Error::success();
}

Error Program::connect(fp8rt_communicator *communicator) {
  for (Function &function : steps)
    if (Error error = check(fp8rt_session_set_communicator(function.session.get(), communicator)))
      return error;
  return Error::success();
}

Error Program::compareRanks() {
  for (Function &function : steps)
    if (Error error = check(fp8rt_session_compare(function.session.get())))
      return error;
  return Error::success();
}

Error Program::step() {
  for (Function &function : steps) {
    if (&function != &steps.front())
      if (Error error = handOverResiduals())
        return error;
    if (Error error = check(fp8rt_session_step(function.session.get())))
      return error;
  }
  return Error::success();
}
