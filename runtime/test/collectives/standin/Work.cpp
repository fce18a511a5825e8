// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on streams, and the groups of calls that it comes from.

#include "Work.h"
#include "Fault.h"

#include <algorithm>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>
#include <utility>

using namespace fp8rt_test;
using namespace fp8rt::collectives::nccl;
using namespace fp8rt::cuda;

namespace {

/// The driver in this process.
template <typename Function>
Function driverFunction(const char *symbol) {
  static void *driver = dlopen("libfp8emu.so.0", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(driver, symbol));
}

/// Captured work, which a graph may do as long as it exists: kept until forgetGraphs.
std::mutex keptMutex;
std::vector<std::unique_ptr<Work>> kept;

} // namespace

void Work::run() {
  uint64_t number = ++comm->transfers;
  Fault fault = Fault::read();
  bool isIt = fault.rank == comm->rank && fault.count == number;
  std::vector<Transfer> transfers, toSelf;
  for (const Copy &copy : copies) {
    bool isLost = isIt && fault.kind == "drop" && copy.transfer.sends && copy.transfer.peer != comm->rank;
    if (!isLost)
      (copy.transfer.peer == comm->rank ? toSelf : transfers).push_back(copy.transfer);
  }
  if (isIt && fault.kind == "delay")
    for (int waited = 0; waited < fault.milliseconds && !comm->isAborted; ++waited)
      usleep(1000);
  if (isIt && fault.kind == "error") {
    comm->state = ncclRemoteError;
    while (!comm->isAborted)
      usleep(100);
    return;
  }
  std::vector<Transfer> received;
  std::copy_if(toSelf.begin(), toSelf.end(), std::back_inserter(received),
               [](const Transfer &one) { return !one.sends; });
  for (size_t i = 0, next = 0; i < toSelf.size(); ++i)
    if (toSelf[i].sends && next < received.size()) {
      std::memcpy(received[next].data, toSelf[i].data, std::min(received[next].bytes, toSelf[i].bytes));
      ++next;
    }
  comm->move(transfers);
}

CUresult Work::enqueue() {
  auto toHost = driverFunction<CUresult (*)(void *, CUdeviceptr, size_t, CUstream)>("cuMemcpyDtoHAsync_v2");
  auto toDevice =
      driverFunction<CUresult (*)(CUdeviceptr, const void *, size_t, CUstream)>("cuMemcpyHtoDAsync_v2");
  auto launchHost = driverFunction<CUresult (*)(CUstream, void (*)(void *), void *)>("cuLaunchHostFunc");
  CUresult code = CUDA_SUCCESS;
  auto keep = [&](CUresult one) { code = code ? code : one; };
  for (const Copy &copy : copies)
    if (copy.transfer.sends && copy.transfer.bytes)
      keep(toHost(copy.transfer.data, reinterpret_cast<CUdeviceptr>(copy.onDevice), copy.transfer.bytes,
                  stream));
  keep(launchHost(stream, [](void *work) { static_cast<Work *>(work)->run(); }, this));
  for (const Copy &copy : copies)
    if (!copy.transfer.sends && copy.transfer.bytes)
      keep(toDevice(reinterpret_cast<CUdeviceptr>(copy.onDevice), copy.transfer.data, copy.transfer.bytes,
                    stream));
  return code;
}

namespace {

thread_local int depth = 0;
thread_local bool hasFailed = false; // a call of the group
thread_local std::vector<std::unique_ptr<Work>> pending;

Work &workFor(const Comm &comm, CUstream stream) {
  for (const auto &work : pending)
    if (work->comm == comm && work->stream == stream)
      return *work;
  return *pending.emplace_back(std::make_unique<Work>(comm, stream));
}

ncclResult_t launchPending() {
  auto isCapturing = driverFunction<CUresult (*)(CUstream, int *)>("cuStreamIsCapturing");
  ncclResult_t result = ncclSuccess;
  for (std::unique_ptr<Work> &work : std::exchange(pending, {})) {
    int captures = 0;
    if (isCapturing(work->stream, &captures) || work->enqueue())
      return ncclUnhandledCudaError;
    work->comm->polls = 2;
    result = ncclInProgress;
    auto launchHost = driverFunction<CUresult (*)(CUstream, void (*)(void *), void *)>("cuLaunchHostFunc");
    std::lock_guard<std::mutex> lock(keptMutex);
    if (captures)
      kept.push_back(std::move(work));
    else
      launchHost(work->stream, [](void *done) { delete static_cast<Work *>(done); }, work.release());
  }
  return result;
}

} // namespace

void fp8rt_test::startGroup() { ++depth; }

ncclResult_t fp8rt_test::endGroup() {
  if (--depth)
    return ncclSuccess;
  bool fails = std::exchange(hasFailed, false);
  fails |= !pending.empty() && isToFail("ncclGroupEnd", pending.front()->comm->rank);
  if (fails)
    pending.clear();
  return fails ? ncclSystemError : launchPending();
}

ncclResult_t fp8rt_test::enqueue(const char *function, ncclComm_t handle, ncclDataType_t type,
                                 CUstream stream, const std::function<void(Work &, const ncclComm &)> &add) {
  Comm comm = find(handle);
  if (!comm || type != ncclUint8 || comm->state != ncclSuccess)
    return ncclInvalidArgument;
  if (isToFail(function, comm->rank)) {
    hasFailed = depth;
    return ncclSystemError;
  }
  add(workFor(comm, stream), *comm);
  return depth ? ncclSuccess : launchPending();
}

int64_t fp8rt_test::countCaptured() {
  std::lock_guard<std::mutex> lock(keptMutex);
  return static_cast<int64_t>(kept.size());
}

void fp8rt_test::forgetGraphs() {
  std::lock_guard<std::mutex> lock(keptMutex);
  kept.clear();
}
