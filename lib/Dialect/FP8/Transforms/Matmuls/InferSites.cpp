// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives every fp8.matmul its role, the kinds of its operands, and the name of its
// site. The analyses in lib/Analysis infer them; this pass writes the attributes.

#include "fp8/Analysis/Sites/Roles.h"
#include "fp8/Analysis/Sites/SiteNames.h"
#include "fp8/Analysis/Sites/WeightNames.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <array>
#include <map>

namespace fp8 {
#define GEN_PASS_DEF_INFERSITES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {

/// The name of a matmul, whether it is a recomputation, and the matmuls that its operands come from.
using SourceKey = std::tuple<std::string, bool, std::vector<unsigned>, std::vector<unsigned>>;
/// The number of each operand's tensor, and how its dimensions are used.
using OperandPair = std::array<std::pair<unsigned, DimUses>, 2>;

/// Names the sites of one function.
class SiteNaming {
public:
  SiteNaming(ArrayRef<ContractionRole> roles, const WeightNames &weightNames);
  /// The name of the site that matmul `i` belongs to.
  std::string getName(unsigned i);

private:
  std::string nameLeader(unsigned i);
  std::string getStem(const ContractionRole &leader) const;
  std::string describeSources(unsigned i);
  std::string createName(StringRef stem);

  ArrayRef<ContractionRole> roles;
  const WeightNames &weightNames;
  std::vector<std::string> leaderNames;
  /// Names of sites, by the weight, the scope and a detail, which all matmuls of one site share.
  std::map<std::tuple<const void *, std::string, std::string>, std::string> known;
  /// Operands of the matmuls without weight that have the same key, in their order.
  std::map<SourceKey, std::vector<OperandPair>> readBefore;
  llvm::StringMap<unsigned> uses; ///< how many sites have a name already
  unsigned nameless = 0;
};

} // namespace

static StringRef getUserName(const ContractionRole &entry) {
  Contraction contraction = entry.contraction;
  auto name = contraction.op->getAttrOfType<StringAttr>(kSiteAttrName);
  return name ? name.getValue() : StringRef();
}

SiteNaming::SiteNaming(ArrayRef<ContractionRole> roles, const WeightNames &weightNames)
    : roles(roles), weightNames(weightNames), leaderNames(roles.size()) {
  for (const ContractionRole &entry : roles)
    if (StringRef name = getUserName(entry); !name.empty())
      uses[name] = 1;
  // Forward matmuls first: names are numbered in their order.
  for (bool backward : {false, true})
    for (auto [i, entry] : llvm::enumerate(roles))
      if (entry.leader == i && llvm::is_contained(entry.kinds, TensorKind::grad_output) == backward)
        leaderNames[i] = nameLeader(i);
}

/// `stem`, or `stem#2`, … if that is taken.
std::string SiteNaming::createName(StringRef stem) {
  unsigned number = ++uses[stem];
  if (number == 1)
    return stem.str();
  std::string name = (stem + "#" + Twine(number)).str();
  return uses.try_emplace(name, 1).second ? name : createName(stem);
}

/// Returns a key that identifies a matmul without weight: its name, the sites that its operands
/// come from and its number among several matmuls of such operands. Microbatches and
/// recomputations have the same key: they read other values of the same sites.
std::string SiteNaming::describeSources(unsigned i) {
  const ContractionRole &entry = roles[i];
  const NameStack &stack = entry.contraction.name;
  std::string text = stack.full;
  std::vector<unsigned> sources[2];
  OperandPair operands;
  for (unsigned operand : {0, 1}) {
    text += '\0';
    for (unsigned source : entry.sources[operand].set_bits()) {
      sources[operand].push_back(source);
      text += '\0' + getName(source);
    }
    const TensorUse &use = entry.contraction.operands[operand];
    operands[operand] = {use.tensor, use.uses};
  }
  std::vector<OperandPair> &before = readBefore[{stack.full, stack.rematerialized, sources[0], sources[1]}];
  auto place = llvm::find(before, operands);
  text += '\0' + std::to_string(place - before.begin());
  if (place == before.end())
    before.push_back(operands);
  return text;
}

/// The name that the program gives a site: that of its scope or, if the scope has no name or the name stands
/// for several weights, the weight's.
std::string SiteNaming::getStem(const ContractionRole &leader) const {
  const std::string &scope = leader.contraction.name.site;
  if (!leader.weight || (!scope.empty() && !weightNames.isShared(scope)))
    return scope;
  std::string name = weightNames.getName(leader);
  return name.empty() ? scope : name;
}

std::string SiteNaming::nameLeader(unsigned i) {
  const ContractionRole &leader = roles[i];
  if (StringRef name = getUserName(leader); !name.empty())
    return name.str();
  const NameStack &stack = leader.contraction.name;
  bool isGradient = llvm::is_contained(leader.kinds, TensorKind::grad_output);
  // The forward matmul may be in another function: its name is the same.
  if (isGradient && !stack.site.empty())
    return stack.site;

  // Microbatches and recomputations of one matmul are one site: they read one weight in
  // one scope, in the same way.
  std::string detail;
  const void *weight = nullptr;
  if (leader.weight) {
    const TensorUse &use = leader.contraction.operands[leader.weightOperand];
    detail.assign(use.uses.begin(), use.uses.end());
    // A weight that is computed may be computed again.
    if (getParameter(leader.weight))
      weight = leader.weight.getAsOpaquePointer();
    else
      detail += "tensor " + std::to_string(use.tensor);
  } else {
    detail = describeSources(i);
  }
  auto [it, isNew] = known.try_emplace(std::tuple(weight, stack.site, detail));
  if (isNew) {
    std::string stem = getStem(leader);
    it->second = createName(stem.empty() ? (Twine(kNamelessSite) + Twine(nameless++)).str() : stem);
  }
  return it->second;
}

std::string SiteNaming::getName(unsigned i) {
  StringRef own = getUserName(roles[i]);
  return own.empty() ? leaderNames[roles[i].leader] : own.str();
}

static void writeRole(ContractionRole &entry, StringRef site) {
  MatmulOp op = entry.contraction.op;
  MLIRContext *context = op.getContext();
  op.setSite(site);
  op.setRoleAttr(RoleAttr::get(context, entry.role));
  op.setLhsKindAttr(TensorKindAttr::get(context, entry.kinds[0]));
  op.setRhsKindAttr(TensorKindAttr::get(context, entry.kinds[1]));
  if (entry.contraction.name.update)
    op.setKept("part of the optimizer's update");
  op->removeAttr(kSiteAttrName);
  op->removeAttr(kRoleAttrName);
  // Messages of later stages show this name if the program has none.
  if (entry.contraction.name.full.empty())
    op->setLoc(NameLoc::get(StringAttr::get(context, site), op->getLoc()));
}

/// Remarks that a matmul may have another role than the inferred one. `sites` has the site of each matmul.
static void remarkOnDoubt(const ContractionRole &entry, ArrayRef<std::string> sites) {
  MatmulOp op = entry.contraction.op;
  InFlightDiagnostic remark = op.emitRemark("taken for a ")
                              << (entry.role == Role::fprop ? "forward matmul" : "matmul without a weight");
  if (entry.contraction.maybeGradientOf != Contraction::kNone)
    remark << ": it has the form of a gradient of site '" << sites[entry.contraction.maybeGradientOf]
           << "', but does not depend on its result, and no name tells what it is";
  else
    remark << ": it depends on gradients, but neither dataflow nor names tell what it is";
  remark << "; set fp8.role to say so";
}

/// Remarks by which rule a matmul was found to be a gradient.
static void remarkOnRule(const ContractionRole &entry, StringRef site) {
  MatmulOp op = entry.contraction.op;
  if (entry.contraction.isBackward())
    op.emitRemark() << stringifyRole(entry.role) << " of site '" << site << "', by the rule "
                    << entry.contraction.rule;
}

namespace {

struct InferSites : fp8::impl::InferSitesBase<InferSites> {
  using InferSitesBase::InferSitesBase;

  void runOnOperation() final {
    SmallVector<FunctionOpInterface> functions;
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (!function.isExternal())
        functions.push_back(function);
    std::vector<std::vector<ContractionRole>> rolesOfAll = inferRoles(functions);
    WeightNames weightNames(rolesOfAll);
    for (std::vector<ContractionRole> &roles : rolesOfAll)
      writeRoles(roles, SiteNaming(roles, weightNames));
  }

private:
  void writeRoles(MutableArrayRef<ContractionRole> roles, SiteNaming naming) const {
    // All names first: writing them removes the user's.
    std::vector<std::string> names;
    for (unsigned i = 0; i < roles.size(); ++i)
      names.push_back(naming.getName(i));
    for (auto [role, name] : llvm::zip(roles, names)) {
      writeRole(role, name);
      if (role.inDoubt)
        remarkOnDoubt(role, names);
      if (explain)
        remarkOnRule(role, name);
    }
  }
};

} // namespace
