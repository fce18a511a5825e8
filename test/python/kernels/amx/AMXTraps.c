// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs AMX's instructions on an x86-64 processor that has none of them, as a library for LD_PRELOAD: they
// trap (SIGILL), and the handler does what Intel's manual says that they do (Software Developer's Manual,
// volume 2: LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBF16PS). A few microseconds each: for
// tests of values. On a processor with AMX the kernel is asked for permission, and nothing traps.

#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROWS = 16, ROW_BYTES = 64, TILES = 8, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

static __thread struct {
  uint8_t palette;
  uint16_t bytes[TILES];
  uint8_t rows[TILES];
  uint8_t data[TILES][ROWS][ROW_BYTES];
} state;

/* The general registers by their numbers in instructions. */
static const int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* An instruction with a VEX prefix of three bytes. */
struct Instruction {
  const uint8_t *next; /* the byte after what was read */
  int opcode, prefix, third, mode, reg, rm;
  uint64_t base, stride; /* of a memory operand: address of the first row, and of the index register */
};

static uint64_t readRegister(const greg_t *registers, int number) { return registers[kRegisters[number]]; }

static int64_t readDisplacement(struct Instruction *i, int bytes) {
  int64_t value = bytes == 1 ? *(const int8_t *)i->next : 0;
  if (bytes == 4) {
    int32_t wide;
    memcpy(&wide, i->next, 4);
    value = wide;
  }
  i->next += bytes;
  return value;
}

static void readAddress(struct Instruction *i, const greg_t *registers, int extendIndex, int extendBase) {
  int bytes = i->mode == 1 ? 1 : i->mode == 2 ? 4 : 0, base = i->rm, index = 4, scale = 0;
  if (i->rm == 4) {
    uint8_t sib = *i->next++;
    base = sib & 7, index = (sib >> 3 & 7) | extendIndex << 3, scale = sib >> 6;
  }
  if (i->mode == 0 && base == 5) {
    bytes = 4;
    int64_t displacement = readDisplacement(i, bytes);
    i->base = (i->rm == 4 ? 0 : (uint64_t)i->next) + displacement;
  } else {
    i->base = readRegister(registers, base | extendBase << 3);
    i->base += readDisplacement(i, bytes);
  }
  i->stride = index == 4 ? 0 : readRegister(registers, index) << scale;
}

static int decode(struct Instruction *i, const greg_t *registers) {
  const uint8_t *code = (const uint8_t *)registers[REG_RIP];
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || code[2] & 0x84)
    return 0; /* no VEX.128.0F38.W0 */
  i->prefix = code[2] & 3;
  i->third = ~code[2] >> 3 & 0xF;
  i->opcode = code[3];
  i->mode = code[4] >> 6, i->reg = code[4] >> 3 & 7, i->rm = code[4] & 7;
  i->next = code + 5;
  if (i->mode != 3)
    readAddress(i, registers, !(code[1] & 0x40), !(code[1] & 0x20));
  return 1;
}

static void configure(const uint8_t *memory) {
  memset(&state, 0, sizeof(state));
  state.palette = memory[0];
  for (int tile = 0; tile < TILES; ++tile) {
    memcpy(&state.bytes[tile], memory + 16 + 2 * tile, 2);
    state.rows[tile] = memory[48 + tile];
  }
}

static float flush(float value) { return fpclassify(value) == FP_SUBNORMAL ? copysignf(0, value) : value; }

static float widen(const uint8_t *bf16) {
  uint16_t half;
  memcpy(&half, bf16, 2);
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, 4);
  return flush(value);
}

/* Even and odd indices of K are summed apart, from zero; then both are added, and the sum to the tile. */
static void multiply(int sums, int left, int right) {
  for (int m = 0; m < state.rows[sums]; ++m)
    for (int n = 0; n < state.bytes[sums] / 4; ++n) {
      float parts[2] = {0, 0}, old;
      for (int k = 0; k < state.bytes[left] / 4; ++k)
        for (int odd = 0; odd < 2; ++odd)
          parts[odd] = flush(fmaf(widen(&state.data[left][m][4 * k + 2 * odd]),
                                  widen(&state.data[right][k][4 * n + 2 * odd]), parts[odd]));
      memcpy(&old, &state.data[sums][m][4 * n], 4);
      float sum = flush(flush(old) + flush(parts[0] + parts[1]));
      memcpy(&state.data[sums][m][4 * n], &sum, 4);
    }
}

static void moveTile(const struct Instruction *i, int isStore) {
  int tile = i->reg;
  if (!isStore)
    memset(state.data[tile], 0, sizeof(state.data[tile]));
  for (int row = 0; row < state.rows[tile]; ++row) {
    uint8_t *memory = (uint8_t *)(i->base + row * i->stride);
    if (isStore)
      memcpy(memory, state.data[tile][row], state.bytes[tile]);
    else
      memcpy(state.data[tile][row], memory, state.bytes[tile]);
  }
}

enum { NONE, P66, PF3, PF2 }; /* the prefix in VEX */

static int execute(const struct Instruction *i) {
  if (i->opcode == 0x49 && i->prefix == NONE && i->mode != 3)
    configure((const uint8_t *)i->base);
  else if (i->opcode == 0x49 && i->prefix == NONE)
    memset(&state, 0, sizeof(state)); /* tilerelease */
  else if (i->opcode == 0x49 && i->prefix == PF2 && i->mode == 3)
    memset(state.data[i->reg], 0, sizeof(state.data[i->reg]));
  else if (i->opcode == 0x4B && i->mode != 3 && i->prefix != NONE)
    moveTile(i, i->prefix == PF3);
  else if (i->opcode == 0x5C && i->prefix == PF3 && i->mode == 3)
    multiply(i->reg, i->rm, i->third);
  else
    return 0;
  return 1;
}

static void handle(int signal, siginfo_t *info, void *context) {
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  struct Instruction instruction;
  (void)info;
  if (!decode(&instruction, registers) || !execute(&instruction)) {
    static const char text[] = "an illegal instruction, and none of AMX's\n";
    if (write(2, text, sizeof(text) - 1)) {
    }
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(signal, &standard, NULL);
    return;
  }
  registers[REG_RIP] = (greg_t)instruction.next;
}

__attribute__((constructor)) static void start(void) {
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGILL, &action, NULL);
  syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA);
}
