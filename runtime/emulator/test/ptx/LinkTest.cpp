// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several PTX texts as one program: by what its kernels give, and by errors.

#include "ptx/Link.h"
#include "Harness.h"
#include "ptx/Parser.h"

#include <gtest/gtest.h>

using namespace fp8emu;
using namespace fp8emu::test;
using ptx::Unit;

namespace {

const std::string kHeader = ".version 8.0\n.target sm_90\n.address_size 64\n";

// Both units have an `own` of their own, a variable and a function.
const std::string kKernel = kHeader + R"(
.extern .global .align 4 .u32 table[2];
.extern .func (.param .u32 result) twice(.param .u32 x);
.global .align 4 .u32 own = 100;
.global .align 8 .u64 pointer = generic(own);
.func (.param .u32 result) inner() {
  .reg .u32 %r<2>;
  mov.u32 %r0, 7;
  st.param.u32 [result], %r0;
  ret;
}
.visible .entry run(.param .u64 out) {
  .reg .u64 %rd<3>; .reg .u32 %r<6>;
  ld.param.u64 %rd0, [out];
  ld.global.u32 %r0, [table+4];
  { .param .u32 x; .param .u32 y;
    st.param.u32 [x], %r0;
    call.uni (y), twice, (x);
    ld.param.u32 %r1, [y]; }
  { .param .u32 y;
    call.uni (y), inner, ();
    ld.param.u32 %r2, [y]; }
  ld.global.u64 %rd1, [pointer];
  ld.u32 %r3, [%rd1];
  st.global.u32 [%rd0], %r1;
  st.global.u32 [%rd0+4], %r2;
  st.global.u32 [%rd0+8], %r3;
  ret;
})";

const std::string kLibrary = kHeader + R"(
.visible .global .align 4 .u32 table[2] = {3, 20};
.global .align 4 .u32 own = 1000;
.func (.param .u32 result) inner() {
  .reg .u32 %r<2>;
  ld.global.u32 %r0, [own];
  st.param.u32 [result], %r0;
  ret;
}
.visible .func (.param .u32 result) twice(.param .u32 x) {
  .reg .u32 %r<4>;
  ld.param.u32 %r0, [x];
  shl.b32 %r0, %r0, 1;
  { .param .u32 y;
    call.uni (y), inner, ();
    ld.param.u32 %r1, [y]; }
  add.u32 %r0, %r0, %r1;
  st.param.u32 [result], %r0;
  ret;
})";

std::vector<uint32_t> runLinked(const std::vector<Unit> &units) {
  TestMachine machine(ptx::join(units));
  uint64_t out = machine.allocate(12);
  auto fault = machine.launch("run", {}, out);
  EXPECT_FALSE(fault) << fault->text();
  return machine.download<uint32_t>(out, 3);
}

std::string problem(const std::vector<Unit> &units) {
  try {
    TestMachine machine(ptx::join(units));
  } catch (const PtxError &error) {
    return error.what();
  }
  return "";
}

TEST(LinkTest, NamesOfOneModuleAreFoundByAnotherAndOwnOnesStayApart) {
  std::vector<uint32_t> wanted{2 * 20 + 1000, 7, 100};
  EXPECT_EQ(runLinked({{"kernel", kKernel}, {"library", kLibrary}}), wanted);
  EXPECT_EQ(runLinked({{"library", kLibrary}, {"kernel", kKernel}}), wanted);
}

TEST(LinkTest, AStrongDefinitionReplacesAWeakOne) {
  std::string weak = kHeader + ".weak .func (.param .u32 result) twice(.param .u32 x) {\n.reg .u32 %r<1>;\n"
                               "mov.u32 %r0, 5;\nst.param.u32 [result], %r0;\nret;\n}\n";
  std::string table = kHeader + ".visible .global .align 4 .u32 table[2] = {3, 20};\n";
  EXPECT_EQ(runLinked({{"weak", weak}, {"kernel", kKernel}, {"library", kLibrary}})[0], 1040u);
  EXPECT_EQ(runLinked({{"library", kLibrary}, {"kernel", kKernel}, {"weak", weak}})[0], 1040u);
  EXPECT_EQ(runLinked({{"weak", weak}, {"kernel", kKernel}, {"table", table}})[0], 5u);
}

TEST(LinkTest, TheLargestOfCommonVariablesIsKept) {
  std::string small = kHeader + ".common .global .align 4 .u32 table[1];\n";
  std::string large = kHeader + ".common .global .align 4 .u32 table[2];\n";
  std::string twice = kHeader +
                      ".visible .func (.param .u32 result) twice(.param .u32 x) {\n.reg .u32 %r<1>;\n"
                      "ld.param.u32 %r0, [x];\nst.param.u32 [result], %r0;\nret;\n}\n";
  // Memory without a value is zero.
  EXPECT_EQ(runLinked({{"small", small}, {"large", large}, {"kernel", kKernel}, {"twice", twice}})[0], 0u);
}

TEST(LinkTest, ErrorsNameALineOfTheImage) {
  EXPECT_EQ(problem({{"library", kLibrary}, {"again", kLibrary}}),
            "30:32: table is defined in two of the modules that are linked");
  EXPECT_EQ(problem({{"kernel", kKernel}}), "6:31: variable table is not defined in this module");
  EXPECT_EQ(problem({{"empty", kHeader}, {"broken\nname", kHeader + "nonsense;\n"}}).substr(0, 4), "9:1:");
}

} // namespace
