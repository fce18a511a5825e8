// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics of the parser for malformed text, one case for each: the message and the
// place.

#include "ParserSupport.h"

using namespace fp8emu;
using namespace fp8emu_test;

namespace {

struct Malformed {
  const char *name;
  std::string text;
  /// what(), with line and column.
  std::string error;
};

class ParserErrorTest : public testing::TestWithParam<Malformed> {};

TEST_P(ParserErrorTest, SaysWhatAndWhere) {
  try {
    ptx::parse(GetParam().text);
    ADD_FAILURE() << "this was accepted:\n" << GetParam().text;
  } catch (const PtxError &error) {
    EXPECT_EQ(error.what(), GetParam().error);
    EXPECT_EQ(error.what(), std::to_string(error.where.line) + ":" + std::to_string(error.where.column) +
                                ": " + error.message);
  }
}

/// On line 4 of a module.
Malformed inModule(const char *name, const std::string &text, const std::string &error) {
  return {name, moduleText(text), "4:" + error};
}

/// As an initialiser: the value begins in column 18.
Malformed inValue(const char *name, const std::string &value, const std::string &error) {
  return inModule(name, ".global .b64 x = " + value + ";", error);
}

/// On line 5 in a kernel, after declarations on the line before.
Malformed inKernel(const char *name, const std::string &text, const std::string &error) {
  return {name,
          moduleText(
              ".func f(); .entry k() { .reg .pred p; .reg .b32 x; .reg .v2 .b32 v; .local .b32 l, m[2];\n") +
              text + "\n}\n",
          "5:" + error};
}

std::string repeated(const std::string &text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i)
    result += text;
  return result;
}

std::string caseName(const testing::TestParamInfo<Malformed> &info) { return info.param.name; }

const Malformed kLexer[] = {
    inModule("Comment", ".pragma \"a\"; /* x",
             "14: this comment does not end: expected '*/', found the end of the text"),
    inModule("StringOverLines", ".pragma \"a\n\";",
             "9: this string does not end: expected '\"' on the same line"),
    inModule("Character", "'a'", "1: found the character ''', which begins nothing in PTX"),
    inModule("ControlCharacter", "\x01", "1: found the character '\\x01', which begins nothing in PTX"),
    inModule("Dot", ". entry k() { ret; }", "1: expected a directive or modifier after '.', found ' '"),
    inValue("DigitInOtherBase", "0b12", "21: expected the end of a number, found '2'"),
    inValue("LetterAfterNumber", "12u", "20: expected the end of a number, found 'u'"),
    inValue("NoHexadecimalDigits", "0x", "18: expected digits after '0x'"),
    inValue("ShortExactFloat", "0f3F80", "18: expected 8 hexadecimal digits after '0f', found 4"),
    inValue("LongExactFloat", "0d3FF00000000000000",
            "18: expected 16 hexadecimal digits after '0d', found 17"),
    inValue("IntegerOverflow", "18446744073709551616", "18: this number does not fit in 64 bits"),
    inValue("FloatOverflow", "1e400", "18: this number is not within the range of an f64"),
    inValue("LetterAfterFloat", "1.5f", "21: expected the end of a number, found 'f'"),
};
INSTANTIATE_TEST_SUITE_P(Lexer, ParserErrorTest, testing::ValuesIn(kLexer), caseName);

const Malformed kConstants[] = {
    inValue("NoConstant", "1 + y", "22: expected a constant, found 'y'"),
    inValue("NoOperand", "1 +", "21: expected a constant, found ';'"),
    inValue("Parenthesis", "(1", "20: expected ')' after an expression, found ';'"),
    inValue("OtherCast", "(.s32)1", "19: expected the cast '.s64' or '.u64', found '.s32'"),
    inValue("CastParenthesis", "(.s64 1", "24: expected ')' after the type of a cast, found '1'"),
    inValue("FloatNegated", "~1.5", "18: expected integers beside '~', found a floating-point constant"),
    inValue("FloatCast", "(.u64)1.5", "19: expected integers beside '.u64', found a floating-point constant"),
    inValue("FloatModulo", "1.5 % 0.5", "22: expected integers beside '%', found a floating-point constant"),
    inValue("IntegerAndFloat", "1 + 0.5",
            "20: expected two integers or two floating-point constants beside '+', found one of each"),
    inValue("OperatorOnExactFloat", "1.0 + 0f3F800000",
            "22: '+' cannot be applied to a constant that is written as 0f..."),
    inValue("MinusOnExactFloat", "-0f3F800000",
            "18: '-' cannot be applied to a constant that is written as 0f..."),
    inValue("DivisionByZero", "1 / (2 - 2)", "20: division by zero"),
    inValue("ModuloByZero", "1 % 0", "20: division by zero"),
    inValue("FloatDivisionByZero", "1.0 / 0.0", "22: division by zero"),
    inValue("ConditionalColon", "1 ? 2", "23: expected ':' between the values of '?', found ';'"),
    inValue("ConditionalFloat", "1 ? 2.0 : 1.0",
            "20: expected integers beside '?', found a floating-point constant"),
    inValue("FloatCondition", "1.0 ? 2 : 1",
            "22: expected integers beside '?', found a floating-point constant"),
};
INSTANTIATE_TEST_SUITE_P(Constants, ParserErrorTest, testing::ValuesIn(kConstants), caseName);

const Malformed kModule[] = {
    Malformed{"Empty", "",
              "1:1: expected '.version' at the beginning of a module, found the end of the text"},
    Malformed{"NoVersion", ".target sm_90a",
              "1:1: expected '.version' at the beginning of a module, found '.target'"},
    Malformed{"VersionNumber", ".version 9", "1:10: expected a version such as 9.0, found '9'"},
    Malformed{"VersionTooLong", ".version 9.0000000",
              "1:10: expected a version such as 9.0, found '9.0000000'"},
    Malformed{"NoTarget", ".version 9.0\n", "2:1: expected '.target', found the end of the text"},
    Malformed{"TargetAfterDeclaration", ".version 9.0\n.global .b32 x;\n",
              "2:1: expected '.target' before the first declaration, found '.global'"},
    Malformed{"UnknownTarget", ".version 9.0\n.target debug, volta",
              "2:16: expected a target such as sm_90a or the option 'debug', found 'volta'"},
    Malformed{"TargetName", ".version 9.0\n.target 90", "2:9: expected a target such as sm_90a, found '90'"},
    Malformed{"AddressSize", ".version 9.0\n.target sm_90\n.address_size 16",
              "3:15: expected an address size of 64 or 32, found 16"},
    Malformed{"AddressSizeName", ".version 9.0\n.target sm_90\n.address_size x",
              "3:15: expected an address size, found 'x'"},
    inModule("NoDirective", "entry k() { ret; }", "1: expected a directive such as .entry, found 'entry'"),
    inModule("UnknownDirective", ".visibly .entry k() { ret; }",
             "1: expected a directive such as .entry, found '.visibly'"),
    inModule("LinkageOfNothing", ".visible .pragma \"x\";",
             "10: expected a function or a variable, found '.pragma'"),
    inModule("LocalInModule", ".local .b32 x;", "1: .local variables belong inside functions"),
    inModule("PragmaText", ".pragma nounroll;", "9: expected the text of a pragma, found 'nounroll'"),
    inModule("PragmaEnd", ".pragma \"x\"", "12: expected ';' after a pragma, found the end of the text"),
    inModule("FileNumber", ".file \"a\"", "7: expected a file's number, found the string \"a\""),
    inModule("FileName", ".file 1 a", "9: expected a file's name, found 'a'"),
    inModule("FileTime", ".file 1 \"a\", x", "14: expected a file's time or size, found 'x'"),
    inModule("AliasName", ".alias 1, f;", "8: expected the name of a function, found '1'"),
    inModule("AliasComma", ".func f; .alias f f;", "19: expected ',' between alias and function, found 'f'"),
    inModule("AliasTarget", ".func f; .alias f, 2;", "20: expected the name of a function, found '2'"),
    inModule("AliasEnd", ".func f; .alias f, f",
             "21: expected ';' after an alias, found the end of the text"),
    inModule("AliasUndeclared", ".func f; .alias f, g;", "20: the function 'g' is not declared"),
    inModule("SectionName", ".section { }", "10: expected the name of a section, found '{'"),
    inModule("SectionBrace", ".section .debug_info 1",
             "22: expected '{' after the name of a section, found '1'"),
    inModule("SectionEnd", ".section .debug_info { { }",
             "27: expected '}' at the end of a section, found the end of the text"),
};
INSTANTIATE_TEST_SUITE_P(Module, ParserErrorTest, testing::ValuesIn(kModule), caseName);

const Malformed kDeclarations[] = {
    inModule("NoType", ".global x;", "9: expected a type, found 'x'"),
    inModule("TwoTypes", ".global .b32 .b64 x;", "14: expected one type in a declaration, found '.b64'"),
    inModule("Texture", ".global .texref t;",
             "9: textures, samplers and surfaces (.texref) are not supported"),
    inModule("PredicateInMemory", ".global .pred x;", "15: predicates can only be scalar registers"),
    inModule("WideVector", ".global .v4 .f64 x;",
             "18: expected a vector of at most 16 bytes, found .v4 .f64"),
    inModule("AlignmentNumber", ".global .align x .b32 y;", "16: expected an alignment, found 'x'"),
    inModule("AlignmentOfNoPower", ".global .align 12 .b32 y;",
             "16: expected an alignment that is a power of two, found 12"),
    inModule("AlignmentTooLarge", ".global .align 2097152 .b32 y;",
             "16: expected an alignment of at most 1048576, found '2097152'"),
    inModule("VariableName", ".global .b32 4;", "14: expected the name of a variable, found '4'"),
    inModule("SinkAsVariable", ".global .b32 _;", "14: expected the name of a variable, found '_'"),
    inModule("ArraySize", ".global .b32 x[y];", "16: expected an array size, found 'y'"),
    inModule("ArraySizeZero", ".global .b32 x[0];", "16: expected an array size above 0, found 0"),
    inModule("ArraySizeNegative", ".global .b32 x[-1];",
             "16: expected an array size from 0 to 1099511627776, found -1"),
    inModule("ArrayBracket", ".global .b32 x[1 2];", "18: expected ']' after an array size, found '2'"),
    inModule("InnerDimension", ".global .b32 x[2][];",
             "14: expected sizes for all but the first dimension of 'x'"),
    inModule("NoSize", ".global .b32 x[];", "14: the array 'x' needs a size, being no .extern"),
    inModule("Dimensions", ".global .b32 x" + repeated("[1]", 33) + ";",
             "112: an array has at most 32 dimensions"),
    inModule("TooLarge", ".global .b32 x[1048576][1048576][2];", "14: 'x' is larger than any memory"),
    inModule("DeclarationEnd", ".global .b32 x .b32 y;",
             "16: expected ';' after a declaration, found '.b32'"),
    inModule("Redeclared", ".global .b32 x; .const .b32 x;", "29: 'x' is declared already"),
    inModule("AttributeParenthesis", ".global .attribute .b32 x;",
             "20: expected '(' after '.attribute', found '.b32'"),
    inModule("AttributeEnd", ".global .attribute(.managed .b32 x;",
             "36: expected ')' after the attributes, found the end of the text"),
};
INSTANTIATE_TEST_SUITE_P(Declarations, ParserErrorTest, testing::ValuesIn(kDeclarations), caseName);

const Malformed kInitializers[] = {
    inModule("InitialisedShared", ".shared .b32 x = 1;",
             "16: only .global and .const variables that are no .extern can be initialised"),
    inModule("InitialisedExtern", ".extern .global .b32 x = 1;",
             "24: only .global and .const variables that are no .extern can be initialised"),
    inModule("InitialisedHalf", ".global .f16 x = 0x3C00;",
             "18: variables of type .f16 cannot be initialised: declare their bits"),
    inModule("NoBrace", ".global .b32 x[2] = 1;",
             "21: expected '{' before the values of an array or a vector, found '1'"),
    inModule("BraceEnd", ".global .b32 x[2] = {1 2};", "24: expected '}' or ',' after a value, found '2'"),
    inModule("TooManyValues", ".global .b32 x[2] = {1, 2, 3};",
             "28: expected '}' after value number 2, found '3'"),
    inModule("TooManyRows", ".global .b32 x[1][2] = {{1, 2}, {3}};",
             "33: expected '}' after value number 1, found '{'"),
    inModule("NoValue", ".global .b32 x[2] = {1,};",
             "24: expected a value: a constant, a variable or a function, found '}'"),
    inModule("IntegerForFloat", ".global .f32 x = 1;", "18: expected a value of type .f32, found an integer"),
    inModule("FloatForInteger", ".global .u32 x = 1.5;",
             "18: expected a value of type .u32, found a floating-point constant"),
    inModule("SingleForDouble", ".global .f64 x = 0f3F800000;",
             "18: expected a value of type .f64, found a constant that is written as 0f..."),
    inModule("UndeclaredAddress", ".global .u64 x = x;",
             "18: expected a function or a variable in .global or .const that is declared before, found 'x'"),
    inModule("SharedAddress", ".shared .b32 s; .global .u64 x = s;",
             "34: expected a function or a variable in .global or .const that is declared before, found 's'"),
    inModule("AddressTooLarge", ".global .b32 s; .global .u16 x = s;",
             "34: expected a value of type .u16, found an address"),
    inModule("GenericParenthesis", ".global .b32 s; .global .u64 x = generic(s + 4);",
             "44: expected ')' after the name in 'generic', found '+'"),
    inModule("Mask", ".global .b32 s; .global .u8 x = 0xF0(s);",
             "33: expected a mask with one byte of ones, as 0xFF00, found '0xF0'"),
    inModule("MaskOfWord", ".global .b32 s; .global .u32 x = 0xFF(s);",
             "34: expected a value of type .u32, found one byte of an address"),
    inModule("MaskEnd", ".global .b32 s; .global .u8 x = 0xFF(s;",
             "39: expected ')' after the masked address, found ';'"),
    inModule("TooLargeWhenInitialised", ".global .b64 x[2][1073741824] = {{1}, {2}};",
             "14: the initialisers up to 'x' are too large"),
    inModule("GrowsBeyondMemory",
             ".global .b64 x[][1099511627776] = {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, "
             "{}, {}};",
             "44: 'x' is larger than any memory"),
    inModule("RealOffset", ".global .b32 s; .global .u64 x = s + 1.5;",
             "36: expected integers beside '+', found a floating-point constant"),
};
INSTANTIATE_TEST_SUITE_P(Initializers, ParserErrorTest, testing::ValuesIn(kInitializers), caseName);

const Malformed kFunctions[] = {
    inModule("FunctionName", ".entry (k) { ret; }", "8: expected the name of a function, found '('"),
    inModule("SinkAsFunction", ".func _() { ret; }", "7: expected the name of a function, found '_'"),
    inModule("Parameter", ".entry k(.b32 x) { ret; }",
             "10: expected a parameter: '.param' or '.reg', found '.b32'"),
    inModule("ParameterComma", ".entry k(.param .b32 x .param .b32 y) { ret; }",
             "24: expected ')' or ',' after a parameter, found '.param'"),
    inModule("ParameterName", ".entry k(.param .b32) { ret; }",
             "21: expected the name of a variable, found ')'"),
    inModule("VectorInRegister", ".func f(.reg .v2 .b32 x) { ret; }",
             "23: a parameter in a register can only be a scalar"),
    inModule("RegisterOfKernel", ".entry k(.reg .b32 x) { ret; }",
             "20: a kernel's parameters are .param of a known size"),
    inModule("KernelArrayWithoutSize", ".entry k(.param .b32 x[]) { ret; }",
             "22: a kernel's parameters are .param of a known size"),
    inModule("Body", ".entry k() .maxntids 3 { ret; }",
             "12: expected the body of the function 'k', a directive or ';', found '.maxntids'"),
    inModule("Threads", ".entry k() .maxntid x { ret; }", "21: expected a number of threads, found 'x'"),
    inModule("NoThreads", ".entry k() .maxntid 32, 0 { ret; }",
             "25: expected a number of threads above 0, found 0"),
    inModule("TooManyThreads", ".entry k() .maxntid 4294967296 { ret; }",
             "21: expected a number of threads of at most 4294967295, found '4294967296'"),
    inModule("NumberOfDirective", ".entry k() .maxnreg { ret; }", "21: expected a number, found '{'"),
    inModule("PragmaBeforeBody", ".entry k() .pragma \"x\" { ret; }",
             "24: expected ';' after a pragma, found '{'"),
    inModule("PragmaOfFunction", ".entry k() .pragma x; { ret; }",
             "20: expected the text of a pragma, found 'x'"),
    inModule("SecondBody", ".func f() { ret; } .func f() { ret; }", "26: 'f' is declared already"),
    inModule("FunctionAndVariable", ".global .b32 f; .func f();", "23: 'f' is declared already"),
    inModule("ParameterTwice", ".func f(.param .b32 x, .param .b32 x) { ret; }",
             "36: 'x' is declared already"),
    inModule("FunctionEnd", ".entry k() { ret;",
             "18: expected '}' at the end of the function 'k', found the end of the text"),
};
INSTANTIATE_TEST_SUITE_P(Functions, ParserErrorTest, testing::ValuesIn(kFunctions), caseName);

const Malformed kStatements[] = {
    inKernel("Statement", ".entry", "1: expected a statement, found '.entry'"),
    inKernel("Instruction", "5;", "1: expected an instruction, found '5'"),
    inKernel("EmptyStatement", ";", "1: expected an instruction, found ';'"),
    inKernel("InstructionEnd", "mov.b32 x, x x;",
             "14: expected ';' or ',' after an operand of 'mov', found 'x'"),
    inKernel("Guard", "@ ret;", "3: expected a register of type .pred after '@', found 'ret'"),
    inKernel("GuardNotAPredicate", "@x ret;", "2: expected a register of type .pred after '@', found 'x'"),
    inKernel("GuardUnknown", "@q ret;", "2: expected a register of type .pred after '@', found 'q'"),
    inKernel("LabelTwice", "L: L: ret;", "4: the label 'L' is declared already"),
    inKernel("LabelUnknown", "bra L;", "5: the label 'L' is not declared"),
    inKernel("LabelOfOtherScope", "{ L: } bra L;", "12: the label 'L' is not declared"),
    inKernel("LabelName", "bra 5;", "5: expected a label, found '5'"),
    inKernel("SinkAsLabel", "_: ret;", "1: expected the name of a label, found '_'"),
    inKernel("RegisterName", ".reg .b32 5;", "11: expected the name of a register, found '5'"),
    inKernel("RegisterTwice", ".reg .b32 x;", "11: 'x' is declared already"),
    inKernel("RangeOverRegister", ".reg .b32 r2; .reg .b32 r<3>;",
             "25: one of the registers 'r<3>' is declared already"),
    inKernel("RegisterInRange", ".reg .b32 r<3>; .reg .b32 r2;", "27: 'r2' is declared already"),
    inKernel("RegisterCount", ".reg .b32 r<x>;", "13: expected a number of registers, found 'x'"),
    inKernel("RegisterCountTooLarge", ".reg .b32 r<4294967296>;",
             "13: expected a number of registers of at most 4294967295, found '4294967296'"),
    inKernel("TooManyRegisters", ".reg .b32 r<4294967295>;", "11: the module declares too many registers"),
    inKernel("RangeEnd", ".reg .b32 r<3;", "14: expected '>' after a number of registers, found ';'"),
    inKernel("RegisterDeclarationEnd", ".reg .b32 r .b32 s;",
             "13: expected ';' after a declaration, found '.b32'"),
    inKernel("VariableTwice", ".shared .b32 l;", "14: 'l' is declared already"),
    inKernel("InitialisedLocal", ".local .b32 n = 1;",
             "15: only .global and .const variables that are no .extern can be initialised"),
    inKernel("PragmaInBody", ".pragma x;", "9: expected the text of a pragma, found 'x'"),
    inKernel("PragmaInBodyEnd", ".pragma \"x\" ret;", "13: expected ';' after a pragma, found 'ret'"),
    inKernel("Loc", ".loc 1 2 ret;", "10: expected a column, found 'ret'"),
    inKernel("LocFunction", ".loc 1 2 3, x", "13: expected 'function_name', found 'x'"),
    inKernel("LocLabel", ".loc 1 2 3, function_name 4",
             "27: expected the label of a function's name, found '4'"),
    inKernel("LocComma", ".loc 1 2 3, function_name x inlined_at",
             "29: expected ',' after a function's name, found 'inlined_at'"),
    inKernel("LocInlined", ".loc 1 2 3, function_name x, y", "30: expected 'inlined_at', found 'y'"),
    inKernel("LocInlinedLine", ".loc 1 2 3, function_name x, inlined_at 1 x",
             "43: expected a line, found 'x'"),
    inKernel("Scopes", repeated("{", 200), "200: braces nest deeper than 200 levels"),
};
INSTANTIATE_TEST_SUITE_P(Statements, ParserErrorTest, testing::ValuesIn(kStatements), caseName);

const Malformed kTargets[] = {
    inKernel("BranchTarget", "t: .branchtargets 1;", "19: expected a label, found '1'"),
    inKernel("BranchTargetUnknown", "t: .branchtargets L;", "19: the label 'L' is not declared"),
    inKernel("BranchTargetsEnd",
             "t: .branchtargets L L; L:", "21: expected ';' after a list of targets, found 'L'"),
    inKernel("ListUnknown", "brx.idx x, t;", "12: the list of targets 't' is not declared"),
    inKernel("ListName", "brx.idx x, 3;", "12: expected the label of .branchtargets, found '3'"),
    inKernel("ListTwice", "t: .calltargets f; t: .calltargets f;", "20: the label 't' is declared already"),
    inKernel("CallTarget", "t: .calltargets 1;", "17: expected the name of a function, found '1'"),
    inKernel("CallTargetUnknown", "t: .calltargets x;", "17: the function 'x' is not declared"),
    inKernel("PrototypeName", "t: .callprototype f;", "19: expected '_' in a prototype, found 'f'"),
    inKernel("PrototypeDirective", "t: .callprototype _ .maxnreg 3;",
             "21: expected '.noreturn', '.abi_preserve', '.abi_preserve_control' or ';', found '.maxnreg'"),
    inKernel("PrototypeNumber", "t: .callprototype _ .abi_preserve x;",
             "35: expected a number of registers, found 'x'"),
    inKernel("PrototypeOfCallUnknown", "call x, (), t;", "13: the list of targets 't' is not declared"),
};
INSTANTIATE_TEST_SUITE_P(Targets, ParserErrorTest, testing::ValuesIn(kTargets), caseName);

const Malformed kOperands[] = {
    inKernel("NoOperand", "mov.b32 x, ;", "12: expected an operand of 'mov', found ';'"),
    inKernel("Unknown", "mov.b32 x, y;", "12: 'y' is not declared"),
    inKernel("NegatedFunction", "mov.b32 x, !f;", "13: expected a register after '!' or '-', found 'f'"),
    inKernel("NegatedVariable", "mov.b32 x, -l;", "13: expected a register after '!' or '-', found 'l'"),
    inKernel("NoArray", "mov.b32 x, l[0];", "12: 'l' is no array"),
    inKernel("IndexTooLarge", "mov.b32 x, m[2];", "14: expected an index from 0 to 1, found 2"),
    inKernel("IndexReal", "mov.b32 x, m[0.5];",
             "14: expected an index from 0 to 1, found a floating-point constant"),
    inKernel("IndexOfRegister", "mov.b32 x, m[x];", "14: expected an index, found 'x'"),
    inKernel("IndexEnd", "mov.b32 x, m[0;", "15: expected ']' after an index, found ';'"),
    inKernel("NoAddress", "ld.b32 x, [];",
             "12: expected an address: a register, a variable or an integer, found ']'"),
    inKernel("AddressOfFunction", "ld.b32 x, [f];",
             "12: expected an address: a register, a variable or an integer, found 'f'"),
    inKernel("RealAddress", "ld.b32 x, [1.5];",
             "12: expected an address: a register, a variable or an integer, found '1.5'"),
    inKernel("AddressOfRegisters", "ld.b32 x, [x+x];", "14: expected a constant, found 'x'"),
    inKernel("AddressEnd", "ld.b32 x, [x;", "13: expected ']' or ',' after an address, found ';'"),
    inKernel("VectorEnd", "mov.b64 {x, x, x;", "17: expected '}' or ',' after an operand, found ';'"),
    inKernel("EmptyVector", "mov.b64 {}, x;", "10: expected an operand of 'mov', found '}'"),
    inKernel("PairOfNothing", "shfl.b32 x|, x;", "12: expected an operand of 'shfl', found ','"),
    inKernel("ListEnd", "call f, (x;", "11: expected ')' or ',' after an operand, found ';'"),
    inKernel("PartOfScalar", "mov.b32 x, x.x;", "13: 'x' has no part '.x'"),
    inKernel("PartOfVector", "mov.b32 x, v.z;", "13: 'v' has no part '.z'"),
    inKernel("PartOfSpecial", "mov.b32 x, %tid.q;", "16: '%tid' has no part '.q'"),
    inKernel("PartOfScalarSpecial", "mov.b32 x, %laneid.x;", "19: '%laneid' has no part '.x'"),
    inKernel("UnknownSpecial", "mov.b32 x, %envreg32;", "12: '%envreg32' is not declared"),
    inKernel("Expressions", "mov.b32 x, " + repeated("(", 200) + "1;",
             "78: this nests deeper than 200 levels"),
    inKernel("Signs", "mov.b32 x," + repeated(" -", 300) + " 1;", "408: this nests deeper than 200 levels"),
    inKernel("Addresses", "mov.b32 " + repeated("x, [", 300) + "x, 1;",
             "812: this nests deeper than 200 levels"),
};
INSTANTIATE_TEST_SUITE_P(Operands, ParserErrorTest, testing::ValuesIn(kOperands), caseName);

} // namespace
