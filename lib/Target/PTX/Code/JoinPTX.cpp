// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A text of LLVM has the directives of the module (.version, .target, .address_size), variables, a kernel,
// and at its end the files that `.loc` in the kernel refers to by number.

#include "JoinPTX.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fp8;

static constexpr StringLiteral kFile = "\t.file\t", kLine = "\t.loc\t", kSection = "\t.section\t";

namespace {
class Joiner {
public:
  void add(StringRef text) {
    SmallVector<StringRef> lines;
    text.split(lines, '\n');
    llvm::StringMap<unsigned> numbers;
    for (StringRef line : lines)
      if (line.consume_front(kFile)) {
        auto [number, name] = line.split(' ');
        numbers[number] = files.try_emplace(name, files.size() + 1).first->second;
      }
    bool isKernel = false;
    for (StringRef line : lines) {
      isKernel |= line.starts_with(".visible .entry");
      if (line.starts_with(kFile) || line.starts_with(kSection))
        continue;
      if (!isKernel)
        addToModule(line);
      else if (StringRef rest = line; rest.consume_front(kLine))
        kernels << kLine << numbers.lookup(rest.split(' ').first) << ' ' << rest.split(' ').second << '\n';
      else
        kernels << line << '\n';
    }
  }

  std::string finish() {
    std::string text = module + kernelText;
    llvm::raw_string_ostream end(text);
    // The section tells ptxas that there are lines.
    if (!files.empty())
      end << kSection << ".debug_macinfo\t{\t}\n";
    for (const auto &[name, number] : files)
      end << kFile << number << ' ' << name << '\n';
    return text;
  }

private:
  /// Leaves out comments, which say which variables a kernel has for itself, and declarations of variables
  /// that the first text defines.
  void addToModule(StringRef line) {
    bool isNeeded = !line.empty() && !line.ltrim().starts_with("//") && !line.starts_with(".extern .global");
    if (isNeeded && known.insert(line).second)
      module += (line + "\n").str();
  }

  std::string module, kernelText;
  llvm::raw_string_ostream kernels{kernelText};
  llvm::StringSet<> known;
  llvm::MapVector<StringRef, unsigned> files;
};
} // namespace

std::string fp8::joinPTX(ArrayRef<std::string> texts) {
  Joiner joiner;
  for (StringRef text : texts)
    joiner.add(text);
  return joiner.finish();
}
