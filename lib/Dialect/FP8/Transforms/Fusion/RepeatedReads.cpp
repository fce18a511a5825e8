// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds what is read from memory more than once after fusion, and says why each read is left there: the
// fusions answer by the checks that they decide by, and the structure of the program where there is none.

#include "fp8/Dialect/FP8/Transforms/RepeatedReads.h"
#include "RegionFusion.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/MemoryTraffic.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace fp8 {

using detail::Reason;

bool detail::isFusible(OpOperand &read) {
  Operation *writer = read.get().getDefiningOp();
  return writer && (isa<linalg::GenericOp>(writer) || MatmulResults::of(writer)) &&
         isa<linalg::GenericOp, QuantizeOp, QuantizeBlocksOp, AmaxOp>(read.getOwner());
}

Reason detail::explainRead(OpOperand &read) {
  auto result = cast<OpResult>(read.get());
  Operation *reader = read.getOwner(), *writer = result.getOwner();
  if (reader->getBlock() != writer->getBlock())
    return "it is in another loop or branch";
  auto generic = dyn_cast<linalg::GenericOp>(writer);
  Reason why;
  if (!generic)
    why = explainEpilogue(writer, result, reader);
  else if (isa<linalg::GenericOp>(reader))
    why = explainElementwise(read);
  else if (generic.getNumReductionLoops())
    why = explainRows(generic, reader);
  if (why.empty() && generic && !isa<linalg::GenericOp>(reader))
    why = explainProducer(generic, result, reader);
  return why.empty() ? "another fusion came first" : why;
}

/// Returns why `sum` of `tensor` is no result of a cast or amax among `readers`, which reads `tensor` too;
/// empty if there is none.
static Reason explainSum(Operation *sum, Value tensor, ArrayRef<TensorReader> readers) {
  auto generic = dyn_cast<linalg::GenericOp>(sum);
  if (!generic || generic.getNumReductionLoops() == 0)
    return "";
  for (const TensorReader &other : readers) {
    std::optional<ElementRegion> region = ElementRegion::of(other.op);
    if (!region || MatmulResults::of(other.op))
      continue;
    for (auto [input, map] : llvm::zip(region->inputs, region->inputMaps())) {
      Reason why;
      if (input != tensor)
        continue;
      bool sumFirst = sum->getBlock() == other.op->getBlock() && sum->isBeforeInBlock(other.op);
      if (detail::canFuseSum(other.op, sum, tensor, map, &why))
        detail::canMeet(sumFirst ? sum : other.op, sumFirst ? other.op : sum, &why);
      return why;
    }
  }
  return "";
}

/// Returns the first operand of `reader` that is a view of `tensor`; null if only its region reads the
/// tensor.
static OpOperand *findRead(Operation *reader, Value tensor) {
  auto operands = reader->getOpOperands();
  auto *read = llvm::find_if(operands, [&](OpOperand &o) { return getViewSource(o.get()) == tensor; });
  return read == operands.end() ? nullptr : &*read;
}

/// Returns why `reader` is not computed with the operation that computes `tensor`.
static std::string explainReader(Operation *reader, Value tensor, ArrayRef<TensorReader> readers) {
  OpOperand *read = findRead(reader, tensor);
  if (!read)
    return "it gathers elements by their indices";
  if (MatmulResults::of(reader))
    return llvm::is_contained(ElementRegion::of(reader)->inputs, read->get())
               ? "the epilogue of a matmul takes in readers of the matmul alone"
               : detail::kMatmulOperand.str();
  if (read->get() == tensor && detail::isFusible(*read))
    return detail::explainRead(*read).str();
  if (Reason why = explainSum(reader, read->get(), readers); !why.empty())
    return why.str();
  if (auto argument = dyn_cast<BlockArgument>(tensor))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp())
               ? "an argument is in memory when the step begins"
               : "the loop keeps the tensor in memory";
  if (read->get() != tensor)
    return "it reads the tensor in another shape";
  Operation *writer = tensor.getDefiningOp();
  Operation *apart = isa<linalg::GenericOp>(writer) || MatmulResults::of(writer) ? reader : writer;
  return ("fusion leaves '" + apart->getName().getStringRef() + "' as it is").str();
}

/// Returns how often `reader` runs for each value of `tensor`; unset if that is not known.
static std::optional<int64_t> countTimes(Operation *reader, Value tensor) {
  int64_t times = 1;
  for (Region *region = reader->getParentRegion(); region != tensor.getParentRegion();
       region = region->getParentRegion()) {
    if (!isa<LoopLikeOpInterface>(region->getParentOp()))
      continue;
    std::optional<int64_t> runs = countRuns(region->getParentOp());
    if (!runs)
      return std::nullopt;
    times *= *runs;
  }
  return times;
}

/// Returns whether a step may read the tensor of `readers` more than once.
static bool isRepeated(ArrayRef<TensorReader> readers) {
  for (auto [i, reader] : llvm::enumerate(readers)) {
    if (!reader.times || *reader.times > 1)
      return true;
    for (const TensorReader &other : readers.drop_front(i + 1))
      if (!insideMutuallyExclusiveRegions(reader.op, other.op))
        return true;
  }
  return false;
}

std::vector<RepeatedRead> findRepeatedReads(func::FuncOp function) {
  llvm::MapVector<Value, RepeatedRead> tensors;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::SetVector<Value> sources;
    for (Value read : getTensorsRead(op))
      if (cast<RankedTensorType>(read.getType()).getRank() != 0)
        sources.insert(getViewSource(read));
    for (Value source : sources)
      tensors.try_emplace(source, RepeatedRead{source, {}})
          .first->second.readers.push_back({op, countTimes(op, source), ""});
    // Code on elements and rows is a part of its operation.
    return isa<func::FuncOp>(op) || isa<LoopLikeOpInterface, RegionBranchOpInterface>(op)
               ? WalkResult::advance()
               : WalkResult::skip();
  });
  std::vector<RepeatedRead> repeated;
  for (auto &[tensor, record] : tensors) {
    if (!isRepeated(record.readers))
      continue;
    for (TensorReader &reader : record.readers)
      reader.reason = explainReader(reader.op, tensor, record.readers);
    repeated.push_back(std::move(record));
  }
  return repeated;
}

} // namespace fp8
