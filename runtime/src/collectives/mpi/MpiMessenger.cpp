// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of MPI.

#include "MpiMessenger.h"

using namespace fp8rt::collectives;

static_assert(Messenger::kAnyRank == mpi::kAnySource);

MpiMessenger::MpiMessenger() : mpi(mpi::Mpi::get()) {
  int number = 0, count = 0;
  mpi.check(mpi.commDup(mpi.world, &comm), "MPI_Comm_dup");
  mpi.check(mpi.setErrhandler(comm, mpi.errorsReturn), "MPI_Comm_set_errhandler");
  mpi.check(mpi.commRank(comm, &number), "MPI_Comm_rank");
  mpi.check(mpi.commSize(comm, &count), "MPI_Comm_size");
  self = static_cast<uint32_t>(number);
  ranks = static_cast<uint32_t>(count);
}

Messenger::Request MpiMessenger::send(const void *data, uint64_t bytes, uint32_t to, int tag) {
  Request request = nullptr;
  mpi.check(mpi.isend(data, static_cast<int>(bytes), mpi.byte, static_cast<int>(to), tag, comm, &request),
            "MPI_Isend");
  return request;
}

Messenger::Request MpiMessenger::receive(void *data, uint64_t bytes, int from, int tag) {
  Request request = nullptr;
  mpi.check(mpi.irecv(data, static_cast<int>(bytes), mpi.byte, from, tag, comm, &request), "MPI_Irecv");
  return request;
}

bool MpiMessenger::test(Request &request) {
  int isDone = 0;
  mpi.check(mpi.test(&request, &isDone, nullptr), "MPI_Test");
  return isDone != 0;
}
