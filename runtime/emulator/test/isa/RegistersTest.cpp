// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of kernels: how many are live, what directives leave of them, and what a chip
// refuses for them. Numbers of directives are those that ptxas 13.5 reports.

#include "Harness.h"

#include "exec/Chip.h"
#include "isa/Build.h"
#include "memory/DeviceMemory.h"
#include "ptx/Parser.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

/// The registers that ptxas gives a kernel that does nothing.
constexpr unsigned kOverhead = 4;

std::string text(const std::string &body, const std::string &directives = "",
                 const std::string &before = "") {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n" + before + ".visible .entry k(.param .u64 out) " +
         directives +
         " {\n.reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b16 %rs<16>; .reg .b128 %q<4>; .reg .f32 %f<400>; "
         ".reg .pred %p<4>;\n" +
         "ld.param.u64 %rd0, [out];\n" + body + "ret;\n}\n";
}

/// `count` loads, then as many stores: so many are live at once.
std::string values(unsigned count) {
  std::string loads, stores;
  for (unsigned i = 0; i < count; ++i) {
    std::string at = "[%rd0+" + std::to_string(4 * i) + "]", value = "%f" + std::to_string(i);
    loads += "ld.global.f32 " + value + ", " + at + ";\n";
    stores += "st.global.f32 " + at + ", " + value + ";\n";
  }
  return loads + stores;
}

unsigned registers(const std::string &text, unsigned limit = 0) {
  DeviceMemory memory;
  auto program = build(ptx::parse(text), memory, limit);
  unsigned out = program->find("k")->registers;
  release(*program, memory);
  return out;
}

unsigned live(const std::string &body) { return registers(text(body)) - kOverhead; }

TEST(Registers, AreThoseLiveAtOnce) {
  EXPECT_EQ(live(""), 0u);
  EXPECT_EQ(live(values(10)), 10u);
  EXPECT_EQ(live(values(100)), 100u);
  // One after the other, ten take one.
  std::string chain;
  for (unsigned i = 0; i < 10; ++i)
    chain += "ld.global.f32 %f" + std::to_string(i) + ", [%rd0];\nst.global.f32 [%rd0], %f" +
             std::to_string(i) + ";\n";
  EXPECT_EQ(live(chain), 1u);
  // A value that nobody reads takes a register as well.
  EXPECT_EQ(live("mov.u32 %r0, %tid.x;\n"), 1u);
}

TEST(Registers, AreOf32Bits) {
  EXPECT_EQ(live("ld.global.u64 %rd1, [%rd0];\nld.global.u64 %rd2, [%rd0];\nst.global.u64 [%rd0], %rd1;\n"
                 "st.global.u64 [%rd0], %rd2;\n"),
            4u);
  EXPECT_EQ(live("ld.global.u16 %rs1, [%rd0];\nst.global.u16 [%rd0], %rs1;\n"), 1u);
  EXPECT_EQ(live("ld.global.u16 %rs1, [%rd0];\nld.global.u16 %rs2, [%rd0];\nld.global.u16 %rs3, [%rd0];\n"
                 "st.global.v2.u16 [%rd0], {%rs1, %rs2};\nst.global.u16 [%rd0], %rs3;\n"),
            2u);
  EXPECT_EQ(live("ld.global.b128 %q1, [%rd0];\nst.global.b128 [%rd0], %q1;\n"), 4u);
  EXPECT_EQ(live("ld.global.u32 %r1, [%rd0];\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 st.global.u32 [%rd0], 1;\n"),
            1u);
}

TEST(Registers, AreNotTakenByConstants) {
  EXPECT_EQ(live("mov.u32 %r0, 7;\nmov.u32 %r1, %r0;\ncvta.to.global.u64 %rd1, %rd0;\n"
                 "st.global.u32 [%rd1], %r1;\n"),
            0u);
  // A variable that begins with a constant is none.
  EXPECT_EQ(live("mov.u32 %r0, 7;\nL: add.u32 %r0, %r0, 1;\nsetp.lt.u32 %p0, %r0, 9;\n@%p0 bra L;\n"), 1u);
}

TEST(Registers, KeepOneValueForAllThatAreComputedFromIt) {
  // Addresses a constant apart, and the halves of a word.
  EXPECT_EQ(live("mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd2, %rd0, %rd1;\n"
                 "add.u64 %rd3, %rd2, 64;\nadd.u64 %rd4, %rd2, 128;\nst.global.u32 [%rd2], 1;\n"
                 "st.global.u32 [%rd3], 1;\nst.global.u32 [%rd4], 1;\n"),
            1u);
  EXPECT_EQ(live("ld.global.u32 %r0, [%rd0];\nmov.b32 {%rs0, %rs1}, %r0;\nst.global.u16 [%rd0], %rs0;\n"
                 "st.global.u16 [%rd0+2], %rs1;\nst.global.u32 [%rd0+4], %r0;\n"),
            1u);
  // Not for what is computed from two, and not where the one changes.
  EXPECT_EQ(
      live(
          "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nadd.u32 %r2, %r0, %r1;\nst.global.u32 [%rd0], %r2;\n"
          "st.global.u32 [%rd0], %r0;\nst.global.u32 [%rd0], %r1;\n"),
      3u);
  EXPECT_EQ(live("mov.u32 %r0, %tid.x;\nL: add.u32 %r1, %r0, 1;\nsetp.lt.u32 %p0, %r0, 9;\n@%p0 "
                 "st.global.u32 [%rd0], %r0;\n"
                 "mov.u32 %r0, %r1;\n@%p0 bra L;\n"),
            2u);
}

TEST(Registers, LiveAlongAllPaths) {
  // Of either arm, not of both; what the loop reads lives through it.
  std::string arms = "ld.global.u32 %r0, [%rd0];\nsetp.eq.u32 %p0, %r0, 1;\n@%p0 bra B;\n" + values(5) +
                     "bra DONE;\nB:\n" + values(7) + "DONE:\n";
  EXPECT_EQ(live(arms), 7u);
  std::string loop = "ld.global.u32 %r0, [%rd0];\nld.global.u32 %r1, [%rd0+4];\n"
                     "mov.u32 %r2, 0;\nL:\nadd.u32 %r2, %r2, %r1;\n" +
                     values(3) + "setp.lt.u32 %p0, %r2, %r0;\n@%p0 bra L;\n";
  EXPECT_EQ(live(loop), 6u);
  // Where the guard is false the old value stays.
  std::string guarded = "ld.global.u32 %r0, [%rd0];\nsetp.eq.u32 %p0, %r0, 1;\n" + values(3) +
                        "$ld.global.u32 %r0, [%rd0];\nst.global.u32 [%rd0], %r0;\n";
  std::string always = guarded;
  guarded.replace(guarded.find('$'), 1, "@%p0 ");
  always.replace(always.find('$'), 1, "");
  EXPECT_EQ(live(guarded), 4u);
  EXPECT_EQ(live(always), 3u);
}

TEST(Registers, OfCalledFunctionsAreAdded) {
  auto function = [](const std::string &name, const std::string &body) {
    return ".func " + name + "(.param .u64 out) {\n.reg .b64 %rd<4>; .reg .f32 %f<40>;\n" + body +
           "ret;\n}\n";
  };
  auto call = [](const std::string &name) {
    return "{ .param .u64 a; st.param.u64 [a], %rd0; call.uni " + name + ", (a); }\n";
  };
  // Two of the address, which is no kernel's parameter, and the values.
  std::string inner = function("inner", "ld.param.u64 %rd0, [out];\n" + values(20));
  std::string outer = function("outer", "ld.param.u64 %rd0, [out];\nld.global.f32 %f0, [%rd0];\n" +
                                            call("inner") + "st.global.f32 [%rd0], %f0;\n");
  std::string body = "ld.global.f32 %f0, [%rd0];\nld.global.f32 %f1, [%rd0];\n" + call("outer") +
                     "st.global.f32 [%rd0], %f0;\nst.global.f32 [%rd0], %f1;\n";
  EXPECT_EQ(registers(text(body, "", inner + outer)) - kOverhead, 2 + 3 + 22u);
  std::string again = function("again", "ld.param.u64 %rd0, [out];\n" + call("again"));
  EXPECT_EQ(registers(text(call("again"), "", again)) - kOverhead, 2u);
}

struct Directive {
  const char *directives;
  unsigned values, limit, registers;
};

TEST(Registers, AreAtMostWhatDirectivesLeave) {
  for (const Directive &one :
       std::initializer_list<Directive>{{"", 300, 0, 255},
                                        {".maxntid 1024", 100, 0, 64},
                                        {".maxntid 900", 100, 0, 64},
                                        {".maxntid 512 .minnctapersm 2", 100, 0, 64},
                                        {".reqntid 32, 4, 2 .minnctapersm 3", 100, 0, 80},
                                        {".maxntid 200 .minnctapersm 3", 100, 0, 80},
                                        {".maxnreg 60", 100, 0, 60},
                                        {".maxnreg 20", 100, 0, 24},
                                        {".maxnreg 300", 300, 0, 255},
                                        {".maxnreg 100 .maxntid 1024", 100, 0, 64},
                                        {"", 100, 48, 48},
                                        {".maxntid 512", 100, 48, 104},
                                        {".maxnreg 64", 100, 48, 64}})
    EXPECT_EQ(registers(text(values(one.values), one.directives), one.limit), one.registers)
        << one.directives;
}

TEST(Registers, OfAKernelWithSetmaxnregAreThoseItIsCompiledFor) {
  const std::string body = "setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 232;\n";
  for (const Directive &one :
       std::initializer_list<Directive>{{".maxnreg 168", 0, 0, 168},
                                        {".maxntid 384 .minnctapersm 1", 0, 0, 168},
                                        {".reqntid 384 .minnctapersm 1", 0, 0, 168},
                                        {".maxntid 8,16,3 .minnctapersm 1", 0, 0, 168},
                                        {".maxntid 256 .minnctapersm 2", 0, 0, 128},
                                        {".maxntid 100 .minnctapersm 6", 0, 0, 80},
                                        {".maxntid 384 .minnctapersm 1 .maxnreg 200", 0, 0, 168},
                                        {".maxntid 384 .minnctapersm 1 .maxnreg 128", 0, 0, 128},
                                        {".maxnreg 250", 0, 0, 232},
                                        {".maxntid 128 .minnctapersm 1", 0, 0, 232},
                                        {".maxnreg 128", 0, 64, 128},
                                        {"", 0, 168, 168},
                                        {".minnctapersm 2", 0, 168, 168}}) {
    DeviceMemory memory;
    auto program = build(ptx::parse(text(body, one.directives)), memory, one.limit);
    EXPECT_EQ(program->find("k")->registers, one.registers) << one.directives;
    EXPECT_EQ(program->find("k")->setmaxnreg, Setmaxnreg::Obeyed) << one.directives;
    release(*program, memory);
  }
  for (const Directive &one : std::initializer_list<Directive>{{"", 0, 0, 0},
                                                               {".maxntid 384", 0, 0, 0},
                                                               {".minnctapersm 2", 0, 0, 0},
                                                               {".maxntid 512", 0, 168, 0}}) {
    DeviceMemory memory;
    auto program = build(ptx::parse(text(body, one.directives)), memory, one.limit);
    EXPECT_EQ(program->find("k")->registers, kOverhead) << one.directives;
    EXPECT_EQ(program->find("k")->setmaxnreg, Setmaxnreg::Ignored) << one.directives;
    release(*program, memory);
  }
}

/// Of values(count): what a launch of so many threads is refused for, and how many blocks
/// of them an H100 holds.
std::optional<Refusal> refusal(unsigned count, unsigned threads) {
  TestMachine machine(text(values(count)));
  LaunchConfig config;
  config.block = {threads, 1, 1};
  return refuse(*findChip("sm_90a"), machine.find("k"), Allowance(), config);
}
int resident(unsigned count, int threads) {
  TestMachine machine(text(values(count)));
  const Kernel &kernel = machine.find("k");
  return residentBlocks(*findChip("sm_90a"), *kernel.code, threads, 0);
}

TEST(Registers, ThatABlockDoesNotHaveRefuseALaunch) {
  EXPECT_FALSE(refusal(60, 1024));
  auto refused = refusal(61, 1024);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, Refusal::Resources);
  EXPECT_NE(refused->message.find("1024 threads with 65 registers each"), std::string::npos)
      << refused->message;
  // 200 registers: ten warps fit, but they count in fours.
  EXPECT_FALSE(refusal(196, 256));
  EXPECT_TRUE(refusal(196, 257));
  EXPECT_FALSE(refusal(300, 256));
  EXPECT_TRUE(refusal(300, 257));
}

TEST(Registers, DecideHowManyBlocksAreResident) {
  EXPECT_EQ(resident(28, 256), 8);
  // 40 registers, 1280 a warp: 12 warps in each of four parts.
  EXPECT_EQ(resident(36, 256), 6);
  // 104 registers, 3328 a warp: 4 warps in each part.
  EXPECT_EQ(resident(100, 256), 2);
  EXPECT_EQ(resident(100, 512), 1);
  EXPECT_EQ(resident(100, 1024), 0);
}

} // namespace
