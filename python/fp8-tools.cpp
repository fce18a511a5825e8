// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fp8-compile and fp8-opt in one program, so that the wheel contains LLVM once: the name that it is
// called by decides. The build compiles both tools' sources with their `main` renamed.

#include "llvm/Support/Path.h"

int fp8CompileMain(int argc, char **argv);
int fp8OptMain(int argc, char **argv);

int main(int argc, char **argv) {
  if (argc > 0 && llvm::sys::path::filename(argv[0]) == "fp8-opt")
    return fp8OptMain(argc, argv);
  return fp8CompileMain(argc, argv);
}
