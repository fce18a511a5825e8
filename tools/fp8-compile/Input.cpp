// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading the program, and locations for programs that only have names.

#include "Input.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;

static bool hasFilePosition(Location location) {
  return location
      ->walk([](Location inner) {
        return isa<FileLineColLoc>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// `named` with the place `file` as its child; other locations are replaced.
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
    if (hasFilePosition(op->getLoc()))
      continue;
    auto [line, column] = sources.getLineAndColumn(definition.loc.Start);
    op->setLoc(addFilePosition(op->getLoc(), FileLineColLoc::get(&context, fileName, line, column)));
  }
  for (const AsmParserState::BlockDefinition &definition : state.getBlockDefs())
    for (auto [argument, place] : llvm::zip(definition.block->getArguments(), definition.arguments)) {
      if (hasFilePosition(argument.getLoc()) || !place.loc.isValid())
        continue;
      auto [line, column] = sources.getLineAndColumn(place.loc.Start);
      argument.setLoc(
          addFilePosition(argument.getLoc(), FileLineColLoc::get(&context, fileName, line, column)));
    }
}

static constexpr llvm::StringLiteral kUnknownDialect =
    "(fp8-compile takes linalg on tensors and upstream's other dialects: lower what else there is first)";

/// Operations of unknown dialects are let in, so that the error can say what they are.
static LogicalResult refuseUnknownOps(ModuleOp module) {
  return failure(module
                     .walk([](Operation *op) {
                       if (op->isRegistered())
                         return WalkResult::advance();
                       emitError(op->getLoc()) << "'" << op->getName().getStringRef()
                                               << "' is not known here " << kUnknownDialect;
                       return WalkResult::interrupt();
                     })
                     .wasInterrupted());
}

static OwningOpRef<ModuleOp> readText(StringRef fileName, llvm::SourceMgr &sources, MLIRContext &context) {
  // What has a syntax of its own does not parse at all.
  ScopedDiagnosticHandler hint(&context, [](Diagnostic &diagnostic) {
    if (StringRef(diagnostic.str()).contains("not found for custom op"))
      diagnostic << kUnknownDialect;
    return failure();
  });
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state)))
    return nullptr;
  addFilePositions(state, sources, fileName == "-" ? "<stdin>" : fileName, context);
  Location location = FileLineColLoc::get(&context, fileName, 1, 1);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, location);
  if (!module)
    emitError(location) << "expected one module";
  return module;
}

OwningOpRef<ModuleOp> readModule(StringRef fileName, llvm::SourceMgr &sources, MLIRContext &context) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(fileName, &message);
  if (!file) {
    emitError(FileLineColLoc::get(&context, fileName, 1, 1)) << message;
    return nullptr;
  }
  bool isText = !isBytecode(file->getMemBufferRef());
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  context.allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = isText ? readText(fileName, sources, context)
                                        : parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  context.allowUnregisteredDialects(false);
  if (!module || failed(refuseUnknownOps(*module)))
    return nullptr;
  return module;
}

LogicalResult refuseOwnAttributes(ModuleOp module) {
  auto report = [](Location location, StringRef name) {
    return emitError(location) << "attribute '" << name
                               << "' is for the compiler to write: compile the program as it was before the "
                                  "recipe stage, or remove it";
  };
  for (StringRef name : {StringRef(fp8::kColumnsAttrName), StringRef(fp8::kHistoryAttrName)})
    if (module->hasAttr(name))
      return report(module.getLoc(), name);
  for (auto function : module.getOps<func::FuncOp>())
    for (StringRef name : {StringRef(fp8::kStateAttrName), StringRef(fp8::kResultAttrName)}) {
      for (BlockArgument argument : function.getArguments())
        if (function.getArgAttr(argument.getArgNumber(), name))
          return report(argument.getLoc(), name);
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        if (function.getResultAttr(i, name))
          return report(function.getLoc(), name);
    }
  return success();
}

//===----------------------------------------------------------------------===//
// --carry
//===----------------------------------------------------------------------===//

/// The argument that `text`, an index or a name, means in `function`.
static std::optional<unsigned> findArgument(func::FuncOp function, StringRef text) {
  unsigned index;
  if (!text.getAsInteger(10, index))
    return index < function.getNumArguments() ? std::optional<unsigned>(index) : std::nullopt;
  for (BlockArgument argument : function.getArguments())
    if (fp8::getArgumentName(argument) == text)
      return argument.getArgNumber();
  return std::nullopt;
}

/// Whether argument and result of a request are there, and of one type.
static bool fits(func::FuncOp function, std::optional<unsigned> argument, unsigned result) {
  return argument && result < function.getNumResults() &&
         function.getArgument(*argument).getType() == function.getResultTypes()[result];
}

/// Marks the argument in every entry where the request fits: an evaluation beside the
/// training step may have an argument of that name and carry nothing.
static LogicalResult applyCarry(ModuleOp module, const CarryRequest &request) {
  bool found = false;
  func::FuncOp unfit;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isPublic() || function.isExternal())
      continue;
    std::optional<unsigned> argument = findArgument(function, request.argument);
    if (fits(function, argument, request.result)) {
      function.setArgAttr(*argument, fp8::kCarriedAttrName,
                          Builder(module.getContext()).getI32IntegerAttr(request.result));
      found = true;
    } else if (argument && request.result < function.getNumResults() && !unfit) {
      unfit = function;
    }
  }
  if (found)
    return success();
  std::string option = "--carry=" + request.argument + ":" + std::to_string(request.result);
  if (!unfit)
    return module.emitError() << option << ": no public function has such an argument and result";
  return unfit.emitError() << option << ": argument "
                           << unfit.getArgument(*findArgument(unfit, request.argument)).getType()
                           << " and result " << unfit.getResultTypes()[request.result] << " differ in type";
}

LogicalResult applyCarry(ModuleOp module, ArrayRef<CarryRequest> requests) {
  for (const CarryRequest &request : requests)
    if (failed(applyCarry(module, request)))
      return failure();
  return success();
}
