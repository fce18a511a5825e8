// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel around the lines of a test.

#include "EachThread.h"

#include "Harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

using namespace fp8emu;
using namespace fp8emu::test;

namespace {

const char *const kNames[] = {"a", "b", "c", "e"};

/// Values lie eight bytes apart whatever their type.
std::string wholeKernel(const EachThread &test) {
  std::string text = ".version 9.2\n.target sm_100a\n.address_size 64\n"
                     ".visible .entry kernel(.param .u64 result, .param .u64 memory, .param .u32 count";
  for (const char *name : kNames)
    text += std::string(", .param .u64 in_") + name;
  text += ") {\n.shared .align 16 .b8 shared[256];\n"
          ".reg .pred %p<8>, %outside;\n.reg .b16 %h<8>;\n.reg .b32 %r<8>, %n, %size, %block;\n"
          ".reg .b64 %l<8>, %m, %at, %offset;\n.reg .f32 %f<8>;\n.reg .f64 %g<8>;\n.reg .b128 %w<8>;\n"
          ".reg ." +
          test.resultType + " %d;\n";
  for (size_t i = 0; i < test.operands.size(); ++i)
    text += ".reg ." + test.operands[i].type + " %" + kNames[i] + ";\n";
  text +=
      "mov.u32 %n, %tid.x;\nmov.u32 %size, %ntid.x;\nmov.u32 %block, %ctaid.x;\n"
      "mad.lo.u32 %n, %block, %size, %n;\nld.param.u32 %size, [count];\nsetp.ge.u32 %outside, %n, %size;\n"
      "@%outside exit;\nmul.wide.u32 %offset, %n, 8;\nld.param.u64 %m, [memory];\n"
      "mov.b" +
      std::to_string(test.resultType == "b16"                          ? 16
                     : test.resultType.find("64") != std::string::npos ? 64
                                                                       : 32) +
      " %d, 0;\n";
  for (size_t i = 0; i < test.operands.size(); ++i)
    text += std::string("ld.param.u64 %at, [in_") + kNames[i] + "];\nadd.u64 %at, %at, %offset;\nld.global." +
            test.operands[i].type + " %" + kNames[i] + ", [%at];\n";
  text += "// the test's\n" + test.body + "\n";
  text += "ld.param.u64 %at, [result];\nadd.u64 %at, %at, %offset;\nst.global." + test.resultType +
          " [%at], %d;\nret;\n}\n";
  return text;
}

} // namespace

Outcome EachThread::run() {
  Settings settings;
  settings.seed = seed;
  TestMachine machine(wholeKernel(*this), settings);
  uint64_t result = machine.upload(std::vector<uint64_t>(threads)), area = machine.upload(memory);
  std::array<uint64_t, 4> inputs{};
  for (size_t i = 0; i < operands.size(); ++i)
    inputs[i] = machine.upload(operands[i].bits);
  LaunchConfig config;
  uint32_t size = oneBlock ? threads : std::min(threads, 128u);
  config.block = {size, 1, 1};
  config.grid = {(threads + size - 1) / size, 1, 1};
  Outcome out;
  out.fault =
      machine.launch("kernel", config, result, area, threads, inputs[0], inputs[1], inputs[2], inputs[3]);
  if (!out.fault)
    out.d = machine.download<uint64_t>(result, threads);
  memory = machine.download<uint8_t>(area, memory.size());
  return out;
}

std::vector<Values> test::product(const std::vector<Values> &values) {
  size_t count = 1;
  for (const Values &v : values)
    count *= v.bits.size();
  std::vector<Values> out;
  size_t repeat = 1;
  for (const Values &v : values) {
    out.push_back({v.type, {}});
    for (size_t i = 0; i < count; ++i)
      out.back().bits.push_back(v.bits[i / repeat % v.bits.size()]);
    repeat *= v.bits.size();
  }
  return out;
}

static std::string hex(uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

void test::expectEach(const std::string &body, const std::string &resultType,
                      const std::vector<Values> &operands, const Reference &reference) {
  EachThread test{resultType, body, product(operands)};
  test.threads = unsigned(test.operands[0].bits.size());
  Outcome outcome;
  try {
    outcome = test.run();
  } catch (const PtxError &error) {
    FAIL() << body << "\n" << error.what();
  }
  ASSERT_FALSE(outcome.fault) << body << "\n" << outcome.fault->text();
  for (unsigned thread = 0; thread < test.threads; ++thread) {
    std::vector<uint64_t> in;
    std::string shown;
    for (const Values &v : test.operands) {
      in.push_back(v.bits[thread]);
      shown += " " + hex(in.back());
    }
    uint64_t expected = reference(in);
    if (resultType.find("64") == std::string::npos)
      expected = uint32_t(expected);
    ASSERT_EQ(hex(outcome.d[thread]), hex(expected)) << body << " of" << shown;
  }
}

std::string test::decodeError(const std::string &body) {
  try {
    TestMachine machine(wholeKernel({"b32", body, std::vector<Values>(4, {"b32", {0}})}));
  } catch (const PtxError &error) {
    return error.message;
  }
  return "";
}

std::vector<uint64_t> test::edges16() {
  return {0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF, 0x1234, 0xA5C3};
}
std::vector<uint64_t> test::edges32() {
  return {0,          1,          2,          0x7F,       0x80,       0xFF,
          0x7FFF,     0x8000,     0xFFFF,     0x7FFFFF,   0x800000,   0x12345678,
          0x7FFFFFFF, 0x80000000, 0x80000001, 0xA5C3F00F, 0xFFFFFFFE, 0xFFFFFFFF};
}
std::vector<uint64_t> test::edges64() {
  return {0,
          1,
          0x7FFFFFFF,
          0x80000000,
          0xFFFFFFFF,
          0x100000000,
          0x123456789ABCDEF0,
          0x7FFFFFFFFFFFFFFF,
          0x8000000000000000,
          0xFEDCBA9876543210,
          0xFFFFFFFFFFFFFFFE,
          0xFFFFFFFFFFFFFFFF};
}
std::vector<uint64_t> test::amounts() {
  return {0, 1, 2, 5, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 127, 255, 256, 257, 0x80000001, 0xFFFFFFFF};
}
