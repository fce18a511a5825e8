# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cmake -DMARKS=Marks.def -DPAGE=FP8Marks.md -P MarksPage.cmake: writes a page with a row for each line of Marks.def.

cmake_minimum_required(VERSION 3.20)
file(READ "${MARKS}" text)
string(REGEX REPLACE "\\\\\"" "`" text "${text}") # quotes within a meaning
string(REPLACE ";" "," text "${text}")            # which would separate the elements of a list
string(REPLACE "[" "(" text "${text}")
string(REPLACE "]" ")" text "${text}")
string(REGEX MATCHALL "\nFP8_MARK\\([^\"]*\"[^\"]*\"[^\"]*\"[^\"]*\"[^\"]*\"[^\"]*\"[^\"]*\"[^\"]*\"\\)" marks "${text}")
set(page "# Discardable attributes of the fp8 dialect\n
What stages leave for later ones. An attribute `fp8.…` that is not in this table is an error.\n
| attribute | type | on | written by | read by | last stage | meaning |\n|---|---|---|---|---|---|---|\n")
foreach(mark IN LISTS marks)
  string(REGEX MATCH "\"([^\"]*)\", ([A-Za-z]*), ([A-Za-z]*), \"([^\"]*)\", \"([^\"]*)\", ([a-z]*),[ \n]*\"([^\"]*)\"" _ "${mark}")
  if(CMAKE_MATCH_3 STREQUAL "Boundary")
    set(holder "arguments and results")
  else()
    set(holder "operations")
  endif()
  string(REPLACE "|" "\\|" meaning "${CMAKE_MATCH_7}")
  string(APPEND page "| `${CMAKE_MATCH_1}` | ${CMAKE_MATCH_2} | ${holder} | ${CMAKE_MATCH_4} | ${CMAKE_MATCH_5} | ${CMAKE_MATCH_6} | ${meaning} |\n")
endforeach()
file(WRITE "${PAGE}" "${page}")
