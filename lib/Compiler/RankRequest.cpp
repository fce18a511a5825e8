// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marks a program for several ranks before the first stage: its grid, and what --data-parallel, --shard and
// --reduce-amax-axes say.

#include "Request.h"
#include "fp8/Dialect/FP8/Transforms/Boundary.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fp8;

/// Returns the extents of the program's grid; none without one.
static SmallVector<int64_t> findGrid(ModuleOp module) {
  SmallVector<int64_t> found;
  module.walk([&](Operation *op) {
    if (auto grid = dyn_cast<shard::GridOp>(op))
      found.assign(grid.getShape().begin(), grid.getShape().end());
    else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      found = llvm::to_vector(collective.getGridAttr().asArrayRef());
    return found.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return found;
}

/// Finds the axis that `name`, a name or number, stands for.
static std::optional<int64_t> findAxis(ModuleOp module, StringRef name) {
  if (auto names = module->getAttrOfType<ArrayAttr>(kGridAxesAttrName))
    for (auto [i, own] : llvm::enumerate(names.getAsValueRange<StringAttr>()))
      if (own == name)
        return i;
  auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName);
  int64_t axis;
  if (!name.getAsInteger(10, axis) && grid && axis >= 0 && axis < grid.size())
    return axis;
  return std::nullopt;
}

/// Finds the axis of `request`, which is that of the option `option`. A program without a grid gets one of
/// all ranks.
static FailureOr<int64_t> findAxis(ModuleOp module, StringRef option, const DivisionRequest &request) {
  Builder builder(module.getContext());
  if (!module->hasAttr(kGridAttrName)) {
    module->setAttr(kGridAttrName, builder.getDenseI64ArrayAttr(ShapedType::kDynamic));
    module->setAttr(kGridAxesAttrName, builder.getStrArrayAttr(StringRef(request.axis)));
  }
  std::optional<int64_t> axis = findAxis(module, request.axis);
  if (!axis)
    return module.emitError() << option << ": '" << request.axis
                              << "' is no axis of the program's grid; its axes are numbers, from 0";
  return *axis;
}

static int64_t rankOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getRank() : 0;
}

/// Calls `visit` for each function that a caller can call.
static LogicalResult forEachEntry(ModuleOp module, function_ref<LogicalResult(func::FuncOp)> visit) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal() && failed(visit(function)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// --data-parallel
//===----------------------------------------------------------------------===//

/// Marks an argument in every entry that has it, as one of which each rank has a part.
static LogicalResult markBatch(ModuleOp module, const DividedTensor &batch) {
  bool found = false;
  LogicalResult marked = forEachEntry(module, [&](func::FuncOp function) -> LogicalResult {
    std::optional<unsigned> argument = findArgument(function, batch.name);
    if (!argument)
      return success();
    int64_t rank = rankOf(function.getArgument(*argument).getType());
    if (batch.dim >= std::max<int64_t>(rank, 1))
      return emitError(function.getArgument(*argument).getLoc())
             << "--data-parallel: argument '" << batch.name << "' has " << rank << " dimensions, and "
             << batch.dim << " is none of them";
    if (function.getArgAttr(*argument, kCarriedAttrName))
      return emitError(function.getArgument(*argument).getLoc())
             << "--data-parallel: argument '" << batch.name
             << "' is carried from step to step, so it is no part of a batch";
    function.setArgAttr(*argument, kBatchAttrName,
                        Builder(module.getContext()).getI64IntegerAttr(rank == 0 ? -1 : batch.dim));
    found = true;
    return success();
  });
  if (failed(marked) || found)
    return marked;
  return module.emitError() << "--data-parallel: no public function has an argument '" << batch.name << "'";
}

static LogicalResult applyDataParallel(ModuleOp module, const DivisionRequest &request) {
  FailureOr<int64_t> axis = findAxis(module, "--data-parallel", request);
  if (failed(axis))
    return failure();
  module->setAttr(kBatchAxisAttrName, Builder(module.getContext()).getI64IntegerAttr(*axis));
  for (const DividedTensor &batch : request.tensors)
    if (failed(markBatch(module, batch)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// --shard
//===----------------------------------------------------------------------===//

namespace {
/// One tensor of --shard along one axis.
class ShardMarker {
public:
  ShardMarker(ModuleOp module, int64_t axis, const DividedTensor &tensor)
      : module(module), axis(axis), tensor(tensor) {}

  LogicalResult mark();

private:
  LogicalResult markArgument(func::FuncOp function, unsigned argument);
  LogicalResult markResult(func::FuncOp function, unsigned result);
  /// Adds this division to those of `attr`, of a value of `type`.
  FailureOr<Attribute> extend(Location loc, Type type, Attribute attr);

  ModuleOp module;
  int64_t axis;
  const DividedTensor &tensor;
  bool found = false;
};
} // namespace

FailureOr<Attribute> ShardMarker::extend(Location loc, Type type, Attribute attr) {
  if (tensor.dim >= rankOf(type))
    return emitError(loc) << "--shard: '" << tensor.name << "' has " << rankOf(type) << " dimensions, and "
                          << tensor.dim << " is none of them";
  auto batchAxis = module->getAttrOfType<IntegerAttr>(kBatchAxisAttrName);
  if (batchAxis && batchAxis.getInt() == axis)
    return emitError(loc) << "--shard: '" << tensor.name
                          << "' is divided along the axis of --data-parallel, which takes means of whole "
                             "gradients: write the means into the program, and name its batch in --shard";
  auto old = dyn_cast_or_null<DenseI64ArrayAttr>(attr);
  SmallVector<int64_t> list = old ? llvm::to_vector(old.asArrayRef()) : SmallVector<int64_t>();
  for (size_t i = 0; i < list.size(); i += 2)
    if (list[i] == axis)
      return emitError(loc) << "--shard: '" << tensor.name << "' is divided along one axis twice";
  list.append({axis, tensor.dim});
  return Attribute(DenseI64ArrayAttr::get(module.getContext(), list));
}

LogicalResult ShardMarker::markResult(func::FuncOp function, unsigned result) {
  FailureOr<Attribute> attr = extend(function.getLoc(), function.getResultTypes()[result],
                                     function.getResultAttr(result, kShardAttrName));
  if (failed(attr))
    return failure();
  function.setResultAttr(result, kShardAttrName, *attr);
  found = true;
  return success();
}

LogicalResult ShardMarker::markArgument(func::FuncOp function, unsigned argument) {
  BlockArgument value = function.getArgument(argument);
  FailureOr<Attribute> attr =
      extend(value.getLoc(), value.getType(), function.getArgAttr(argument, kShardAttrName));
  if (failed(attr))
    return failure();
  function.setArgAttr(argument, kShardAttrName, *attr);
  found = true;
  auto carried = function.getArgAttrOfType<IntegerAttr>(argument, kCarriedAttrName);
  bool exists = carried && carried.getInt() >= 0 && carried.getInt() < function.getNumResults();
  return exists ? markResult(function, carried.getInt()) : success();
}

LogicalResult ShardMarker::mark() {
  LogicalResult marked = forEachEntry(module, [&](func::FuncOp function) -> LogicalResult {
    if (std::optional<unsigned> argument = findArgument(function, tensor.name))
      return markArgument(function, *argument);
    StringRef number = tensor.name;
    unsigned result;
    if (number.consume_front("result") && !number.getAsInteger(10, result) &&
        result < function.getNumResults())
      return markResult(function, result);
    return success();
  });
  if (failed(marked) || found)
    return marked;
  return module.emitError() << "--shard: no public function has an argument or result '" << tensor.name
                            << "'";
}

static LogicalResult applyShards(ModuleOp module, const DivisionRequest &request) {
  FailureOr<int64_t> axis = findAxis(module, "--shard", request);
  if (failed(axis))
    return failure();
  for (const DividedTensor &tensor : request.tensors)
    if (failed(ShardMarker(module, *axis, tensor).mark()))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// --reduce-amax-axes
//===----------------------------------------------------------------------===//

/// Marks the axes over which amaxes are combined.
static LogicalResult applyReduceAxes(ModuleOp module, ArrayRef<std::string> names) {
  SmallVector<int64_t> axes;
  for (const std::string &name : names) {
    std::optional<int64_t> axis = findAxis(module, name);
    if (!axis)
      return module.emitError() << "--reduce-amax-axes: '" << name << "' is no axis of the program's grid"
                                << (module->hasAttr(kGridAttrName) ? ""
                                                                   : ", which has none: it is for one rank");
    if (!llvm::is_contained(axes, *axis))
      axes.push_back(*axis);
  }
  llvm::sort(axes);
  module->setAttr(kReduceAxesAttrName, Builder(module.getContext()).getDenseI64ArrayAttr(axes));
  return success();
}

LogicalResult fp8::applyRanks(ModuleOp module, const CompilerOptions &options) {
  if (SmallVector<int64_t> grid = findGrid(module); !grid.empty())
    module->setAttr(kGridAttrName, Builder(module.getContext()).getDenseI64ArrayAttr(grid));
  if (options.dataParallel && failed(applyDataParallel(module, *options.dataParallel)))
    return failure();
  for (const DivisionRequest &request : options.shards)
    if (failed(applyShards(module, request)))
      return failure();
  return options.reduceAmaxAxes.empty() ? success() : applyReduceAxes(module, options.reduceAmaxAxes);
}
