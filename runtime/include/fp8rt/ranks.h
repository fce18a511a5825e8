// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Connecting the ranks of a program: communicators (communicator.h) through shared memory, MPI or NCCL, and
// what ranks do together besides the program's collectives.
//
// No rank waits for ever: every function that involves other ranks returns FP8RT_RANKS, and so does every
// later one, if a rank is gone, has failed, does something else, or has not arrived after the deadline. The
// error names the ranks, and is the same on all of them.

#ifndef FP8RT_RANKS_H
#define FP8RT_RANKS_H

#include "fp8rt/prepared.h"
#include "fp8rt/session.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

/// Creates the memory through which `size` ranks of this machine communicate, at most 1024. Returns a file
/// descriptor, which processes inherit that are forked, and which the caller closes. (An executed program
/// inherits it once FD_CLOEXEC is cleared.)
FP8RT_API fp8rt_status fp8rt_local_memory_create(uint32_t size, int *out_file);

/// Tells the ranks of such a memory that they go no further, and why: for the parent of the ranks' processes,
/// which learns first that one of them has ended.
FP8RT_API fp8rt_status fp8rt_local_memory_fail(int file, const char *reason);

/// Creates the communicator of one rank. Its collectives are in host memory. `deadline` is the longest time
/// in seconds that a collective waits for another rank. The file may be closed afterwards. Ranks may be
/// processes, or threads of one.
FP8RT_API fp8rt_status fp8rt_communicator_create_local(int file, uint32_t rank, double deadline,
                                                       fp8rt_communicator **out_communicator);

/// Creates the communicator of this process's rank in MPI's world, which mpirun tells it. Its collectives are
/// in host memory. Open MPI's libmpi.so is found when this is called, and started unless the program has done
/// so (then with MPI_THREAD_SERIALIZED at least). FP8RT_UNSUPPORTED if there is no Open MPI.
FP8RT_API fp8rt_status fp8rt_communicator_create_mpi(double deadline, fp8rt_communicator **out_communicator);

/// Creates the communicator of rank `rank` of `size` through TCP. Rank 0 listens at `address`, "HOST:PORT",
/// and the others come there; then each pair of ranks has a connection. Its collectives are in host memory.
/// Any process that can reach the port can take part: it belongs in a network that is trusted.
FP8RT_API fp8rt_status fp8rt_communicator_create_tcp(const char *address, uint32_t rank, uint32_t size,
                                                     double deadline, fp8rt_communicator **out_communicator);

/// Creates a communicator through NCCL, for sessions on GPUs: one for each rank. Its collectives are enqueued
/// on the step's stream and can be part of a graph. `host` is a communicator of this header in host memory:
/// the ranks find each other through it, and its deadline counts; it belongs to the new one from then on. The
/// ranks are connected by fp8rt_session_set_communicator, or fp8rt_prepared_set_communicator, which all must
/// call; sessions must be destroyed first. FP8RT_UNSUPPORTED if there is no libnccl.so.2; the environment's
/// FP8RT_NCCL names another library.
FP8RT_API fp8rt_status fp8rt_communicator_create_nccl(fp8rt_communicator *host,
                                                      fp8rt_communicator **out_communicator);

/// Ends the use of a communicator. The other ranks fail if they need this one afterwards. NULL is allowed.
FP8RT_API void fp8rt_communicator_destroy(fp8rt_communicator *communicator);

//===----------------------------------------------------------------------===//
// Ranks as a group
//===----------------------------------------------------------------------===//

/// Tells the other ranks that this one goes no further: their next collective, or the one in which they wait,
/// fails with "rank R failed: reason".
FP8RT_API fp8rt_status fp8rt_communicator_fail(fp8rt_communicator *communicator, const char *reason);

/// Gathers `bytes` of host memory from every rank into `receive`, in the order of ranks.
FP8RT_API fp8rt_status fp8rt_communicator_gather(fp8rt_communicator *communicator, const void *send,
                                                 uint64_t bytes, void *receive);

/// Compares lines of text on all ranks. If they differ, every rank fails with `what`, the first line that
/// differs, and the ranks: "WHAT: LINE on rank 0, LINE on rank 2".
FP8RT_API fp8rt_status fp8rt_communicator_compare(fp8rt_communicator *communicator, const char *what,
                                                  const char *const *lines, uint64_t count);

/// Compares the program of all ranks: recipe, grid, entry points, columns and tensors of the state, layout,
/// collectives, and the code. To be called before the first collective; sessions do not. The error names the
/// first difference, such as a site.
FP8RT_API fp8rt_status fp8rt_communicator_compare_libraries(fp8rt_communicator *communicator,
                                                            const fp8rt_library *library);

/// Compares tensors of all ranks by hashes: names, types, shapes and elements. The error names the first
/// tensor that differs.
FP8RT_API fp8rt_status fp8rt_communicator_compare_tensors(fp8rt_communicator *communicator,
                                                          const fp8rt_tensors *tensors);

//===----------------------------------------------------------------------===//
// Programs of several ranks
//===----------------------------------------------------------------------===//

/// The steps of a session perform their collectives through `communicator`, which must outlive them; NULL:
/// there is one rank. For a session on a device, collectives of a communicator of this header are copied
/// through host memory, and steps are not replayed as graphs. A step that fails tells the other ranks why, if
/// the communicator is of this header. Returns FP8RT_MISMATCH if the program's grid has another number of
/// places than there are ranks.
FP8RT_API fp8rt_status fp8rt_session_set_communicator(fp8rt_session *session,
                                                      const fp8rt_communicator *communicator);

/// The same for calls of a prepared entry point.
FP8RT_API fp8rt_status fp8rt_prepared_set_communicator(fp8rt_prepared *prepared,
                                                       const fp8rt_communicator *communicator);

/// As fp8rt_session_set_argument, for a tensor of all ranks in host memory: of what the manifest divides
/// ("shard") the session takes this rank's part. Without a communicator, and for arguments that are not
/// divided, the same. (fp8rt_session_import_carried takes tensors of all ranks too.)
FP8RT_API fp8rt_status fp8rt_session_set_whole_argument(fp8rt_session *session, uint32_t index,
                                                        const DLTensor *tensor);

/// Adds a result to `tensors`: of one that is divided the whole, in memory of its own, which needs all ranks
/// to call; of others a view (on a device a copy). (fp8rt_session_export_carried adds whole tensors too.)
FP8RT_API fp8rt_status fp8rt_session_add_whole_result(const fp8rt_session *session, uint32_t index,
                                                      const char *name, fp8rt_tensors *tensors);

/// Compares by hashes what all ranks of a program with a grid must have in common: the state, and the values
/// of all arguments but those that the manifest divides or calls different ("batch"). The error names the
/// first that differs. To be called before the first step, and before values are saved.
FP8RT_API fp8rt_status fp8rt_session_compare(const fp8rt_session *session);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_RANKS_H
