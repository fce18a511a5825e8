// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads programs, and adds file positions to locations that have none.

#include "Request.h"
#include "fp8/Compiler/Compiler.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace fp8;

FileLineColLoc fp8::findFilePosition(Location location) {
  FileLineColLoc place;
  location->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

/// Adds the place `file` to a location: as the child of a name, in place of an unknown location, or
/// fused with any other.
static Location addFilePosition(Location location, Location file) {
  if (auto named = dyn_cast<NameLoc>(location))
    return NameLoc::get(named.getName(), file);
  if (isa<UnknownLoc>(location))
    return file;
  return FusedLoc::get({location, file}, Attribute(), location.getContext());
}

static void addFilePositions(AsmParserState &state, llvm::SourceMgr &sources, StringRef fileName,
                             MLIRContext &context) {
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs()) {
    Operation *op = definition.op;
    if (findFilePosition(op->getLoc()))
      continue;
    auto [line, column] = sources.getLineAndColumn(definition.loc.Start);
    op->setLoc(addFilePosition(op->getLoc(), FileLineColLoc::get(&context, fileName, line, column)));
  }
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    for (auto [argument, place] : llvm::zip(definition.block->getArguments(), definition.arguments)) {
      if (findFilePosition(argument.getLoc()) || !place.loc.isValid())
        continue;
      auto [line, column] = sources.getLineAndColumn(place.loc.Start);
      argument.setLoc(
          addFilePosition(argument.getLoc(), FileLineColLoc::get(&context, fileName, line, column)));
    }
}

/// Returns what to do about an operation or a diagnostic that names a dialect that is not known here.
static StringRef getHint(StringRef name) {
  if (name.contains("hlo"))
    return "(this is StableHLO: compile it with fp8.compile of the Python package, which lowers it by "
           "jaxlib, or lower it to linalg on tensors first, as stablehlo-opt --stablehlo-legalize-to-linalg "
           "does)";
  return "(fp8-compile takes linalg on tensors and upstream's other dialects: lower what else there is "
         "first)";
}

/// Reports operations of unknown dialects. The parser accepts them, so that this error can name them.
static LogicalResult refuseUnknownOps(ModuleOp module) {
  return failure(module
                     .walk([](Operation *op) {
                       if (op->isRegistered())
                         return WalkResult::advance();
                       StringRef name = op->getName().getStringRef();
                       emitError(op->getLoc()) << "'" << name << "' is not known here " << getHint(name);
                       return WalkResult::interrupt();
                     })
                     .wasInterrupted());
}

static OwningOpRef<ModuleOp> readText(StringRef name, llvm::SourceMgr &sources, MLIRContext &context) {
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state)))
    return nullptr;
  addFilePositions(state, sources, name == "-" ? "<stdin>" : name, context);
  Location location = FileLineColLoc::get(&context, name, 1, 1);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, location);
  if (!module)
    emitError(location) << "expected one module";
  return module;
}

static OwningOpRef<ModuleOp> read(StringRef name, std::unique_ptr<llvm::MemoryBuffer> source,
                                  MLIRContext &context) {
  addMissingRegistrations(context);
  bool isText = !isBytecode(source->getMemBufferRef());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(source), llvm::SMLoc());
  llvm::scope_exit restore([&context, allowed = context.allowsUnregisteredDialects()] {
    context.allowUnregisteredDialects(allowed);
  });
  context.allowUnregisteredDialects();
  // Custom syntax and bytecode of unknown dialects cannot be read: the reader's error gets the hint.
  ScopedDiagnosticHandler hint(&context, [](Diagnostic &diagnostic) {
    std::string message = diagnostic.str();
    if (StringRef(message).contains("not found for custom op") ||
        StringRef(message).contains("does not implement the bytecode interface"))
      diagnostic << " " << getHint(message);
    return failure();
  });
  OwningOpRef<ModuleOp> module =
      isText ? readText(name, sources, context) : parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(refuseUnknownOps(*module)))
    return nullptr;
  return module;
}

/// The alignment of mapped files: bytecode needs its resources aligned to cache lines or more.
static constexpr uint64_t kSourceAlignment = 4096;

/// Returns an aligned copy with a zero after its end, which the parser of text reads; null if there
/// is no memory for it.
static std::unique_ptr<llvm::MemoryBuffer> copySource(StringRef source, StringRef name) {
  auto copy =
      llvm::WritableMemoryBuffer::getNewUninitMemBuffer(source.size(), name, llvm::Align(kSourceAlignment));
  if (copy)
    llvm::copy(source, copy->getBufferStart());
  return copy;
}

static OwningOpRef<ModuleOp> cannotRead(StringRef name, MLIRContext &context, const Twine &reason) {
  emitError(FileLineColLoc::get(&context, name, 1, 1)) << reason;
  return nullptr;
}

OwningOpRef<ModuleOp> fp8::readProgram(StringRef source, StringRef name, MLIRContext &context) {
  if (auto copy = copySource(source, name))
    return read(name, std::move(copy), context);
  return cannotRead(name, context, "there is no memory for " + Twine(source.size()) + " bytes");
}

OwningOpRef<ModuleOp> fp8::readProgramFile(StringRef path, MLIRContext &context) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, llvm::Align(kSourceAlignment), &message);
  // Upstream aligns files, but not standard input.
  if (file && path == "-") {
    file = copySource(file->getBuffer(), file->getBufferIdentifier());
    message = "there is no memory for standard input";
  }
  return file ? read(path, std::move(file), context) : cannotRead(path, context, message);
}
