// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finding the PTX in an image.

#include "Image.h"

#include "FatBinary.h"

#include "exec/Program.h"
#include "fp8emu/Machine.h"
#include "ptx/Link.h"

#include <algorithm>
#include <set>
#include <utility>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

const char *const kAdvice =
    ", which the emulator does not run: give it PTX. ptxas -lineinfo keeps the PTX in a "
    "cubin, nvcc -gencode arch=compute_90,code=compute_90 puts it into a fat binary";

/// The target of a text: "sm_90a"; "nothing" where there is none.
std::string targetOf(const std::string &ptx) {
  const size_t directive = ptx.find(".target");
  if (directive == std::string::npos)
    return "nothing";
  const size_t begin = std::min(ptx.find_first_not_of(" \t", directive + 7), ptx.size());
  return ptx.substr(begin, ptx.find_first_of(" \t\r\n,;", begin) - begin);
}

/// The order of targets: sm_90 comes before sm_90a, and both before sm_100.
std::pair<unsigned long, std::string> rank(const std::string &target) {
  const size_t digits = target.find_first_of("0123456789");
  return {digits == std::string::npos ? 0 : std::strtoul(target.c_str() + digits, nullptr, 10), target};
}

Image imageOf(const Cubin &cubin) {
  if (cubin.ptx.size() == 1)
    return {cubin.ptx[0], cubin.kernels};
  std::vector<ptx::Unit> units;
  for (const std::string &text : cubin.ptx)
    units.push_back({"part " + std::to_string(units.size() + 1) + " of the cubin", text});
  return {ptx::join(units), cubin.kernels};
}

Image newestOf(const std::vector<FatEntry> &entries, const std::function<bool(const std::string &)> &runs) {
  Image best;
  std::string bestTarget;
  std::set<std::string> machineCode, others;
  for (const FatEntry &entry : entries) {
    const Cubin cubin = entry.isPtx ? Cubin() : readCubin(entry.bytes.data(), entry.bytes.size());
    if (!entry.isPtx && cubin.ptx.empty()) {
      machineCode.insert("sm_" + std::to_string(entry.arch));
      continue;
    }
    // Text may be padded.
    Image image = entry.isPtx ? Image{entry.bytes.c_str(), {}} : imageOf(cubin);
    const std::string target = targetOf(entry.isPtx ? image.ptx : cubin.ptx[0]);
    if (!runs(target)) {
      others.insert(target);
    } else if (bestTarget.empty() || rank(bestTarget) < rank(target) ||
               // Of a cubin and the PTX it was made from, the PTX has the lines of the source.
               (entry.isPtx && bestTarget == target)) {
      best = std::move(image);
      bestTarget = target;
    }
  }
  if (!bestTarget.empty())
    return best;
  const auto list = [](const std::set<std::string> &names) {
    std::string out;
    for (const std::string &name : names)
      out += (out.empty() ? "" : ", ") + name;
    return out;
  };
  if (others.empty())
    throw ImageError("the fat binary has machine code alone (for " + list(machineCode) + ")" + kAdvice);
  throw ImageError("the fat binary has PTX for " + list(others) + ", which the device does not run");
}

/// Whether a kernel's parameters can be so many bytes in machine code: it may leave some out before a
/// parameter that is aligned to more than the memory of parameters is, as a tensor map.
bool fits(const FunctionCode &code, unsigned bytes) {
  constexpr unsigned kAligned = 16;
  unsigned alignment = 1;
  for (const ParameterPlace &parameter : code.parameters)
    alignment = std::max(alignment, parameter.alignment);
  const unsigned most = code.parameterBytes + (alignment > kAligned ? alignment - 1 : 0);
  return bytes >= code.parameterBytes && bytes <= most;
}

} // namespace

Image fp8emu::driver::readImage(const char *bytes, size_t size,
                                const std::function<bool(const std::string &)> &runs) {
  if (isFatBinary(bytes))
    return newestOf(readFatBinary(bytes), runs);
  if (!isCubin(bytes))
    return {size == kUnknownSize ? std::string(bytes)
                                 : std::string(bytes, std::find(bytes, bytes + size, '\0')),
            {}};
  const Cubin cubin = readCubin(bytes, size);
  if (cubin.ptx.empty())
    throw ImageError(std::string("the image is machine code (a cubin)") + kAdvice);
  return imageOf(cubin);
}

void fp8emu::driver::checkIsCurrent(const Image &image,
                                    const std::function<const Kernel *(const std::string &)> &find) {
  const auto stale = [](const std::string &what) {
    throw ImageError("the PTX in the cubin is not what its machine code was made from: " + what +
                     ". Compile it again with ptxas -lineinfo, or load the PTX itself");
  };
  for (const auto &[name, bytes] : image.kernels) {
    const Kernel *kernel = find(name);
    if (!kernel)
      stale("the PTX has no kernel " + name);
    if (!fits(*kernel->code, bytes))
      stale("kernel " + name + " has " + std::to_string(kernel->code->parameterBytes) +
            " bytes of parameters in the PTX, and " + std::to_string(bytes) + " in the machine code");
  }
}
