// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The products of a warp by wgmma.mma_async that are in flight: they end in the order in
// which they were started, and nobody else may touch their registers before they were
// waited for (PTX ISA 9.7.15.7.3).

#ifndef FP8EMU_EXEC_MATRIXQUEUE_H
#define FP8EMU_EXEC_MATRIXQUEUE_H

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace fp8emu {

struct Frame;

class MatrixQueue {
public:
  // Order: each product has a number.
  uint64_t start() { return started++; }
  bool isNext(uint64_t number) const { return number == finished; }
  void finish() { ++finished; }

  /// The registers of one product, by their offsets in the frame.
  struct Use {
    std::shared_ptr<Frame> frame;
    /// Where it was started.
    uint32_t pc = 0;
    /// Same for products that may follow each other on the same accumulators.
    uint32_t shape = 0;
    std::vector<uint32_t> accumulators, inputs;
    uint64_t group = 0;

    bool writes(uint32_t offset) const;
    bool reads(uint32_t offset) const;
  };

  /// wgmma.fence: the first product needs one before it.
  void fence() { isFenced = true; }
  bool fenced() const { return isFenced; }

  /// Guards registers until the group that is committed next has been waited for.
  void guard(Use use);
  void commit() { ++groups; }
  /// All groups but the last `allowed` have been waited for.
  void waited(uint64_t allowed);
  bool guarding() const { return !uses.empty(); }

  /// Whether a product in flight has the register: cheap, for each operand of each
  /// instruction while any is guarded.
  bool guards(const Frame *frame, uint32_t offset) const {
    for (const auto &[owner, counts] : busy)
      if (owner == frame && offset / kGranule < counts.size() && counts[offset / kGranule])
        return true;
    return false;
  }
  /// The products that have it; the last one started for which `f` holds, or null.
  template <class F>
  const Use *find(F f) const {
    for (size_t i = uses.size(); i-- > 0;)
      if (f(uses[i]))
        return &uses[i];
    return nullptr;
  }

private:
  /// Registers begin at multiples of this; predicates, which are smaller, lie between
  /// them.
  static constexpr uint32_t kGranule = 64;

  void count(const Use &use, int change);

  uint64_t started = 0, finished = 0, groups = 0;
  bool isFenced = false;
  std::vector<Use> uses;
  /// Of each frame, how many products have the register at each granule.
  std::vector<std::pair<const Frame *, std::vector<uint16_t>>> busy;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_MATRIXQUEUE_H
