// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp's products by wgmma.mma_async that are in flight. Products end in the order in
// which they were started; until the warp has waited for them, no other instruction may
// touch their registers (PTX ISA 9.7.15.7.3).

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
  // The order of products, by their numbers.
  uint64_t start() { return started++; }
  bool isNext(uint64_t number) const { return number == finished; }
  void finish() { ++finished; }

  /// The registers of one product, by their offsets in the frame.
  struct Use {
    std::shared_ptr<Frame> frame;
    /// The op that started the product.
    uint32_t pc = 0;
    /// Equal for products that may follow each other on the same accumulators.
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

  /// Whether a product in flight uses the register. Cheap, since it is asked for each operand
  /// of each instruction while any register is guarded.
  bool guards(const Frame *frame, uint32_t offset) const {
    for (const auto &[owner, counts] : busy)
      if (owner == frame && offset / kGranule < counts.size() && counts[offset / kGranule])
        return true;
    return false;
  }
  /// The product started last for which `f` holds; null where there is none.
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
