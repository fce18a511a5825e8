// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Damaged PTX must give a module or a PtxError with a line, never a crash, a hang
// or memory without end. Every run takes other texts: the seed is printed, and
// FP8EMU_FUZZ_SEED=N repeats a run; FP8EMU_FUZZ_RUNS says how long.

#include "Fuzz.h"
#include "ParserSupport.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>

using namespace fp8emu;
using fp8emu_test::setting;

namespace {

/// Where words, numbers and single other characters begin, and the end.
std::vector<size_t> tokenStarts(const std::string &text) {
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%'; };
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i)
    if (i == 0 || !isWord(text[i]) || !isWord(text[i - 1]))
      starts.push_back(i);
  starts.push_back(text.size());
  return starts;
}

class Damage {
public:
  explicit Damage(uint64_t seed) : random(seed) {}

  /// A window of lines of `text` after its header, with one to four changes.
  std::string operator()(const std::string &text) {
    std::string piece = window(text);
    for (uint64_t changes = 1 + below(4); changes > 0; --changes)
      change(piece);
    return piece;
  }

  uint64_t below(uint64_t count) { return count == 0 ? 0 : random() % count; }

private:
  /// Large texts would spend the runs on what is far from the damage; most runs see
  /// some whole functions.
  std::string window(const std::string &text) {
    constexpr size_t kHeader = 400, kWindow = 6000;
    if (text.size() < kHeader + kWindow || below(50) == 0)
      return text;
    size_t begin = text.find("\n.", kHeader + below(text.size() - kHeader));
    if (begin == std::string::npos)
      return text.substr(0, kWindow);
    return ".version 9.0\n.target sm_90a\n.address_size 64\n" + text.substr(begin, kWindow);
  }

  void change(std::string &text) {
    static const std::string kTokens[] = {"{",
                                          "}",
                                          "(",
                                          ")",
                                          "[",
                                          "]",
                                          ";",
                                          ",",
                                          ":",
                                          "<",
                                          ">",
                                          "=",
                                          "@",
                                          "!",
                                          "|",
                                          "-",
                                          "+4",
                                          "~",
                                          "?",
                                          "_",
                                          ".reg",
                                          ".v4",
                                          ".align",
                                          ".b8",
                                          ".pred",
                                          ".shared",
                                          ".param",
                                          ".func",
                                          ".loc",
                                          ".entry",
                                          ".file",
                                          ".section",
                                          ".alias",
                                          "\"",
                                          "/*",
                                          "4294967295",
                                          "1000000",
                                          "0",
                                          "0x",
                                          "0f3F800000",
                                          "0xFF(",
                                          "generic(",
                                          "bra",
                                          "call",
                                          "<5>",
                                          ".extern",
                                          "0.5",
                                          "1e999",
                                          "%",
                                          ".branchtargets",
                                          "\0",
                                          "\xff",
                                          "((((((",
                                          "{{{{",
                                          "[[[[[",
                                          "WARP_SZ",
                                          ".callprototype"};
    std::vector<size_t> starts = tokenStarts(text);
    size_t token = below(starts.size());
    size_t at = starts[token];
    switch (below(7)) {
    case 0: // a flipped bit
      if (at < text.size())
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
      break;
    case 1: // the end is missing
      text.resize(at);
      break;
    case 2: // a piece is missing
      text.erase(at, 1 + below(16));
      break;
    case 3: // a piece is there twice
      text.insert(at, text.substr(at, below(200)));
      break;
    case 4: // a token too many
      text.insert(at, kTokens[below(std::size(kTokens))]);
      break;
    case 5: // another token
      if (token + 1 < starts.size())
        text.replace(at, starts[token + 1] - at, kTokens[below(std::size(kTokens))]);
      break;
    default: // two tokens have changed places
      if (token + 3 < starts.size()) {
        std::string first = text.substr(at, starts[token + 1] - at);
        std::string second = text.substr(starts[token + 1], starts[token + 2] - starts[token + 1]);
        text.replace(at, first.size() + second.size(), second + first);
      }
    }
  }

  std::mt19937_64 random;
};

/// Reads what a user of the tree reads by index, so that a sanitizer sees what is
/// out of place.
void visit(const ptx::Module &module, const ptx::Function &function, const ptx::Operand &operand) {
  using Kind = ptx::Operand::Kind;
  if (operand.kind == Kind::Register) {
    ASSERT_LT(operand.index, function.registers.size());
  } else if (operand.kind == Kind::Variable) {
    ASSERT_LT(operand.index, operand.local ? function.variables.size() : module.variables.size());
  } else if (operand.kind == Kind::Label) {
    ASSERT_LT(operand.index, function.labels.size());
  } else if (operand.kind == Kind::Symbol && operand.local) {
    ASSERT_LT(operand.index, function.targetLists.size());
  } else if (operand.kind == Kind::Symbol) {
    ASSERT_NE(ptx::find(module, operand.text), nullptr);
  } else if (operand.kind == Kind::Address || operand.kind == Kind::Vector) {
    ASSERT_FALSE(operand.parts.empty());
  } else if (operand.kind == Kind::Pair) {
    ASSERT_EQ(operand.parts.size(), 2u);
  }
  for (const ptx::Operand &part : operand.parts)
    visit(module, function, part);
}

void visit(const ptx::Module &module) {
  for (const ptx::Variable &variable : module.variables)
    ASSERT_LE(variable.init.size(), variable.bytes());
  for (const ptx::SourceLine &line : module.sourceLines)
    ASSERT_LE(line.file, module.files.size());
  for (const ptx::Function &function : module.functions) {
    for (const ptx::Label &label : function.labels)
      ASSERT_LE(label.instruction, function.instructions.size());
    for (const ptx::TargetList &list : function.targetLists)
      for (uint32_t label : list.labels)
        ASSERT_LT(label, function.labels.size());
    for (const ptx::Instruction &instruction : function.instructions) {
      ASSERT_LT(instruction.guard, static_cast<int64_t>(function.registers.size()));
      ASSERT_LE(instruction.sourceLine, module.sourceLines.size());
      for (const ptx::Operand &operand : instruction.operands)
        visit(module, function, operand);
    }
  }
}

TEST(ParserFuzzTest, DamagedTextIsRefusedWithALineOrWhole) {
  uint64_t seed = setting("FP8EMU_FUZZ_SEED", std::random_device{}());
  uint64_t runs = setting("FP8EMU_FUZZ_RUNS", 3000);
  std::printf("FP8EMU_FUZZ_SEED=%llu\n", static_cast<unsigned long long>(seed));
  auto valid = fp8emu_test::fixtures();
  ASSERT_FALSE(valid.empty());
  Damage damage(seed);
  uint64_t refused = 0;
  for (uint64_t run = 0; run < runs; ++run) {
    std::string text = damage(valid[damage.below(valid.size())].second);
    auto lines = static_cast<uint32_t>(1 + std::count(text.begin(), text.end(), '\n'));
    try {
      ptx::Module module = ptx::parse(text);
      visit(module);
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "run " << run;
    } catch (const PtxError &error) {
      ++refused;
      ASSERT_GE(error.where.line, 1u) << "run " << run;
      ASSERT_LE(error.where.line, lines) << "run " << run;
      ASSERT_GE(error.where.column, 1u) << "run " << run;
      ASSERT_EQ(error.message.find_first_of("\n\r\xff"), std::string::npos) << "run " << run;
    }
  }
  EXPECT_GT(refused, runs / 3);
  EXPECT_LT(refused, runs);
}

} // namespace
