// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the FP8 bytes of weights part of the state: a step reads them, and casts the new weights that it
// computes for the next one. ParameterCasts.cpp finds the casts.

#include "ParameterCasts.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "fp8/Dialect/FP8/Transforms/Pair.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_KEEPPARAMETERS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// An entry point and the casts of its weights.
struct Entry {
  func::FuncOp function;
  std::vector<ParameterCast> casts;
  bool updatesScales = false;

  /// Returns the result that is the value of an argument in the next step; unset for arguments without one.
  std::optional<unsigned> getNextValue(BlockArgument argument) {
    auto carried = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kCarriedAttrName);
    if (!carried || carried.getInt() < 0 || carried.getInt() >= int64_t(function.getNumResults()) ||
        function.getResultTypes()[carried.getInt()] != argument.getType())
      return std::nullopt;
    return carried.getInt();
  }
  /// Returns whether the function computes a new value of what `cast` casts.
  bool updates(const ParameterCast &cast) {
    return llvm::any_of(cast.arguments, [&](BlockArgument argument) { return bool(getNextValue(argument)); });
  }
  bool updates(StringRef key) {
    return llvm::any_of(casts, [&](const ParameterCast &cast) { return cast.key == key && updates(cast); });
  }
};

/// The names of the state of casts, by key.
using CastNames = llvm::StringMap<std::string>;

std::string getStateName(const CastNames &names, const ParameterCast &cast, unsigned result) {
  return names.at(cast.key) + "/" + cast.getResultName(result);
}

/// Rewrites one entry point.
class Keeper {
public:
  Keeper(Entry &entry, const CastNames &names)
      : function(entry.function), entry(entry), names(names), builder(function.getContext()) {}

  void run() {
    for (ParameterCast &cast : entry.casts)
      if (cast.isKept)
        kept.push_back(&cast);
    if (kept.empty())
      return;
    func::FuncOp initializer = createInitializer();
    describe(initializer);
    SmallVector<unsigned> firstArguments;
    for (ParameterCast *cast : kept)
      firstArguments.push_back(readFromState(*cast));
    builder.setInsertionPoint(function.front().getTerminator());
    IRMapping next = getNextValues();
    for (auto [cast, first] : llvm::zip_equal(kept, firstArguments))
      if (entry.updates(*cast))
        returnNext(cast->clone(builder, next), first, *cast);
    eraseCasts();
  }

private:
  DictionaryAttr getMark(const ParameterCast &cast, unsigned result) {
    return builder.getDictionaryAttr(builder.getNamedAttr(
        kProgramStateAttrName, builder.getStringAttr(getStateName(names, cast, result))));
  }

  /// Appends an argument of `to` for each result of the cast that is read. They begin as NaN, so that a step
  /// without the initializer's bytes cannot be mistaken for a right one.
  unsigned addArguments(func::FuncOp to, const ParameterCast &cast) {
    unsigned first = to.getNumArguments();
    for (auto [i, result] : llvm::enumerate(cast.results)) {
      Type type = cast.op->getResultTypes()[result];
      auto element = mlir::cast<FloatType>(getElementTypeOrSelf(type));
      NamedAttrList attrs(getMark(cast, result));
      attrs.set(kInitialAttrName, DenseElementsAttr::get(mlir::cast<ShapedType>(type),
                                                         APFloat::getNaN(element.getFloatSemantics())));
      attrs.set(kDerivedAttrName, builder.getUnitAttr());
      Location loc = NameLoc::get(builder.getStringAttr(getStateName(names, cast, result)));
      (void)to.insertArgument(first + i, type, attrs.getDictionary(builder.getContext()), loc);
    }
    return first;
  }

  unsigned readFromState(const ParameterCast &cast) {
    unsigned first = addArguments(function, cast);
    for (auto [i, result] : llvm::enumerate(cast.results))
      cast.op->getResult(result).replaceAllUsesWith(function.getArgument(first + i));
    return first;
  }

  IRMapping getNextValues() {
    IRMapping next;
    Operation *end = function.front().getTerminator();
    for (BlockArgument argument : function.getArguments()) {
      std::optional<unsigned> result = entry.getNextValue(argument);
      next.map(argument, result ? end->getOperand(*result) : Value(argument));
    }
    return next;
  }

  /// Returns the results of `copy` as the values of the arguments from `first` on in the next step.
  void returnNext(Operation *copy, unsigned first, const ParameterCast &cast, func::FuncOp from = {}) {
    func::FuncOp to = from ? from : function;
    Operation *end = to.front().getTerminator();
    for (auto [i, number] : llvm::enumerate(cast.results)) {
      Value result = copy->getResult(number);
      unsigned place = to.getNumResults();
      to.setArgAttr(first + i, kCarriedAttrName, builder.getI32IntegerAttr(place));
      (void)to.insertResult(place, result.getType(), getMark(cast, number));
      end->insertOperands(place, result);
    }
  }

  /// Erases the casts, and what nothing else reads of their code.
  void eraseCasts() {
    llvm::SetVector<Operation *> code;
    for (ParameterCast *cast : kept)
      code.insert_range(cast->code);
    for (ParameterCast *cast : kept) {
      for (Value out : mlir::cast<DestinationStyleOpInterface>(cast->op).getDpsInits())
        if (Operation *empty = out.getDefiningOp())
          code.insert(empty);
      cast->op->erase();
      cast->op = nullptr;
    }
    SmallVector<Operation *> order = code.takeVector();
    llvm::sort(order, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
    for (Operation *op : order)
      if (isOpTriviallyDead(op))
        op->erase();
  }

  SmallVector<BlockArgument> getArguments() {
    SmallVector<BlockArgument> arguments;
    for (ParameterCast *cast : kept)
      llvm::append_range(arguments, cast->arguments);
    llvm::sort(arguments, [](auto a, auto b) { return a.getArgNumber() < b.getArgNumber(); });
    arguments.erase(llvm::unique(arguments), arguments.end());
    return arguments;
  }

  /// Creates the entry point that casts the weights that it is given: for the first step, and whenever the
  /// caller gives other weights.
  func::FuncOp createInitializer() {
    Location loc = function.getLoc();
    builder.setInsertionPointAfter(function);
    auto initializer = func::FuncOp::create(builder, loc, (function.getName() + "_fp8_parameters").str(),
                                            builder.getFunctionType({}, {}));
    SymbolTable(function->getParentOp()).insert(initializer, std::next(function->getIterator()));
    builder.setInsertionPointToEnd(initializer.addEntryBlock());
    auto end = func::ReturnOp::create(builder, loc);
    IRMapping mapping;
    auto take = [&](BlockArgument argument, DictionaryAttr attrs) {
      unsigned place = initializer.getNumArguments();
      (void)initializer.insertArgument(place, argument.getType(), attrs, argument.getLoc());
      mapping.map(argument, initializer.getArgument(place));
    };
    for (BlockArgument argument : getArguments())
      take(argument, {});
    if (llvm::any_of(kept, [](ParameterCast *cast) { return cast->readsScales; }))
      for (BlockArgument argument : function.getArguments())
        if (Attribute state = function.getArgAttr(argument.getArgNumber(), kStateAttrName))
          take(argument, builder.getDictionaryAttr(builder.getNamedAttr(kStateAttrName, state)));
    for (ParameterCast *cast : kept) {
      unsigned first = addArguments(initializer, *cast);
      builder.setInsertionPoint(end);
      returnNext(cast->clone(builder, mapping), first, *cast, initializer);
    }
    return initializer;
  }

  /// Notes for the manifest which entry point casts which arguments into which tensors of the state.
  void describe(func::FuncOp initializer) {
    auto getNumbers = [&](ArrayRef<BlockArgument> arguments) {
      return builder.getDenseI64ArrayAttr(llvm::map_to_vector(
          arguments, [](BlockArgument argument) { return int64_t(argument.getArgNumber()); }));
    };
    SmallVector<Attribute> casts;
    for (ParameterCast *cast : kept) {
      SmallVector<Attribute> tensors;
      for (unsigned result : cast->results)
        tensors.push_back(builder.getStringAttr(getStateName(names, *cast, result)));
      casts.push_back(
          builder.getDictionaryAttr({builder.getNamedAttr("arguments", getNumbers(cast->arguments)),
                                     builder.getNamedAttr("tensors", builder.getArrayAttr(tensors))}));
    }
    function->setAttr(kParametersAttrName,
                      builder.getDictionaryAttr(
                          {builder.getNamedAttr("entry", builder.getStringAttr(initializer.getName())),
                           builder.getNamedAttr("arguments", getNumbers(getArguments())),
                           builder.getNamedAttr("casts", builder.getArrayAttr(casts))}));
  }

  func::FuncOp function;
  Entry &entry;
  const CastNames &names;
  OpBuilder builder;
  SmallVector<ParameterCast *> kept;
};

class KeepParameters : public impl::KeepParametersBase<KeepParameters> {
public:
  using impl::KeepParametersBase<KeepParameters>::KeepParametersBase;

  void runOnOperation() final {
    std::vector<Entry> entries;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      castStacksOfWeights(function);
      entries.push_back({function, findParameterCasts(function)});
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        entries.back().updatesScales |= bool(function.getResultAttr(i, kStateAttrName));
    }
    keepFreshOnes(entries);
    CastNames names = nameCasts(entries);
    if (failed(report(entries, names)))
      return signalPassFailure();
    for (Entry &entry : entries)
      Keeper(entry, names).run();
    getOperation().walk([](Operation *op) { op->removeAttr(kWeightAttrName); });
  }

private:
  /// Drops casts whose scale an entry point changes that does not compute the new weight: their bytes would
  /// keep the old scale.
  static void keepFreshOnes(MutableArrayRef<Entry> entries) {
    for (Entry &other : entries)
      for (Entry &entry : entries)
        for (ParameterCast &cast : entry.casts) {
          if (!other.updatesScales || !cast.isKept || !cast.readsScales || other.updates(cast.key))
            continue;
          cast.isKept = false;
          cast.reason = ("'" + other.function.getName() +
                         "' changes its scale and does not compute its new value (--recipe=current has no "
                         "scales that change)")
                            .str();
        }
  }

  /// Describes every cast of a weight in an attribute of the module, for the report.
  LogicalResult report(MutableArrayRef<Entry> entries, const CastNames &names) {
    Builder builder(&getContext());
    SmallVector<Attribute> list;
    const ParameterCast *refused = nullptr;
    bool keepsAny = false;
    llvm::StringSet<> known;
    for (Entry &entry : entries) {
      DenseSet<Value> copies; // what is cast in several directions is one copy
      for (const ParameterCast &cast : entry.casts) {
        keepsAny |= cast.isKept;
        refused = cast.isKept ? refused : &cast;
        NamedAttrList attrs;
        attrs.set("entry", builder.getStringAttr(entry.function.getName()));
        attrs.set("site", builder.getStringAttr(cast.site));
        attrs.set("reason", builder.getStringAttr(cast.reason));
        attrs.set("kept", builder.getBoolAttr(cast.isKept));
        int64_t bytes = 0;
        if (cast.isKept)
          for (unsigned result : cast.results)
            if (known.insert(getStateName(names, cast, result)).second)
              bytes += *getStoredBytes(cast.op->getResultTypes()[result]);
        attrs.set("bytes", builder.getI64IntegerAttr(bytes));
        bool savesCopy = bytes != 0 && copies.insert(cast.op->getOperand(0)).second;
        attrs.set("copy_bytes", builder.getI64IntegerAttr(savesCopy ? cast.getCopyBytes() : 0));
        list.push_back(attrs.getDictionary(&getContext()));
      }
    }
    getOperation()->setAttr(kParameterCastsAttrName, builder.getArrayAttr(list));
    if (keepsAny)
      return success();
    if (!refused)
      return checkUnused(
          getOperation(), allowUnused,
          {"fp8-parameters",
           {},
           "--fp8-parameters keeps no weight in FP8, because no matmul of a weight becomes FP8"},
          " (--report says why); leave it out, or let one become FP8");
    return refused->op->emitError() << "--fp8-parameters keeps no weight in FP8; that of site '"
                                    << refused->site << "': " << refused->reason;
  }

  /// Names the state of every kept cast after the first site that reads it.
  CastNames nameCasts(ArrayRef<Entry> entries) {
    CastNames names;
    llvm::StringSet<> taken;
    for (const Entry &entry : entries)
      for (const ParameterCast &cast : entry.casts) {
        if (!cast.isKept || names.contains(cast.key))
          continue;
        std::string name = "weight/" + cast.site;
        for (unsigned i = 2; !taken.insert(name).second; ++i)
          name = ("weight/" + cast.site + "#" + Twine(i)).str();
        names[cast.key] = name;
      }
    return names;
  }
};

} // namespace
} // namespace fp8
