// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides, for all functions of a module, which operands share a cast and which columns of the
// state they get. RecipeRewriter rewrites the functions.

#include "RecipeRewriter.h"
#include "fp8/Analysis/TensorIdentity.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_APPLYRECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// Identifies a cast before rewriting: operands with equal keys share it.
using CastKey = std::tuple<const void *, const void *, const void *, std::vector<int64_t>, int>;
CastKey castKey(const QuantizedOperand &operand) {
  // A recipe's own code may differ by the kind of the tensor.
  int own = operand.recipe.hasOwnQuantize(operand.kind()) ? static_cast<int>(operand.kind()) : -1;
  SmallVector<int64_t> block = operand.block();
  return {operand.source().getAsOpaquePointer(), operand.recipe.getScaling().getAsOpaquePointer(),
          operand.format().getAsOpaquePointer(), std::vector<int64_t>(block.begin(), block.end()), own};
}

/// A tensor, by its number in the function, and the format and the recipe with which it is read.
using TensorKey = std::tuple<unsigned, const void *, const void *>;

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
    if (failed(verifyJoinedPairs(module)) || failed(hideFunctions(module, chosen)))
      return signalPassFailure();

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
    if (stochasticRounding && failed(assignStreams(programs, layout)))
      return signalPassFailure();
    for (Program &program : programs)
      if (failed(rewrite(program, layout)))
        return signalPassFailure();
  }

private:
  /// The plan for one function.
  struct Program {
    explicit Program(func::FuncOp function)
        : function(function), tensors(cast<FunctionOpInterface>(*function)) {}
    func::FuncOp function;
    SmallVector<QuantizedOperand> operands; ///< two per matmul, in program order
    std::map<CastKey, unsigned> casts;
    /// The operands that read each tensor with a stateful recipe. Casts of one tensor share a column,
    /// also if the program narrows the tensor separately for each use.
    std::map<TensorKey, SmallVector<ColumnKey>> readers;
    std::map<unsigned, TensorKey> tensorOfCast;
    TensorIdentity tensors;
    CastColumns columns;
    CastStreams streams;
    bool hasGradients = false;
  };

  /// Checks the functions that the recipes name and makes them private: they are no entry points, even if
  /// nothing becomes FP8.
  static LogicalResult hideFunctions(ModuleOp module, RecipeAttrInterface chosen) {
    SetVector<RecipeAttrInterface> recipes;
    recipes.insert(chosen);
    module.walk([&](MatmulOp op) {
      if (std::optional<RecipeAttrInterface> own = op.getRecipe())
        recipes.insert(*own);
    });
    SymbolTableCollection symbols;
    for (RecipeAttrInterface recipe : recipes) {
      if (failed(recipe.verifyFunctions(module, symbols)))
        return failure();
      for (FlatSymbolRefAttr name : recipe.getFunctions())
        if (Operation *function = module.lookupSymbol(name.getAttr()))
          SymbolTable::setSymbolVisibility(function, SymbolTable::Visibility::Private);
    }
    return success();
  }

  FailureOr<Program> plan(func::FuncOp function, RecipeAttrInterface chosen) {
    Program program(function);
    WalkResult walked = function.walk([&](MatmulOp op) {
      if (op.getRole())
        program.hasGradients |= *op.getRole() == Role::dgrad || *op.getRole() == Role::wgrad;
      if (op.getKept())
        return WalkResult::advance();
      return failed(planMatmul(op, chosen, program)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
    return program;
  }

  LogicalResult planMatmul(MatmulOp op, RecipeAttrInterface chosen, Program &program) {
    if (!op.getRole() || !op.getSite() || !op.getLhsKind())
      return op.emitError("has no site, role or kinds; run fp8-infer-sites before fp8-apply-recipe");
    RecipeAttrInterface recipeOfRole = op.getRecipe() ? *op.getRecipe() : chosen.getRecipeFor(*op.getRole());
    for (unsigned index : {0u, 1u}) {
      QuantizedOperand operand{op, index, recipeOfRole};
      operand.castId = program.casts.try_emplace(castKey(operand), program.casts.size()).first->second;
      program.operands.push_back(operand);
      if (recipeOfRole.isStateful() && !operand.ownBytes() && failed(addReader(operand, program)))
        return failure();
    }
    return success();
  }

  /// Returns whether `operand` is the other operand than the cotangent in a backward matmul without
  /// a weight. It is an operand of the forward matmul, and shares that operand's column.
  static bool readsForwardOperand(const QuantizedOperand &operand) {
    MatmulOp op = operand.matmul;
    return *op.getRole() == Role::other && operand.kind() == TensorKind::input &&
           llvm::is_contained({*op.getLhsKind(), *op.getRhsKind()}, TensorKind::grad_output);
  }

  static TensorKey tensorKey(const QuantizedOperand &operand, Program &program) {
    auto type = cast<RankedTensorType>(operand.source().getType());
    DimUses unused(type.getRank(), kUnused);
    return {program.tensors.resolve(operand.source(), unused, operand.matmul).tensor,
            operand.format().getAsOpaquePointer(), operand.recipe.getScaling().getAsOpaquePointer()};
  }

  LogicalResult addReader(const QuantizedOperand &operand, Program &program) {
    if (failed(checkHistory(operand)))
      return failure();
    for (Operation *op = operand.matmul->getParentOp(); op != program.function; op = op->getParentOp())
      if (!canCarryOut(op))
        return operand.matmul->emitError()
               << "site '" << *operand.matmul.getSite() << "' is inside '" << op->getName()
               << "', out of which no amax can be carried; use --recipe=current, or keep it with --keep";
    TensorKey tensor = tensorKey(operand, program);
    program.tensorOfCast.try_emplace(operand.castId, tensor);
    SmallVector<ColumnKey> &readers = program.readers[tensor];
    if (readers.empty() || !readsForwardOperand(operand))
      readers.push_back(operand.columnKey());
    return success();
  }

  /// Checks that the recipe of `operand` can keep its columns in one history with those of the other recipes:
  /// a column has its own format, margin and choice of the amax, but all have as many rows, and the amaxes of
  /// one loop are carried out of it in one way.
  LogicalResult checkHistory(const QuantizedOperand &operand) {
    RecipeAttrInterface scaling = operand.recipe.getScaling();
    if (!stateful)
      stateful = scaling;
    if (scaling.getHistoryLength() != stateful.getHistoryLength())
      return operand.matmul->emitError()
             << "recipes " << stateful << " and " << scaling << " keep " << stateful.getHistoryLength()
             << " and " << scaling.getHistoryLength()
             << " amaxes of a tensor; a program has one length of the history, so give both the same";
    if (scaling.getNoAmax() != stateful.getNoAmax())
      return operand.matmul->emitError()
             << "recipes " << stateful << " and " << scaling
             << " differ in executed_mask; a program has one history, so give both the same";
    return success();
  }

  /// Assigns columns: operands that are the same tensor in one function share a column in all.
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

  /// Gives the casts of gradients streams of random bits: the column of the state or, without one, a number
  /// that all casts of the tensor with this recipe and format share.
  LogicalResult assignStreams(MutableArrayRef<Program> programs, const StateLayout &layout) {
    bool isAny = false;
    for (Program &program : programs) {
      std::map<TensorKey, int64_t> numbers;
      for (const QuantizedOperand &operand : program.operands) {
        if (operand.kind() != TensorKind::grad_output || operand.ownBytes())
          continue;
        if (operand.recipe.hasOwnQuantize(operand.kind()))
          return operand.matmul->emitError()
                 << "--stochastic-rounding=true does not reach gradients that the recipe's own function "
                    "quantizes; drop the option or the function";
        auto column = program.columns.find(operand.castId);
        int64_t next = layout.getColumns().size() + numbers.size();
        program.streams[operand.castId] =
            column != program.columns.end()
                ? column->second
                : numbers.try_emplace(tensorKey(operand, program), next).first->second;
        isAny = true;
      }
    }
    if (isAny)
      return success();
    return checkUnused(getOperation(), allowUnused,
                       {"stochastic-rounding",
                        {},
                        "--stochastic-rounding=true: no gradient becomes FP8, so that nothing is rounded "
                        "stochastically"},
                       "; drop the option, or let dgrad or wgrad become FP8");
  }

  LogicalResult rewrite(Program &program, const StateLayout &layout) {
    bool hasState = !program.columns.empty();
    bool updates = hasState && (program.hasGradients || calibrate);
    FunctionRewriter rewriter(program.function, layout, program.columns, program.streams, updates,
                              markWeights);
    if (!program.streams.empty() && failed(rewriter.addRounding()))
      return failure();
    if (hasState)
      rewriter.addStateArguments();
    rewriter.rewrite(program.operands);
    if (measureErrors)
      rewriter.measureErrors();
    if (updates)
      rewriter.updateState();
    return success();
  }

  /// A stateful recipe of the program, without formats; null if there is none.
  RecipeAttrInterface stateful;
};

} // namespace
} // namespace fp8
