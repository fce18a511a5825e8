// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chips by name, and what runs on them.

#include "Chip.h"

#include <cstdlib>

using namespace fp8rt::cuda;

namespace {

/// "sm_90a" in parts. A name of another form has capability 0.0.
struct Parsed {
  Capability chip;
  char letter = 0;
};

Parsed parse(const std::string &name) {
  Parsed parsed;
  if (name.rfind("sm_", 0) != 0)
    return parsed;
  char *end = nullptr;
  long number = std::strtol(name.c_str() + 3, &end, 10);
  if (number < 10 || number > 9999 || (*end && end[1]))
    return parsed;
  parsed.chip = {int(number / 10), int(number % 10)};
  parsed.letter = *end;
  return parsed;
}

} // namespace

std::string fp8rt::cuda::chipName(Capability device) {
  return "sm_" + std::to_string(device.major) + std::to_string(device.minor);
}

bool fp8rt::cuda::isExactly(Capability device, const std::string &chip) {
  Parsed wanted = parse(chip);
  return wanted.chip.major == device.major && wanted.chip.minor == device.minor;
}

bool fp8rt::cuda::runs(Capability device, const std::string &chip) {
  Parsed wanted = parse(chip);
  if (wanted.chip.major == 0)
    return false;
  bool laterOfFamily = wanted.chip.major == device.major && wanted.chip.minor <= device.minor;
  if (wanted.letter == 'f')
    return laterOfFamily;
  if (wanted.letter)
    return wanted.letter == 'a' && isExactly(device, chip);
  return laterOfFamily || wanted.chip.major < device.major;
}

const fp8rt_device_image *fp8rt::cuda::chooseImage(const fp8rt_device_code &code, Capability device) {
  const fp8rt_device_image *best = nullptr;
  int bestNumber = 0;
  for (uint32_t i = 0; i < code.num_images; ++i) {
    const fp8rt_device_image &image = code.images[i];
    Parsed chip = parse(image.chip);
    // An image for a chip with a letter may use more of it than one without.
    int number = 2 * (10 * chip.chip.major + chip.chip.minor) + (chip.letter != 0);
    if (runs(device, image.chip) && number > bestNumber) {
      best = &image;
      bestNumber = number;
    }
  }
  return best;
}

int fp8rt::cuda::driverForPtx(uint32_t ptxVersion) {
  // PTX ISA, "Release Notes".
  static constexpr struct {
    uint32_t ptx;
    int driver;
  } kFirst[] = {{80, 12000}, {81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
                {85, 12050}, {86, 12070}, {87, 12080}, {88, 12090}, {90, 13000}};
  for (const auto &row : kFirst)
    if (row.ptx == ptxVersion)
      return row.driver;
  return 0;
}
