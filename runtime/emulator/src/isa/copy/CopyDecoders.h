// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kinds of cp.async, which share an opcode: CopyAsync.cpp tells them apart.

#ifndef FP8EMU_ISA_COPY_COPYDECODERS_H
#define FP8EMU_ISA_COPY_COPYDECODERS_H

#include "isa/Decoder.h"

namespace fp8emu {

/// cp.async.bulk with all that follows; `async` and `bulk` are taken.
void decodeCopyBulk(Decoder &decoder);
/// cp.async.bulk.tensor; `tensor` is taken too.
void decodeCopyTensor(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_COPY_COPYDECODERS_H
