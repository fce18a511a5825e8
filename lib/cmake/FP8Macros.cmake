# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# How every library and tool of the compiler is declared: one set of flags, one
# precompiled header, one export set, everything linked against one copy of MLIR.

# Include paths, language flags and warnings that all our targets share.
function(fp8_configure_target name)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_features(${name} PUBLIC cxx_std_17)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -fno-exceptions
    $<$<BOOL:${FP8_ENABLE_WERROR}>:-Werror>)
  if(NOT LLVM_ENABLE_RTTI)
    target_compile_options(${name} PRIVATE -fno-rtti)
  endif()
endfunction()

# Compiles through ccache where it is installed and no launcher was chosen.
macro(fp8_use_ccache)
  find_program(FP8_CCACHE ccache)
  mark_as_advanced(FP8_CCACHE)
  foreach(language C CXX)
    if(FP8_CCACHE AND NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        "${PROJECT_SOURCE_DIR}/lib/cmake/ccache-launcher" "${FP8_CCACHE}" "${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
endmacro()

# One header set, compiled once, read by every library: more than half of the build time.
# Called once, before the first library. CMAKE_DISABLE_PRECOMPILE_HEADERS builds without it.
function(fp8_create_pch)
  file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/FP8PrecompiledHeader.cpp"
    CONTENT "// Holds nothing: the target exists for its precompiled header.\n")
  add_library(FP8PrecompiledHeader OBJECT "${PROJECT_BINARY_DIR}/FP8PrecompiledHeader.cpp")
  fp8_configure_target(FP8PrecompiledHeader)
  add_dependencies(FP8PrecompiledHeader FP8OpsIncGen)
  target_precompile_headers(FP8PrecompiledHeader PRIVATE
    "${PROJECT_SOURCE_DIR}/lib/cmake/PrecompiledHeader.h")
endfunction()

# fp8_add_library(FP8Dialect A.cpp B.cpp DEPENDS FP8OpsIncGen LINK FP8Support)
# declares the static library FP8Dialect, exported and aliased as FP8::Dialect.
function(fp8_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  fp8_configure_target(${name})
  target_precompile_headers(${name} REUSE_FROM FP8PrecompiledHeader)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_LINK} ${FP8_LLVM_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY FP8_LIBRARIES ${name})
  string(REGEX REPLACE "^FP8" "" short ${name})
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${short})
  add_library(FP8::${short} ALIAS ${name})
  if(FP8_ENABLE_INSTALL)
    install(TARGETS ${name} EXPORT FP8Targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

# fp8_embed_text(FP8TargetHost A.mlir): code of the library reads the text of A.mlir by
# including A.mlir.inc where a string literal may stand.
function(fp8_embed_text name)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/text")
  foreach(file ${ARGN})
    file(READ "${CMAKE_CURRENT_SOURCE_DIR}/${file}" text)
    get_filename_component(name_of_file "${file}" NAME)
    file(CONFIGURE OUTPUT "${folder}/${name_of_file}.inc" CONTENT "R\"text(@text@)text\"\n" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  target_include_directories(${name} PRIVATE "${folder}")
endfunction()

# Executables that load libMLIR.so start with options that suit it.
function(fp8_set_sanitizer_options name)
  if(FP8_ENABLE_SANITIZERS)
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/lib/cmake/SanitizerOptions.cpp")
  endif()
endfunction()

# The precompiled header of the libraries for an executable, which CMake would compile as -fPIE instead.
function(fp8_use_pch name)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM FP8PrecompiledHeader)
endfunction()

# Our libraries and MLIR's archives for a tool. Ours are named as files: their targets would bring libMLIR.so along.
function(fp8_link_archives name)
  get_property(libraries GLOBAL PROPERTY FP8_LIBRARIES)
  add_dependencies(${name} ${libraries})
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_libraries(${name} PRIVATE -Wl,--start-group ${libraries} -Wl,--end-group ${FP8_STATIC_LLVM_LIBRARIES})
  target_link_options(${name} PRIVATE LINKER:--gc-sections)
endfunction()

# fp8_add_tool(fp8-opt fp8-opt.cpp LINK FP8Pipelines)
# With LLVM archives it starts fast, but can load no plugins, since it has a copy of MLIR that they do not; with LLVM support
# it has nothing but LLVM's library for command lines, files and JSON.
function(fp8_add_tool name)
  cmake_parse_arguments(ARG "" "LLVM" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  fp8_configure_target(${name})
  if(ARG_LLVM STREQUAL "support" AND FP8_LLVM_SUPPORT_LIBRARIES)
    target_link_libraries(${name} PRIVATE ${ARG_LINK} ${FP8_LLVM_SUPPORT_LIBRARIES})
  elseif(ARG_LLVM STREQUAL "archives" AND FP8_STATIC_LLVM_LIBRARIES AND NOT FP8_STATIC_LLVM AND NOT FP8_ENABLE_SANITIZERS)
    fp8_link_archives(${name})
  else()
    target_link_libraries(${name} PRIVATE ${ARG_LINK} ${FP8_LLVM_LIBRARIES})
  endif()
  if(ARG_LLVM STREQUAL "support")
    target_link_options(${name} PRIVATE LINKER:--as-needed) # where there are no archives: without libMLIR.so
  endif()
  fp8_set_sanitizer_options(${name})
  if(FP8_ENABLE_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

# fp8_add_doc(Passes.td FP8Passes.md -gen-pass-doc): documentation of a TableGen file of the
# current folder, in docs/ of the build folder. The target docs makes all of it.
function(fp8_add_doc source name)
  set(output "${PROJECT_BINARY_DIR}/docs/${name}")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/docs"
    COMMAND "${MLIR_TABLEGEN_EXE}" ${ARGN} -I "${PROJECT_SOURCE_DIR}/include" -I "${MLIR_INCLUDE_DIRS}"
      "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${output}" -d "${output}.d"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
    DEPFILE "${output}.d"
    COMMENT "Writing docs/${name}")
  string(MAKE_C_IDENTIFIER "docs_${name}" target)
  add_custom_target(${target} DEPENDS "${output}")
  add_dependencies(fp8-docs ${target})
endfunction()
