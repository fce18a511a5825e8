// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds a minimum cut in the graph of values that can be computed again.

#include "fp8/Analysis/CheapestCut.h"
#include "mlir/IR/Operation.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace fp8;

SmallVector<Value> fp8::getReadValues(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::append_range(values, captured);
  return values;
}

namespace {

/// Every value is two vertices, needed and saved, with an edge between them whose capacity is the
/// value's cost. Edges of unlimited capacity lead from the second vertex to the values that the value
/// is computed from, or to the sink if it cannot be computed again; another edge to the sink has the cost of
/// computing it.
class CutFinder {
public:
  CutFinder(function_ref<bool(OpResult)> canRepeat, function_ref<int64_t(Value)> cost,
            function_ref<int64_t(OpResult)> work)
      : canRepeat(canRepeat), cost(cost), work(work) {}

  SmallVector<Value> run(ArrayRef<Value> needed);

private:
  struct Edge {
    unsigned to;
    int64_t capacity; ///< the remaining capacity
  };
  /// Large, but the sum of two does not overflow.
  static constexpr int64_t kUnlimited = int64_t(1) << 60;
  static constexpr unsigned kEnd = 0;

  unsigned wanted(unsigned value) const { return 1 + 2 * value; }
  unsigned handedOver(unsigned value) const { return 2 + 2 * value; }
  unsigned addValue(Value value);
  void addEdges(unsigned number);
  void addEdge(unsigned from, unsigned to, int64_t capacity);
  bool augment(unsigned start);
  void visit(unsigned vertex);

  function_ref<bool(OpResult)> canRepeat;
  function_ref<int64_t(Value)> cost;
  function_ref<int64_t(OpResult)> work;
  SmallVector<Value> values;
  DenseMap<Value, unsigned> numbers;
  /// Edge i and its reverse, i ^ 1.
  std::vector<Edge> edges;
  std::vector<SmallVector<unsigned>> edgesFrom;
  llvm::BitVector visited;
};

} // namespace

unsigned CutFinder::addValue(Value value) {
  auto [entry, isNew] = numbers.try_emplace(value, values.size());
  if (isNew)
    values.push_back(value);
  return entry->second;
}

void CutFinder::addEdge(unsigned from, unsigned to, int64_t capacity) {
  edgesFrom.resize(std::max<size_t>(edgesFrom.size(), std::max(from, to) + 1));
  edgesFrom[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesFrom[to].push_back(edges.size());
  edges.push_back({from, 0});
}

void CutFinder::addEdges(unsigned number) {
  Value value = values[number];
  addEdge(wanted(number), handedOver(number), std::min(cost(value), kUnlimited));
  auto result = dyn_cast<OpResult>(value);
  if (!result || !canRepeat(result))
    return addEdge(handedOver(number), kEnd, kUnlimited);
  if (int64_t repeating = work ? work(result) : 0)
    addEdge(handedOver(number), kEnd, std::min(repeating, kUnlimited));
  for (Value read : getReadValues(result.getOwner()))
    addEdge(handedOver(number), wanted(addValue(read)), kUnlimited);
}

/// Sends as much as possible along a shortest path to the sink. Returns whether there was one.
bool CutFinder::augment(unsigned start) {
  std::vector<unsigned> arrivals(edgesFrom.size()); // the edge by which a vertex was reached
  SmallVector<unsigned> reached{start};
  visited.reset();
  visited.set(start);
  for (size_t next = 0; next < reached.size() && !visited.test(kEnd); ++next)
    for (unsigned edge : edgesFrom[reached[next]])
      if (unsigned to = edges[edge].to; edges[edge].capacity > 0 && !visited.test(to)) {
        visited.set(to);
        arrivals[to] = edge;
        reached.push_back(to);
      }
  if (!visited.test(kEnd))
    return false;
  auto forEachEdge = [&](auto visit) {
    for (unsigned vertex = kEnd; vertex != start; vertex = edges[arrivals[vertex] ^ 1].to)
      visit(arrivals[vertex]);
  };
  int64_t sent = kUnlimited;
  forEachEdge([&](unsigned edge) { sent = std::min(sent, edges[edge].capacity); });
  forEachEdge([&](unsigned edge) {
    edges[edge].capacity -= sent;
    edges[edge ^ 1].capacity += sent;
  });
  return true;
}

/// Marks the vertices that can still be reached.
void CutFinder::visit(unsigned vertex) {
  if (visited.test(vertex))
    return;
  visited.set(vertex);
  for (unsigned edge : edgesFrom[vertex])
    if (edges[edge].capacity > 0)
      visit(edges[edge].to);
}

SmallVector<Value> CutFinder::run(ArrayRef<Value> needed) {
  for (Value value : needed)
    addValue(value);
  unsigned count = values.size();
  for (unsigned i = 0; i < values.size(); ++i)
    addEdges(i);
  visited.resize(edgesFrom.size());
  for (unsigned i = 0; i < count; ++i)
    while (augment(wanted(i))) {
    }

  visited.reset();
  for (unsigned i = 0; i < count; ++i)
    visit(wanted(i));
  SmallVector<Value> cut;
  for (unsigned i = 0; i < values.size(); ++i)
    if (visited.test(wanted(i)) && !visited.test(handedOver(i)))
      cut.push_back(values[i]);
  return cut;
}

SmallVector<Value> fp8::findCheapestCut(ArrayRef<Value> needed, function_ref<bool(OpResult)> canRepeat,
                                        function_ref<int64_t(Value)> cost,
                                        function_ref<int64_t(OpResult)> work) {
  return CutFinder(canRepeat, cost, work).run(needed);
}
