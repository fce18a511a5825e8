// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles from matched products. The rules are in the header.

#include "fp8/Analysis/Sites/Roles.h"
#include "fp8/Analysis/Sites/NewValues.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fp8;

/// The name that the program gives an argument; empty where it has none.
static StringRef getName(Value parameter) {
  auto name = isa<BlockArgument>(parameter) ? parameter.getLoc()->findInstanceOf<NameLoc>() : NameLoc();
  return name ? name.getName().getValue() : StringRef();
}

namespace {

class RoleInference {
public:
  explicit RoleInference(FunctionOpInterface function);
  /// Adds the names of the parameters that this function trains.
  void collectTrainedNames(llvm::StringSet<> &names) const;
  /// The roles; parameters of the names in `trainedElsewhere` are weights.
  std::vector<ContractionRole> run(const llvm::StringSet<> &trainedElsewhere);

private:
  void assignForward(unsigned i);
  void assignGradients(unsigned i);
  void assignUnmatchedGradient(unsigned i);
  bool readsLowerRank(unsigned i, unsigned sibling) const;
  void applyUserRole(unsigned i);
  bool isTrained(Value parameter) const;
  std::optional<unsigned> findWeight(const Contraction &contraction) const;
  std::optional<unsigned> findSibling(unsigned i, unsigned gradientOperand) const;
  bool isRecomputed(Value value) const;
  unsigned findGradientOperand(unsigned i) const;
  bool reachesProduct(unsigned i) const;
  bool dependsOnBackward(unsigned i) const;
  bool readsGradient(unsigned i) const;
  bool isInDoubt(unsigned i) const;
  bool isGradientOfAnUnmultipliedWeight(unsigned i) const;

  std::vector<Contraction> contractions;
  std::optional<Reachability> reachability, direct;
  std::vector<ContractionRole> roles;
  llvm::DenseSet<Value> trained; ///< parameters with a gradient, of whichever product
  llvm::BitVector backward;      ///< matched gradients and those that names mark
  const llvm::StringSet<> *trainedElsewhere = nullptr;
  bool namesTell = false;
};

} // namespace

RoleInference::RoleInference(FunctionOpInterface function) : contractions(collectContractions(function)) {
  SmallVector<Operation *> sources;
  for (Contraction &contraction : contractions)
    sources.push_back(contraction.op);
  reachability.emplace(function, sources);
  direct.emplace(function, sources, /*direct=*/true);
  matchBackward(function, *reachability, *direct, contractions);
  for (const Contraction &contraction : contractions)
    for (unsigned operand : {0, 1})
      if (contraction.gradients[operand] != Contraction::kNone)
        if (Value parameter = getParameter(contraction.op->getOperand(operand)))
          trained.insert(parameter);
}

//===----------------------------------------------------------------------===//
// Forward products
//===----------------------------------------------------------------------===//

bool RoleInference::isTrained(Value parameter) const {
  return parameter && (isCarried(parameter) || trained.contains(parameter) ||
                       trainedElsewhere->contains(getName(parameter)));
}

/// The operand that is the weight of a forward product, if any.
std::optional<unsigned> RoleInference::findWeight(const Contraction &contraction) const {
  bool isParameter[2], trains[2];
  int64_t rank[2];
  for (unsigned operand : {0, 1}) {
    Value value = contraction.op->getOperand(operand);
    Value parameter = getParameter(value);
    isParameter[operand] = static_cast<bool>(parameter);
    trains[operand] = isTrained(parameter);
    rank[operand] = cast<RankedTensorType>(value.getType()).getRank();
  }
  if (trains[0] != trains[1])
    return trains[1];
  if (isParameter[0] != isParameter[1])
    return isParameter[1];
  if (!isParameter[0])
    return std::nullopt;
  return rank[0] < rank[1] ? 0 : 1;
}

void RoleInference::assignForward(unsigned i) {
  ContractionRole &entry = roles[i];
  std::optional<unsigned> weight = findWeight(entry.contraction);
  if (const ContractionRole &first = roles[entry.leader]; entry.leader != i && first.role == Role::fprop)
    weight =
        first.weightOperand ^ (first.contraction.operands[0].tensor != contractions[i].operands[0].tensor);
  if (!weight)
    return;
  entry.role = Role::fprop;
  entry.weightOperand = *weight;
  entry.kinds[*weight] = TensorKind::weight;
  entry.weight = getParameter(entry.contraction.op->getOperand(*weight));
}

void RoleInference::assignGradients(unsigned i) {
  const ContractionRole &forward = roles[i];
  for (ContractionRole &entry : roles) {
    if (entry.contraction.forward != int(i))
      continue;
    entry.leader = forward.leader;
    entry.kinds[entry.contraction.gradientOperand] = TensorKind::grad_output;
    if (forward.role != Role::fprop)
      continue;
    // The gradient of the weight reads the input, and the reverse.
    bool isWeightGradient = entry.contraction.differentiated == forward.weightOperand;
    entry.role = isWeightGradient ? Role::wgrad : Role::dgrad;
    entry.weightOperand = 1 - entry.contraction.gradientOperand;
    if (!isWeightGradient)
      entry.kinds[entry.weightOperand] = TensorKind::weight;
  }
}

//===----------------------------------------------------------------------===//
// Gradients without a forward product
//===----------------------------------------------------------------------===//

bool RoleInference::reachesProduct(unsigned i) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    MatmulOp op = other.op;
    return reachability->reaches(i, op.getLhs()) || reachability->reaches(i, op.getRhs());
  });
}

bool RoleInference::dependsOnBackward(unsigned i) const {
  MatmulOp op = contractions[i].op;
  return reachability->reachesAny(backward, op.getLhs()) || reachability->reachesAny(backward, op.getRhs());
}

/// The gradient of a table that rows are gathered from, as a product with a mask: one operand
/// is a gradient, the other one is neither that nor a parameter, and of all products only
/// this one is on the way to a result that a parameter of its size becomes, or has the
/// gradient of.
bool RoleInference::isGradientOfAnUnmultipliedWeight(unsigned i) const {
  const Contraction &contraction = contractions[i];
  MatmulOp op = contraction.op;
  bool fromBackward[] = {reachability->reachesAny(backward, op.getLhs()),
                         reachability->reachesAny(backward, op.getRhs())};
  if (contraction.isMatched() || fromBackward[0] == fromBackward[1] || getParameter(op.getLhs()) ||
      getParameter(op.getRhs()) || reachesProduct(i))
    return false;
  auto type = cast<RankedTensorType>(contraction.result.getType());
  Region &body = op->getParentOfType<FunctionOpInterface>()->getRegion(0);
  return type.hasStaticShape() && llvm::any_of(body.back().getTerminator()->getOperands(), [&](Value result) {
           auto resultType = dyn_cast<RankedTensorType>(result.getType());
           return resultType && resultType.hasStaticShape() &&
                  resultType.getNumElements() == type.getNumElements() && reachability->reaches(i, result) &&
                  llvm::is_contained(body.getArgumentTypes(), resultType);
         });
}

/// True for an activation that forward code, computed again, leaves.
bool RoleInference::isRecomputed(Value value) const {
  llvm::BitVector sources = direct->getSources(value);
  return sources.any() && llvm::all_of(sources.set_bits(), [&](unsigned source) {
           return contractions[source].name.rematerialized;
         });
}

/// The gradient dy among the operands: none that forward code computed again; the one that is
/// computed, by the backward pass rather than without it, and that two gradients of one
/// product share rather than one alone.
unsigned RoleInference::findGradientOperand(unsigned i) const {
  MatmulOp op = contractions[i].op;
  bool recomputed[] = {isRecomputed(op.getLhs()), isRecomputed(op.getRhs())};
  if (recomputed[0] != recomputed[1])
    return recomputed[0];
  auto score = [&](unsigned operand) {
    Value value = op->getOperand(operand);
    return (getParameter(value) ? 0 : 4) + (reachability->reachesAny(backward, value) ? 2 : 0) +
           (findSibling(i, operand) ? 1 : 0);
  };
  return score(0) > score(1) ? 0 : 1;
}

/// Another unmatched gradient that reads the same dy for the other operand's sake.
std::optional<unsigned> RoleInference::findSibling(unsigned i, unsigned gradientOperand) const {
  const TensorUse &gradient = contractions[i].operands[gradientOperand];
  for (unsigned other = 0; other < contractions.size(); ++other)
    for (unsigned operand : {0, 1})
      if (other != i && !contractions[other].isMatched() && backward.test(other) &&
          haveOppositeUses(gradient, contractions[other].operands[operand]))
        return other;
  return std::nullopt;
}

/// True if, of two gradients that share dy, the first one reads the parameter of lower rank, which is
/// the weight then.
bool RoleInference::readsLowerRank(unsigned i, unsigned sibling) const {
  auto getRead = [&](unsigned one, unsigned other) {
    const Contraction &a = contractions[one], &b = contractions[other];
    bool sharesFirst = llvm::is_contained({b.operands[0].tensor, b.operands[1].tensor}, a.operands[0].tensor);
    return a.op->getOperand(sharesFirst);
  };
  Value mine = getRead(i, sibling), other = getRead(sibling, i);
  return getParameter(mine) && getParameter(other) &&
         cast<RankedTensorType>(mine.getType()).getRank() < cast<RankedTensorType>(other.getType()).getRank();
}

/// A gradient of a weight is a result: no other product depends on it. Its sibling, if
/// it reads a parameter, is the gradient of the input.
void RoleInference::assignUnmatchedGradient(unsigned i) {
  ContractionRole &entry = roles[i];
  unsigned gradientOperand = findGradientOperand(i);
  entry.contraction.gradientOperand = gradientOperand;
  entry.kinds[gradientOperand] = TensorKind::grad_output;
  entry.weightOperand = 1 - gradientOperand;
  std::optional<unsigned> sibling = findSibling(i, gradientOperand);
  bool isLast = !reachesProduct(i);
  if (isLast && !(sibling && readsLowerRank(i, *sibling))) {
    entry.role = Role::wgrad;
    return;
  }
  Value weight = getParameter(entry.contraction.op->getOperand(entry.weightOperand));
  if (!weight || !sibling || reachesProduct(*sibling))
    return;
  entry.role = Role::dgrad;
  entry.kinds[entry.weightOperand] = TensorKind::weight;
  entry.leader = *sibling;
}

//===----------------------------------------------------------------------===//
// Doubts
//===----------------------------------------------------------------------===//

/// True if an operand is the gradient dy of a product.
bool RoleInference::readsGradient(unsigned i) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    unsigned gradient = other.operands[other.gradientOperand].tensor;
    return other.isBackward() &&
           llvm::is_contained({contractions[i].operands[0].tensor, contractions[i].operands[1].tensor},
                              gradient);
  });
}

/// True for what is taken for a forward product, as nothing else is known of it, though gradients
/// have to do with it. (Products without a weight in an optimizer depend on gradients, too.)
bool RoleInference::isInDoubt(unsigned i) const {
  const Contraction &contraction = contractions[i];
  if (contraction.isForward() || namesTell || contraction.op->hasAttr(FP8Dialect::kRoleAttrName))
    return false;
  return readsGradient(i) || (roles[i].role == Role::fprop &&
                              (dependsOnBackward(i) || contraction.maybeGradientOf != Contraction::kNone));
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// `fp8.role` on the product: kinds follow.
void RoleInference::applyUserRole(unsigned i) {
  ContractionRole &entry = roles[i];
  auto attribute = entry.contraction.op->getAttrOfType<StringAttr>(FP8Dialect::kRoleAttrName);
  std::optional<Role> role = attribute ? symbolizeRole(attribute.getValue()) : std::nullopt;
  if (!role || *role == entry.role)
    return;
  bool isGradient =
      *role == Role::dgrad || *role == Role::wgrad || (*role == Role::other && contractions[i].isBackward());
  bool readsWeight = *role == Role::fprop || *role == Role::dgrad;
  if (isGradient)
    entry.weightOperand =
        1 - (contractions[i].isBackward() ? contractions[i].gradientOperand : findGradientOperand(i));
  entry.role = *role;
  entry.inDoubt = false;
  entry.weight = nullptr;
  if (*role == Role::fprop)
    entry.weight = getParameter(entry.contraction.op->getOperand(entry.weightOperand));
  entry.kinds[entry.weightOperand] = readsWeight ? TensorKind::weight : TensorKind::input;
  entry.kinds[1 - entry.weightOperand] = isGradient ? TensorKind::grad_output : TensorKind::input;
}

std::vector<ContractionRole> RoleInference::run(const llvm::StringSet<> &elsewhere) {
  trainedElsewhere = &elsewhere;
  backward.resize(contractions.size());
  for (auto [i, contraction] : llvm::enumerate(contractions)) {
    roles.emplace_back();
    roles.back().contraction = contraction;
    roles.back().leader = i;
    for (unsigned operand : {0, 1})
      roles.back().sources[operand] = direct->getSources(contraction.op->getOperand(operand));
    // What is computed again belongs to the first product. In a gradient of the user's own, its names are
    // those of backward code.
    const Contraction &first = contractions[contraction.first];
    bool again =
        contraction.first != i && !first.name.backward && !first.isBackward() && !contraction.isBackward();
    if (again && (contraction.name.backward || contraction.name.site == first.name.site))
      roles.back().leader = contraction.first;
    bool marked = contraction.name.backward && !contraction.isForward() && !again;
    backward[i] = contraction.isBackward() || marked;
    namesTell |= marked;
  }
  if (!namesTell) {
    llvm::BitVector found(contractions.size());
    for (unsigned i = 0; i < contractions.size(); ++i)
      found[i] = isGradientOfAnUnmultipliedWeight(i);
    backward |= found;
  }
  for (unsigned i = 0; i < contractions.size(); ++i) {
    if (contractions[i].isBackward())
      continue;
    if (backward.test(i)) {
      assignUnmatchedGradient(i);
      continue;
    }
    assignForward(i);
    applyUserRole(i);
    assignGradients(i);
    roles[i].inDoubt = isInDoubt(i);
  }
  for (unsigned i = 0; i < roles.size(); ++i)
    applyUserRole(i);
  return std::move(roles);
}

void RoleInference::collectTrainedNames(llvm::StringSet<> &names) const {
  auto add = [&](Value parameter) {
    if (StringRef name = getName(parameter); !name.empty())
      names.insert(name);
  };
  llvm::for_each(trained, add);
  for (Contraction contraction : contractions)
    for (Value operand : {contraction.op.getLhs(), contraction.op.getRhs()})
      if (Value parameter = getParameter(operand); parameter && isCarried(parameter))
        add(parameter);
}

std::vector<std::vector<ContractionRole>> fp8::inferRoles(ArrayRef<FunctionOpInterface> functions) {
  std::vector<RoleInference> inferences(functions.begin(), functions.end());
  llvm::StringSet<> trained;
  for (const RoleInference &inference : inferences)
    inference.collectTrainedNames(trained);
  std::vector<std::vector<ContractionRole>> roles;
  for (RoleInference &inference : inferences)
    roles.push_back(inference.run(trained));
  return roles;
}
