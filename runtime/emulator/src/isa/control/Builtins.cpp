// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// printf, malloc and assertions of kernels, as the CUDA C++ guide describes them.

#include "Builtins.h"

#include "exec/Access.h"
#include "exec/Block.h"
#include "exec/Launch.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;

namespace {

/// A byte of device, shared or local memory; checked as any access of the thread.
uint8_t readByte(Warp &warp, unsigned lane, uint64_t address) {
  uint64_t addresses[kLanes];
  uint8_t *host[kLanes];
  addresses[lane] = address;
  resolve(warp, MemorySpace::Generic, Mask(1) << lane, addresses, 1, AccessKind::Load, host);
  return *host[lane];
}

std::string readText(Warp &warp, unsigned lane, uint64_t address) {
  std::string text;
  while (char c = char(readByte(warp, lane, address++)))
    text += c;
  return text;
}

uint64_t readBytes(Warp &warp, unsigned lane, uint64_t address, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i)
    value |= uint64_t(readByte(warp, lane, address + i)) << 8 * i;
  return value;
}

/// Arguments of printf: one after the other, each aligned to its size.
class Arguments {
public:
  Arguments(Warp &warp, unsigned lane, uint64_t address) : warp(warp), lane(lane), next(address) {}
  uint64_t take(unsigned bytes) {
    next = (next + bytes - 1) / bytes * bytes;
    uint64_t value = readBytes(warp, lane, next, bytes);
    next += bytes;
    return value;
  }

private:
  Warp &warp;
  unsigned lane;
  uint64_t next;
};

template <class T>
std::string formatted(const std::string &spec, T value) {
  std::string out(size_t(std::max(0, snprintf(nullptr, 0, spec.c_str(), value))) + 1, '\0');
  snprintf(out.data(), out.size(), spec.c_str(), value);
  out.pop_back();
  return out;
}

/// A number of the conversion's at `next`: digits beyond the fourth are left out, so that a
/// width does not fill the host's memory.
std::string takeNumber(const std::string &spec, size_t &next) {
  constexpr size_t kMostDigits = 4;
  size_t end = std::min(spec.find_first_not_of("0123456789", next), spec.size());
  std::string out = spec.substr(next, std::min(end - next, kMostDigits));
  next = end;
  return out;
}

/// One conversion: `spec` is the text from % to its letter.
std::string format(Warp &warp, unsigned lane, const std::string &spec, Arguments &arguments) {
  const char letter = spec.back();
  size_t next = std::min(spec.find_first_not_of("-+ #0", 1), spec.size());
  std::string host = spec.substr(0, next);
  host += takeNumber(spec, next);
  if (spec[next] == '.') {
    ++next;
    host += "." + takeNumber(spec, next);
  }
  // The rest is the length modifier, whose size on the host may differ.
  const std::string size = spec.substr(next, spec.size() - 1 - next);
  const bool wide = letter == 'p' || size.find_first_of("ljzt") != std::string::npos;
  if (std::strchr("eEfFgGaA", letter)) {
    const uint64_t bits = arguments.take(8);
    double value;
    std::memcpy(&value, &bits, 8);
    return formatted(host + letter, value);
  }
  if (letter == 's') {
    const uint64_t address = arguments.take(8);
    return formatted(host + "s", (address ? readText(warp, lane, address) : "(null)").c_str());
  }
  const uint64_t value = arguments.take(wide ? 8 : 4);
  if (letter == 'p')
    return formatted(host + "p", reinterpret_cast<const void *>(value));
  if (letter == 'c')
    return formatted(host + "c", int(value));
  if (size == "h" || size == "hh")
    return formatted(host + size + letter, int(value));
  const bool isSigned = letter == 'd' || letter == 'i';
  return formatted(host + "ll" + letter,
                   isSigned && !wide ? uint64_t(int64_t(int32_t(uint32_t(value)))) : value);
}

/// vprintf(format, arguments): the number of characters.
uint64_t print(Warp &warp, unsigned lane, const std::vector<uint64_t> &arguments) {
  std::string pattern = readText(warp, lane, arguments.at(0)), out;
  Arguments values(warp, lane, arguments.at(1));
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    size_t end = pattern.find_first_not_of("-+ #0123456789.hljztL", i + 1);
    if (end == std::string::npos)
      break;
    if (pattern[end] == '%')
      out += '%';
    else if (std::strchr("diouxXceEfFgGaAsp", pattern[end]))
      out += format(warp, lane, pattern.substr(i, end - i + 1), values);
    i = end;
  }
  const Settings &settings = warp.block().launch().settings();
  if (settings.print)
    settings.print(out);
  return out.size();
}

uint64_t allocate(Warp &warp, unsigned, const std::vector<uint64_t> &arguments) {
  return warp.block().launch().memory().allocate(arguments.at(0), 16, "malloc in a kernel").value_or(0);
}

uint64_t release(Warp &warp, unsigned lane, const std::vector<uint64_t> &arguments) {
  if (arguments.at(0) && !warp.block().launch().memory().release(arguments[0]))
    warp.fault(FaultKind::UseAfterFree, "free of what malloc did not return, or twice", Mask(1) << lane);
  return 0;
}

/// __assertfail(message, file, line, function, character size)
uint64_t assertionFailed(Warp &warp, unsigned lane, const std::vector<uint64_t> &arguments) {
  std::string text = readText(warp, lane, arguments.at(1)) + ":" + std::to_string(uint32_t(arguments.at(2))) +
                     ": " + readText(warp, lane, arguments.at(3)) + ": assertion `" +
                     readText(warp, lane, arguments.at(0)) + "' failed";
  warp.fault(FaultKind::Assertion, text, Mask(1) << lane);
}

} // namespace

const Builtin *fp8emu::findBuiltin(const std::string &name) {
  static const Builtin builtins[] = {{"vprintf", 2, print},
                                     {"malloc", 1, allocate},
                                     {"free", 1, release},
                                     {"__assertfail", 5, assertionFailed}};
  for (const Builtin &known : builtins)
    if (name == known.name)
      return &known;
  return nullptr;
}
