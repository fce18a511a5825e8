// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names of sites from the names of their weights, for programs whose locations do not name layers.

#ifndef FP8_ANALYSIS_SITES_WEIGHTNAMES_H
#define FP8_ANALYSIS_SITES_WEIGHTNAMES_H

#include "fp8/Analysis/Sites/Roles.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace fp8 {

/// The keys, attributes and dotted parts of an argument's name, its own word first (empty where it has none):
/// `state[0]['blocks'][1].kernel` is state, 0, blocks, 1, kernel.
std::vector<std::string> splitArgumentName(llvm::StringRef name);

/// The names of the weights of a module: the parts of the argument's name joined by `/`, without its own
/// word and without a last `value`, `kernel`, `weight` or `w`, though never without the last part. A leading
/// number goes where all weights of a function, and all that the argument's word holds, share it. Where two
/// weights would have one name, the own word stays. `state[0]['blocks'][1]['up']['kernel'].value` is
/// `blocks/1/up`. A weight that is made of several arguments has the parts that they share, else the name of
/// the largest.
class WeightNames {
public:
  /// `functions` has the roles of the matmuls of every function of a module.
  explicit WeightNames(llvm::ArrayRef<std::vector<ContractionRole>> functions);

  /// The name of the weight; empty where it has none.
  std::string getName(const ContractionRole &leader) const;
  /// True if several distinct weights of one function are used under the same name of the program.
  bool isShared(llvm::StringRef site) const { return shared.contains(site); }

private:
  using Parts = std::vector<std::string>;

  void findShared(llvm::ArrayRef<ContractionRole> roles);
  void findNumbers(llvm::ArrayRef<ContractionRole> roles);
  void findClashes(llvm::ArrayRef<ContractionRole> roles);
  Parts getParts(const ContractionRole &leader) const;
  std::string joinParts(Parts parts, bool withWord) const;

  llvm::StringSet<> shared;
  llvm::StringSet<> numbered; ///< own words of arguments whose leading numbers differ
  llvm::StringSet<> clashes;  ///< names that several weights of a function would have
};

} // namespace fp8

#endif // FP8_ANALYSIS_SITES_WEIGHTNAMES_H
