// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of each collective on a device. As in host memory, a small all_reduce sends the whole to
// everyone; of a large one each rank first gets and reduces its part, and then sends that part to everyone.

#include "NcclRanks.h"
#include "../../core/Status.h"

using namespace fp8rt;
using namespace fp8rt::collectives;
using namespace fp8rt::collectives::nccl;
using cuda::Current;
using cuda::CUstream;

/// The largest all_reduce in bytes that sends the whole to everyone.
static constexpr uint64_t kSmallReduction = 96 << 10;

/// One collective on its way to a stream.
class NcclRanks::Move {
public:
  Move(const Collective &collective, OnDevice &device, CUstream stream, char *scratch)
      : nccl(Nccl::get()), collective(collective), device(device), stream(stream), scratch(scratch),
        comm(device.groups.of(collective)), ranks(collective.groupSize()), width(collective.elementBytes) {}
  Move(const Move &) = delete;
  Move &operator=(const Move &) = delete;
  ~Move() {
    if (isOpen) // after a call that has failed
      nccl.groupEnd();
  }

  void operator()();

private:
  void allReduce();
  void inParts(char *target, uint64_t count, uint64_t stride);
  void exchange(char *target, uint64_t part, uint64_t stride);
  void shift();
  void toEveryone(const void *from, void *to, uint64_t bytes);
  void send(const char *from, uint64_t bytes, uint32_t member);
  void receive(char *to, uint64_t bytes, uint32_t member);
  void begin();
  void end();
  void reduce(const char *from, char *to, uint64_t count) {
    device.kernels.reduce(collective.description.type, collective.description.reduction, from, to, count,
                          ranks, stream);
  }

  const Nccl &nccl;
  const Collective &collective;
  OnDevice &device;
  CUstream stream;
  char *scratch;
  ncclComm_t comm;
  uint32_t ranks;
  uint64_t width;
  bool isOpen = false; // a group of calls
};

void NcclRanks::Move::begin() {
  nccl.check(nccl.groupStart(), "ncclGroupStart", comm);
  isOpen = true;
}

/// Later work of the stream comes after NCCL's, which may give it from a thread of its own.
void NcclRanks::Move::end() {
  isOpen = false;
  nccl.check(nccl.groupEnd(), collective.description.text(), comm);
  device.groups.settle(comm, collective.description.text());
}

void NcclRanks::Move::toEveryone(const void *from, void *to, uint64_t bytes) {
  nccl.check(nccl.allGather(from, to, bytes, ncclUint8, comm, stream), "ncclAllGather", comm);
}

void NcclRanks::Move::send(const char *from, uint64_t bytes, uint32_t member) {
  nccl.check(nccl.send(from, bytes, ncclUint8, static_cast<int>(member), comm, stream), "ncclSend", comm);
}

void NcclRanks::Move::receive(char *to, uint64_t bytes, uint32_t member) {
  nccl.check(nccl.receive(to, bytes, ncclUint8, static_cast<int>(member), comm, stream), "ncclRecv", comm);
}

/// Sends part number r, of `part` bytes, to rank r, and receives a part of each.
void NcclRanks::Move::exchange(char *target, uint64_t part, uint64_t stride) {
  for (uint32_t member = 0; member < ranks; ++member) {
    send(collective.send + member * stride, part, member);
    receive(target + member * part, part, member);
  }
}

void NcclRanks::Move::shift() {
  uint32_t from = collective.shiftSource();
  begin();
  send(collective.send, collective.bytes(), (2 * ranks + collective.index - from + collective.index) % ranks);
  receive(collective.receive, collective.bytes(), from);
  end();
}

/// Of a large all_reduce, the elements that cannot be divided among the ranks are sent to everyone.
void NcclRanks::Move::allReduce() {
  uint64_t count = collective.description.count;
  uint64_t part = collective.bytes() > kSmallReduction ? count / ranks : 0, divided = part * ranks;
  uint64_t rest = count - divided;
  char *ofRest = scratch + divided * width;
  begin();
  if (part)
    exchange(scratch, part * width, part * width);
  if (rest)
    toEveryone(collective.send + divided * width, ofRest, rest * width);
  end();
  if (part) {
    char *own = collective.receive + collective.index * part * width;
    reduce(scratch, own, part);
    begin();
    toEveryone(own, collective.receive, part * width);
    end();
  }
  if (rest)
    reduce(ofRest, collective.receive + divided * width, rest);
}

void NcclRanks::Move::operator()() {
  uint64_t bytes = collective.bytes();
  auto root = static_cast<int>(collective.description.root);
  switch (collective.description.kind) {
  case FP8RT_ALL_REDUCE:
    return allReduce();
  case FP8RT_SHIFT:
    return shift();
  case FP8RT_REDUCE_SCATTER:
    begin();
    exchange(scratch, bytes / ranks, bytes / ranks);
    end();
    return reduce(scratch, collective.receive, collective.description.count / ranks);
  case FP8RT_ALL_TO_ALL:
    begin();
    exchange(collective.receive, bytes / ranks, bytes / ranks);
    return end();
  case FP8RT_BROADCAST:
    begin();
    nccl.check(nccl.broadcast(collective.send, collective.receive, bytes, ncclUint8, root, comm, stream),
               "ncclBroadcast", comm);
    return end();
  default: // all_gather
    begin();
    toEveryone(collective.send, collective.receive, bytes);
    return end();
  }
}

NcclRanks::NcclRanks(std::unique_ptr<HostRanks> given) : host(std::move(given)) { Nccl::get(); }

NcclRanks::~NcclRanks() {
  if (!device)
    return;
  // The device lives until its memory and its kernels have been released.
  std::shared_ptr<const cuda::DeviceProgram> program = device->program;
  if (cuda::Entered entered(program->device()); entered)
    device.reset();
}

NcclRanks::OnDevice::OnDevice(HostRanks &host, std::shared_ptr<const cuda::DeviceProgram> given)
    : program(std::move(given)), kernels(program->device()), stream(program->device()), groups(host),
      watch(host.way(), groups, kernels) {}

void NcclRanks::useDevice(std::shared_ptr<const cuda::DeviceProgram> program) {
  if (!program)
    fail(FP8RT_UNSUPPORTED, "NCCL moves memory of GPUs: for a program on the CPU, use a communicator in host "
                            "memory (--comm=local, mpi or tcp)");
  if (device) {
    if (device->program->device().handle() != program->device().handle())
      fail(FP8RT_INVALID_ARGUMENT, "the communicator is of GPU " +
                                       std::to_string(device->program->device().ordinal()) +
                                       ", the session of GPU " + std::to_string(program->device().ordinal()));
    return;
  }
  Current current(program->device());
  try {
    device = std::make_unique<OnDevice>(*host, program);
  } catch (const Error &error) {
    host->tellFailure("rank " + std::to_string(rank()) + " failed: " + error.message);
    throw;
  }
}

void NcclRanks::tellFailure(const std::string &reason) noexcept {
  host->tellFailure(reason);
  if (device)
    device->watch.takeFailure();
}

void NcclRanks::check() {
  if (device)
    device->watch.check();
}

[[noreturn]] static void refuseCapture(const Collective &collective) {
  fail(FP8RT_UNSUPPORTED, collective.description.text() +
                              " is captured before it was performed once on its stream: call the entry point "
                              "first without a capture");
}

/// Returns memory for what the ranks send to this one; null if the collective needs none.
char *NcclRanks::scratchFor(const Collective &collective, CUstream stream, bool isCapturing) {
  uint32_t kind = collective.description.kind;
  if (kind != FP8RT_ALL_REDUCE && kind != FP8RT_REDUCE_SCATTER)
    return nullptr;
  // Of a large all_reduce: one part of each rank, and the rest of all, which is less than an element of each.
  bool isWhole = kind == FP8RT_ALL_REDUCE && collective.bytes() <= kSmallReduction;
  uint64_t ranks = collective.groupSize();
  uint64_t bytes =
      isWhole ? collective.bytes() * ranks : collective.bytes() + ranks * ranks * collective.elementBytes;
  auto &buffers = device->scratch[stream];
  bool isThere = !buffers.empty() && buffers.back().first >= bytes;
  if (!isThere && isCapturing)
    refuseCapture(collective);
  if (!isThere)
    buffers.emplace_back(bytes,
                         allocateBuffer(device->program->memory(), bytes, cuda::DeviceMemory::kAlignment));
  return static_cast<char *>(buffers.back().second.get());
}

uint64_t NcclRanks::start(const fp8rt_collective &given, void *toStream) {
  if (!device)
    fail(FP8RT_INVALID_ARGUMENT,
         "the communicator has no device yet: fp8rt_session_set_communicator gives it one");
  device->watch.check();
  Current current(device->program->device());
  const cuda::Driver &driver = device->program->device().driver();
  auto *stream = static_cast<CUstream>(toStream);
  Collective collective(given, rank(), size());
  bool isNew = false;
  int isCapturing = 0;
  uint64_t number = device->watch.numberOf(collective, isNew);
  driver.check(driver.streamIsCapturing(stream, &isCapturing), collective.description.text());
  if (isNew && isCapturing)
    refuseCapture(collective);
  host->meet(given); // the ranks compare it: so one that differs is named
  if (collective.groupSize() == 1 || !collective.bytes()) {
    if (collective.send != collective.receive && collective.bytes())
      driver.check(driver.copyOnDevice(cuda::toAddress(collective.receive), cuda::toAddress(collective.send),
                                       collective.bytes(), stream),
                   collective.description.text());
    return tickets++;
  }
  char *scratch = scratchFor(collective, stream, isCapturing);
  try {
    auto held = device->groups.use();
    CUstream beside = device->stream.handle();
    Move move(collective, *device, beside, scratch);
    device->stream.follow(stream);
    device->kernels.markArrival(number, beside);
    move();
    device->kernels.markCompletion(beside);
    device->stream.mark(tickets);
  } catch (const Error &) {
    device->watch.check(); // what came first
    throw;
  }
  device->watch.check();
  return tickets++;
}

/// Later work of the step's stream comes after the collective.
void NcclRanks::wait(uint64_t ticket, void *toStream) {
  if (ticket >= tickets)
    fail(FP8RT_INVALID_ARGUMENT, "no collective with ticket " + std::to_string(ticket) + " is under way");
  Current current(device->program->device());
  device->stream.join(ticket, static_cast<CUstream>(toStream));
}
