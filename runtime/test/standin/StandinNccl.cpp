// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libnccl for tests without GPUs. It has the entry points that the runtime uses, and moves data between
// processes, or threads of one, that use the emulator: a copy to the host, a function of the host that passes
// it on, a copy back, all given to the stream, so that it takes part in captures. As NCCL's, its
// communicators do not block: calls return before their work is done, and are polled.
//
// The environment's FP8RT_STANDIN_NCCL lets one thing go wrong on one rank:
//   fail FUNCTION N RANK      call number N of a function, from 1, returns an error
//   error N RANK              transfer number N never happens, and polling returns an error
//   drop N RANK               what the rank sends in transfer number N is lost
//   delay N RANK MILLISECONDS the rank comes later to transfer number N
// A transfer is what one ncclGroupEnd has given to a stream; a replayed graph does it again.

#include "../../src/collectives/nccl/Nccl.h"
#include "Exchange.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

using namespace fp8rt::collectives::nccl;
using namespace fp8rt::cuda;
using namespace fp8rt_test;

namespace {

enum : ncclResult_t {
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6
};

/// The objects that have been made and not ended: communicators, works, files.
std::atomic<int64_t> live{0};

struct Fault {
  std::string kind, function;
  uint64_t count = 0;
  uint32_t rank = 0;
  int milliseconds = 0;

  static Fault read() {
    Fault fault;
    const char *text = std::getenv("FP8RT_STANDIN_NCCL");
    std::istringstream words(text ? text : "");
    words >> fault.kind;
    if (fault.kind == "fail")
      words >> fault.function;
    words >> fault.count >> fault.rank >> fault.milliseconds;
    return fault;
  }
};

/// Whether this call of a function is to fail.
bool isToFail(const char *function, uint32_t rank) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, uint32_t>, uint64_t> calls;
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t call = ++calls[{function, rank}];
  Fault fault = Fault::read();
  return fault.kind == "fail" && fault.function == function && fault.rank == rank && fault.count == call;
}

/// The driver in this process.
template <typename Function>
Function driverFunction(const char *symbol) {
  static void *driver = dlopen("libfp8emu.so.0", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(driver, symbol));
}

} // namespace

// NCCL's name for it.
struct fp8rt::collectives::nccl::ncclComm { // NOLINT(readability-identifier-naming)
  uint32_t rank = 0, size = 0;
  Place place; // of this process, where it has made one
  Exchange exchange;
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<int> polls{0}; // that still say "in progress"
  std::atomic<bool> isAborted{false};
  std::atomic<uint64_t> transfers{0};
  std::thread connecting; // in the background

  ncclComm() { ++live; }
  ~ncclComm() {
    if (connecting.joinable())
      connecting.join();
    if (place.file >= 0) {
      place.close();
      --live;
    }
    --live;
  }

  /// Moves data until all is there, or until this rank gives up.
  void move(std::vector<Transfer> &transfers) { move(transfers, isAborted); }
  void move(std::vector<Transfer> &transfers, const std::atomic<bool> &givesUp) {
    while (!givesUp && !isAborted && !progress(exchange, rank, transfers))
      usleep(20);
  }

  void join(const Place &with) {
    if (!exchange.open(with, size)) {
      state = ncclSystemError;
      return;
    }
    ++exchange.joined();
    while (!isAborted && exchange.joined() < size)
      usleep(100);
    state = ncclSuccess;
  }
};

namespace {

using Comm = std::shared_ptr<ncclComm>;

/// Communicators by their handles: work keeps them.
std::mutex commsMutex;
std::map<ncclComm_t, Comm> comms;

Comm find(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(commsMutex);
  auto found = comms.find(handle);
  return found == comms.end() ? nullptr : found->second;
}

Comm add(uint32_t rank, uint32_t size) {
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->size = size;
  std::lock_guard<std::mutex> lock(commsMutex);
  comms[comm.get()] = comm;
  return comm;
}

ncclResult_t end(ncclComm_t handle, bool aborts) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  comm->isAborted = aborts;
  std::lock_guard<std::mutex> lock(commsMutex);
  comms.erase(handle);
  return ncclSuccess;
}

/// One group's part in a communicator.
struct Work {
  Comm comm;
  CUstream stream = nullptr;
  struct Copy {
    Transfer transfer;
    void *onDevice;
  };
  std::vector<Copy> copies;
  std::vector<std::vector<char>> memory;

  explicit Work(Comm comm, CUstream stream) : comm(std::move(comm)), stream(stream) { ++live; }
  ~Work() { --live; }

  void add(bool sends, uint32_t peer, const void *onDevice, uint64_t bytes) {
    memory.emplace_back(bytes);
    copies.push_back({{sends, peer, memory.back().data(), bytes}, const_cast<void *>(onDevice)});
  }
  void run();
  CUresult enqueue();
};

/// Captured work, which a graph may do as long as it exists: kept until the process ends, unless it is asked
/// for by standinForgetGraphs.
std::mutex keptMutex;
std::vector<std::unique_ptr<Work>> kept;

/// The transfer itself, when the stream has come to it.
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

/// A function that moves data: `body` adds its transfers to the group's.
template <typename Body>
ncclResult_t enqueue(const char *function, ncclComm_t handle, ncclDataType_t type, CUstream stream,
                     Body body) {
  Comm comm = find(handle);
  if (!comm || type != ncclUint8 || comm->state != ncclSuccess)
    return ncclInvalidArgument;
  if (isToFail(function, comm->rank)) {
    hasFailed = depth;
    return ncclSystemError;
  }
  body(workFor(comm, stream), *comm);
  return depth ? ncclSuccess : launchPending();
}

/// Of a split: what each rank of the old communicator says.
struct Wish {
  int32_t color, key, rank;
  Place place;
};

/// The new communicator is there when the old one's state says so.
void split(const Comm &parent, ncclComm_t child, Wish own, ncclComm_t *out) {
  std::vector<Wish> wishes(parent->size);
  std::vector<Transfer> transfers;
  for (uint32_t other = 0; other < parent->size; ++other) {
    transfers.push_back({true, other, reinterpret_cast<char *>(&own), sizeof(Wish)});
    transfers.push_back({false, other, reinterpret_cast<char *>(&wishes[other]), sizeof(Wish)});
  }
  parent->move(transfers, child->isAborted);
  if (parent->isAborted || child->isAborted)
    return;
  wishes.erase(
      std::remove_if(wishes.begin(), wishes.end(), [&](const Wish &wish) { return wish.color != own.color; }),
      wishes.end());
  std::sort(wishes.begin(), wishes.end(),
            [](const Wish &a, const Wish &b) { return std::pair(a.key, a.rank) < std::pair(b.key, b.rank); });
  child->size = static_cast<uint32_t>(wishes.size());
  for (uint32_t i = 0; i < wishes.size(); ++i)
    if (wishes[i].rank == own.rank)
      child->rank = i;
  __atomic_store_n(out, child, __ATOMIC_RELEASE);
  parent->state = ncclSuccess;
  child->join(wishes.front().place);
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int64_t standinLive() { return live; }
EXPORT int64_t standinCaptured() {
  std::lock_guard<std::mutex> lock(keptMutex);
  return static_cast<int64_t>(kept.size());
}
EXPORT int64_t standinForgetGraphs() {
  std::lock_guard<std::mutex> lock(keptMutex);
  kept.clear();
  return 0;
}

// NCCL's entry points, whose names are its own.
// NOLINTBEGIN(readability-identifier-naming)
EXPORT ncclResult_t ncclGetVersion(int *version) {
  *version = 22000;
  return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t code) {
  constexpr const char *kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return kTexts[code];
}
EXPORT const char *ncclGetLastError(ncclComm_t) { return ""; }

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (isToFail("ncclGetUniqueId", 0))
    return ncclSystemError;
  Place place = Place::create();
  ++live;
  std::memcpy(id->internal, &place, sizeof(place));
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                           ncclConfig_t *config) {
  if (config->size != sizeof(ncclConfig_t) || config->magic != kConfigMagic || config->blocking != 0)
    return ncclInvalidUsage;
  if (isToFail("ncclCommInitRankConfig", static_cast<uint32_t>(rank)))
    return ncclSystemError;
  Comm comm = add(static_cast<uint32_t>(rank), static_cast<uint32_t>(size));
  Place place;
  std::memcpy(&place, id.internal, sizeof(place));
  if (rank == 0)
    comm->place = place;
  comm->connecting = std::thread([raw = comm.get(), place] { raw->join(place); });
  *out = comm.get();
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t *out,
                                  ncclConfig_t *config) {
  Comm parent = find(handle);
  if (!parent || config->blocking != 0)
    return ncclInvalidUsage;
  if (isToFail("ncclCommSplit", parent->rank))
    return ncclSystemError;
  Comm child = add(0, 0);
  child->place = Place::create();
  ++live;
  parent->state = ncclInProgress;
  Wish own = {color, key, static_cast<int32_t>(parent->rank), child->place};
  child->connecting = std::thread([parent, raw = child.get(), own, out] { split(parent, raw, own, out); });
  return ncclInProgress;
}

EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  if (isToFail("ncclCommGetAsyncError", comm->rank))
    return ncclSystemError;
  *error = comm->state;
  if (*error == ncclSuccess && comm->polls > 0) {
    --comm->polls;
    *error = ncclInProgress;
  }
  return ncclSuccess;
}

EXPORT ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  comm->polls = 2;
  return ncclInProgress;
}
EXPORT ncclResult_t ncclCommDestroy(ncclComm_t handle) { return end(handle, /*aborts=*/false); }
EXPORT ncclResult_t ncclCommAbort(ncclComm_t handle) { return end(handle, /*aborts=*/true); }

EXPORT ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
EXPORT ncclResult_t ncclGroupEnd() {
  if (--depth)
    return ncclSuccess;
  bool fails = std::exchange(hasFailed, false);
  fails |= !pending.empty() && isToFail("ncclGroupEnd", pending.front()->comm->rank);
  if (fails)
    pending.clear();
  return fails ? ncclSystemError : launchPending();
}

EXPORT ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                                  ncclComm_t handle, cudaStream_t stream) {
  return enqueue("ncclAllGather", handle, type, stream, [&](Work &work, const ncclComm &comm) {
    for (uint32_t peer = 0; peer < comm.size; ++peer) {
      work.add(true, peer, send, count);
      work.add(false, peer, static_cast<char *>(receive) + peer * count, count);
    }
  });
}

EXPORT ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t handle, cudaStream_t stream) {
  return enqueue("ncclBroadcast", handle, type, stream, [&](Work &work, const ncclComm &comm) {
    auto from = static_cast<uint32_t>(root);
    for (uint32_t peer = 0; peer < comm.size && comm.rank == from; ++peer)
      work.add(true, peer, send, count);
    work.add(false, from, receive, count);
  });
}

EXPORT ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int to, ncclComm_t handle,
                             cudaStream_t stream) {
  return enqueue("ncclSend", handle, type, stream, [&](Work &work, const ncclComm &) {
    work.add(true, static_cast<uint32_t>(to), data, count);
  });
}

EXPORT ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int from, ncclComm_t handle,
                             cudaStream_t stream) {
  return enqueue("ncclRecv", handle, type, stream, [&](Work &work, const ncclComm &) {
    work.add(false, static_cast<uint32_t>(from), data, count);
  });
}
// NOLINTEND(readability-identifier-naming)
