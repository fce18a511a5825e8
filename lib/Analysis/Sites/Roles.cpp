// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles from matched matmuls. The rules are in the header.

#include "fp8/Analysis/Sites/Roles.h"
#include "fp8/Dialect/FP8/IR/Marks.h"

using namespace mlir;
using namespace fp8;

namespace {

class RoleInference {
public:
  explicit RoleInference(FunctionOpInterface function);
  /// Adds the names of the parameters that this function trains.
  void collectTrainedNames(llvm::StringSet<> &names) const { weights->collectTrainedNames(names); }
  /// Makes arguments parameters if another function trains arguments of their names.
  void addTrainedNames(const llvm::StringSet<> &names) { weights->addTrainedNames(names, contractions); }
  std::vector<ContractionRole> run();

private:
  void assignForward(unsigned i);
  void assignGradients(unsigned i);
  void assignUnmatchedGradient(unsigned i);
  bool readsLowerRank(unsigned i, unsigned sibling) const;
  void applyUserRole(unsigned i);
  void setWeight(ContractionRole &entry) const;
  std::optional<unsigned> findSibling(unsigned i, unsigned gradientOperand) const;
  bool isRecomputed(Value value) const;
  unsigned findGradientOperand(unsigned i) const;
  bool reachesMatmul(unsigned i) const;
  bool dependsOnBackward(unsigned i) const;
  bool readsGradient(unsigned i) const;
  bool isInDoubt(unsigned i) const;
  bool isGradientOfAnUnmultipliedWeight(unsigned i) const;

  std::vector<Contraction> contractions;
  std::unique_ptr<Reachability> reachability, direct;
  std::unique_ptr<ValueSources> sources;
  std::unique_ptr<Weights> weights;
  std::vector<ContractionRole> roles;
  llvm::BitVector backward; ///< matched gradients and those that names mark
  bool namesMarkBackward = false;
};

} // namespace

RoleInference::RoleInference(FunctionOpInterface function) : contractions(collectContractions(function)) {
  SmallVector<Operation *> matmuls;
  for (Contraction &contraction : contractions)
    matmuls.push_back(contraction.op);
  reachability = std::make_unique<Reachability>(function, matmuls);
  direct = std::make_unique<Reachability>(function, matmuls, Reach::direct);
  sources = std::make_unique<ValueSources>(function);
  matchBackward(function, *reachability, *direct, *sources, contractions);
  weights = std::make_unique<Weights>(function, contractions, *reachability, *sources);
}

//===----------------------------------------------------------------------===//
// Forward matmuls
//===----------------------------------------------------------------------===//

/// Sets the weight of `entry`, and the arguments it is computed from, from the operand that is the weight.
void RoleInference::setWeight(ContractionRole &entry) const {
  Value operand = entry.contraction.op->getOperand(entry.weightOperand);
  Value argument = getParameter(operand);
  entry.weight = argument ? argument : operand;
  entry.weightArguments = sources->getFloatArguments(operand);
}

void RoleInference::assignForward(unsigned i) {
  ContractionRole &entry = roles[i];
  std::optional<unsigned> weight = weights->findWeight(entry.contraction.op);
  if (const ContractionRole &first = roles[entry.leader]; entry.leader != i && first.role == Role::fprop)
    weight =
        first.weightOperand ^ (first.contraction.operands[0].tensor != contractions[i].operands[0].tensor);
  if (!weight)
    return;
  entry.role = Role::fprop;
  entry.weightOperand = *weight;
  entry.kinds[*weight] = TensorKind::weight;
  setWeight(entry);
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
// Gradients without a forward matmul
//===----------------------------------------------------------------------===//

bool RoleInference::reachesMatmul(unsigned i) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    MatmulOp op = other.op;
    return reachability->reaches(i, op.getLhs()) || reachability->reaches(i, op.getRhs());
  });
}

bool RoleInference::dependsOnBackward(unsigned i) const {
  MatmulOp op = contractions[i].op;
  return reachability->reachesAny(backward, op.getLhs()) || reachability->reachesAny(backward, op.getRhs());
}

/// True for the gradient of a table that rows are gathered from, computed as a matmul with a mask: one
/// operand depends on gradients, the other one does not, and neither is a parameter; no other matmul lies
/// between this one and a result of its size that has the type of an argument.
bool RoleInference::isGradientOfAnUnmultipliedWeight(unsigned i) const {
  const Contraction &contraction = contractions[i];
  MatmulOp op = contraction.op;
  bool fromBackward[] = {reachability->reachesAny(backward, op.getLhs()),
                         reachability->reachesAny(backward, op.getRhs())};
  if (contraction.isMatched() || fromBackward[0] == fromBackward[1] || getParameter(op.getLhs()) ||
      getParameter(op.getRhs()) || reachesMatmul(i))
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

/// True for an activation that recomputed forward code computes.
bool RoleInference::isRecomputed(Value value) const {
  llvm::BitVector sources = direct->getSources(value);
  return sources.any() && llvm::all_of(sources.set_bits(), [&](unsigned source) {
           return contractions[source].name.rematerialized;
         });
}

/// Returns the operand that is the gradient dy: not a recomputed activation. With two others it is the one
/// that is no parameter, then the one that depends on the backward pass, then the one that two gradients of
/// one matmul share.
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

/// Another unmatched gradient that reads the same dy: that of the other operand of the forward matmul.
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

/// Assigns the role of a gradient whose forward matmul is unknown. No other matmul depends on the gradient
/// of a weight; its sibling, if it reads a parameter, is the gradient of the input.
void RoleInference::assignUnmatchedGradient(unsigned i) {
  ContractionRole &entry = roles[i];
  unsigned gradientOperand = findGradientOperand(i);
  entry.contraction.gradientOperand = gradientOperand;
  entry.kinds[gradientOperand] = TensorKind::grad_output;
  entry.weightOperand = 1 - gradientOperand;
  std::optional<unsigned> sibling = findSibling(i, gradientOperand);
  bool isLast = !reachesMatmul(i);
  if (isLast && !(sibling && readsLowerRank(i, *sibling))) {
    entry.role = Role::wgrad;
    return;
  }
  Value weight = entry.contraction.op->getOperand(entry.weightOperand);
  if (!weights->isPlain(weight) || !sibling || reachesMatmul(*sibling))
    return;
  entry.role = Role::dgrad;
  entry.kinds[entry.weightOperand] = TensorKind::weight;
  entry.leader = *sibling;
}

//===----------------------------------------------------------------------===//
// Doubts
//===----------------------------------------------------------------------===//

/// True if an operand is the gradient dy of a matmul.
bool RoleInference::readsGradient(unsigned i) const {
  return llvm::any_of(contractions, [&](const Contraction &other) {
    unsigned gradient = other.operands[other.gradientOperand].tensor;
    return other.isBackward() &&
           llvm::is_contained({contractions[i].operands[0].tensor, contractions[i].operands[1].tensor},
                              gradient);
  });
}

/// True for a matmul that counts as forward only because nothing else is known of it, though it depends on
/// gradients or may be one. (Matmuls without a weight in an optimizer depend on gradients, too.)
bool RoleInference::isInDoubt(unsigned i) const {
  const Contraction &contraction = contractions[i];
  if (contraction.isForward() || namesMarkBackward || contraction.name.update ||
      contraction.op->hasAttr(kRoleAttrName))
    return false;
  return readsGradient(i) || (roles[i].role == Role::fprop &&
                              (dependsOnBackward(i) || contraction.maybeGradientOf != Contraction::kNone));
}

//===----------------------------------------------------------------------===//
// All roles
//===----------------------------------------------------------------------===//

/// Applies the matmul's `fp8.role`, if there is one, to its role and the kinds of its operands. A matmul of
/// an optimizer's update has none of a layer's roles.
void RoleInference::applyUserRole(unsigned i) {
  ContractionRole &entry = roles[i];
  auto attribute = entry.contraction.op->getAttrOfType<StringAttr>(kRoleAttrName);
  std::optional<Role> role = attribute ? symbolizeRole(attribute.getValue()) : std::nullopt;
  if (!role && entry.contraction.name.update)
    role = Role::other;
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
    setWeight(entry);
  entry.kinds[entry.weightOperand] = readsWeight ? TensorKind::weight : TensorKind::input;
  entry.kinds[1 - entry.weightOperand] = isGradient ? TensorKind::grad_output : TensorKind::input;
}

std::vector<ContractionRole> RoleInference::run() {
  backward.resize(contractions.size());
  for (auto [i, contraction] : llvm::enumerate(contractions)) {
    roles.emplace_back();
    roles.back().contraction = contraction;
    roles.back().leader = i;
    for (unsigned operand : {0, 1})
      roles.back().sources[operand] = direct->getSources(contraction.op->getOperand(operand));
    // A recomputed matmul belongs to the site of the first one. In a gradient that the user defines, its
    // names are those of backward code.
    const Contraction &first = contractions[contraction.first];
    bool again =
        contraction.first != i && !first.name.backward && !first.isBackward() && !contraction.isBackward();
    if (again && (contraction.name.backward || contraction.name.site == first.name.site))
      roles.back().leader = contraction.first;
    bool marked = contraction.name.backward && !contraction.isForward() && !again;
    backward[i] = contraction.isBackward() || marked;
    namesMarkBackward |= marked;
  }
  if (!namesMarkBackward) {
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

std::vector<std::vector<ContractionRole>> fp8::inferRoles(ArrayRef<FunctionOpInterface> functions) {
  std::vector<RoleInference> inferences(functions.begin(), functions.end());
  llvm::StringSet<> trained;
  for (RoleInference &inference : inferences)
    inference.collectTrainedNames(trained);
  std::vector<std::vector<ContractionRole>> roles;
  for (RoleInference &inference : inferences) {
    inference.addTrainedNames(trained);
    roles.push_back(inference.run());
  }
  return roles;
}
