// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments from --inputs and --stream.

#ifndef FP8_TOOLS_FP8RUN_INPUTS_H
#define FP8_TOOLS_FP8RUN_INPUTS_H

#include "Options.h"
#include "Program.h"

namespace fp8run {

/// The tensors of the inputs file, and the streams, which change from step to step.
class Inputs {
public:
  /// Reads the file and sets every argument it has. Of tensors that are divided among the ranks, unless the
  /// file is this rank's own, it takes this rank's part.
  llvm::Error load(const Options &options, Program &program);

  /// Sets every streamed argument to its slice for step `step`.
  llvm::Error advance(uint64_t step);

  /// Returns a warning about tensors that are neither arguments nor streams; empty
  /// if there are none.
  std::string describeIgnored() const;

private:
  struct BoundStream {
    Stream option;
    Place place;
    DLTensor tensor; // one leading dimension more than the argument
    // Of `tensor`, after keepStreams().
    std::vector<int64_t> shape = {};
    std::vector<char> data = {};
  };

  llvm::Error setArgument(const Place &place, const DLTensor &tensor) const;
  llvm::Error bindStream(const Stream &stream, Program &program);
  llvm::Error checkTypes(Program &program);
  llvm::Error setArguments(Program &program);
  void keepStreams();
  bool isStreamed(const Place &place) const;
  bool isStreamKey(llvm::StringRef key) const;

  std::string path;
  bool areOwn = false; // this rank's parts, not the tensors of all ranks
  Tensors tensors;
  std::vector<BoundStream> streams;
  std::vector<std::string> ignored;
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_INPUTS_H
