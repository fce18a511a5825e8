// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread that writes checkpoints while steps run, and the files that it keeps.

#ifndef FP8RT_RUN_CHECKPOINTS_H
#define FP8RT_RUN_CHECKPOINTS_H

#include "../core/Status.h"
#include "../core/Tensors.h"

#include "fp8rt/checkpoints.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace fp8rt {

/// The files of a series: the newest at `path`, older ones with their step in the name.
class CheckpointFiles {
public:
  CheckpointFiles(std::string path, uint32_t keepLast, int64_t presentStep)
      : path(std::move(path)), keepLast(keepLast), presentStep(presentStep) {}

  /// Makes `tensors` the newest checkpoint. At any moment `path` is the old or the new one, whole.
  void write(const fp8rt_tensors &tensors, uint64_t step);

private:
  std::string numbered(uint64_t step) const;
  void keepPresent() const;
  void deleteOld(uint64_t step) const;

  const std::string path;
  const uint32_t keepLast;
  int64_t presentStep;
};

/// A copy of a set of tensors, in memory that the next copy uses again.
class Snapshot {
public:
  void take(const fp8rt_tensors &tensors);

  uint64_t step = 0;
  fp8rt_tensors copy;

private:
  uint64_t capacity = 0;
};

class Checkpoints {
public:
  Checkpoints(std::string path, uint32_t keepLast, int64_t presentStep);
  ~Checkpoints();
  Checkpoints(const Checkpoints &) = delete;
  Checkpoints &operator=(const Checkpoints &) = delete;

  void save(const fp8rt_tensors &tensors, uint64_t step);
  void check();
  void finish();

private:
  void run();
  void throwError();

  CheckpointFiles files; // the thread's alone
  std::mutex mutex;      // of all that follows
  std::condition_variable changed;
  std::deque<std::unique_ptr<Snapshot>> waiting;
  std::vector<std::unique_ptr<Snapshot>> unused;
  bool isWriting = false, isOver = false;
  std::optional<Error> error;
  std::thread writer; // last: it uses the others
};

} // namespace fp8rt

/// The C ABI's handle.
struct fp8rt_checkpoints : fp8rt::Checkpoints {
  using Checkpoints::Checkpoints;
};

#endif // FP8RT_RUN_CHECKPOINTS_H
