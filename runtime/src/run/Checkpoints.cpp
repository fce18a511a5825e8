// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints: copies that a thread writes, and the C ABI of checkpoints.h.

#include "Checkpoints.h"
#include "../core/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace fp8rt;
namespace fs = std::filesystem;

/// How many checkpoints may wait to be written, the one that is being written included.
static constexpr size_t kMaxSnapshots = 2;

std::string CheckpointFiles::numbered(uint64_t step) const {
  fs::path file(path);
  std::string name = file.stem().string() + "." + std::to_string(step) + file.extension().string();
  return file.replace_filename(name).string();
}

/// Gives the present checkpoint a second name, under which it stays.
void CheckpointFiles::keepPresent() const {
  std::string name = numbered(static_cast<uint64_t>(presentStep));
  if (link(path.c_str(), name.c_str()) == 0 || errno == ENOENT)
    return;
  if (errno == EEXIST && unlink(name.c_str()) == 0 && link(path.c_str(), name.c_str()) == 0)
    return;
  fail(FP8RT_IO, path + ": cannot be kept as " + inQuotes(name) + ": " + std::strerror(errno));
}

/// Deletes the checkpoints before `step` but for those that are kept.
void CheckpointFiles::deleteOld(uint64_t step) const {
  const fs::path file(path);
  const std::string stem = file.stem().string() + ".", extension = file.extension().string();
  std::vector<uint64_t> found;
  std::error_code failed; // a folder that cannot be read has nothing to delete
  for (const auto &entry :
       fs::directory_iterator(file.has_parent_path() ? file.parent_path() : ".", failed)) {
    std::string name = entry.path().filename().string();
    if (name.size() <= stem.size() + extension.size() || name.compare(0, stem.size(), stem) != 0)
      continue;
    std::string number = name.substr(stem.size(), name.size() - stem.size() - extension.size());
    bool isNumber = number.size() < 19 && number.find_first_not_of("0123456789") == std::string::npos;
    if (isNumber && stem + number + extension == name && std::stoull(number) < step)
      found.push_back(std::stoull(number));
  }
  std::sort(found.rbegin(), found.rend());
  for (size_t i = keepLast - 1; i < found.size(); ++i)
    unlink(numbered(found[i]).c_str());
}

void CheckpointFiles::write(const fp8rt_tensors &tensors, uint64_t step) {
  if (keepLast > 1 && presentStep >= 0 && static_cast<uint64_t>(presentStep) != step)
    keepPresent();
  writeSafetensors(tensors, path);
  presentStep = static_cast<int64_t>(step);
  if (keepLast > 1)
    deleteOld(step);
}

void Snapshot::take(const fp8rt_tensors &tensors) {
  auto rounded = [](uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  uint64_t bytes = 0;
  for (const auto &[name, item] : tensors.items)
    bytes += rounded(item.tensor.bytes());
  copy.items.clear();
  copy.metadata = tensors.metadata;
  if (bytes > capacity) {
    copy.memory = allocateBuffer(hostMemory(), bytes);
    capacity = bytes;
  }
  char *next = static_cast<char *>(copy.memory.get());
  for (const auto &[name, item] : tensors.items) {
    const Tensor &tensor = item.tensor;
    if (tensor.bytes())
      std::memcpy(next, tensor.data(), tensor.bytes());
    copy.add(name, Tensor(tensor.type(), tensor.shape(), next));
    next += rounded(tensor.bytes());
  }
}

Checkpoints::Checkpoints(std::string path, uint32_t keepLast, int64_t presentStep)
    : files(std::move(path), keepLast, presentStep) {
  for (size_t i = 0; i < kMaxSnapshots; ++i)
    unused.push_back(std::make_unique<Snapshot>());
  writer = std::thread([this] { run(); });
}

Checkpoints::~Checkpoints() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  writer.join();
}

void Checkpoints::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [this] { return isOver || !waiting.empty(); });
    if (waiting.empty())
      return;
    std::unique_ptr<Snapshot> snapshot = std::move(waiting.front());
    waiting.pop_front();
    isWriting = true;
    lock.unlock();
    std::optional<Error> failure;
    try {
      files.write(snapshot->copy, snapshot->step);
    } catch (const Error &caught) {
      failure = caught;
    } catch (const std::exception &caught) {
      failure = Error{FP8RT_INTERNAL, caught.what()};
    }
    lock.lock();
    isWriting = false;
    if (failure && !error)
      error = std::move(failure);
    unused.push_back(std::move(snapshot));
    changed.notify_all();
  }
}

/// Throws the error of the thread, once. The mutex is locked.
void Checkpoints::throwError() {
  if (!error)
    return;
  Error thrown = std::move(*error);
  error.reset();
  fail(thrown.status, std::move(thrown.message));
}

void Checkpoints::save(const fp8rt_tensors &tensors, uint64_t step) {
  std::unique_ptr<Snapshot> snapshot;
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return !unused.empty() || error; });
    throwError();
    snapshot = std::move(unused.back());
    unused.pop_back();
  }
  std::optional<Error> failure;
  try {
    snapshot->take(tensors);
    snapshot->step = step;
  } catch (const std::bad_alloc &) {
    failure = Error{FP8RT_OUT_OF_MEMORY, "no memory for a copy of the checkpoint"};
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (failure) {
    unused.push_back(std::move(snapshot));
    fail(failure->status, failure->message);
  }
  waiting.push_back(std::move(snapshot));
  changed.notify_all();
}

void Checkpoints::check() {
  std::lock_guard<std::mutex> lock(mutex);
  throwError();
}

void Checkpoints::finish() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [this] { return waiting.empty() && !isWriting; });
  throwError();
}

fp8rt_status fp8rt_checkpoints_create(const char *path, uint32_t keep_last, int64_t present_step,
                                      fp8rt_checkpoints **out_checkpoints) {
  return guarded([&] {
    fp8rt_checkpoints *&out = required(out_checkpoints, "out_checkpoints");
    if (keep_last == 0)
      fail(FP8RT_INVALID_ARGUMENT, "keep_last is 0");
    out = new fp8rt_checkpoints(&required(path, "path"), keep_last, present_step);
  });
}

fp8rt_status fp8rt_checkpoints_save(fp8rt_checkpoints *checkpoints, const fp8rt_tensors *tensors,
                                    uint64_t step) {
  return guarded([&] { required(checkpoints, "checkpoints").save(required(tensors, "tensors"), step); });
}

fp8rt_status fp8rt_checkpoints_check(fp8rt_checkpoints *checkpoints) {
  return guarded([&] { required(checkpoints, "checkpoints").check(); });
}

fp8rt_status fp8rt_checkpoints_finish(fp8rt_checkpoints *checkpoints) {
  return guarded([&] { required(checkpoints, "checkpoints").finish(); });
}

void fp8rt_checkpoints_destroy(fp8rt_checkpoints *checkpoints) { delete checkpoints; }
