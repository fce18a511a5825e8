# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Launches one kernel twice through libcuda.so.1 and ends.

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from driver_bench import PTX

from cuda_driver import Buffer, Driver, Module, synchronize

driver = Driver("libcuda.so.1")
driver.context(0)
x = Buffer(driver, 8, numpy.uint32).write(numpy.zeros(8, numpy.uint32))
module = Module(driver, PTX)
for _ in range(2):
    module.launch("step", 1, 8, x)
synchronize(driver)
assert x.read().tolist() == [3] * 8
print("ok")
