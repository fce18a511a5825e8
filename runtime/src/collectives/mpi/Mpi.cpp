// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding and starting Open MPI.

#include "Mpi.h"
#include "../../core/Status.h"

#include <dlfcn.h>

using namespace fp8rt;
using namespace fp8rt::collectives::mpi;

static void *findSymbol(void *library, const char *name) {
  void *symbol = dlsym(library, name);
  if (!symbol)
    fail(FP8RT_UNSUPPORTED, std::string("libmpi has no ") + name +
                                ": this runtime communicates through Open MPI (Debian: openmpi-bin)");
  return symbol;
}

void Mpi::findFunctions(void *library) {
#define FP8RT_MPI_FIND(name, symbol, parameters)                                                             \
  name = reinterpret_cast<int(*) parameters>(findSymbol(library, #symbol));
  FP8RT_MPI_FUNCTIONS(FP8RT_MPI_FIND)
#undef FP8RT_MPI_FIND
  world = findSymbol(library, "ompi_mpi_comm_world");
  byte = findSymbol(library, "ompi_mpi_byte");
  errorsReturn = findSymbol(library, "ompi_mpi_errors_return");
}

Mpi::Mpi() {
  void *library = nullptr;
  // Open MPI's own plugins use its symbols: they must be global.
  for (const char *name : {"libmpi.so.40", "libmpi.so"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    fail(FP8RT_UNSUPPORTED, "there is no libmpi.so: install Open MPI (Debian: openmpi-bin)");
  findFunctions(library);
  int isInitialized = 0, threads = 0;
  check(initialized(&isInitialized), "MPI_Initialized");
  if (isInitialized)
    check(queryThread(&threads), "MPI_Query_thread");
  else
    check(initThread(nullptr, nullptr, kThreadSerialized, &threads), "MPI_Init_thread");
  isStartedHere = !isInitialized;
  if (threads < kThreadSerialized)
    fail(FP8RT_UNSUPPORTED, "MPI was started for one thread: the runtime needs MPI_THREAD_SERIALIZED");
}

Mpi &Mpi::get() {
  static Mpi mpi;
  return mpi;
}

void Mpi::check(int code, const char *what) const {
  if (!code)
    return;
  char text[kMaxErrorString + 1] = "";
  int length = 0;
  errorString(code, text, &length);
  fail(FP8RT_RANKS, std::string(what) + ": " + text);
}

void Mpi::end() {
  if (isStartedHere)
    finalize();
  isStartedHere = false;
}
