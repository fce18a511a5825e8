// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Detects features of x86-64 by LLVM's names: CPUID tells what the processor supports, XGETBV
// which registers the operating system saves.

#include "Processor.h"
#include "Status.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace fp8rt;

#if defined(__x86_64__)
namespace {

enum Register { EAX, EBX, ECX, EDX };

/// Bits of XCR0: the registers that the operating system saves.
enum Saved : uint32_t { NONE = 0, YMM = 0x6, ZMM = 0xE6, APX = 0x80000, TILES = 0x60000 };

/// The bit of CPUID that tells whether there is a feature.
struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  unsigned bit;
  Saved saved;
};

const Feature kFeatures[] = {
    {"cx8", 1, 0, EDX, 8, NONE},
    {"cmov", 1, 0, EDX, 15, NONE},
    {"mmx", 1, 0, EDX, 23, NONE},
    {"sse", 1, 0, EDX, 25, NONE},
    {"sse2", 1, 0, EDX, 26, NONE},
    {"sse3", 1, 0, ECX, 0, NONE},
    {"pclmul", 1, 0, ECX, 1, NONE},
    {"ssse3", 1, 0, ECX, 9, NONE},
    {"fma", 1, 0, ECX, 12, YMM},
    {"cx16", 1, 0, ECX, 13, NONE},
    {"sse4.1", 1, 0, ECX, 19, NONE},
    {"sse4.2", 1, 0, ECX, 20, NONE},
    {"crc32", 1, 0, ECX, 20, NONE},
    {"movbe", 1, 0, ECX, 22, NONE},
    {"popcnt", 1, 0, ECX, 23, NONE},
    {"avx", 1, 0, ECX, 28, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"bmi", 7, 0, EBX, 3, NONE},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"bmi2", 7, 0, EBX, 8, NONE},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"adx", 7, 0, EBX, 19, NONE},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"gfni", 7, 0, ECX, 8, NONE},
    {"vaes", 7, 0, ECX, 9, YMM},
    {"vpclmulqdq", 7, 0, ECX, 10, YMM},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"avx512vp2intersect", 7, 0, EDX, 8, ZMM},
    {"amx-bf16", 7, 0, EDX, 22, TILES},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"amx-tile", 7, 0, EDX, 24, TILES},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"cmpccxadd", 7, 1, EAX, 7, NONE},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxvnniint8", 7, 1, EDX, 4, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avxvnniint16", 7, 1, EDX, 10, YMM},
    {"avx10.1", 7, 1, EDX, 19, ZMM},
    {"egpr", 7, 1, EDX, 21, APX},
    {"push2pop2", 7, 1, EDX, 21, APX},
    {"ppx", 7, 1, EDX, 21, APX},
    {"ndd", 7, 1, EDX, 21, APX},
    {"ccmp", 7, 1, EDX, 21, APX},
    {"nf", 7, 1, EDX, 21, APX},
    {"cf", 7, 1, EDX, 21, APX},
    {"zu", 7, 1, EDX, 21, APX},
    {"sahf", 0x80000001, 0, ECX, 0, NONE},
    {"lzcnt", 0x80000001, 0, ECX, 5, NONE},
    {"sse4a", 0x80000001, 0, ECX, 6, NONE},
    {"xop", 0x80000001, 0, ECX, 11, YMM},
    {"fma4", 0x80000001, 0, ECX, 16, YMM},
    {"tbm", 0x80000001, 0, ECX, 21, NONE},
};

uint32_t readSavedRegisters() {
  unsigned int a, b, c, d;
  constexpr unsigned osxsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & osxsave))
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Reads a leaf of CPUID; sets every register to 0 if the processor does not have it.
void readLeaf(uint32_t leaf, uint32_t subleaf, unsigned (&registers)[4]) {
  // The registers are undefined beyond the last subleaf.
  unsigned a = 0, b, c, d;
  bool known = subleaf == 0 || (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) && subleaf <= a);
  if (!known ||
      !__get_cpuid_count(leaf, subleaf, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX]))
    std::memset(registers, 0, sizeof(registers));
}

/// AVX10.2 is a number in a leaf of its own.
bool hasAVX10(unsigned version) {
  unsigned registers[4];
  readLeaf(0x24, 0, registers);
  return (registers[EBX] & 0xFF) >= version;
}

bool has(const Feature &feature) {
  unsigned registers[4];
  readLeaf(feature.leaf, feature.subleaf, registers);
  return (registers[feature.reg] >> feature.bit & 1) &&
         (readSavedRegisters() & feature.saved) == feature.saved;
}

bool has(const std::string &name) {
  for (const Feature &feature : kFeatures)
    if (name == feature.name)
      return has(feature);
  if (name == "avx10.2")
    return has("avx10.1") && hasAVX10(2);
  fail(FP8RT_UNSUPPORTED, "the manifest's processor feature " + inQuotes(name) +
                              " is unknown to this runtime; is the library newer?");
}

/// Asks the kernel for the tile registers of AMX, which it lends to processes that ask. Threads that begin
/// later have them too.
bool mayUseTiles() {
#if defined(__linux__)
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
#else
  return false;
#endif
}

} // namespace
#endif

void fp8rt::checkProcessor(const RequiredProcessor &required) {
#if defined(__x86_64__)
  std::string missing;
  for (const std::string &feature : required.features)
    if (!has(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  if (!missing.empty())
    fail(FP8RT_UNSUPPORTED, "it was compiled for the processor " + inQuotes(required.name) +
                                ", and this machine lacks its " + missing +
                                ": compile it here, or with --cpu=x86-64-v3 or another that both have");
  bool needsTiles =
      std::find(required.features.begin(), required.features.end(), "amx-tile") != required.features.end();
  if (needsTiles && !mayUseTiles())
    fail(FP8RT_UNSUPPORTED, "it multiplies in AMX's tile registers, which the operating system does not lend "
                            "to this process: compile it here, or with --sums=exact");
#endif
}
