# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the compiler is linked with: FP8_LLVM_LIBRARIES (MLIR and LLVM) and FP8_LLD_LIBRARIES (the
# linker). The shared libraries of the packages by default; with FP8_STATIC_LLVM their archives.

if(NOT FP8_STATIC_LLVM)
  set(FP8_LLVM_LIBRARIES MLIR LLVM)
  set(FP8_LLD_LIBRARIES lldELF lldCommon)
  return()
endif()

# The targets of the packages' archives name libLLVM.so as what they need, so the files are linked.
# The order of several hundred archives does not matter within a group; of unused ones nothing is taken.
file(GLOB archives "${LLVM_LIBRARY_DIR}/libMLIR*.a" "${LLVM_LIBRARY_DIR}/libLLVM*.a")
list(FILTER archives EXCLUDE REGEX "CAPI|ExecutionEngine\\.a|mlir_.*runner")
if(NOT archives)
  message(FATAL_ERROR "FP8_STATIC_LLVM: there are no archives in ${LLVM_LIBRARY_DIR}; install libmlir-22-dev and llvm-22-dev")
endif()
find_library(FP8_STATIC_ZLIB NAMES libz.a REQUIRED)
find_library(FP8_STATIC_ZSTD NAMES libzstd.a REQUIRED)
mark_as_advanced(FP8_STATIC_ZLIB FP8_STATIC_ZSTD)
add_library(FP8NoPolly STATIC "${CMAKE_CURRENT_LIST_DIR}/NoPolly.cpp")
target_include_directories(FP8NoPolly SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_features(FP8NoPolly PRIVATE cxx_std_17)
set(FP8_LLD_LIBRARIES "${LLVM_LIBRARY_DIR}/liblldELF.a" "${LLVM_LIBRARY_DIR}/liblldCommon.a")
set(FP8_LLVM_LIBRARIES -Wl,--start-group ${FP8_LLD_LIBRARIES} ${archives} -Wl,--end-group
  FP8NoPolly "${FP8_STATIC_ZSTD}" "${FP8_STATIC_ZLIB}" pthread dl m)
add_link_options(-fuse-ld=lld -Wl,--gc-sections -static-libstdc++ -static-libgcc)
