// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding NCCL, and what its error codes mean.

#include "Nccl.h"
#include "../../core/Status.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace fp8rt;
using namespace fp8rt::collectives::nccl;

/// The first version with ncclCommSplit.
static constexpr int kOldestVersion = 21800;

Nccl::Nccl() {
  const char *chosen = std::getenv("FP8RT_NCCL");
  std::string file = chosen && *chosen ? chosen : "libnccl.so.2";
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    fail(FP8RT_UNSUPPORTED, std::string("NCCL was not found (") + (reason ? reason : file) +
                                "): install it (Debian: libnccl2, PyPI: nvidia-nccl-cu13), or name its "
                                "library with FP8RT_NCCL");
  }
  auto find = [&](const char *symbol) {
    void *found = dlsym(library, symbol);
    if (!found)
      fail(FP8RT_UNSUPPORTED, file + " has no " + symbol + ": NCCL 2.18 or newer is needed");
    return found;
  };
#define FP8RT_NCCL_FIND(name, symbol, result, parameters)                                                    \
  name = reinterpret_cast<decltype(name)>(find(#symbol));
  FP8RT_NCCL_FUNCTIONS(FP8RT_NCCL_FIND)
#undef FP8RT_NCCL_FIND
  int version = 0;
  check(getVersion(&version), "ncclGetVersion");
  if (version < kOldestVersion)
    fail(FP8RT_UNSUPPORTED,
         file + " is of version " + std::to_string(version) + ": NCCL 2.18 or newer is needed");
}

const Nccl &Nccl::get() {
  static const Nccl nccl;
  return nccl;
}

std::string Nccl::describe(ncclResult_t code, ncclComm_t comm) const {
  const char *text = getErrorString(code), *last = getLastError(comm);
  std::string described = text ? text : "error " + std::to_string(code);
  if (last && *last)
    described += std::string(" (") + last + ")";
  for (char &c : described)
    c = c == '\n' ? ' ' : c;
  return described;
}

void Nccl::check(ncclResult_t code, const std::string &what, ncclComm_t comm) const {
  if (code != ncclSuccess && code != ncclInProgress)
    fail(FP8RT_RANKS, what + ": " + describe(code, comm));
}
