// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last error of each thread, and the translation of exceptions into it.

#include "Status.h"

#include <exception>
#include <new>

using namespace fp8rt;

namespace {

/// The text is per thread, because C callers read it after the call.
std::string &lastError() {
  static thread_local std::string text;
  return text;
}

/// Makes a message one line: names from damaged files may contain anything.
std::string oneLine(const std::string &text) {
  std::string line;
  for (char c : text) {
    bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += control ? '?' : c;
  }
  return line;
}

fp8rt_status record(fp8rt_status status, const char *text) noexcept {
  try {
    lastError() = oneLine(text);
  } catch (...) {
    lastError().clear();
  }
  return status;
}

} // namespace

void fp8rt::fail(fp8rt_status status, std::string message) { throw Error{status, std::move(message)}; }

fp8rt_status fp8rt::recordException() noexcept {
  try {
    throw;
  } catch (const Error &error) {
    return record(error.status, error.message.c_str());
  } catch (const std::bad_alloc &) {
    return record(FP8RT_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &error) {
    return record(FP8RT_INTERNAL, error.what());
  } catch (...) {
    return record(FP8RT_INTERNAL, "unknown exception");
  }
}

std::string fp8rt::inQuotes(const std::string &text) { return "'" + text + "'"; }

const char *fp8rt_last_error(void) { return lastError().c_str(); }
