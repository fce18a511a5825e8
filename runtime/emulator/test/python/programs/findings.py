# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Launches kernels with mistakes through libcuda.so.1, and one without: a race, a read of what nobody wrote, an access out
# of bounds. A process that only reports them reaches its last line.

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from cuda_driver import Buffer, Driver, Module, synchronize

PTX = """.version 8.0
.target sm_89
.address_size 64
.visible .entry races(.param .u64 x) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<1>; .shared .align 4 .b8 tile[256];
  ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;
  st.shared.u32 [%r2], 0; bar.sync 0; setp.lt.u32 %p0, %r0, 32;
  @%p0 st.shared.u32 [%r2], 1;
  @!%p0 ld.shared.u32 %r3, [%r2+-128];
  mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r0;
  ret;
}
.visible .entry reads(.param .u64 x) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [%rd0]; st.global.u32 [%rd0], 5;
  ret;
}
.visible .entry runs_off(.param .u64 x) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [x]; st.global.u32 [%rd0+1000000], 5;
  ret;
}
"""

driver = Driver("libcuda.so.1")
driver.context(0)
x, unwritten = Buffer(driver, 64, numpy.uint32), Buffer(driver, 64, numpy.uint32)
x.write(numpy.zeros(64, numpy.uint32))
module = Module(driver, PTX)
for _ in range(3):
    module.launch("races", 1, 64, x)
module.launch("reads", 1, 1, unwritten)
module.launch("runs_off", 1, 1, x)
module.launch("reads", 1, 1, x)
synchronize(driver)
# Kernels with findings go on.
assert unwritten.read()[0] == 5 and x.read().tolist() == [5, *range(1, 64)]
print("ok")
