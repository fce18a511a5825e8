// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of Requirements.cpp: "PTX ISA Notes" and "Target ISA Notes" of the
// instructions in the PTX ISA. ptxas 13.5 agrees with it on every instruction of
// test/inputs/requirements.txt.

#ifndef FP8EMU_ISA_REQUIREMENTTABLE_H
#define FP8EMU_ISA_REQUIREMENTTABLE_H

namespace fp8emu {

/// `what` is a Pattern (Pattern.h). Its opcode may be *, any; with % it is a special register
/// that is an operand, with a leading dot a directive of a kernel. An instruction needs what
/// all rows say that it matches.
///
/// `targets`: any of them will do. "90" is sm_90 or higher, "90a" that architecture alone,
/// "100f" later ones of its family as well (PTX ISA 11.1.2).
///
/// Versions: where one came to an older target later than to a newer one, the earlier.
struct Requirement {
  const char *what, *targets, *version;
};

constexpr const char kSince100[] = "100f 110f 120f";

constexpr Requirement kRequirements[] = {
    // Directives.
    {".reqnctapercluster", "90", "7.8"},
    {".maxclusterrank", "90", "7.8"},
    {".explicitcluster", "90", "7.8"},
    {".blocksareclusters", "90", "9.0"},

    // Special registers and state spaces.
    {"%clusterid|%nclusterid|%cluster_ctaid|%cluster_nctaid|%cluster_ctarank|%cluster_nctarank", "90", "7.8"},
    {"%is_explicit_cluster", "90", "7.8"},
    {"%aggr_smem_size", "90", "8.1"},
    {"%reserved_smem_offset_begin|%reserved_smem_offset_end|%reserved_smem_offset_cap", "80", "7.6"},
    {"%reserved_smem_offset_0|%reserved_smem_offset_1", "80", "7.6"},
    {"*.shared::cta", "20", "7.8"},
    {"*.shared::cluster", "90", "7.8"},
    {"*.param::entry|param::func", "20", "8.3"},

    // Loads, stores, atomics.
    {"ld|st|atom|red|fence.cluster", "90", "7.8"},
    {"ld|st.mmio", "70", "8.2"},
    {"ld|st|mov.b128", "70", "8.3"},
    {"ld|st.v8", "100", "8.8"},
    {"ld|st.v4.b64|u64|s64|f64", "100", "8.8"},
    {"ld|st.L1::no_allocate|L1::evict_last|L1::evict_first|L1::evict_normal|L1::evict_unchanged", "70",
     "7.4"},
    {"*.L2::64B|L2::128B", "75", "7.4"},
    {"*.L2::256B|L2::cache_hint", "80", "7.4"},
    {"createpolicy|applypriority|discard", "80", "7.4"},
    {"prefetch.L2::evict_last|L2::evict_normal", "80", "7.4"},
    {"cvta.param", "70", "7.7"},
    {"prefetch.tensormap", "90", "8.0"},
    {"alloca|stacksave|stackrestore", "52", "7.3"},
    {"atom|red.bf16|bf16x2", "90", "7.8"},
    {"atom|red.v2|v4|v8", "90", "8.1"},
    {"atom.b128", "90", "8.3"},
    {"st|red.async", "90", "8.1"},
    {"st|red.async.global", "100", "8.7"},
    {"st.bulk", "100", "8.6"},
    {"multimem", "90", "8.1"},
    {"mapa|getctarank", "90", "7.8"},

    // Barriers, fences, threads.
    {"barrier.cluster", "90", "7.8"},
    {"barrier.cluster.relaxed|release|acquire", "90", "8.0"},
    {"fence.acquire|release.!mbarrier_init.!proxy", "90", "8.6"},
    {"fence.sync_restrict::shared::cluster|sync_restrict::shared::cta", "90", "8.6"},
    {"fence.mbarrier_init", "90", "8.0"},
    {"fence|membar.proxy.alias", "70", "7.5"},
    {"fence|membar.proxy.async", "90", "8.0"},
    {"fence.proxy.async::generic", "90", "8.6"},
    {"fence.proxy.tensormap::generic", "90", "8.3"},
    {"elect", "90", "8.0"},
    {"griddepcontrol", "90", "7.8"},
    {"redux", "80", "7.0"},
    {"redux.f32", "100f", "8.6"},
    {"setmaxnreg", "90a 100f 110f 120f", "8.0"},
    {"clusterlaunchcontrol", "100", "8.6"},
    {"clusterlaunchcontrol.multicast::cluster::all", kSince100, "8.6"},
    {"mbarrier", "80", "7.0"},
    {"mbarrier.arrive|arrive_drop.!noComplete.!expect_tx.#3", "90", "7.8"},
    {"mbarrier.expect_tx|complete_tx", "90", "8.0"},
    {"mbarrier.test_wait.parity", "80", "7.1"},
    {"mbarrier.try_wait", "90", "7.8"},
    {"mbarrier.acquire|release", "80", "8.0"},
    {"mbarrier.cluster", "90", "8.0"},
    {"mbarrier.arrive|arrive_drop|test_wait|try_wait.relaxed", "90", "8.6"},

    // Copies.
    {"cp.async", "80", "7.0"},
    {"cp.async.bulk", "90", "8.0"},
    {"cp.async.bulk.shared::cta.global", "90", "8.6"},
    {"cp.cp_mask", "100", "8.6"},
    {"cp.cta_group::1|cta_group::2", "100f 110f", "8.6"},
    {"cp.tile::gather4", "100", "8.6"},
    {"cp.shared::cluster|prefetch.tile::gather4", "100f 110f", "8.6"},
    {"cp.tile::scatter4", "100f 110f", "8.6"},
    {"tensormap.replace", "90a 100f 110f 120f", "8.3"},
    {"tensormap.replace.swizzle_atomicity", kSince100, "8.6"},
    {"tensormap.cp_fenceproxy", "90", "8.3"},

    // Matrices.
    {"movmatrix", "75", "7.8"},
    {"ldmatrix", "75", "6.5"},
    {"ldmatrix.m16n16|m8n16", kSince100, "8.6"},
    {"stmatrix", "90", "7.8"},
    {"stmatrix.m16n8", kSince100, "8.6"},
    {"mma", "70", "6.4"},
    {"mma.m16n8k8|m8n8k16|m8n8k32", "75", "6.5"},
    {"mma.m8n8k128", "75", "7.0"},
    {"mma.m16n8k4|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256", "80", "7.0"},
    {"mma|wmma.bf16|tf32|f64", "80", "7.0"},
    {"mma|wmma.and", "80", "7.1"},
    {"mma.m16n8k4|m16n8k8|m16n8k16.f64", "90", "7.8"},
    {"mma.e4m3|e5m2", "89", "8.4"},
    {"mma.m16n8k16.e4m3|e5m2", "89", "8.7"},
    {"mma.f16.e4m3|e5m2", "89", "8.7"},
    {"mma.kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4", "120f", "8.7"},
    {"wgmma", "90a", "8.0"},
    {"tcgen05", "100f 110f", "8.6"},
    {"tcgen05.shift", "100a 103a 110a", "8.6"},
    {"tcgen05.mma.kind::i8", "100a 110a", "8.6"},
    {"tcgen05.mma.scale_vec::1X|scale_vec::2X|scale_vec::4X", "100a 103a 110a", "8.6"},
    {"tcgen05.mma.kind::mxf4nvf4", "100f 110f", "8.7"},
    {"tcgen05.mma.block16|block32", "100f 110f", "8.8"},

    // Conversions.
    {"cvt.f16x2|bf16|bf16x2|tf32", "80", "7.0"},
    {"cvt.relu", "80", "7.0"},
    {"cvt.pack", "72", "6.5"},
    {"cvt.bf16.!f32", "90", "7.8"},
    {"cvt.f32.bf16", "80", "7.1"},
    {"cvt.rn|rz.tf32", "90", "7.8"},
    {"cvt.satfinite.f16|f16x2|bf16|bf16x2|tf32.f32", "20", "8.1"},
    {"cvt.rn|rz.satfinite.tf32", "100", "8.6"},
    {"cvt.e4m3x2|e5m2x2", "89", "7.8"},
    {"cvt.e4m3x2|e5m2x2.bf16x2", kSince100, "9.1"},
    {"cvt.bf16x2.e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2", kSince100, "9.2"},
    {"cvt.e2m3x2|e3m2x2|e2m1x2", kSince100, "8.6"},
    {"cvt.e2m3x2|e3m2x2|e2m1x2.f16x2|bf16x2", kSince100, "9.1"},
    {"cvt.ue8m0x2", kSince100, "8.6"},
    {"cvt.rs", "100a 103a", "8.7"},
    {"cvt.s2f6x2", "100a 103a 110a 120a 121a", "9.1"},

    // Arithmetic.
    {"fma|min|max|neg|abs.bf16|bf16x2", "80", "7.0"},
    {"add|sub|mul|ex2|tanh|set|setp.bf16|bf16x2", "90", "7.8"},
    {"abs.f16|f16x2", "53", "6.5"},
    {"min|max.f16|f16x2", "80", "7.0"},
    {"min|max.NaN", "80", "7.0"},
    {"min|max.xorsign", "86", "7.2"},
    {"min|max.f32.#4", "100", "8.8"},
    {"fma.relu", "80", "7.0"},
    {"fma.oob", "90", "8.1"},
    {"add|sub|mul|fma.f32x2", "100", "8.6"},
    {"add|sub|fma.f32.f16|bf16", "100", "8.6"},
    {"ex2.f16|f16x2", "75", "7.0"},
    {"tanh", "75", "7.0"},
    {"add|min|max.u16x2|s16x2", "90", "8.0"},
    {"min|max.relu", "90", "8.0"},
    {"add.sat.u16x2|s16x2|u32", "120f", "9.2"},
    {"bmsk|szext", "70", "7.6"},
    {"lop3.and|or", "70", "8.2"},
};

/// The .version that came with a .target (PTX ISA 11.1.2).
struct TargetVersion {
  const char *target, *version;
};

constexpr TargetVersion kTargetVersions[] = {
    {"sm_75", "6.3"},   {"sm_80", "7.0"},   {"sm_86", "7.1"},   {"sm_87", "7.4"},   {"sm_89", "7.8"},
    {"sm_90", "7.8"},   {"sm_90a", "8.0"},  {"sm_100", "8.6"},  {"sm_100a", "8.6"}, {"sm_100f", "8.8"},
    {"sm_120", "8.7"},  {"sm_120a", "8.7"}, {"sm_120f", "8.8"}, {"sm_103", "8.8"},  {"sm_103a", "8.8"},
    {"sm_103f", "8.8"}, {"sm_121", "8.8"},  {"sm_121a", "8.8"}, {"sm_121f", "8.8"}, {"sm_88", "9.0"},
    {"sm_110", "9.0"},  {"sm_110a", "9.0"}, {"sm_110f", "9.0"},
};

} // namespace fp8emu

#endif // FP8EMU_ISA_REQUIREMENTTABLE_H
