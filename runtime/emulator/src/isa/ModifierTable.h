// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of Modifiers.cpp: modifiers that an instruction cannot do without. The decoders themselves ask
// for modifiers that decide about a value (a rounding, .lo of mul).

#ifndef FP8EMU_ISA_MODIFIERTABLE_H
#define FP8EMU_ISA_MODIFIERTABLE_H

namespace fp8emu {

/// Instructions of the Pattern `what` need one of `needs`, with | between them, from `version`
/// on. Where an instruction matches several rows, it needs one of each.
struct CompulsoryModifier {
  const char *what, *needs;
  const char *version = "1.0";
};

constexpr const char kScopes[] = "cta|cluster|gpu|sys";
constexpr const char kSpaces[] =
    "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster";
constexpr const char kEvictions[] = "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged";

constexpr CompulsoryModifier kCompulsoryModifiers[] = {
    // Without .sync they were there for targets before sm_70 (PTX ISA 9.7.9.5, 9.7.13.9).
    {"vote|shfl", "sync", "6.4"},

    // Addresses and caches.
    {"cvta|isspacep", kSpaces},
    {"ld.nc", "global"},
    {"prefetch.!tensormap", "L1|L2|L2::evict_last|L2::evict_normal|tensor"},
    {"prefetchu", "L1"},
    {"applypriority", "L2::evict_normal"},
    {"discard", "L2"},
    {"createpolicy", "b64"},
    {"createpolicy.fractional|range", kEvictions},

    // Barriers and fences.
    {"bar|barrier.red.popc", "u32"},
    {"bar|barrier.red.and|or", "pred"},
    {"nanosleep", "u32"},
    {"membar.!proxy", "cta|gl|sys"},
    {"fence.!proxy", kScopes},
    {"fence.mbarrier_init", "release"},
    {"fence.sync_restrict::shared::cluster", "acquire"},
    {"fence.sync_restrict::shared::cta", "release"},
    {"fence|membar.alias|async|async::generic|tensormap::generic", "proxy"},
    {"fence|membar.proxy", "alias|async|async::generic|tensormap::generic"},
    {"fence.async::generic|tensormap::generic", "acquire|release"},
    {"fence.async::generic", "sync_restrict::shared::cluster|sync_restrict::shared::cta"},
    {"fence.proxy.acquire|release", kScopes},
    {"mbarrier", "b64"},
    {"mbarrier.relaxed|acquire|release", "cta|cluster"},
    {"mbarrier.cta|cluster", "relaxed|acquire|release"},

    // Copies.
    {"cp.async.!bulk.!mbarrier.!commit_group.!wait_group.!wait_all", "ca|cg"},
    {"cp.async.!bulk.!mbarrier.!commit_group.!wait_group.!wait_all", "shared|shared::cta"},
    {"cp.async.!bulk.!mbarrier.!commit_group.!wait_group.!wait_all", "global"},
    {"cp.async.mbarrier", "arrive"},
    {"cp.async.mbarrier", "b64"},
    {"st|red.async.mmio|release|relaxed", kScopes},
    {"red.async", "relaxed|release"},
    {"st|red.async.shared::cluster", "mbarrier::complete_tx::bytes"},
    {"clusterlaunchcontrol.query_cancel", "b128"},
    {"clusterlaunchcontrol.query_cancel.is_canceled", "pred"},
};

/// Types that are those of registers and of arithmetic, and no types of instructions that only
/// move bits: `what` never has one of `types`.
struct RefusedType {
  const char *what, *types, *instead;
};

constexpr RefusedType kRefusedTypes[] = {
    {"mov|selp|slct|ld|ldu|st", "f16|bf16", ".b16"},
    {"mov|selp|slct|ld|ldu|st", "f16x2|bf16x2", ".b32"},
};

} // namespace fp8emu

#endif // FP8EMU_ISA_MODIFIERTABLE_H
