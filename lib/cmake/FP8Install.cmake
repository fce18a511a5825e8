# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs the files beside libraries and tools: headers (written and generated), TableGen files,
# and the package files that find_package(FP8) reads.

include(CMakePackageConfigHelpers)

set(FP8_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/FP8")

foreach(root "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  install(DIRECTORY "${root}/fp8" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.td" PATTERN "*.h.inc" PATTERN "*.cpp.inc"
    PATTERN CMakeFiles EXCLUDE)
endforeach()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/fp8-c" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(EXPORT FP8Targets NAMESPACE FP8:: DESTINATION "${FP8_PACKAGE_DIR}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/FP8Config.cmake.in"
  "${PROJECT_BINARY_DIR}/FP8Config.cmake" INSTALL_DESTINATION "${FP8_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/FP8ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/FP8Config.cmake" "${PROJECT_BINARY_DIR}/FP8ConfigVersion.cmake"
  DESTINATION "${FP8_PACKAGE_DIR}")
