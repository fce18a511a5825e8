// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header of a function: name, results, parameters, performance directives.

#include "FunctionHeader.h"
#include "Parser.h"
#include "variables/Declaration.h"

using namespace fp8emu;
using namespace fp8emu::ptx;

namespace {

/// One to three numbers, those left out being 1.
Dim3 parseDim3(Cursor &cursor, const char *what) {
  Dim3 dims{1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    Location where = cursor.where();
    dims[i] = static_cast<uint32_t>(cursor.expectInteger(what));
    if (dims[i] == 0)
      throw PtxError(where, "expected " + std::string(what) + " above 0, found 0");
    if (!cursor.accept(","))
      break;
  }
  return dims;
}

struct NumberDirective {
  const char *name;
  /// Null where the number does not matter here.
  uint32_t Function::*member;
};
constexpr NumberDirective kNumbers[] = {{"minnctapersm", &Function::minBlocksPerSM},
                                        {"maxnreg", &Function::maxRegisters},
                                        {"maxclusterrank", &Function::maxClusterRank},
                                        {"maxnctapersm", nullptr},
                                        {"abi_preserve", nullptr},
                                        {"abi_preserve_control", nullptr}};

struct FlagDirective {
  const char *name;
  bool Function::*member;
};
constexpr FlagDirective kFlags[] = {{"noreturn", &Function::isNoReturn},
                                    {"explicitcluster", &Function::explicitCluster},
                                    {"blocksareclusters", &Function::blocksAreClusters}};

struct DimDirective {
  const char *name;
  Dim3 Function::*member;
  const char *what;
};
constexpr DimDirective kDims[] = {{"maxntid", &Function::maxThreads, "a number of threads"},
                                  {"reqntid", &Function::requiredThreads, "a number of threads"},
                                  {"reqnctapercluster", &Function::requiredCluster, "a number of blocks"}};

bool parseNamed(Cursor &cursor, Function &function) {
  for (const DimDirective &directive : kDims)
    if (cursor.acceptDot(directive.name)) {
      function.*directive.member = parseDim3(cursor, directive.what);
      return true;
    }
  for (const FlagDirective &directive : kFlags)
    if (cursor.acceptDot(directive.name))
      return function.*directive.member = true;
  for (const NumberDirective &directive : kNumbers)
    if (cursor.acceptDot(directive.name)) {
      auto number = static_cast<uint32_t>(cursor.expectInteger("a number"));
      if (directive.member)
        function.*directive.member = number;
      return true;
    }
  return false;
}

/// .pragma "..."; ends in a semicolon even before a body.
bool skipPragma(Cursor &cursor) {
  if (!cursor.acceptDot("pragma"))
    return false;
  do
    cursor.expectString("the text of a pragma");
  while (cursor.accept(","));
  cursor.expect(";", "after a pragma");
  return true;
}

void checkEntry(const Function &function) {
  for (const Variable &parameter : function.parameters)
    if (parameter.space != Space::Param || (parameter.isArray && parameter.count == 0))
      throw PtxError(parameter.where, "a kernel's parameters are .param of a known size");
}

} // namespace

Function ptx::parseFunctionHeader(Cursor &cursor, Linkage linkage) {
  Function function;
  function.linkage = linkage;
  function.isEntry = cursor.take().text == "entry";
  if (cursor.atDot("attribute"))
    skipAttribute(cursor);
  if (!function.isEntry && cursor.at("("))
    function.results = parseParameters(cursor);
  Token name = cursor.expectName("the name of a function");
  function.name = name.text;
  function.where = name.where;
  if (cursor.at("("))
    function.parameters = parseParameters(cursor);
  while (parseNamed(cursor, function) || skipPragma(cursor)) {
  }
  if (function.isEntry)
    checkEntry(function);
  return function;
}
