# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The libraries that the compiler is linked with: FP8_LLVM_LIBRARIES (MLIR and LLVM) and
# FP8_LLD_LIBRARIES (the linker). The shared libraries of the packages by default; with
# FP8_STATIC_LLVM their archives. FP8_STATIC_LLVM_LIBRARIES and FP8_LLVM_SUPPORT_LIBRARIES are
# archives in both cases, for programs that start often: libMLIR.so and libLLVM.so take the dynamic
# loader 25 ms. They are empty where the archives are missing.

set(FP8_STATIC_LLVM_LIBRARIES)
set(FP8_LLVM_SUPPORT_LIBRARIES)
# The targets of the packages' archives name libLLVM.so as what they need, so the files are linked.
# The order of several hundred archives does not matter within a group; of unused ones nothing is taken.
file(GLOB archives "${LLVM_LIBRARY_DIR}/libMLIR*.a" "${LLVM_LIBRARY_DIR}/libLLVM*.a")
list(FILTER archives EXCLUDE REGEX "CAPI|ExecutionEngine\\.a|mlir_.*runner")
find_library(FP8_STATIC_ZLIB NAMES libz.a)
find_library(FP8_STATIC_ZSTD NAMES libzstd.a)
mark_as_advanced(FP8_STATIC_ZLIB FP8_STATIC_ZSTD)
if(archives AND FP8_STATIC_ZLIB AND FP8_STATIC_ZSTD)
  add_library(FP8NoPolly STATIC "${CMAKE_CURRENT_LIST_DIR}/NoPolly.cpp")
  target_include_directories(FP8NoPolly SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  target_compile_features(FP8NoPolly PRIVATE cxx_std_17)
  set(archives_of_lld "${LLVM_LIBRARY_DIR}/liblldELF.a" "${LLVM_LIBRARY_DIR}/liblldCommon.a")
  set(system "${FP8_STATIC_ZSTD}" "${FP8_STATIC_ZLIB}" pthread dl m)
  set(FP8_STATIC_LLVM_LIBRARIES -Wl,--start-group ${archives_of_lld} ${archives} -Wl,--end-group FP8NoPolly ${system})
  set(FP8_LLVM_SUPPORT_LIBRARIES ${system})
  foreach(part Demangle Support TargetParser)
    list(PREPEND FP8_LLVM_SUPPORT_LIBRARIES "${LLVM_LIBRARY_DIR}/libLLVM${part}.a")
  endforeach()
endif()

if(NOT FP8_STATIC_LLVM)
  set(FP8_LLVM_LIBRARIES MLIR LLVM)
  set(FP8_LLD_LIBRARIES lldELF lldCommon)
  return()
endif()

if(NOT FP8_STATIC_LLVM_LIBRARIES)
  message(FATAL_ERROR "FP8_STATIC_LLVM: there are no archives in ${LLVM_LIBRARY_DIR}, or no libz.a or libzstd.a; "
    "install libmlir-22-dev, llvm-22-dev, zlib1g-dev and libzstd-dev")
endif()
set(FP8_LLD_LIBRARIES ${archives_of_lld})
set(FP8_LLVM_LIBRARIES ${FP8_STATIC_LLVM_LIBRARIES})
add_link_options(-fuse-ld=lld -Wl,--gc-sections -static-libstdc++ -static-libgcc)
