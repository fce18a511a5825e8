// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions on devices of several ranks, whose collectives are copied through the host's memory.

#include "RankSupport.h"
#include "cuda/DeviceSupport.h"

#include <mutex>

using namespace fp8rt_test;

namespace {

std::mutex opening; // gtest's checks are of one thread at a time

TEST(DeviceRanks, EveryStepReducesOverTheRanks) {
  std::vector<std::string> texts = runThreads(2, [](fp8rt_communicator &communicator) {
    Library library;
    GPU gpu;
    Session session;
    {
      std::lock_guard<std::mutex> lock(opening);
      library = load(DEVICE_FIXTURE);
      gpu = openGPU(testDevice().c_str(), library);
      session = newSessionOn(gpu, "ranks", nullptr);
    }
    if (fp8rt_session_set_communicator(session.get(), &communicator))
      return std::string(fp8rt_last_error());
    std::string text;
    for (int step = 0; step < 4; ++step) { // replaying one would leave out the other rank
      float x[] = {1, 2, float(step)}, factor = communicator.rank == 0 ? 1.0f : 10.0f;
      int64_t shape[] = {3};
      DLTensor values = {x, {kDLCPU, 0}, 1, kF32, shape, nullptr, 0}, one = values;
      one.data = &factor;
      one.ndim = 0;
      if (fp8rt_session_set_argument(session.get(), 0, &values) ||
          fp8rt_session_set_argument(session.get(), 1, &one) || fp8rt_session_step(session.get()))
        return std::string(fp8rt_last_error());
      const float *sum = static_cast<const float *>(fp8rt_session_result(session.get(), 0)->data);
      for (int i = 0; i < 3; ++i)
        text += std::to_string(static_cast<int>(sum[i])) + " ";
    }
    return text;
  });
  for (const std::string &text : texts)
    EXPECT_EQ(text, "11 22 0 11 22 11 11 22 22 11 22 33 ");
}

} // namespace
