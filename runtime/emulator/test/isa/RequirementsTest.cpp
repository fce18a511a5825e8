// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions that .target and .version allow, compared with what ptxas said of each instruction of
// inputs/requirements.txt, for every target.

#include "isa/Build.h"
#include "memory/DeviceMemory.h"
#include "ptx/Parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace fp8emu;

namespace {

struct Case {
  std::string version, target, instruction;
  std::set<std::string> accepted;
};

const std::vector<Case> &cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> out;
    std::ifstream file(FP8EMU_TEST_INPUTS "/requirements.txt");
    for (std::string line; std::getline(file, line);) {
      if (line[0] == '#')
        continue;
      const size_t bar = line.find(" | "), second = line.find(" | ", bar + 3);
      Case one;
      std::istringstream(line.substr(0, bar)) >> one.version >> one.target;
      std::istringstream targets(line.substr(bar + 3, second - bar - 3));
      for (std::string target; targets >> target;)
        one.accepted.insert(target);
      one.instruction = line.substr(second + 3);
      out.push_back(one);
    }
    return out;
  }();
  return all;
}

constexpr uint32_t kFirstLine = 6;

/// One instruction a line, the first in line kFirstLine.
std::string text(const std::string &version, const std::string &target,
                 const std::vector<std::string> &instructions) {
  std::string out =
      ".version " + version + "\n.target sm_" + target +
      "\n.address_size 64\n.visible .entry k(.param .u64 p) { .shared .align 1024 .b8 buf[4096];\n"
      ".reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .b16 %rs<16>; .reg .f32 %f<32>; .reg .f64 %fd<8>; "
      ".reg .pred %p<4>; .reg .b128 %q<4>;\n";
  for (const std::string &instruction : instructions)
    out += instruction + "\n";
  return out + "ret; }\n";
}

/// By the line, what is said of instructions that need something else.
std::map<uint32_t, std::string> refused(const std::string &text) {
  std::map<uint32_t, std::string> out;
  for (const UnknownInstruction &unknown : findUnknown(ptx::parse(text))) {
    EXPECT_NE(unknown.message.find("needs ."), std::string::npos) << unknown.message;
    out[unknown.where.line] = unknown.message;
  }
  return out;
}

class RequirementsOf : public testing::TestWithParam<const char *> {};

TEST_P(RequirementsOf, TargetsAreThoseOfPtxas) {
  const std::string target = GetParam();
  std::vector<std::string> instructions;
  for (const Case &one : cases())
    instructions.push_back(one.instruction);
  ASSERT_GT(instructions.size(), 200u);
  auto messages = refused(text("9.5", target, instructions));
  for (uint32_t i = 0; i < cases().size(); ++i) {
    auto found = messages.find(kFirstLine + i);
    EXPECT_EQ(found == messages.end(), cases()[i].accepted.count(target) == 1)
        << cases()[i].instruction << (found == messages.end() ? " is accepted" : ": " + found->second);
    if (found != messages.end()) {
      EXPECT_NE(found->second.find("needs .target sm_"), std::string::npos) << found->second;
      EXPECT_NE(found->second.find("the module is for sm_" + target), std::string::npos) << found->second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RequirementsOf,
                         testing::Values("75", "80", "86", "87", "88", "89", "90", "90a", "100", "100f",
                                         "100a", "103", "103f", "103a", "110", "110f", "110a", "120", "120f",
                                         "120a", "121", "121f", "121a"),
                         [](const auto &info) { return "sm_" + std::string(info.param); });

TEST(Requirements, OfVersions) {
  static const std::vector<std::string> versions = {
      "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1",
      "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3", "9.4", "9.5"};
  for (const Case &one : cases()) {
    EXPECT_TRUE(refused(text(one.version, one.target, {one.instruction})).empty())
        << one.instruction << " in version " << one.version << " for " << one.target;
    auto at = std::find(versions.begin(), versions.end(), one.version);
    ASSERT_NE(at, versions.end());
    ASSERT_NE(at, versions.begin()) << one.instruction << " needs nothing";
    // Refused with the target itself, or with the instruction.
    const std::string older = text(*std::prev(at), one.target, {one.instruction});
    try {
      auto messages = refused(older);
      EXPECT_EQ(messages.size(), 1u) << one.instruction << " is accepted in version " << *std::prev(at);
    } catch (const PtxError &error) {
      EXPECT_NE(error.message.find("needs .version"), std::string::npos) << error.message;
    }
  }
}

std::string messageOf(const std::string &text) {
  DeviceMemory memory;
  try {
    release(*build(ptx::parse(text), memory), memory);
    return "";
  } catch (const PtxError &error) {
    return error.what();
  }
}

TEST(Requirements, StopAModuleFromLoading) {
  EXPECT_EQ(messageOf(text("8.7", "90a", {"wgmma.fence.sync.aligned;"})), "");
  EXPECT_EQ(messageOf(text("8.7", "90", {"", "wgmma.fence.sync.aligned;"})),
            "7:1: wgmma.fence.sync.aligned: needs .target sm_90a, the module is for sm_90");
  EXPECT_EQ(messageOf(text("8.5", "90a", {"fence.acquire.gpu;"})),
            "6:1: fence.acquire.gpu: needs .version 8.6, the module has 8.5");
  EXPECT_EQ(messageOf(text("8.7", "90", {"mov.u32 %r0, %cluster_ctarank;"})), "");
  EXPECT_EQ(messageOf(text("8.7", "89", {"mov.u32 %r0, %cluster_ctarank;"})),
            "6:1: mov.u32: %cluster_ctarank needs .target sm_90 or higher, the module is for sm_89");
}

TEST(Requirements, OfDirectivesAndTargets) {
  const std::string rest = "\n.address_size 64\n.entry k() .reqnctapercluster 2 { ret; }\n";
  EXPECT_EQ(messageOf(".version 8.7\n.target sm_90" + rest), "");
  EXPECT_EQ(messageOf(".version 8.7\n.target sm_89" + rest),
            "4:8: .reqnctapercluster needs .target sm_90 or higher, the module is for sm_89");
  EXPECT_EQ(messageOf(".version 8.7\n.target sm_100f" + rest), "1:1: .target sm_100f needs .version 8.8");
  EXPECT_EQ(messageOf(".version 8.8\n.target sm_100f" + rest), "");
}

} // namespace
