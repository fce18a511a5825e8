// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI between a library that runs on several ranks and the program that connects them. The library's
// code performs its collectives through the functions of fp8rt_communicator, which its caller passes in
// fp8rt_call; it contains no other reference to MPI, NCCL or another process.

#ifndef FP8RT_COMMUNICATOR_H
#define FP8RT_COMMUNICATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of `fp8rt_communicator` that this header describes.
#define FP8RT_COMMUNICATOR_VERSION 1

/// The kinds of collectives: their work on the `count` elements that each rank of a group has at `send`,
/// and the elements that are at `receive` afterwards. The memory of both is the same (in place:
/// FP8RT_ALL_REDUCE and FP8RT_BROADCAST) or does not overlap.
enum {
  /// The reduction over all ranks of the group: `count` elements.
  FP8RT_ALL_REDUCE = 0,
  /// The elements of all ranks of the group, one rank after the other: `count` · group size.
  FP8RT_ALL_GATHER = 1,
  /// Part number r of the reduction on the group's rank r: `count` / group size elements; `count` is a
  /// multiple of the group's size.
  FP8RT_REDUCE_SCATTER = 2,
  /// The elements of the group's rank `root`.
  FP8RT_BROADCAST = 3,
  /// The elements of the rank that is `root` (which may be negative) before this one in the group, round its
  /// ends: shift and halo exchange.
  FP8RT_SHIFT = 4,
  /// Part number r of `send` goes to the group's rank r; the parts received are in the order of ranks.
  /// `count` is a multiple of the group's size.
  FP8RT_ALL_TO_ALL = 5,
};

/// How FP8RT_ALL_REDUCE and FP8RT_REDUCE_SCATTER combine elements. Sums are taken in the order of ranks, from
/// rank 0 of the group on (f32 for floating-point types narrower than that, rounded once), so every rank and
/// every run have the same bits; so are products. Sums and products of integers wrap. A mean, of
/// floating-point types only, is the sum times 1 / group size, in the type of the sum, rounded once. A NaN of
/// any rank is the maximum and the minimum.
enum {
  FP8RT_SUM = 0,
  FP8RT_MAX = 1,
  FP8RT_MIN = 2,
  FP8RT_MEAN = 3,
  FP8RT_PRODUCT = 4,
};

/// Element types. Types of one byte other than FP8RT_INT8 are only moved, never reduced.
enum {
  FP8RT_BYTE = 0, ///< FP8, E8M0, and bool
  FP8RT_INT8 = 1,
  FP8RT_INT32 = 2,
  FP8RT_INT64 = 3,
  FP8RT_F16 = 4,
  FP8RT_BF16 = 5,
  FP8RT_F32 = 6,
  FP8RT_F64 = 7,
};

/// The ranks among which a collective takes place. The ranks are laid out on a grid, row by row (rank 0 is at
/// the origin, the last dimension varies fastest); those that differ only in coordinates of the `axes` form a
/// group, ordered by rank. A grid has as many places as the communicator has ranks.
typedef struct fp8rt_group {
  /// The extents of the grid. At most one is 0, which stands for what is left: the number of ranks divided by
  /// the other extents.
  const int64_t *grid;
  uint32_t rank; ///< its number of dimensions, at most 32
  uint32_t axes; ///< bit d: dimension d belongs to the group
} fp8rt_group;

/// One collective.
typedef struct fp8rt_collective {
  uint32_t kind;      ///< FP8RT_ALL_REDUCE, …
  uint32_t reduction; ///< FP8RT_SUM, …; 0 for the others
  uint32_t type;      ///< FP8RT_F32, …
  int32_t root;       ///< FP8RT_BROADCAST: a rank of the group; FP8RT_SHIFT: an offset; else 0
  const fp8rt_group *group;
  const void *send; ///< on the device of the call, or in host memory where it has none
  void *receive;
  uint64_t count; ///< elements at `send`
  /// The name of the collective in messages: its site, or what it reduces ("amaxes"). Constant text.
  const char *name;
} fp8rt_collective;

/// The ranks of a program. All ranks start the same collectives (kind, reduction, type, grid and axes) in the
/// same order, each in the group of its place on the grid; so a different one is found out, and named.
/// Functions return 0, or another value if the collective failed: a rank that is gone or that has not arrived
/// at the deadline, or different collectives. `error` then returns the reason, which names the ranks. After a
/// failure every later call fails with the same reason.
/// `context` is passed to each function. All calls come from one thread at a time.
typedef struct fp8rt_communicator {
  uint32_t version; ///< FP8RT_COMMUNICATOR_VERSION
  uint32_t rank;    ///< of this process, from 0
  uint32_t size;    ///< the number of ranks
  uint32_t reserved;
  void *context;

  /// Starts a collective once the work that `stream` (the `stream` of the call, a CUstream; on the CPU
  /// unused) holds so far is done, and returns a ticket. Until `wait` has returned, the program neither
  /// writes `send` nor touches `receive`. The struct is copied, the group and the name must live as long as
  /// the library.
  int (*start)(void *context, const fp8rt_collective *collective, void *stream, uint64_t *out_ticket);

  /// Waits until the collective of `ticket` is complete; on a device, makes `stream` wait for it. Every
  /// ticket is waited for once.
  int (*wait)(void *context, uint64_t ticket, void *stream);

  /// The reason of the last failure: one line of text, valid until the communicator is destroyed.
  const char *(*error)(void *context);
} fp8rt_communicator;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_COMMUNICATOR_H
