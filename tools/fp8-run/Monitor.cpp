// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading state and measurements after a step, and writing them as JSON lines.

#include "Monitor.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace fp8run;
using llvm::Error;
using llvm::StringRef;
namespace json = llvm::json;

/// Returns element `index` of a tensor of f32 in host memory.
static double element(const DLTensor &tensor, size_t index) {
  float value;
  std::memcpy(&value, static_cast<const char *>(tensor.data) + tensor.byte_offset + index * sizeof(float),
              sizeof(float));
  return value;
}

Error Monitor::readManifest() {
  llvm::Expected<json::Value> manifest = json::parse(program.manifest());
  if (!manifest)
    return manifest.takeError();
  const json::Object *state = manifest->getAsObject() ? manifest->getAsObject()->getObject("state") : nullptr;
  const json::Array *columns = state ? state->getArray("columns") : nullptr;
  if (!columns)
    return Error::success();
  for (const json::Value &column : *columns) {
    Reading reading;
    reading.column = static_cast<int64_t>(readings.size());
    if (const json::Object *object = column.getAsObject()) {
      reading.tensor = object->getString("tensor").value_or("").str();
      if (const json::Array *sites = object->getArray("sites"))
        for (const json::Value &site : *sites)
          reading.sites.push_back(site.getAsString().value_or("").str());
    }
    readings.push_back(std::move(reading));
  }
  return Error::success();
}

/// Finds the results MEASURE.SITE.TENSOR that fp8-compile --measure-errors adds.
void Monitor::findMeasured() {
  for (Function &function : program.functions())
    for (uint32_t i = 0; i < function.results.size(); ++i) {
      const fp8rt_value &value = function.results[i];
      auto [measure, rest] = StringRef(value.name).split('.');
      auto [site, tensor] = rest.rsplit('.');
      if (value.ndim || StringRef(value.type) != "f32" || tensor.empty())
        continue;
      auto place = measure == "error"       ? &Measured::error
                   : measure == "underflow" ? &Measured::underflow
                   : measure == "overflow"  ? &Measured::overflow
                   : measure == "amax"      ? &Measured::amax
                                            : nullptr;
      if (!place)
        continue;
      std::vector<Measured> &casts = bySite[{site.str(), tensor.str()}];
      if (casts.empty() || casts.back().*place)
        casts.emplace_back();
      casts.back().*place = Place{&function, i};
    }
}

/// Adds a reading for each cast whose recipe has no state.
void Monitor::addRowsWithoutColumn() {
  for (auto &[key, casts] : bySite)
    for (Measured &cast : casts) {
      Reading reading;
      reading.sites = {key.first};
      reading.tensor = key.second;
      readings.push_back(std::move(reading));
      measured.push_back({cast});
    }
}

/// Cuts off the last line of the log if it is not whole: a run was killed while it wrote.
static Error cutUnfinishedLine(const std::string &path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return Error::success();
  auto log = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!log || (*log)->getBuffer().ends_with("\n"))
    return Error::success();
  size_t whole = (*log)->getBuffer().rfind('\n') + 1; // 0 where there is none
  log->reset();
  if (truncate(path.c_str(), static_cast<off_t>(whole)) != 0)
    return failure(path + ": cannot write: " + std::strerror(errno));
  return Error::success();
}

Error Monitor::start() {
  if (Error error = readManifest())
    return error;
  findMeasured();
  for (const Reading &reading : readings) {
    measured.emplace_back();
    for (const std::string &site : reading.sites)
      if (auto casts = bySite.find({site, reading.tensor}); casts != bySite.end()) {
        llvm::append_range(measured.back(), casts->second);
        bySite.erase(casts);
      }
  }
  addRowsWithoutColumn();
  if (readings.empty())
    return failure("--monitor: the program has no FP8 state, and nothing is measured: compile it with "
                   "fp8-compile --measure-errors");
  if (!options.monitorFile.empty()) {
    std::error_code failed;
    // A run that goes on adds to the log.
    if (options.firstStep)
      if (Error error = cutUnfinishedLine(options.monitorFile))
        return error;
    file = std::make_unique<llvm::raw_fd_ostream>(
        options.monitorFile, failed, options.firstStep ? llvm::sys::fs::OF_Append : llvm::sys::fs::OF_None);
    if (failed)
      return failure(options.monitorFile + ": cannot write: " + failed.message());
    lines = file.get();
  } else if (isatty(STDERR_FILENO)) {
    winsize size = {};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    table.emplace(llvm::errs(), known ? size.ws_row : 24, known ? size.ws_col : 80);
  } else {
    lines = &llvm::errs();
  }
  return Error::success();
}

/// Reads the columns of the state: the newest amax and the scale.
Error Monitor::readState() {
  fp8rt_tensors *created = nullptr;
  if (Error error = check(fp8rt_tensors_create(&created)))
    return error;
  Tensors tensors(created);
  if (Error error = check(fp8rt_state_export(program.state(), created)))
    return error;
  const DLTensor *scale = fp8rt_tensors_find(created, "scale");
  const DLTensor *history = fp8rt_tensors_find(created, "amax_history");
  for (auto [i, reading] : llvm::enumerate(readings)) {
    if (!reading.column)
      continue;
    if (scale && scale->ndim == 1 && static_cast<int64_t>(i) < scale->shape[0])
      reading.scale = element(*scale, i);
    // A history of one row has only the amax of the step that runs.
    if (history && history->ndim == 2 && history->shape[0] > 1 && static_cast<int64_t>(i) < history->shape[1])
      reading.amax = element(*history, static_cast<size_t>((history->shape[0] - 1) * history->shape[1]) + i);
  }
  return Error::success();
}

/// Reads what is measured of the casts of a reading; of several the largest.
void Monitor::readMeasured(size_t row) {
  Reading &reading = readings[row];
  reading.underflow = reading.overflow = reading.mse = std::nullopt;
  std::optional<double> amax;
  auto add = [](std::optional<double> &largest, const std::optional<Place> &place, bool isSquared = false) {
    const DLTensor *value =
        place ? fp8rt_session_result(place->function->session.get(), place->index) : nullptr;
    if (!value)
      return;
    double read = element(*value, 0);
    read = isSquared ? read * read : read;
    largest = largest && *largest >= read ? largest : read;
  };
  for (const Measured &cast : measured[row]) {
    add(reading.underflow, cast.underflow);
    add(reading.overflow, cast.overflow);
    add(reading.mse, cast.error, /*isSquared=*/true);
    add(amax, cast.amax);
  }
  if (!reading.amax || !reading.column)
    reading.amax = amax;
}

/// JSON has neither NaN nor infinity.
static json::Value toJSON(std::optional<double> value) {
  return value && std::isfinite(*value) ? json::Value(*value) : json::Value(nullptr);
}

Error Monitor::writeLines(uint64_t step, const DLTensor *printed) {
  for (const Reading &reading : readings) {
    json::Object line{{"step", static_cast<int64_t>(step)},
                      {"column", reading.column ? json::Value(*reading.column) : json::Value(nullptr)},
                      {"sites", json::Array(reading.sites)},
                      {"tensor", reading.tensor},
                      {"amax", toJSON(reading.amax)},
                      {"scale", toJSON(reading.scale)},
                      {"underflow", toJSON(reading.underflow)},
                      {"overflow", toJSON(reading.overflow)},
                      {"mse", toJSON(reading.mse)}};
    char text[64];
    double value;
    if (printed && fp8rt_format_scalar(printed, text, sizeof(text)) == FP8RT_OK &&
        !StringRef(text).getAsDouble(value))
      line["printed"] = toJSON(value);
    *lines << json::Value(std::move(line)) << "\n";
  }
  lines->flush();
  if (!file || !file->has_error())
    return Error::success();
  std::error_code failed = file->error();
  file->clear_error();
  return failure(options.monitorFile + ": cannot write: " + failed.message());
}

Error Monitor::addStep(uint64_t step, const DLTensor *printed) {
  if (table && printed && isatty(STDOUT_FILENO))
    table->addLineBelow();
  if (step % options.monitorEvery)
    return Error::success();
  if (Error error = readState())
    return error;
  for (size_t i = 0; i < readings.size(); ++i)
    readMeasured(i);
  if (!table)
    return writeLines(step, printed);
  char text[64] = "";
  if (printed)
    (void)fp8rt_format_scalar(printed, text, sizeof(text));
  table->draw(step, text, readings);
  return Error::success();
}
