// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank of fp8-bench collectives: microseconds of an all_reduce of 10,000 amaxes and of 64 MiB of
// gradients.
//
//     fp8-bench-collectives local N      N processes, shared memory
//     mpirun -n N … mpi                  our communicator on MPI
//     mpirun -n N … bare                 MPI_Allreduce
//
// Prints "amaxes gradients", the least of several rounds, in microseconds.

#include "fp8rt/ranks.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
/// All-reduces `count` f32 in place.
using AllReduce = std::function<void(float *data, uint64_t count, bool isMax)>;

[[noreturn]] void die(const std::string &reason) {
  std::fprintf(stderr, "fp8-bench: error: %s\n", reason.c_str());
  std::exit(1);
}

/// The least mean of the rounds, in microseconds. Every rank measures; rank 0 prints.
double measure(const AllReduce &allReduce, uint64_t count, bool isMax, int rounds, int calls) {
  std::vector<float> data(count, 1);
  double least = 1e30;
  for (int round = 0; round < rounds; ++round) {
    std::fill(data.begin(), data.end(), 1.0f);
    allReduce(data.data(), 1, true); // all start together
    Clock::time_point start = Clock::now();
    for (int call = 0; call < calls; ++call)
      allReduce(data.data(), count, isMax);
    std::chrono::duration<double, std::micro> taken = Clock::now() - start;
    least = std::min(least, taken.count() / calls);
  }
  return least;
}

void report(const AllReduce &allReduce, uint32_t rank) {
  double amaxes = measure(allReduce, 10000, true, 100, 20);
  double gradients = measure(allReduce, 16 << 20, false, 10, 1);
  if (rank == 0)
    std::printf("%.1f %.1f\n", amaxes, gradients);
  std::fflush(stdout);
}

void reportOurs(fp8rt_communicator &ranks) {
  static const int64_t grid[] = {0};
  static const fp8rt_group everyone = {grid, 1, 1};
  report(
      [&](float *data, uint64_t count, bool isMax) {
        fp8rt_collective asked = {
            FP8RT_ALL_REDUCE, isMax ? FP8RT_MAX : FP8RT_SUM, FP8RT_F32, 0, &everyone, data, data, count,
            "speed"};
        uint64_t ticket = 0;
        if (ranks.start(ranks.context, &asked, nullptr, &ticket) ||
            ranks.wait(ranks.context, ticket, nullptr))
          die(ranks.error(ranks.context));
      },
      ranks.rank);
}

void runLocal(uint32_t count) {
  int file = -1;
  if (fp8rt_local_memory_create(count, &file))
    die(fp8rt_last_error());
  for (uint32_t rank = 0; rank < count; ++rank) {
    if (fork())
      continue;
    fp8rt_communicator *ranks = nullptr;
    if (fp8rt_communicator_create_local(file, rank, 60, &ranks))
      die(fp8rt_last_error());
    reportOurs(*ranks);
    fp8rt_communicator_destroy(ranks);
    std::exit(0);
  }
  int status = 0, worst = 0;
  while (wait(&status) > 0)
    worst |= status;
  if (worst)
    std::exit(1);
}

void runMpi() {
  fp8rt_communicator *ranks = nullptr;
  if (fp8rt_communicator_create_mpi(60, &ranks))
    die(fp8rt_last_error());
  reportOurs(*ranks);
  fp8rt_communicator_destroy(ranks);
}

template <typename Function>
Function find(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    die(std::string("libmpi has no ") + name);
  return reinterpret_cast<Function>(symbol);
}

void runBare() {
  void *mpi = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (!mpi)
    die("there is no libmpi.so.40");
  find<int (*)(int *, char ***)>(mpi, "MPI_Init")(nullptr, nullptr);
  auto allReduce = find<int (*)(const void *, void *, int, void *, void *, void *)>(mpi, "MPI_Allreduce");
  void *world = find<void *>(mpi, "ompi_mpi_comm_world"), *type = find<void *>(mpi, "ompi_mpi_float");
  void *sum = find<void *>(mpi, "ompi_mpi_op_sum"), *max = find<void *>(mpi, "ompi_mpi_op_max");
  int rank = 0;
  find<int (*)(void *, int *)>(mpi, "MPI_Comm_rank")(world, &rank);
  report(
      [&](float *data, uint64_t count, bool isMax) {
        allReduce(reinterpret_cast<void *>(1), data, static_cast<int>(count), type, isMax ? max : sum, world);
      },
      static_cast<uint32_t>(rank)); // 1 is Open MPI's MPI_IN_PLACE
  find<int (*)()>(mpi, "MPI_Finalize")();
}

} // namespace

int main(int argc, char **argv) {
  std::string how = argc > 1 ? argv[1] : "";
  if (how == "local" && argc == 3)
    runLocal(static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
  else if (how == "mpi")
    runMpi();
  else if (how == "bare")
    runBare();
  else
    die("expected local N, mpi or bare");
  return 0;
}
