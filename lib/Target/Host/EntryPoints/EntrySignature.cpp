// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads arguments and results from the attributes of a lowered entry point, and builds the data to
// check them with: a table of types and shapes, and a table of error lines.

#include "EntrySignature.h"
#include "../Memory.h"
#include "EntryPointHelpers.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Target/Host/HostCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace fp8;

/// Returns DLPack's type (code, bits and one lane) as the 32-bit word in memory.
static std::optional<int64_t> getDLDataType(Type type) {
  auto word = [](int64_t code, int64_t bits) { return code | bits << 8 | int64_t(1) << 16; };
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    if (width == 1)
      return word(6, 8);
    if (width != 8 && width != 16 && width != 32 && width != 64)
      return std::nullopt;
    return word(integer.isUnsigned() ? 1 : 0, width);
  }
  return TypeSwitch<Type, std::optional<int64_t>>(type)
      .Case<Float16Type, Float32Type, Float64Type>(
          [&](Type) { return word(2, type.getIntOrFloatBitWidth()); })
      .Case([&](BFloat16Type) { return word(4, 16); })
      .Case([&](Float8E4M3FNType) { return word(10, 8); })
      .Case([&](Float8E5M2Type) { return word(12, 8); })
      .Case([&](Float8E8M0FNUType) { return word(14, 8); })
      .Default([](Type) { return std::nullopt; });
}

static MemRefType getArgumentType(func::FuncOp entry, unsigned argument) {
  return cast<MemRefType>(getCallersType(entry.getArgumentTypes()[argument], entry.getArgAttrDict(argument)));
}

FailureOr<EntrySignature> fp8::readSignature(func::FuncOp entry) {
  EntrySignature signature;
  if (auto bytes = entry->getAttrOfType<IntegerAttr>(kWorkspaceBytesAttrName))
    signature.workspaceBytes = bytes.getInt();
  signature.hasWorkspace = signature.workspaceBytes != 0;
  signature.canFail = entry.getNumResults() != 0;
  unsigned end = entry.getNumArguments() - signature.hasWorkspace - signature.canFail;
  std::map<int64_t, EntryResult> results;
  for (unsigned index : llvm::seq(end)) {
    auto own = entry.getArgAttrOfType<IntegerAttr>(index, kResultAttrName);
    auto carried = entry.getArgAttrOfType<IntegerAttr>(index, kCarriedAttrName);
    auto returned = entry.getArgAttrOfType<IntegerAttr>(index, kReturnedAttrName);
    signature.numArguments += !own;
    for (IntegerAttr result : {own, carried, returned})
      if (result)
        results[result.getInt()] = {getArgumentType(entry, index), index};
  }
  if (auto allocated = entry->getAttrOfType<DictionaryAttr>(kAllocatedResultsAttrName))
    for (NamedAttribute result : allocated)
      results[std::stoll(result.getName().str())] = {
          cast<MemRefType>(cast<TypeAttr>(result.getValue()).getValue()), std::nullopt};
  for (auto [index, result] : results) {
    if (index != int64_t(signature.results.size()))
      return entry.emitError() << "no argument of '" << entry.getName() << "' holds result "
                               << signature.results.size();
    signature.results.push_back(result);
  }
  return signature;
}

/// Appends the rank and the sizes of `type`; `dynamic` returns the word for a dynamic size.
static void appendShape(CheckTables &tables, MemRefType type, llvm::function_ref<int64_t()> dynamic) {
  tables.specs.push_back(type.getRank());
  for (int64_t size : type.getShape())
    tables.specs.push_back(ShapedType::isDynamic(size) ? dynamic() : size);
}

/// Appends the error line of a tensor, which starts with `what`.
static void appendLine(CheckTables &tables, MemRefType type, const Twine &what, StringRef where) {
  llvm::raw_string_ostream line(tables.lines);
  line << what << ": expected " << type.getElementType() << " [";
  llvm::interleaveComma(type.getShape(), line,
                        [&](int64_t size) { ShapedType::isDynamic(size) ? line << "?" : line << size; });
  line << "] (" << where << ")" << '\0';
}

/// Appends the word for the element type of `type`, or emits an error.
static LogicalResult appendElementType(CheckTables &tables, Location loc, func::FuncOp entry, MemRefType type,
                                       const Twine &what) {
  std::optional<int64_t> dataType = getDLDataType(type.getElementType());
  if (!dataType)
    return emitError(loc) << what << " of '" << entry.getName() << "' has elements of type "
                          << type.getElementType() << ", which the C interface cannot describe";
  tables.specs.push_back(*dataType);
  return success();
}

static LogicalResult appendArgument(CheckTables &tables, func::FuncOp entry, const CallNeeds &needs,
                                    unsigned index) {
  BlockArgument argument = entry.getArgument(index);
  MemRefType type = getArgumentType(entry, index);
  std::string what = "argument " + std::to_string(index);
  if (failed(appendElementType(tables, argument.getLoc(), entry, type, what)))
    return failure();
  appendShape(tables, type, [] { return kAnySize; });
  appendLine(tables, type, what + " '" + getArgumentName(argument) + "'",
             "row-major, in " + needs.memory.str());
  return success();
}

static LogicalResult appendResult(CheckTables &tables, func::FuncOp entry, const CallNeeds &needs,
                                  unsigned index, const EntryResult &result) {
  std::string what = "result " + std::to_string(index);
  Location loc = result.position ? entry.getArgument(*result.position).getLoc() : entry.getLoc();
  if (failed(appendElementType(tables, loc, entry, result.type, what)))
    return failure();
  if (!result.position) {
    tables.specs.push_back(kCallerAllocates);
    appendLine(tables, result.type, what, "in " + needs.memory.str() + " that the call's 'allocate' gives");
    return success();
  }
  appendShape(tables, result.type, [&] { return getSizeOfArgument(*result.position); });
  appendLine(tables, result.type, what, "row-major, in " + needs.memory.str());
  return success();
}

CallNeeds fp8::getCallNeeds(func::FuncOp entry, bool onDevice) {
  CallNeeds needs;
  needs.alignment = getTarget(entry).getBufferAlignment();
  if (entry->getParentOfType<ModuleOp>()->hasAttr(kGridAttrName))
    needs.version = 2; // for the communicator
  if (onDevice) {
    needs.version = 2;
    needs.memoryType = 2; // kDLCUDA
    needs.memory = "memory of the device";
  }
  return needs;
}

/// Returns the error line for a call of another version, or without a device.
static StringRef getVersionLine(const CallNeeds &needs) {
  if (needs.version == 1)
    return "this library needs version 1 of fp8rt_call";
  if (needs.memoryType == 1)
    return "this library is for several ranks: it needs version 2 of fp8rt_call, version 1 of "
           "fp8rt_communicator";
  return "this library runs on a GPU: pass a device (version 2 of fp8rt_call, version 2 of fp8rt_device)";
}

FailureOr<CheckTables> fp8::buildTables(func::FuncOp entry, const EntrySignature &signature,
                                        const CallNeeds &needs) {
  CheckTables tables;
  tables.specs = {needs.version, needs.memoryType, needs.alignment};
  llvm::raw_string_ostream lines(tables.lines);
  lines << getVersionLine(needs) << '\0';
  lines << "'" << entry.getName() << "': the number of arguments must be " << signature.numArguments
        << ", that of results " << signature.results.size() << '\0';
  lines << "'" << entry.getName() << "' needs a workspace of " << signature.workspaceBytes
        << " bytes, aligned to " << needs.alignment << '\0';
  for (unsigned index : llvm::seq(signature.numArguments))
    if (failed(appendArgument(tables, entry, needs, index)))
      return failure();
  for (auto [index, result] : llvm::enumerate(signature.results))
    if (failed(appendResult(tables, entry, needs, index, result)))
      return failure();
  return tables;
}
