// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// st.async, red.async and st.bulk, which share opcodes with st and red: Memory.cpp and
// Atomics.cpp hand them on.

#ifndef FP8EMU_ISA_COPY_STOREASYNC_H
#define FP8EMU_ISA_COPY_STOREASYNC_H

#include "isa/Decoder.h"

namespace fp8emu {

/// st.async and red.async; `async` is taken.
void decodeStoreAsync(Decoder &decoder);
void decodeReduceAsync(Decoder &decoder);
/// st.bulk; `bulk` is taken.
void decodeStoreBulk(Decoder &decoder);

} // namespace fp8emu

#endif // FP8EMU_ISA_COPY_STOREASYNC_H
