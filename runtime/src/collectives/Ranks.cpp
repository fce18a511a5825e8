// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of fp8rt_communicator: exceptions become return values.

#include "Ranks.h"
#include "../core/Status.h"

using namespace fp8rt;
using namespace fp8rt::collectives;

struct Ranks::Functions {
  template <typename Fn>
  static int guardedBy(void *context, Fn &&body) noexcept {
    Ranks &ranks = *static_cast<Ranks *>(context);
    if (guarded([&] { body(ranks); }) == FP8RT_OK)
      return 0;
    ranks.reason = fp8rt_last_error();
    return 1;
  }

  static int start(void *context, const fp8rt_collective *collective, void *stream, uint64_t *out_ticket) {
    return guardedBy(context, [&](Ranks &ranks) {
      required(out_ticket, "out_ticket") = ranks.start(required(collective, "collective"), stream);
    });
  }
  static int wait(void *context, uint64_t ticket, void *stream) {
    return guardedBy(context, [&](Ranks &ranks) { ranks.wait(ticket, stream); });
  }
  static const char *error(void *context) { return static_cast<Ranks *>(context)->reason.c_str(); }
};

const fp8rt_communicator *Ranks::functions() {
  table = {FP8RT_COMMUNICATOR_VERSION, rank(),          size(),          0, this,
           Functions::start,           Functions::wait, Functions::error};
  return &table;
}

Ranks *Ranks::find(const fp8rt_communicator *functions) noexcept {
  bool isOurs = functions && functions->start == Functions::start;
  return isOurs ? static_cast<Ranks *>(functions->context) : nullptr;
}

Ranks &Ranks::of(const fp8rt_communicator *functions) {
  Ranks *found = find(&required(functions, "communicator"));
  if (!found)
    fail(FP8RT_INVALID_ARGUMENT, "the communicator was not made by this runtime");
  return *found;
}
