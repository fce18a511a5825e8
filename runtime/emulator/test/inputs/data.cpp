// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's variables: packed structures with addresses that are not aligned, halves,
// wide integers, memory spaces, weak and external linkage.

static int table[] = {1, 2, 3};
int *pointer = &table[1];
const char *messages[2] = {"hi", "there"};
float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct __attribute__((packed)) {
  char letter;
  int *address;
  double real;
} packed = {'a', &table[2], 3.5};
_Float16 half = 1.5;
__int128 wide = -5;
bool flag = true;
extern int external;
template <typename T>
T weak = 7;
__attribute__((address_space(3))) int shared[64];
__attribute__((address_space(4))) int constants[4] = {1, 2};

__attribute__((nvptx_kernel)) void read(double *out, int i) {
  shared[i] = constants[i];
  out[0] = *pointer + messages[i][1] + matrix[i][2] + *packed.address + half +
           static_cast<double>(static_cast<long>(wide)) + flag + external + weak<short> + shared[i + 1];
}
