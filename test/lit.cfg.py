# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# How lit finds and runs the tests: every .mlir and .test file here, with the tools of
# the build first on PATH and those of LLVM after them. `lit -Dslow=1` runs slow ones too.

import os

import lit.formats

config.name = "fp8"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit", "python", "Fuzz"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fp8_build_dir, "test")

tools = [os.path.join(config.fp8_build_dir, "bin"), config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])
# Not the user's cache.
config.environment["FP8_CACHE_DIR"] = os.path.join(config.fp8_build_dir, "test", "object-cache")
config.environment["FILECHECK_OPTS"] = "-enable-var-scope --dump-input-filter=annotation-full"

config.substitutions.append(("%plugin", os.path.join(config.fp8_build_dir, "lib", "FP8Plugin.so")))
config.substitutions.append(("%build", config.fp8_build_dir))
config.substitutions.append(("%source", config.fp8_source_dir))

if lit_config.params.get("slow", "0") != "0":
    config.available_features.add("slow")
if config.fp8_sanitizers:
    config.available_features.add("sanitizers")
