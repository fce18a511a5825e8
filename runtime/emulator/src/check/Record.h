// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an access is checked: it is compared with those that the shadow remembers, and
// remembered itself.

#ifndef FP8EMU_CHECK_RECORD_H
#define FP8EMU_CHECK_RECORD_H

#include "Races.h"
#include "exec/Access.h"

namespace fp8emu::check {

inline Target targetOf(const SharedPlace &place) { return {place.block, place.offset}; }
/// The target of an address in shared or global memory that was resolved before.
Target targetOf(Warp &warp, MemorySpace space, uint64_t address);

/// Checks and remembers an access of a warp's instruction; where the access acquires or
/// releases, what follows from that is known afterwards. Faults on races. LaunchRaces::access
/// does that with the ordering of the warp's op; this function is for accesses that are
/// ordered otherwise than their instruction says.
void access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind, uint8_t ordering);

/// Stores that write what is there already are no race: many threads may set the same flag.
/// `doubtful` has the lanes whose stores race unless they change nothing. Where it is not 0,
/// the handler calls `confirm` before it writes, lane by lane in order.
Mask doubtful(const Warp &warp);
void confirm(Warp &warp, unsigned lane, bool changes);

/// Two accesses that nothing orders.
struct Conflict {
  AccessInfo before, now;
  Mask lanesBefore = 0;
  unsigned lane = 0;
  /// Where the later one accesses memory, and how many bytes.
  Target target;
  unsigned bytes = 0;
  FaultKind kind = FaultKind::Race;
};
/// The fault of a conflict. The caller adds the place.
Fault report(const LaunchRaces &launch, const Conflict &conflict);
/// The same for tensor memory; `synchronized`: a fence alone would make `before` known to
/// `now`.
Fault report(const LaunchRaces &launch, const TensorAccess &before, const TensorAccess &now,
             bool synchronized);

/// Makes `released` known to threads that acquire at `target`, in all scopes up to `level`.
void publish(LaunchRaces &launch, const BlockRaces &block, const Target &target, Level level,
             const Knowledge &released);

/// A thread's copy reads a tensor map: faults where writes may not be visible to it.
void readMap(Warp &warp, unsigned lane, uint64_t address, unsigned bytes);

/// One access, granule by granule.
class Recorder {
public:
  Recorder(LaunchRaces &launch, const AccessInfo &info, uint32_t stamp)
      : launch(launch), info(info), stamp(stamp) {}

  /// Records that lanes which know the same access the same bytes. True where that is a race;
  /// the last one found is in `conflict`.
  bool access(const Target &target, unsigned bytes, Mask lanes, const Knowledge &known);
  Conflict conflict;
  /// The lanes whose accesses by this execution of the instruction were looked at before.
  Mask together = 0;

private:
  void granule(Cell &cell, Sets &sets, unsigned bytes);
  void look(Word word, Sets &sets, unsigned bytes);
  void lookAt(Word word, unsigned bytes);
  void addRead(Word &word, Sets &sets, unsigned bytes);
  void addWrite(Cell &cell, Sets &sets, unsigned bytes);
  Word unorderedUpdate(Word word, Sets &sets, unsigned bytes) const;
  /// Whether an earlier access is over and known, so that what comes after this access cannot
  /// race with it either.
  bool precedes(const AccessInfo &before, Mask beforeLanes) const;
  bool isOwn(const AccessInfo &before, Mask beforeLanes) const;
  bool isSet(Word word) const { return word && !bytesOf(word); }
  /// The word; 0 where it is of an earlier launch.
  Word current(Word word) const;
  static bool knows(const ClockRef &clock, const AccessInfo &before, Mask lanes);
  bool seesEachOther(const AccessInfo &before) const;
  bool beginsLoop(const AccessInfo &before) const;

  LaunchRaces &launch;
  AccessInfo info;
  uint32_t stamp;
  Mask lanes = 0;
  const Knowledge *known = nullptr;
  bool found = false;
};

} // namespace fp8emu::check

#endif // FP8EMU_CHECK_RECORD_H
