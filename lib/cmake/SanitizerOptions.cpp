// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled into executables that are built with the address sanitizer. LLVM's allocators
// poison memory in inlined code only: the packaged libMLIR.so, which is not instrumented,
// never clears the poison again. LLVM's tools leave memory to the system at exit.

extern "C" {
__attribute__((visibility("default"))) const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_leaks=0";
}
__attribute__((visibility("default"))) const char *__ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}
}
