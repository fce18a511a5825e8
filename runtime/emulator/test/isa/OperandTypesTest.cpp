// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types, operands and modifiers that instructions take, compared with what ptxas said of each form
// of inputs/operands.txt with each type and each kind of operand, and without each modifier.

#include "isa/Build.h"
#include "ptx/Parser.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

using namespace fp8emu;

namespace {

using Words = std::vector<std::string>;

Words wordsOf(const std::string &text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The parts of a line between " | ".
Words partsOf(std::string line) {
  Words out;
  for (size_t bar; (bar = line.find(" | ")) != std::string::npos; line.erase(0, bar + 3))
    out.push_back(line.substr(0, bar));
  out.push_back(line);
  return out;
}

/// The rows of operands.txt that begin with the word, or with another one.
std::vector<Words> rows(bool ofTypes) {
  std::vector<Words> out;
  std::ifstream file(FP8EMU_TEST_INPUTS "/operands.txt");
  for (std::string line; std::getline(file, line);)
    if (line[0] != '#' && (partsOf(line)[0] == "types") == ofTypes)
      out.push_back(partsOf(line));
  return out;
}

/// As in operands.py.
const Words kTypes = {"pred", "b8",  "u8",  "s8",    "b16",   "u16",    "s16",    "f16",   "bf16",
                      "b32",  "u32", "s32", "f32",   "f16x2", "bf16x2", "u16x2",  "s16x2", "b64",
                      "u64",  "s64", "f64", "f32x2", "b128",  "tf32",   "e4m3x2", "e5m2x2"};
const std::map<std::string, std::string> kHeldBy = {{"bf16", "b16"},   {"bf16x2", "b32"}, {"u16x2", "b32"},
                                                    {"s16x2", "b32"},  {"f32x2", "b64"},  {"tf32", "b32"},
                                                    {"e4m3x2", "b16"}, {"e5m2x2", "b16"}};
const Words kRegisters = {"b8",  "u8",  "s8",  "b16", "u16", "s16", "f16", "b32",
                          "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
const std::map<std::string, std::string> kOthers = {
    {"pred", "%pred_7"},   {"!pred", "!%pred_7"}, {"-s32", "-%s32_7"},          {"int", "1"},
    {"1.5", "1.5"},        {"0f", "0f3F800000"},  {"0d", "0d3FF0000000000000"}, {"special", "%tid.x"},
    {"variable", "global"}};

std::string operandOf(const std::string &kind) {
  auto found = kOthers.find(kind);
  return found == kOthers.end() ? "%" + kind + "_7" : found->second;
}

Words kindsOf(const std::string &mark) {
  if (mark == "a:")
    return {"f16", "f32", "f64", "b64", "u64", "s64"};
  Words out = kRegisters;
  if (mark.empty())
    for (const auto &[kind, text] : kOthers)
      out.push_back(kind);
  return out;
}

constexpr uint32_t kFirstLine = 12;

/// The errors of the forms, one a line; empty where it is accepted.
Words refusals(const std::string &target, const Words &forms) {
  static const std::string head = [] {
    std::ifstream file(FP8EMU_TEST_INPUTS "/operands.head");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  std::string text = head;
  text.replace(text.find("TARGET"), 6, target);
  for (const std::string &form : forms)
    text += form + "\n";
  Words out(forms.size());
  try {
    for (const UnknownInstruction &unknown : findUnknown(ptx::parse(text + "ret; }\n")))
      out[unknown.where.line - kFirstLine] += unknown.message;
    return out;
  } catch (const PtxError &error) {
    // The parser ends at the first error.
    if (forms.size() == 1)
      return {error.what()};
    for (size_t i = 0; i < forms.size(); ++i)
      out[i] = refusals(target, {forms[i]})[0];
    return out;
  }
}

/// Where the emulator and ptxas differ. The emulator goes by the text of the PTX ISA where ptxas takes
/// more than it; values that are out of range are faults of the kernel that runs.
struct Exception {
  const char *form, *kinds, *why;
};

const Exception kExceptions[] = {
    {"(bar|barrier)\\.", "int", "a number of threads is looked at when the barrier runs"},
    {"cp\\.(async|reduce\\.async)\\.bulk", "int", "a size is looked at when the copy runs"},
    {"tcgen05\\.(alloc|dealloc|commit)", "int|f16", "a value is looked at when the instruction runs"},
    {"st\\.bulk", "int|b32", "a size is looked at when the instruction runs"},
    {"createpolicy", "1.5", "a fraction is no part of what is emulated"},
    {"ld\\.(u32|u64|b64) .*param\\]", "without param|without param::entry",
     "generic addresses of parameters are those of cvta.param"},
    {"cvta\\.", "variable", "the space of the variable is not compared"},
    {"mma\\.sync|wmma\\.", ".*", "ptxas looks at registers in braces where there is one of them only"},
    {"(wgmma|tcgen05)\\.", "without aligned", ".aligned is compulsory (9.7.15, 9.7.16)"},
    {"testp", "without finite", "a test is compulsory (9.7.3.1)"},
    {"mapa", "without shared::cluster", "generic addresses are 64 bits wide"},
    {"st\\.async\\.gpu", "without release", ".release is compulsory (9.7.9.12)"},
    {"(set|setp)\\.\\w+\\.bf16x2|movmatrix|cvt\\..*ue8m0x2|sub\\.rn\\.f32\\.bf16", ".*",
     "ptxas looks at no type"},
    {"(cp|st|red)\\.async", "without shared|without shared::cluster", "generic addresses are 64 bits wide"},
    {"isspacep", "b32|u32|s32", "generic addresses are 64 bits wide"},
    {"cvt\\.(pack|rs|rn|rz)\\.", "b64|u64|s64|f64", "wider registers are for single numbers (9.4.1)"},
    {"cp\\.async\\.bulk.*tensor|cp\\.reduce.*tensor|atom\\.global\\.v|mov\\.b16 \\{", ".*",
     "ptxas looks at no type in braces"},
    {"mov\\.(b16|u16|s16|b128) .*(local|%tid);", ".*", "an address has 32 or 64 bits"},
    {"set\\.lt\\.b?f16", "u16|s16|b16", "ptxas takes an integer for a result of .f16 and .bf16"},
};

bool isException(const std::string &form, const std::string &kind) {
  return std::any_of(std::begin(kExceptions), std::end(kExceptions), [&](const Exception &known) {
    return std::regex_search(form, std::regex("^(" + std::string(known.form) + ")")) &&
           std::regex_match(kind, std::regex(known.kinds));
  });
}

/// A variant of a form and whether ptxas accepts it.
struct Variant {
  std::string form, kind;
  bool accepted;
};

void compare(const std::string &target, const std::vector<Variant> &variants) {
  Words forms;
  for (const Variant &variant : variants)
    forms.push_back(variant.form);
  const Words messages = refusals(target, forms);
  for (size_t i = 0; i < variants.size(); ++i)
    if (messages[i].empty() != variants[i].accepted && !isException(variants[i].form, variants[i].kind))
      ADD_FAILURE() << variants[i].form
                    << (variants[i].accepted ? " is refused: " + messages[i] : " is accepted") << " ["
                    << variants[i].kind << "]";
}

bool contains(const Words &words, const std::string &word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const std::regex kMark("<(a:|v:|)([^>]*)>");

std::string plain(const std::string &form) { return std::regex_replace(form, kMark, "$2"); }

TEST(OperandTypes, TypesOfInstructions) {
  const auto all = rows(/*ofTypes=*/true);
  ASSERT_GT(all.size(), 200u);
  for (const Words &row : all) {
    const Words accepted = wordsOf(row.size() > 2 ? row[2] : "");
    std::vector<Variant> variants;
    for (const std::string &type : kTypes) {
      auto held = kHeldBy.find(type);
      const std::string reg = "%" + (held == kHeldBy.end() ? type : held->second) + "_";
      const std::string form = std::regex_replace(row[1], std::regex("%T_"), reg);
      variants.push_back(
          {std::regex_replace(form, std::regex("\\bT\\b"), type), type, contains(accepted, type)});
    }
    compare("sm_100a", variants);
  }
}

TEST(OperandTypes, KindsOfOperands) {
  const auto all = rows(/*ofTypes=*/false);
  ASSERT_GT(all.size(), 800u);
  for (const Words &row : all) {
    const std::string &form = row[1];
    std::vector<Variant> variants = {{plain(form), "as it is", true}};
    std::istringstream verdicts(row[2]);
    for (std::sregex_iterator mark(form.begin(), form.end(), kMark), end; mark != end; ++mark) {
      std::string kinds;
      std::getline(verdicts, kinds, ';');
      const Words accepted = wordsOf(kinds);
      const std::string before = plain(form.substr(0, size_t(mark->position()))),
                        after = plain(form.substr(size_t(mark->position() + mark->length())));
      for (const std::string &kind : kindsOf((*mark)[1]))
        variants.push_back({before + operandOf(kind) + after, kind, contains(accepted, kind)});
    }
    compare(row[0], variants);
  }
}

TEST(OperandTypes, ModifiersThatAreCompulsory) {
  for (const Words &row : rows(/*ofTypes=*/false)) {
    const std::string form = plain(row[1]);
    const size_t opcode = std::min(form.find(' '), form.find(';'));
    const Words accepted = wordsOf(row.size() > 3 ? row[3] : "");
    std::vector<Variant> variants;
    for (size_t dot = form.find('.'); dot < opcode;) {
      const size_t next = std::min(form.find('.', dot + 1), opcode);
      const std::string modifier = form.substr(dot + 1, next - dot - 1);
      variants.push_back(
          {form.substr(0, dot) + form.substr(next), "without " + modifier, contains(accepted, modifier)});
      dot = next;
    }
    compare(row[0], variants);
  }
}

/// The line, the instruction, the operand, and the types that it may have.
TEST(OperandTypes, AreNamedInMessages) {
  EXPECT_EQ(refusals("sm_89", {"add.u32 %u32_0, %f32_1, %u32_2;"})[0],
            "add.u32: %f32_1 is a .f32 register, .u32 is expected: .b32, .u32, .s32");
  EXPECT_EQ(refusals("sm_89", {"add.u32 %u32_0, %u32_1, 1.5;"})[0],
            "add.u32: a floating-point number stands where .u32 is expected: a register or an integer");
  EXPECT_EQ(
      refusals("sm_89", {"add.f32 %f32_0, %f32_1, 1;"})[0],
      "add.f32: an integer stands where .f32 is expected: a register, or a number as 1.0 or 0f3F800000");
  EXPECT_EQ(refusals("sm_89", {"mov.u32 %u32_0, %tid;"})[0],
            "mov.u32: %tid has four parts: %tid.x, .y, .z and .w");
  EXPECT_EQ(refusals("sm_89", {"add.u32 %u32_0, %u32_1, %tid.x;"})[0],
            "add.u32: %tid.x is a special register: mov it to a register first");
  EXPECT_EQ(refusals("sm_89", {"vote.all.pred %pred_0, %pred_1;"})[0], "vote.all.pred: .sync is missing");
  EXPECT_EQ(refusals("sm_89", {"add.u32 _, %u32_1, %u32_2;"})[0],
            "add.u32: the sink _ stands where a register is written");
}

} // namespace
