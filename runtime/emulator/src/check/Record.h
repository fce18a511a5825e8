// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looking at accesses: each is compared with those that the shadow remembers, and
// remembered itself.

#ifndef FP8EMU_CHECK_RECORD_H
#define FP8EMU_CHECK_RECORD_H

#include "Races.h"
#include "exec/Access.h"

namespace fp8emu::check {

inline Target targetOf(const SharedPlace &place) { return {place.block, place.offset}; }
/// Of an address that was resolved before, of shared or global memory.
Target targetOf(Warp &warp, MemorySpace space, uint64_t address);

/// An access of a warp's instruction: looked at, remembered, and, where it acquires or
/// releases, followed. Faults on races. LaunchRaces::access does it with the ordering of the
/// warp's op; this is for what is ordered otherwise than its instruction says.
void access(Warp &warp, Mask mask, const Target *targets, unsigned bytes, AccessKind kind, uint8_t ordering);

/// Stores that race are none where they write what is there already: many threads
/// set the same flag. Asked by their handler before it writes, lane by lane in order,
/// where `doubtful` is not 0.
Mask doubtful(const Warp &warp);
void confirm(Warp &warp, unsigned lane, bool changes);

/// Two accesses that nothing orders.
struct Conflict {
  AccessInfo before, now;
  Mask lanesBefore = 0;
  unsigned lane = 0;
  /// Where, and how many bytes the later one accesses.
  Target target;
  unsigned bytes = 0;
  FaultKind kind = FaultKind::Race;
};
/// The words of a fault, its place added by who throws it.
Fault report(const LaunchRaces &launch, const Conflict &conflict);
/// The same of tensor memory; `synchronized`: `now` would know `before` by a fence.
Fault report(const LaunchRaces &launch, const TensorAccess &before, const TensorAccess &now,
             bool synchronized);

/// What a strong write of a block's thread makes known to who reads it at these scopes.
void publish(LaunchRaces &launch, const BlockRaces &block, const Target &target, Level level,
             const Knowledge &released);

/// A thread's copy reads a tensor map: faults where writes may not be visible to it.
void readMap(Warp &warp, unsigned lane, uint64_t address, unsigned bytes);

/// One access, granule by granule.
class Recorder {
public:
  Recorder(LaunchRaces &launch, const AccessInfo &info, uint32_t stamp)
      : launch(launch), info(info), stamp(stamp) {}

  /// Lanes that know the same access the same bytes. Whether that is a race; the last
  /// one found is in `conflict`.
  bool access(const Target &target, unsigned bytes, Mask lanes, const Knowledge &known);
  Conflict conflict;

private:
  void granule(Cell &cell, Sets &sets, unsigned bytes);
  void look(Word word, Sets &sets, unsigned bytes);
  void lookAt(Word word, unsigned bytes);
  void addRead(Word &word, Sets &sets, unsigned bytes);
  void addWrite(Cell &cell, Sets &sets, unsigned bytes);
  Word unorderedUpdate(Word word, Sets &sets, unsigned bytes) const;
  /// Whether the accesses of a word are over and known, so that none can race with
  /// what knows this one.
  bool precedes(const AccessInfo &before, Mask beforeLanes) const;
  bool isOwn(const AccessInfo &before, Mask beforeLanes) const;
  bool isSet(Word word) const { return word && !bytesOf(word); }
  /// Nothing where it is of an earlier launch.
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
