// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of ranks.h.

#include "../collectives/Compare.h"
#include "../collectives/HostRanks.h"
#include "../collectives/Program.h"
#include "../collectives/local/LocalChannel.h"
#include "../collectives/messages/MessageChannel.h"
#include "../collectives/mpi/MpiMessenger.h"
#include "../collectives/nccl/NcclRanks.h"
#include "../collectives/tcp/TcpMessenger.h"
#include "../core/Status.h"
#include "../core/Tensors.h"
#include "Prepared.h"
#include "Session.h"

#include "fp8rt/ranks.h"

using namespace fp8rt;
using namespace fp8rt::collectives;

/// A new communicator belongs to the C caller.
static fp8rt_communicator *release(std::unique_ptr<Ranks> ranks) {
  return const_cast<fp8rt_communicator *>(ranks.release()->functions());
}

static double checkDeadline(double seconds) {
  if (!(seconds > 0 && seconds <= 1e6))
    fail(FP8RT_INVALID_ARGUMENT, "a deadline of " + std::to_string(seconds) + " seconds");
  return seconds;
}

fp8rt_status fp8rt_local_memory_create(uint32_t size, int *out_file) {
  return guarded([&] { required(out_file, "out_file") = createSharedMemory(size); });
}

fp8rt_status fp8rt_local_memory_fail(int file, const char *reason) {
  return guarded([&] { SharedMemory(file).fail(&required(reason, "reason")); });
}

fp8rt_status fp8rt_communicator_create_local(int file, uint32_t rank, double deadline,
                                             fp8rt_communicator **out_communicator) {
  return guarded([&] {
    fp8rt_communicator *&out = required(out_communicator, "out_communicator");
    auto channel = std::make_unique<LocalChannel>(file, rank, checkDeadline(deadline));
    out = release(std::make_unique<HostRanks>(std::move(channel)));
  });
}

static fp8rt_communicator *connect(std::unique_ptr<Messenger> messenger, double deadline) {
  auto channel = std::make_unique<MessageChannel>(std::move(messenger), deadline);
  return release(std::make_unique<HostRanks>(std::move(channel)));
}

fp8rt_status fp8rt_communicator_create_mpi(double deadline, fp8rt_communicator **out_communicator) {
  return guarded([&] {
    fp8rt_communicator *&out = required(out_communicator, "out_communicator");
    checkDeadline(deadline);
    out = connect(std::make_unique<MpiMessenger>(), deadline);
  });
}

fp8rt_status fp8rt_communicator_create_tcp(const char *address, uint32_t rank, uint32_t size, double deadline,
                                           fp8rt_communicator **out_communicator) {
  return guarded([&] {
    fp8rt_communicator *&out = required(out_communicator, "out_communicator");
    checkDeadline(deadline);
    out = connect(std::make_unique<TcpMessenger>(&required(address, "address"), rank, size, deadline),
                  deadline);
  });
}

fp8rt_status fp8rt_communicator_create_nccl(fp8rt_communicator *host, fp8rt_communicator **out_communicator) {
  return guarded([&] {
    fp8rt_communicator *&out = required(out_communicator, "out_communicator");
    auto *beside = dynamic_cast<HostRanks *>(&Ranks::of(host));
    if (!beside)
      fail(FP8RT_INVALID_ARGUMENT, "the communicator beside NCCL is not in host memory");
    nccl::Nccl::get(); // what can fail comes first
    out = release(std::make_unique<NcclRanks>(std::unique_ptr<HostRanks>(beside)));
  });
}

void fp8rt_communicator_destroy(fp8rt_communicator *communicator) { delete Ranks::find(communicator); }

fp8rt_status fp8rt_communicator_fail(fp8rt_communicator *communicator, const char *reason) {
  return guarded([&] {
    Ranks::of(communicator);
    tellFailure(communicator, &required(reason, "reason"));
  });
}

fp8rt_status fp8rt_communicator_gather(fp8rt_communicator *communicator, const void *send, uint64_t bytes,
                                       void *receive) {
  return guarded([&] { Ranks::of(communicator).gather(send, bytes, receive); });
}

fp8rt_status fp8rt_communicator_compare(fp8rt_communicator *communicator, const char *what,
                                        const char *const *lines, uint64_t count) {
  return guarded([&] {
    std::vector<std::string> texts;
    required(lines, "lines");
    for (uint64_t i = 0; i < count; ++i)
      texts.emplace_back(&required(lines[i], "line"));
    compareLines(Ranks::of(communicator), &required(what, "what"), texts);
  });
}

fp8rt_status fp8rt_communicator_compare_libraries(fp8rt_communicator *communicator,
                                                  const fp8rt_library *library) {
  return guarded([&] {
    const Library &shared = *required(library, "library").shared;
    Ranks &ranks = Ranks::of(communicator);
    compareLines(ranks, "the ranks run different programs", describeProgram(shared));
    checkRanks(shared, communicator);
  });
}

fp8rt_status fp8rt_communicator_compare_tensors(fp8rt_communicator *communicator,
                                                const fp8rt_tensors *tensors) {
  return guarded([&] {
    compareLines(Ranks::of(communicator), "the ranks have different tensors",
                 describeTensors(required(tensors, "tensors")));
  });
}

fp8rt_status fp8rt_session_set_communicator(fp8rt_session *session, const fp8rt_communicator *communicator) {
  return guarded([&] { required(session, "session").communicateThrough(communicator); });
}

fp8rt_status fp8rt_prepared_set_communicator(fp8rt_prepared *prepared,
                                             const fp8rt_communicator *communicator) {
  return guarded([&] { required(prepared, "prepared").communicateThrough(communicator); });
}

fp8rt_status fp8rt_session_set_whole_argument(fp8rt_session *session, uint32_t index,
                                              const DLTensor *tensor) {
  return guarded([&] { required(session, "session").setWholeArgument(index, required(tensor, "tensor")); });
}

fp8rt_status fp8rt_session_add_whole_result(const fp8rt_session *session, uint32_t index, const char *name,
                                            fp8rt_tensors *tensors) {
  return guarded([&] {
    required(session, "session").addWholeResult(index, &required(name, "name"), required(tensors, "tensors"));
  });
}

fp8rt_status fp8rt_session_compare(const fp8rt_session *session) {
  return guarded([&] { required(session, "session").compareRanks(); });
}
