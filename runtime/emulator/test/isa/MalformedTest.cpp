// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules that ptxas would refuse, and kernels that cannot go on, found by LaunchFuzzTest
// and by reading: an error or a fault, and nothing of the host's is touched.

#include "EachThread.h"
#include "Harness.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

constexpr const char *kHeader = ".version 8.7\n.target sm_90a\n.address_size 64\n";

/// The error in a module; empty where there is none.
std::string moduleError(const std::string &text) {
  try {
    TestMachine machine(kHeader + text);
  } catch (const PtxError &error) {
    return error.message;
  }
  return "";
}

TEST(Malformed, ResultsGoToRegistersOfTheirWidth) {
  EXPECT_EQ(decodeError("setp.eq.u32 %p0,%a,%b; mov.u32 %r0,%clock; set.eq.u32.f16x2 %r0,%a,%b;"), "");
  EXPECT_NE(decodeError("setp.eq.u32 1,%a,%b;"), "");
  EXPECT_NE(decodeError("mov.u16 %h0,%clock;"), "");
  EXPECT_NE(decodeError(".local .b32 v; mov.u16 %h0,v;"), "");
  EXPECT_NE(decodeError("mapa.u16 %h0,%h1,%a;"), "");
  EXPECT_NE(decodeError("getctarank.u16 %r0,%h1;"), "");
  EXPECT_NE(decodeError("set.eq.u16.f16x2 %h0,%a,%b;"), "");
  EXPECT_NE(decodeError("set.eq.u64.u32 %l0,%a,%b;"), "");
  EXPECT_NE(decodeError("ld.global.b64 %w0,[%m];"), "");
  EXPECT_NE(decodeError("ld.global.pred %r0,[%m];"), "");
  EXPECT_NE(decodeError("cvt.u32.u64 %r0,%w0;"), "");
}

TEST(Malformed, AsynchronousStoresHaveElementsOfOneWidth) {
  const std::string store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.";
  EXPECT_EQ(decodeError(store + "v2.b32 [%r0],{%r1,%r2},[%r3];"), "");
  EXPECT_NE(decodeError(store + "v2.b32 [%r0],{%r1,%l2},[%r3];"), "");
  EXPECT_NE(decodeError(store + "v4.b128 [%r0],{%w0,%w1,%w2,%w3},[%r3];"), "");
}

TEST(Malformed, GroupsAreNumberedFromZero) {
  EXPECT_EQ(decodeError("cp.async.wait_group 0; cp.async.bulk.wait_group 0;"), "");
  EXPECT_NE(decodeError("cp.async.wait_group -1;"), "");
  EXPECT_NE(decodeError("cp.async.bulk.wait_group -1;"), "");
}

TEST(Malformed, AddressesWrap) {
  EXPECT_EQ(decodeError("ld.global.u32 %r0,[0x7FFFFFFFFFFFFFFF+24];"), "");
  EXPECT_EQ(decodeError(".local .b32 v[8]; ld.local.u32 %r0,[v+0x7FFFFFFFFFFFFFFF];"
                        "mov.u64 %l0,v+0x7FFFFFFFFFFFFFFF;"),
            "");
}

TEST(Malformed, CallsPassVariablesOfTheCall) {
  const std::string function = ".func (.param .b32 r) f(.param .b32 n) {\nret;\n}\n";
  const std::string begin = ".entry k(.param .b64 p) {\n.reg .b32 %r;\n.reg .pred %p;\n.shared .b32 s;\n"
                            ".param .b32 a;\n.param .b32 b;\n";
  EXPECT_EQ(moduleError(function + begin + "call (b), f, (a);\ncall (%r), f, (5);\n}\n"), "");
  EXPECT_NE(moduleError(function + begin + "call (5), f, (a);\n}\n"), "");
  EXPECT_NE(moduleError(function + begin + "call (s), f, (a);\n}\n"), "");
  EXPECT_NE(moduleError(function + begin + "call (b), f, (s);\n}\n"), "");
  EXPECT_NE(moduleError(function + begin + "call (b), f, (p);\n}\n"), "");
  EXPECT_NE(moduleError(function + begin + "call (b), f, (%p);\n}\n"), "");
  EXPECT_NE(moduleError(".entry other() {\nret;\n}\n" + begin + "call other, ();\n}\n"), "");
  const std::string print = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n";
  EXPECT_NE(moduleError(print + begin + "call (b), vprintf, (a);\n}\n"), "");
}

TEST(Malformed, FramesAndParametersHaveALimit) {
  EXPECT_EQ(moduleError(".entry k(.param .b8 p[32764]) {\n.local .b8 v[524288];\n}\n"), "");
  EXPECT_NE(moduleError(".entry k() {\n.local .b8 v[524289];\n}\n"), "");
  EXPECT_NE(moduleError(".entry k() {\n.local .b8 v[4294967296];\n.local .b8 w[16];\n}\n"), "");
  EXPECT_NE(moduleError(".entry k(.param .b8 p[32765]) {\n}\n"), "");
}

TEST(Malformed, RecursionWithoutVariablesEndsToo) {
  TestMachine machine(std::string(kHeader) +
                      ".func f() {\ncall f, ();\nret;\n}\n.entry k() {\ncall f, ();\nret;\n}\n");
  // As deep as CU_LIMIT_STACK_SIZE allows.
  machine.settings.stackBytes = 512 * 1024;
  LaunchConfig config;
  config.block = {32, 1, 1};
  auto fault = machine.launch("k", config);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::StackOverflow) << fault->text();
}

TEST(Malformed, KernelsThatDoNotEndAreStopped) {
  TestMachine machine(std::string(kHeader) + ".entry k() {\nAGAIN:\nbra AGAIN;\n}\n");
  machine.settings.instructionLimit = 100000;
  auto fault = machine.launch("k", LaunchConfig());
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::Timeout) << fault->text();
}

/// The text that a kernel prints for two arguments of 8 bytes.
std::string printed(const std::string &format, uint64_t first, uint64_t second) {
  std::string out, initial;
  for (char c : format + '\0')
    initial += (initial.empty() ? "" : ", ") + std::to_string(int(c));
  Settings settings;
  settings.print = [&](const std::string &text) { out += text; };
  TestMachine machine(
      std::string(kHeader) +
          ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .b8 text[" +
          std::to_string(format.size() + 1) + "] = {" + initial +
          "};\n.entry k(.param .b64 values) {\n.reg .b64 %f, %v;\n.reg .b32 %r;\n"
          "mov.b64 %f, text;\nld.param.b64 %v, [values];\ncall (%r), vprintf, (%f, %v);\nret;\n}\n",
      settings);
  uint64_t values = machine.upload(std::vector<uint64_t>{first, second, 0});
  auto fault = machine.launch("k", LaunchConfig(), values);
  EXPECT_FALSE(fault) << fault->text();
  return out;
}

TEST(Malformed, FormatsOfPrintfAreTheDevicesNotTheHosts) {
  EXPECT_EQ(printed("%llx|%d.", 0xFEDCBA9876543210, uint64_t(-7)), "fedcba9876543210|-7.");
  EXPECT_EQ(printed("%+5.3lld|%hhu", 7, 300), " +007|44");
  EXPECT_EQ(printed("%-4c|%5.1f|", 'x', 0x4004000000000000), "x   |  2.5|");
  // Sizes that would make the host read other arguments, or none.
  EXPECT_EQ(printed("%lc%Lf", 'x', 0x4004000000000000), "x2.500000");
  // Widths that no host could fill.
  EXPECT_EQ(printed("%99999999999d", 1, 0).size(), 9999u);
  EXPECT_EQ(printed("%.999999999999f", 0, 0).size(), 9999u + 2);
  EXPECT_EQ(printed("100%", 0, 0), "100");
}

TEST(Malformed, ObjectsThatAreNoneAreReportedWhereTheyAreNamed) {
  EachThread test{"b32",
                  "mov.b32 %r0,shared; setp.eq.u32 %p0,%n,3; @%p0 cp.async.mbarrier.arrive.shared.b64 [%r0];",
                  {{"b32", std::vector<uint64_t>(32)}}};
  Outcome outcome = test.run();
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, FaultKind::BarrierMisuse) << outcome.fault->text();
  EXPECT_EQ(outcome.fault->kernel, "kernel");
  EXPECT_EQ(outcome.fault->instruction, "cp.async.mbarrier.arrive.shared.b64");
}

TEST(Malformed, BulkCopiesOfMoreThanThereIsAreRefusedAtOnce) {
  EachThread test{
      "b32",
      "setp.eq.u32 %p0,%n,0; mov.b32 %r0,shared; add.u32 %r1,%r0,128;"
      "@%p0 mbarrier.init.shared.b64 [%r1],1; mov.b32 %r2,0xFFFFFFF0;"
      "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0],[%m],%r2,[%r1];",
      {{"b32", std::vector<uint64_t>(32)}}};
  Outcome outcome = test.run();
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, FaultKind::OutOfBounds) << outcome.fault->text();
}

} // namespace
