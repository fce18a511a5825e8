// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans which operands are cast and which columns of the state they get, over all
// functions of a module, and has RecipeRewriter carry it out.

#include "RecipeRewriter.h"
#include "fp8/Analysis/TensorIdentity.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_APPLYRECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// What one cast is told apart by, before any rewriting.
using CastKey = std::tuple<const void *, const void *, const void *, std::vector<int64_t>>;
CastKey castKey(const QuantizedOperand &operand) {
  SmallVector<int64_t> block = operand.block();
  return {operand.source().getAsOpaquePointer(), operand.recipe.getScaling().getAsOpaquePointer(),
          operand.format().getAsOpaquePointer(), std::vector<int64_t>(block.begin(), block.end())};
}

/// A tensor, by its number among those of a function, and the format it is read in.
using TensorKey = std::pair<unsigned, const void *>;

class ApplyRecipe : public impl::ApplyRecipeBase<ApplyRecipe> {
public:
  using impl::ApplyRecipeBase<ApplyRecipe>::ApplyRecipeBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto chosen = dyn_cast_or_null<RecipeAttrInterface>(parseAttribute(recipe, &getContext()));
    if (!chosen) {
      module.emitError() << "--recipe=" << recipe << " is not a recipe attribute";
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    if (failed(verifyJoinedPairs(module)) || failed(chosen.verifyFunctions(module, symbols)))
      return signalPassFailure();
    for (FlatSymbolRefAttr name : chosen.getFunctions())
      if (Operation *function =
              module.lookupSymbol(name.getAttr())) // no entry, even where nothing becomes FP8
        SymbolTable::setSymbolVisibility(function, SymbolTable::Visibility::Private);

    stateful = {};
    std::vector<Program> programs;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      FailureOr<Program> program = plan(function, chosen);
      if (failed(program))
        return signalPassFailure();
      programs.push_back(std::move(*program));
    }
    StateLayout layout;
    if (stateful) {
      assignColumns(programs, layout);
      layout.setHistoryLength(stateful.getHistoryLength());
      layout.writeTo(module);
    }
    for (Program &program : programs)
      rewrite(program, layout);
  }

private:
  /// One function and what becomes of it.
  struct Program {
    explicit Program(func::FuncOp function)
        : function(function), tensors(cast<FunctionOpInterface>(*function)) {}
    func::FuncOp function;
    SmallVector<QuantizedOperand> operands; ///< two per product, in program order
    std::map<CastKey, unsigned> casts;
    /// Through what a tensor is read, where its scale is state. It is one tensor, however the program
    /// narrows it for each use: casts of it share a column.
    std::map<TensorKey, SmallVector<ColumnKey>> readers;
    std::map<unsigned, TensorKey> tensorOfCast;
    TensorIdentity tensors;
    CastColumns columns;
    bool hasGradients = false;
  };

  FailureOr<Program> plan(func::FuncOp function, RecipeAttrInterface chosen) {
    Program program(function);
    WalkResult walked = function.walk([&](MatmulOp op) {
      if (op.getRole())
        program.hasGradients |= *op.getRole() == Role::dgrad || *op.getRole() == Role::wgrad;
      if (op.getKept())
        return WalkResult::advance();
      return failed(planProduct(op, chosen, program)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return program;
  }

  LogicalResult planProduct(MatmulOp op, RecipeAttrInterface chosen, Program &program) {
    if (!op.getRole() || !op.getSite() || !op.getLhsKind())
      return op.emitError("has no site, role or kinds; run fp8-infer-sites before fp8-apply-recipe");
    RecipeAttrInterface recipeOfRole = chosen.getRecipeFor(*op.getRole());
    for (unsigned index : {0u, 1u}) {
      QuantizedOperand operand{op, index, recipeOfRole};
      operand.castId = program.casts.try_emplace(castKey(operand), program.casts.size()).first->second;
      program.operands.push_back(operand);
      if (recipeOfRole.isStateful() && !operand.ownBytes() && failed(addReader(operand, program)))
        return failure();
    }
    return success();
  }

  /// True for what a gradient without a weight reads besides dy: a tensor that belongs to its
  /// forward product, as either operand, and has that one's column.
  static bool readsForwardOperand(const QuantizedOperand &operand) {
    MatmulOp op = operand.product;
    return *op.getRole() == Role::other && operand.kind() == TensorKind::input &&
           llvm::is_contained({*op.getLhsKind(), *op.getRhsKind()}, TensorKind::grad_output);
  }

  static TensorKey tensorKey(const QuantizedOperand &operand, Program &program) {
    auto type = cast<RankedTensorType>(operand.source().getType());
    DimUses unused(type.getRank(), kUnused);
    return {program.tensors.resolve(operand.source(), unused).tensor, operand.format().getAsOpaquePointer()};
  }

  LogicalResult addReader(const QuantizedOperand &operand, Program &program) {
    // One update serves casts in any formats: the columns have them.
    RecipeAttrInterface scaling = operand.recipe.getScaling();
    if (stateful && stateful != scaling)
      return operand.product->emitError() << "recipes " << stateful << " and " << scaling
                                          << " both keep a history; a program has one, so use one of them";
    stateful = scaling;
    for (Operation *op = operand.product->getParentOp(); op != program.function; op = op->getParentOp())
      if (!canCarryOut(op))
        return operand.product->emitError()
               << "site '" << *operand.product.getSite() << "' is inside '" << op->getName()
               << "', out of which no amax can be carried; use --recipe=current, or keep it with --keep";
    TensorKey tensor = tensorKey(operand, program);
    program.tensorOfCast.try_emplace(operand.castId, tensor);
    SmallVector<ColumnKey> &readers = program.readers[tensor];
    if (readers.empty() || !readsForwardOperand(operand))
      readers.push_back(operand.columnKey());
    return success();
  }

  /// What one function reads as one tensor is one column in all functions.
  static void assignColumns(MutableArrayRef<Program> programs, StateLayout &layout) {
    ColumnFinder finder;
    for (const Program &program : programs)
      for (const auto &[tensor, keys] : program.readers)
        finder.addTensor(keys);
    finder.appendTo(layout);
    for (Program &program : programs)
      for (const auto &[cast, tensor] : program.tensorOfCast)
        program.columns[cast] = finder.getColumn(program.readers.at(tensor).front());
  }

  void rewrite(Program &program, const StateLayout &layout) {
    bool hasState = !program.columns.empty();
    bool updates = hasState && (program.hasGradients || calibrate);
    FunctionRewriter rewriter(program.function, layout, program.columns, updates);
    if (hasState)
      rewriter.addStateArguments();
    rewriter.rewrite(program.operands);
    if (updates)
      rewriter.updateState(stateful);
  }

  /// How the program's history becomes scales; null without one.
  RecipeAttrInterface stateful;
};

} // namespace
} // namespace fp8
