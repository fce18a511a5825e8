// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages through MPI, among the ranks that mpirun has started.

#ifndef FP8RT_COLLECTIVES_MPI_MPIMESSENGER_H
#define FP8RT_COLLECTIVES_MPI_MPIMESSENGER_H

#include "../messages/Messenger.h"
#include "Mpi.h"

namespace fp8rt::collectives {

class MpiMessenger : public Messenger {
public:
  MpiMessenger();

  uint32_t rank() const override { return self; }
  uint32_t size() const override { return ranks; }
  Request send(const void *data, uint64_t bytes, uint32_t to, int tag) override;
  Request receive(void *data, uint64_t bytes, int from, int tag) override;
  bool test(Request &request) override;
  /// mpirun finds out, and ends all ranks.
  bool isGone(uint32_t) const override { return false; }
  void end() override { mpi.end(); }

private:
  mpi::Mpi &mpi;
  mpi::Comm comm = nullptr;
  uint32_t self = 0, ranks = 0;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_MPI_MPIMESSENGER_H
