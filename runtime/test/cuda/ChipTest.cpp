// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The images and drivers that fit each chip. (Inside of the library; no device is needed.)

#include "../../src/cuda/Chip.h"

#include <gtest/gtest.h>

#include <vector>

using namespace fp8rt::cuda;

namespace {

constexpr Capability kAmpere = {8, 0}, kAda = {8, 9}, kHopper = {9, 0}, kBlackwell = {10, 0},
                     kBlackwellUltra = {10, 3}, kBlackwellPC = {12, 0};

TEST(ChipTest, RunsWhatItsNameAllows) {
  EXPECT_TRUE(runs(kAda, "sm_89"));
  EXPECT_TRUE(runs(kHopper, "sm_89"));
  EXPECT_TRUE(runs(kBlackwellPC, "sm_80"));
  EXPECT_FALSE(runs(kAmpere, "sm_89"));
  EXPECT_TRUE(runs(kHopper, "sm_90a"));
  EXPECT_FALSE(runs(kBlackwell, "sm_90a")) << "features of one architecture are of no other";
  EXPECT_FALSE(runs(kAda, "sm_90a"));
  EXPECT_FALSE(runs(kBlackwellUltra, "sm_100a"));
  EXPECT_TRUE(runs(kBlackwellUltra, "sm_100f"));
  EXPECT_FALSE(runs(kBlackwellPC, "sm_100f"));
  EXPECT_TRUE(runs(kBlackwellPC, "sm_120a"));
  for (const char *wrong : {"", "sm_", "sm_x", "sm_90b", "sm_90aa", "sm_9", "gfx942", "sm_99999"})
    EXPECT_FALSE(runs(kHopper, wrong)) << wrong;
}

TEST(ChipTest, TheImageOfTheChipItselfIsTheBest) {
  auto chosenFrom = [](std::vector<const char *> chips, Capability device) -> std::string {
    std::vector<fp8rt_device_image> images;
    for (const char *chip : chips)
      images.push_back({chip, 80, 0, "", 1, nullptr, 0});
    fp8rt_device_code code = {};
    code.num_images = static_cast<uint32_t>(images.size());
    code.images = images.data();
    const fp8rt_device_image *image = chooseImage(code, device);
    return image ? image->chip : "none";
  };
  EXPECT_EQ(chosenFrom({"sm_89", "sm_90a", "sm_100a"}, kHopper), "sm_90a");
  EXPECT_EQ(chosenFrom({"sm_90a", "sm_89"}, kBlackwell), "sm_89");
  EXPECT_EQ(chosenFrom({"sm_90a", "sm_90", "sm_89"}, kHopper), "sm_90a");
  EXPECT_EQ(chosenFrom({"sm_80", "sm_90", "sm_89"}, kBlackwellPC), "sm_90");
  EXPECT_EQ(chosenFrom({"sm_90a", "sm_100a"}, kAda), "none");
}

TEST(ChipTest, DriversByVersionOfPtx) {
  EXPECT_EQ(driverForPtx(80), 12000);
  EXPECT_EQ(driverForPtx(84), 12040);
  EXPECT_EQ(driverForPtx(86), 12070);
  EXPECT_EQ(driverForPtx(87), 12080);
  EXPECT_EQ(driverForPtx(90), 13000);
  EXPECT_EQ(driverForPtx(99), 0) << "the driver decides";
}

} // namespace
