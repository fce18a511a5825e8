// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Open MPI: the functions that the runtime uses, found in libmpi when they are asked for. Their types are
// declared here with the ABI of Open MPI's mpi.h, so that the build needs no MPI; a test compares them.

#ifndef FP8RT_COLLECTIVES_MPI_MPI_H
#define FP8RT_COLLECTIVES_MPI_MPI_H

namespace fp8rt::collectives::mpi {

// Open MPI's handles are pointers; its names and numbers.
using Comm = void *;
using Datatype = void *;
using Request = void *;
using Errhandler = void *;
using Status = void *; // pointers to it are null here

enum { kAnySource = -1, kThreadSerialized = 2, kMaxErrorString = 256 };

/// Name, symbol and parameters of every function. Each returns an int, 0 for success.
#define FP8RT_MPI_FUNCTIONS(X)                                                                               \
  X(initialized, MPI_Initialized, (int *flag))                                                               \
  X(initThread, MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))                     \
  X(queryThread, MPI_Query_thread, (int *provided))                                                          \
  X(finalize, MPI_Finalize, ())                                                                              \
  X(commDup, MPI_Comm_dup, (Comm comm, Comm * out))                                                          \
  X(commRank, MPI_Comm_rank, (Comm comm, int *rank))                                                         \
  X(commSize, MPI_Comm_size, (Comm comm, int *size))                                                         \
  X(setErrhandler, MPI_Comm_set_errhandler, (Comm comm, Errhandler handler))                                 \
  X(errorString, MPI_Error_string, (int code, char *text, int *length))                                      \
  X(isend, MPI_Isend,                                                                                        \
    (const void *data, int count, Datatype type, int rank, int tag, Comm comm, Request *out))                \
  X(irecv, MPI_Irecv, (void *data, int count, Datatype type, int rank, int tag, Comm comm, Request *out))    \
  X(test, MPI_Test, (Request * request, int *flag, Status *status))

/// libmpi, initialised; there is one per process, and it is never unloaded.
class Mpi {
public:
  /// Throws an Error that says what to install or how to start the program.
  static Mpi &get();

  /// Throws an Error that begins with `what`, unless `code` is success.
  void check(int code, const char *what) const;
  /// Ends MPI, if it was started here. Waits for all ranks.
  void end();

#define FP8RT_MPI_MEMBER(name, symbol, parameters) int(*name) parameters = nullptr;
  FP8RT_MPI_FUNCTIONS(FP8RT_MPI_MEMBER)
#undef FP8RT_MPI_MEMBER
  Comm world = nullptr;
  Datatype byte = nullptr;
  Errhandler errorsReturn = nullptr;

private:
  Mpi();
  void findFunctions(void *library);

  bool isStartedHere = false;
};

} // namespace fp8rt::collectives::mpi

#endif // FP8RT_COLLECTIVES_MPI_MPI_H
