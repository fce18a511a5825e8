// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions, statements and operands, by value.

#include "ParserSupport.h"

using namespace fp8emu;
using namespace fp8emu::ptx;
using namespace fp8emu_test;

using Kind = Operand::Kind;

namespace {

const char *const kRegisters = ".reg .pred p, q; .reg .b32 x, y; .reg .b64 d; .reg .f32 f; .reg .v4 .b32 v;"
                               " .shared .align 8 .b32 s[8];\n";

/// The registers' places by the declarations above.
enum : uint32_t { P, Q, X, Y, D, F, V };

/// One instruction, after the registers above.
Instruction parseInstruction(const std::string &text) {
  return parseKernel(kRegisters + text).instructions.at(0);
}

Operand parseOperand(const std::string &text) {
  return parseInstruction("mov.b32 " + text + ";").operands.at(0);
}

std::vector<uint32_t> indices(const std::vector<Operand> &operands) {
  std::vector<uint32_t> result;
  for (const Operand &operand : operands) {
    EXPECT_EQ(operand.kind, Kind::Register);
    result.push_back(operand.index);
  }
  return result;
}

std::vector<std::string> names(const std::vector<Register> &registers) {
  std::vector<std::string> result;
  for (const Register &r : registers)
    result.push_back(r.name);
  return result;
}

TEST(ParserTest, EveryFixtureParses) {
  EXPECT_GE(fixtures().size(), 10u);
  for (const auto &[name, text] : fixtures())
    EXPECT_NO_THROW({
      Module module = parse(text);
      EXPECT_FALSE(module.functions.empty()) << name;
    }) << name;
}

TEST(ParserTest, EntriesWithParametersAndDirectives) {
  Module module = parseModule(
      ".visible .entry kernel(\n.param .u64 .ptr .global .align 16 in,\n.param .align 64 .b8 map[128])\n"
      ".maxntid 128, 2\n.reqntid 4,5,6 .minnctapersm 3 .maxnreg 168 .reqnctapercluster 2\n"
      ".explicitcluster .maxclusterrank 8 .blocksareclusters .pragma \"x\"; \n{\nret;\n}");
  ASSERT_EQ(module.functions.size(), 1u);
  const Function &f = module.functions[0];
  EXPECT_EQ(f.name, "kernel");
  EXPECT_EQ(f.where.line, 4u);
  EXPECT_EQ(f.where.column, 17u);
  EXPECT_EQ(f.end.line, 12u);
  EXPECT_TRUE(f.isEntry);
  EXPECT_FALSE(f.isDeclaration);
  EXPECT_EQ(f.linkage, Linkage::Visible);
  EXPECT_EQ(f.maxThreads, (Dim3{128, 2, 1}));
  EXPECT_EQ(f.requiredThreads, (Dim3{4, 5, 6}));
  EXPECT_EQ(f.requiredCluster, (Dim3{2, 1, 1}));
  EXPECT_EQ(f.minBlocksPerSM, 3u);
  EXPECT_EQ(f.maxRegisters, 168u);
  EXPECT_EQ(f.maxClusterRank, 8u);
  EXPECT_TRUE(f.explicitCluster && f.blocksAreClusters);
  ASSERT_EQ(f.parameters.size(), 2u);
  EXPECT_EQ(f.parameters[0].pointerAlignment, 16u);
  EXPECT_EQ(f.parameters[0].type, Type::U64);
  EXPECT_EQ(f.parameters[1].alignment, 64u);
  EXPECT_EQ(f.parameters[1].bytes(), 128u);
  ASSERT_EQ(f.variables.size(), 2u);
  EXPECT_EQ(f.variables[1].name, "map");
  EXPECT_EQ(f.variables[1].space, Space::Param);
}

TEST(ParserTest, FunctionsDeclaredDefinedAndAliased) {
  Module module = parseModule(".extern .func (.param .b32 r) print(.param .b64 f, .param .b8 more[]);\n"
                              ".func g;\n.func .attribute(.unified(1, 2)) g .noreturn { trap; }\n"
                              ".weak .func h() .abi_preserve 4 { ret; }\n.alias h, g;");
  ASSERT_EQ(module.functions.size(), 4u);
  const Function &print = module.functions[0];
  EXPECT_TRUE(print.isDeclaration);
  EXPECT_FALSE(print.isEntry);
  EXPECT_EQ(print.linkage, Linkage::Extern);
  EXPECT_EQ(print.results.size(), 1u);
  EXPECT_EQ(print.parameters[1].count, 0u);
  EXPECT_TRUE(print.variables.empty());
  EXPECT_EQ(find(module, "g"), &module.functions[2]);
  EXPECT_TRUE(module.functions[2].isNoReturn);
  EXPECT_EQ(module.functions[3].linkage, Linkage::Weak);
  EXPECT_EQ(find(module, "print"), &print);
  EXPECT_EQ(find(module, "nothing"), nullptr);
  ASSERT_EQ(module.aliases.size(), 1u);
  EXPECT_EQ(module.aliases[0], std::make_pair(std::string("h"), std::string("g")));
}

TEST(ParserTest, ParametersInRegistersComeFirst) {
  Function f = parseModule(".func (.reg .b32 out) f(.reg .pred when, .param .b32 m, .reg .b64 in)\n"
                           "{ .reg .b32 x; .local .b8 l; @when mov.b32 out, x; ld.param.b32 x, [m]; "
                           "ld.local.b32 x, [l]; }")
                   .functions[0];
  EXPECT_EQ(names(f.registers), (std::vector<std::string>{"out", "when", "in", "x"}));
  EXPECT_EQ(f.results[0].space, Space::Reg);
  ASSERT_EQ(f.variables.size(), 5u);
  EXPECT_EQ(f.instructions[0].guard, 1);
  EXPECT_EQ(f.instructions[0].operands[0].index, 0u);
  EXPECT_EQ(f.instructions[1].operands[1].parts[0].index, 2u);
  EXPECT_TRUE(f.instructions[1].operands[1].parts[0].local);
  EXPECT_EQ(f.instructions[2].operands[1].parts[0].index, 4u);
}

TEST(ParserTest, RegistersByNameRangeAndVector) {
  Function f = parseKernel(".reg .b32 b, %r<3>; .reg .v2 .f32 w; .reg .v4 .b32 %v<2>; .reg .pred %p<0>;\n"
                           "mov.b32 %r2, w.y; mov.b32 %v1.z, b; mov.b32 %v1.r, w.g;");
  EXPECT_EQ(names(f.registers),
            (std::vector<std::string>{"b", "%r0", "%r1", "%r2", "w.x", "w.y", "%v0.x", "%v0.y", "%v0.z",
                                      "%v0.w", "%v1.x", "%v1.y", "%v1.z", "%v1.w"}));
  EXPECT_EQ(f.registers[4].vectorWidth, 2u);
  EXPECT_EQ(f.registers[5].vectorWidth, 1u);
  EXPECT_EQ(f.registers[5].type, Type::F32);
  EXPECT_EQ(f.registers[10].vectorWidth, 4u);
  EXPECT_EQ(indices(f.instructions[0].operands), (std::vector<uint32_t>{3, 5}));
  EXPECT_EQ(indices(f.instructions[1].operands), (std::vector<uint32_t>{12, 0}));
  EXPECT_EQ(indices(f.instructions[2].operands), (std::vector<uint32_t>{10, 5}));
}

TEST(ParserTest, InnerNamesHideOuterOnes) {
  Function f = parseKernel(".reg .b32 x, %r<3>; .shared .b32 s;\n"
                           "{ .reg .f32 x, %r<2>; .local .b64 s; mov.b32 x, %r1; mov.b32 %r2, s; "
                           "{ .reg .pred x; mov.pred x, 1; } mov.b32 x, 0; }\n"
                           "mov.b32 x, %r1; mov.b32 %r2, s;");
  ASSERT_EQ(f.registers.size(), 8u);
  EXPECT_EQ(f.registers[4].type, Type::F32);
  EXPECT_EQ(indices(f.instructions[0].operands), (std::vector<uint32_t>{4, 6}));
  EXPECT_EQ(f.instructions[1].operands[0].index, 3u);
  EXPECT_EQ(f.instructions[1].operands[1].index, 2u);
  EXPECT_EQ(f.instructions[2].operands[0].index, 7u);
  EXPECT_EQ(f.instructions[3].operands[0].index, 4u);
  EXPECT_EQ(indices(f.instructions[4].operands), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(f.instructions[5].operands[1].index, 1u);
}

TEST(ParserTest, LabelsAreFoundFromTheInside) {
  Function f = parseKernel("again: bra again;\n{ bra again; bra out; again: }\n{ bra again; }\nout: again2:");
  ASSERT_EQ(f.labels.size(), 4u);
  EXPECT_EQ(f.labels[0].instruction, 0u);
  EXPECT_EQ(f.labels[1].name, "again");
  EXPECT_EQ(f.labels[1].instruction, 3u);
  EXPECT_EQ(f.labels[2].instruction, 4u);
  EXPECT_EQ(f.labels[3].where.line, 8u);
  const uint32_t expected[] = {0, 1, 2, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(f.instructions[i].operands[0].kind, Kind::Label);
    EXPECT_EQ(f.instructions[i].operands[0].index, expected[i]) << i;
  }
}

TEST(ParserTest, GlobalsInsideFunctionsStandInTheModule) {
  Module module =
      parseModule(".global .b32 g; .entry k() { .global .b32 g[2] = {1, 2}; .reg .b64 d; mov.b64 d, g; }");
  ASSERT_EQ(module.variables.size(), 2u);
  const Operand &g = module.functions[0].instructions[0].operands[1];
  EXPECT_FALSE(g.local);
  EXPECT_EQ(g.index, 1u);
  EXPECT_EQ(module.variables[1].init.size(), 8u);
}

TEST(ParserTest, InstructionsWithModifiersAndGuards) {
  Instruction i = parseInstruction(" @!q ld.global.L1::no_allocate.L2::128B.v2.b32 {x, y}, [d];");
  EXPECT_EQ(i.opcode, "ld");
  EXPECT_EQ(i.modifiers, (std::vector<std::string>{"global", "L1::no_allocate", "L2::128B", "v2", "b32"}));
  EXPECT_EQ(i.guard, static_cast<int32_t>(Q));
  EXPECT_TRUE(i.guardNegated);
  EXPECT_EQ(i.where.line, 6u);
  EXPECT_EQ(i.where.column, 6u);
  Instruction plain = parseInstruction("@p ret;");
  EXPECT_EQ(plain.guard, static_cast<int32_t>(P));
  EXPECT_FALSE(plain.guardNegated);
  EXPECT_TRUE(plain.operands.empty());
  EXPECT_EQ(parseInstruction("exit;").guard, -1);
  EXPECT_EQ(parseInstruction("tcgen05.ld.sync.aligned.16x64b.x1.b32 {x}, [y];").modifiers[3], "16x64b");
  EXPECT_EQ(
      parseInstruction("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes"
                       " [x], [d, {x, x}], [y];")
          .modifiers[7],
      "mbarrier::complete_tx::bytes");
}

TEST(ParserTest, Constants) {
  Operand negative = parseOperand("-0x10");
  EXPECT_EQ(negative.kind, Kind::Integer);
  EXPECT_EQ(negative.value, -16);
  EXPECT_FALSE(negative.isUnsigned);
  EXPECT_FALSE(negative.negated);
  EXPECT_TRUE(parseOperand("7U").isUnsigned);
  EXPECT_EQ(parseOperand("0xFFFFFFFFFFFFFFFF").value, -1);
  EXPECT_EQ(parseOperand("(3+4)*2").value, 14);
  EXPECT_EQ(parseOperand("1|2").value, 3);
  EXPECT_EQ(parseOperand("!0").value, 1);
  EXPECT_EQ(parseOperand("-WARP_SZ").value, -32);
  Operand single = parseOperand("0fBF800000");
  EXPECT_EQ(single.kind, Kind::Float);
  EXPECT_TRUE(single.isSingle);
  EXPECT_EQ(single.value, 0xBF800000);
  Operand real = parseOperand("-1.5");
  EXPECT_EQ(real.kind, Kind::Float);
  EXPECT_FALSE(real.isSingle);
  EXPECT_EQ(static_cast<uint64_t>(real.value), 0xBFF8000000000000u);
}

TEST(ParserTest, RegistersNegatedSelectedSunk) {
  Operand negated = parseOperand("!p");
  EXPECT_EQ(negated.kind, Kind::Register);
  EXPECT_EQ(negated.index, P);
  EXPECT_TRUE(negated.negated);
  EXPECT_TRUE(parseOperand("-x").negated);
  Operand selected = parseOperand("y.h1");
  EXPECT_EQ(selected.index, Y);
  EXPECT_EQ(selected.text, "h1");
  EXPECT_EQ(parseOperand("_").kind, Kind::Sink);
  Operand whole = parseOperand("v");
  EXPECT_EQ(whole.kind, Kind::Vector);
  EXPECT_EQ(indices(whole.parts), (std::vector<uint32_t>{V, V + 1, V + 2, V + 3}));
}

TEST(ParserTest, SpecialRegisters) {
  Operand tid = parseOperand("%tid.y");
  EXPECT_EQ(tid.kind, Kind::Special);
  EXPECT_EQ(tid.text, "%tid.y");
  for (const char *special : {"%ntid.x", "%cluster_nctaid.z", "%laneid", "%lanemask_lt", "%clock64",
                              "%globaltimer_lo", "%envreg31", "%pm7", "%pm0_64", "%is_explicit_cluster",
                              "%cluster_ctarank", "%dynamic_smem_size", "%reserved_smem_offset_1"})
    EXPECT_EQ(parseOperand(special).text, special);
  Function shadowed = parseKernel(".reg .b32 %laneid; mov.b32 %laneid, 3;");
  EXPECT_EQ(shadowed.instructions[0].operands[0].kind, Kind::Register);
}

TEST(ParserTest, Variables) {
  Operand parameter = parseOperand("a");
  EXPECT_EQ(parameter.kind, Kind::Variable);
  EXPECT_TRUE(parameter.local);
  EXPECT_EQ(parameter.index, 0u);
  Operand offset = parseOperand("s+4-1");
  EXPECT_EQ(offset.index, 1u);
  EXPECT_EQ(offset.value, 3);
  EXPECT_EQ(parseOperand("s[3]").value, 12);
  Operand element = parseInstruction("ld.shared.b32 x, s[3];").operands[1];
  EXPECT_EQ(element.kind, Kind::Address);
  EXPECT_EQ(element.value, 12);
  EXPECT_EQ(element.parts.at(0).kind, Kind::Variable);
  EXPECT_EQ(element.parts[0].value, 0);
}

TEST(ParserTest, Addresses) {
  Operand plain = parseOperand("[d]");
  EXPECT_EQ(plain.kind, Kind::Address);
  EXPECT_EQ(plain.value, 0);
  EXPECT_EQ(indices(plain.parts), std::vector<uint32_t>{D});
  EXPECT_EQ(parseOperand("[d+4]").value, 4);
  EXPECT_EQ(parseOperand("[d+-4]").value, -4);
  EXPECT_EQ(parseOperand("[d - 4]").value, -4);
  EXPECT_EQ(parseOperand("[d+4*2+1]").value, 9);
  Operand variable = parseOperand("[s+8]");
  EXPECT_EQ(variable.parts[0].kind, Kind::Variable);
  EXPECT_EQ(variable.parts[0].value, 0);
  EXPECT_EQ(variable.value, 8);
  Operand immediate = parseOperand("[0x10]");
  EXPECT_EQ(immediate.parts[0].kind, Kind::Integer);
  EXPECT_EQ(immediate.parts[0].value, 16);
}

TEST(ParserTest, AddressesOfTensors) {
  Instruction i = parseInstruction("cp.async.bulk.tensor.2d.x [x], [d, {x, -8}, {y}], [y], {x, y}, d;");
  ASSERT_EQ(i.operands.size(), 5u);
  const Operand &tensor = i.operands[1];
  EXPECT_EQ(tensor.kind, Kind::Address);
  ASSERT_EQ(tensor.parts.size(), 3u);
  EXPECT_EQ(tensor.parts[0].index, D);
  EXPECT_EQ(tensor.parts[1].kind, Kind::Vector);
  EXPECT_EQ(tensor.parts[1].parts[1].value, -8);
  EXPECT_EQ(indices(tensor.parts[2].parts), std::vector<uint32_t>{Y});
  EXPECT_EQ(i.operands[3].kind, Kind::Vector);
}

TEST(ParserTest, VectorsAndPairs) {
  Operand vector = parseOperand("{x, _, 3, y}");
  EXPECT_EQ(vector.kind, Kind::Vector);
  ASSERT_EQ(vector.parts.size(), 4u);
  EXPECT_EQ(vector.parts[1].kind, Kind::Sink);
  EXPECT_EQ(vector.parts[2].value, 3);
  Operand pair = parseOperand("p|q");
  EXPECT_EQ(pair.kind, Kind::Pair);
  EXPECT_EQ(indices(pair.parts), (std::vector<uint32_t>{P, Q}));
  EXPECT_EQ(parseOperand("_|p").parts[0].kind, Kind::Sink);
  EXPECT_EQ(parseOperand("x|_").parts[1].kind, Kind::Sink);
}

TEST(ParserTest, DirectCalls) {
  Module module = parseModule(".func (.param .b32 r) f(.param .b32 a); .func g();\n"
                              ".entry k() { .reg .b64 d; .param .b32 r, a;\n"
                              "call.uni (r), f, (a); call g; call g, (); mov.b64 d, f; }");
  const std::vector<Instruction> &calls = module.functions[2].instructions;
  ASSERT_EQ(calls[0].operands.size(), 3u);
  EXPECT_EQ(calls[0].operands[0].kind, Kind::List);
  EXPECT_EQ(calls[0].operands[0].parts[0].kind, Kind::Variable);
  EXPECT_EQ(calls[0].operands[1].kind, Kind::Symbol);
  EXPECT_EQ(calls[0].operands[1].text, "f");
  EXPECT_FALSE(calls[0].operands[1].local);
  EXPECT_EQ(calls[0].operands[2].parts[0].index, 1u);
  EXPECT_EQ(calls[1].operands[0].text, "g");
  EXPECT_EQ(calls[2].operands[1].kind, Kind::List);
  EXPECT_TRUE(calls[2].operands[1].parts.empty());
  EXPECT_EQ(calls[3].operands[1].kind, Kind::Symbol);
}

TEST(ParserTest, IndirectCalls) {
  Function f =
      parseModule(".func (.param .b32 r) g(.param .b32 a); .entry k() { .reg .b64 d; .param .b32 r, a;\n"
                  "proto : .callprototype (.param .align 8 .b8 _[16]) _ (.param .b32 _, .param .b64 _)"
                  " .noreturn .abi_preserve 4;\n"
                  "call (r), d, (a), proto; call (r), d, (a), list; call d, none;\n"
                  "list: .calltargets g, g; none: .callprototype _; }")
          .functions[1];
  ASSERT_EQ(f.targetLists.size(), 3u);
  const TargetList &prototype = f.targetLists[0];
  EXPECT_EQ(prototype.name, "proto");
  EXPECT_TRUE(prototype.isPrototype);
  EXPECT_EQ(prototype.results[0].bytes(), 16u);
  EXPECT_EQ(prototype.results[0].alignment, 8u);
  EXPECT_EQ(prototype.parameters.size(), 2u);
  EXPECT_EQ(f.targetLists[1].functions, (std::vector<std::string>{"g", "g"}));
  EXPECT_FALSE(f.targetLists[1].isPrototype);
  for (uint32_t i = 0; i < 3; ++i) {
    const Operand &targets = f.instructions[i].operands.back();
    EXPECT_EQ(targets.kind, Kind::Symbol);
    EXPECT_TRUE(targets.local);
    EXPECT_EQ(targets.index, i);
  }
}

TEST(ParserTest, BranchTables) {
  Function f =
      parseKernel(".reg .b32 x;\ntable: .branchtargets one, two, one;\nbrx.idx x, table;\none:\nret;\n two:");
  ASSERT_EQ(f.targetLists.size(), 1u);
  EXPECT_EQ(f.targetLists[0].labels, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(f.labels[1].name, "two");
  EXPECT_EQ(f.labels[1].instruction, 2u);
  EXPECT_EQ(f.instructions[0].operands[1].index, 0u);
  EXPECT_EQ(f.instructions[0].operands[1].text, "table");
}

TEST(ParserTest, SourceLines) {
  Module module =
      parseModule(".file 7 \"a.cu\"\n.entry k() { ret; .loc 9 3 4\n.loc 7 5 6, function_name $L__s+3, "
                  "inlined_at 9 1 2\nret; .loc 8 1 1\nret; }\n.file 9 \"b.cu\"");
  ASSERT_EQ(module.sourceLines.size(), 3u);
  EXPECT_EQ(module.sourceLines[0].file, 2u);
  EXPECT_EQ(module.sourceLines[0].line, 3u);
  EXPECT_EQ(module.sourceLines[0].column, 4u);
  EXPECT_EQ(module.sourceLines[1].file, 1u);
  EXPECT_EQ(module.sourceLines[2].file, 0u);
  const std::vector<Instruction> &instructions = module.functions[0].instructions;
  EXPECT_EQ(instructions[0].sourceLine, 0u);
  EXPECT_EQ(instructions[1].sourceLine, 2u);
  EXPECT_EQ(instructions[2].sourceLine, 3u);
}

} // namespace
