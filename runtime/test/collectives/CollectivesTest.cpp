// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives by value: every kind, groups of a grid, sizes around the limits of pieces, the order of sums.

#include "RankSupport.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace fp8rt_test;

namespace {

void expectAll(const std::vector<std::string> &texts, const std::string &wanted) {
  for (size_t rank = 0; rank < texts.size(); ++rank)
    EXPECT_EQ(texts[rank], wanted) << "on rank " << rank;
}

/// Numbers of very different size, so that sums depend on their order; the same for equal seeds.
std::vector<float> numbersOf(uint64_t seed, uint64_t count) {
  std::mt19937_64 random(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000),
                        static_cast<int>(random() % 40) - 20);
  return numbers;
}

/// Sizes in f32 elements: none, small ones, around the limit of a small all_reduce, of a piece, of several.
const uint64_t kSizes[] = {
    0,      1, 7, 1000, (96 << 10) / 4, (96 << 10) / 4 + 1, 131072, 300001, (2 << 20) / 4, (2 << 20) / 4 + 1,
    1200003};

std::string compare(const std::vector<float> &got, const std::vector<float> &wanted,
                    const std::string &what) {
  if (got.size() == wanted.size() &&
      (got.empty() || std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)) == 0))
    return "";
  for (size_t i = 0; i < wanted.size(); ++i)
    if (std::memcmp(&got[i], &wanted[i], 4))
      return what + ": element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", expected " +
             std::to_string(wanted[i]);
  return what + ": wrong size";
}

std::vector<float> orderedSum(uint32_t ranks, uint64_t count, uint64_t seed, float factor = 1) {
  std::vector<float> sum = numbersOf(seed, count);
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    std::vector<float> next = numbersOf(seed + rank, count);
    for (uint64_t i = 0; i < count; ++i)
      sum[i] += next[i];
  }
  for (float &value : sum)
    value *= factor;
  return sum;
}

TEST(Collectives, SumsAreInTheOrderOfRanks) {
  for (uint32_t ranks : {1u, 2u, 3u, 4u})
    expectAll(runThreads(ranks,
                         [&](fp8rt_communicator &communicator) {
                           std::string wrong;
                           for (uint64_t count : kSizes) {
                             std::vector<float> data = numbersOf(count + communicator.rank, count);
                             Ask ask;
                             ask.count = count;
                             ask.send = ask.receive = data.data();
                             wrong += perform(communicator, ask);
                             wrong += compare(data, orderedSum(ranks, count, count),
                                              "sum of " + std::to_string(count));
                           }
                           return wrong;
                         }),
              "");
}

TEST(Collectives, MeansAreSumsTimesAFactor) {
  expectAll(runThreads(3,
                       [&](fp8rt_communicator &communicator) {
                         std::string wrong;
                         for (uint64_t count : {uint64_t(5), uint64_t(200000)}) {
                           std::vector<float> data = numbersOf(communicator.rank, count), mean(count);
                           Ask ask;
                           ask.reduction = FP8RT_MEAN;
                           ask.count = count;
                           ask.send = data.data();
                           ask.receive = mean.data();
                           wrong += perform(communicator, ask);
                           wrong += compare(mean, orderedSum(3, count, 0, 1.0f / 3), "mean");
                         }
                         return wrong;
                       }),
            "");
}

TEST(Collectives, GatherScatterExchangeBroadcastAndShift) {
  for (uint64_t part : {uint64_t(0), uint64_t(3), uint64_t(50000), uint64_t(140000)})
    expectAll(runThreads(
                  3,
                  [&](fp8rt_communicator &communicator) {
                    uint32_t rank = communicator.rank;
                    std::string wrong;
                    std::vector<std::vector<float>> data; // of each rank, three parts
                    for (uint32_t other = 0; other < 3; ++other)
                      data.push_back(numbersOf(other, 3 * part));
                    auto partOf = [&](uint32_t of, uint32_t number) {
                      return std::vector<float>(data[of].begin() + static_cast<int64_t>(number * part),
                                                data[of].begin() + static_cast<int64_t>((number + 1) * part));
                    };
                    auto ask = [&](uint32_t kind, uint64_t count, int32_t root, uint64_t received) {
                      std::vector<float> result(received);
                      Ask asked;
                      asked.kind = kind;
                      asked.count = count;
                      asked.root = root;
                      asked.send = data[rank].data();
                      asked.receive = result.data();
                      wrong += perform(communicator, asked);
                      return result;
                    };
                    std::vector<float> gathered, exchanged;
                    for (uint32_t other = 0; other < 3; ++other) {
                      for (float value : partOf(other, 0))
                        gathered.push_back(value);
                      for (float value : partOf(other, rank))
                        exchanged.push_back(value);
                    }
                    wrong += compare(ask(FP8RT_ALL_GATHER, part, 0, 3 * part), gathered, "all_gather");
                    wrong += compare(ask(FP8RT_ALL_TO_ALL, 3 * part, 0, 3 * part), exchanged, "all_to_all");
                    wrong += compare(ask(FP8RT_BROADCAST, part, 1, part), partOf(1, 0), "broadcast");
                    wrong +=
                        compare(ask(FP8RT_SHIFT, part, 1, part), partOf((rank + 2) % 3, 0), "shift by 1");
                    wrong +=
                        compare(ask(FP8RT_SHIFT, part, -4, part), partOf((rank + 1) % 3, 0), "shift by -4");
                    std::vector<float> sum = orderedSum(3, 3 * part, 0);
                    std::vector<float> own(sum.begin() + static_cast<int64_t>(rank * part),
                                           sum.begin() + static_cast<int64_t>((rank + 1) * part));
                    wrong += compare(ask(FP8RT_REDUCE_SCATTER, 3 * part, 0, part), own, "reduce_scatter");
                    return wrong;
                  }),
              "");
}

TEST(Collectives, GroupsAreAlongAxesOfTheGrid) {
  // Ranks of a grid of 2 x 3: 0 1 2 in the first row, 3 4 5 in the second.
  expectAll(runThreads(6,
                       [](fp8rt_communicator &communicator) -> std::string {
                         std::string wrong;
                         for (uint32_t axes : {0u, 1u, 2u, 3u}) {
                           float own = std::ldexp(1.0f, static_cast<int>(communicator.rank)), sum = 0,
                                 wanted = 0;
                           for (uint32_t other = 0; other < 6; ++other) {
                             bool sameRow = other / 3 == communicator.rank / 3;
                             bool sameColumn = other % 3 == communicator.rank % 3;
                             if ((sameRow || axes & 1) && (sameColumn || axes & 2))
                               wanted += std::ldexp(1.0f, static_cast<int>(other));
                           }
                           Ask ask;
                           ask.grid = {2, 0};
                           ask.axes = axes;
                           ask.count = 1;
                           ask.send = &own;
                           ask.receive = &sum;
                           wrong += perform(communicator, ask);
                           if (sum != wanted)
                             wrong += "axes " + std::to_string(axes) + ": " + std::to_string(sum);
                         }
                         return wrong;
                       }),
            "");
}

/// All-reduces one element of each of two ranks, as bits.
template <typename T>
T reduceTwo(uint32_t type, uint32_t reduction, T first, T second) {
  T results[2] = {};
  expectAll(runThreads(2,
                       [&](fp8rt_communicator &communicator) {
                         T own = communicator.rank == 0 ? first : second;
                         Ask ask;
                         ask.type = type;
                         ask.reduction = reduction;
                         ask.count = 1;
                         ask.send = &own;
                         ask.receive = &results[communicator.rank];
                         return perform(communicator, ask);
                       }),
            "");
  EXPECT_EQ(std::memcmp(&results[0], &results[1], sizeof(T)), 0);
  return results[0];
}

TEST(Collectives, TypesAndReductions) {
  EXPECT_EQ(reduceTwo<int8_t>(FP8RT_INT8, FP8RT_SUM, 100, 100), -56); // integers wrap
  EXPECT_EQ(reduceTwo<int32_t>(FP8RT_INT32, FP8RT_MAX, -7, 3), 3);
  EXPECT_EQ(reduceTwo<int64_t>(FP8RT_INT64, FP8RT_MIN, int64_t(-7) * (int64_t(1) << 40), 3),
            int64_t(-7) * (int64_t(1) << 40));
  EXPECT_EQ(reduceTwo<int64_t>(FP8RT_INT64, FP8RT_PRODUCT, int64_t(1) << 40, 3), int64_t(3) << 40);
  EXPECT_EQ(reduceTwo<double>(FP8RT_F64, FP8RT_SUM, 1.0, 0x1p-52), 1.0 + 0x1p-52);
  EXPECT_EQ(reduceTwo<float>(FP8RT_F32, FP8RT_PRODUCT, 3.0f, 0.5f), 1.5f);
  EXPECT_EQ(reduceTwo<float>(FP8RT_F32, FP8RT_MIN, 3.0f, 0.5f), 0.5f);
}

TEST(Collectives, ANaNIsTheMaximumAndTheMinimum) {
  for (uint32_t reduction : {FP8RT_MAX, FP8RT_MIN})
    for (bool isFirst : {false, true}) {
      float nan = std::nanf("");
      EXPECT_TRUE(std::isnan(reduceTwo<float>(FP8RT_F32, reduction, isFirst ? nan : 1, isFirst ? 1 : nan)));
    }
}

/// Vectors, their tails and their blocks of 1,024: a NaN of any rank is kept, and so is the sign of a zero.
TEST(Collectives, MaximaAndMinimaOfManyElements) {
  auto valueOf = [](uint32_t rank, uint64_t i) {
    std::mt19937_64 random(i * 4 + rank);
    const float special[] = {NAN, INFINITY, -INFINITY, 0.0f};
    return random() % 8 ? std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 7) - 3), i % 5)
                        : special[random() % 4];
  };
  auto check = [&](fp8rt_communicator &communicator, uint64_t count, uint32_t reduction) {
    std::vector<float> data(count), wanted(count);
    for (uint64_t i = 0; i < count; ++i) {
      data[i] = valueOf(communicator.rank, i);
      wanted[i] = valueOf(0, i);
      for (uint32_t rank = 1; rank < communicator.size; ++rank) {
        float next = valueOf(rank, i);
        bool isBetter = reduction == FP8RT_MAX ? next > wanted[i] : next < wanted[i];
        wanted[i] = isBetter || std::isnan(next) ? next : wanted[i];
      }
    }
    Ask ask;
    ask.reduction = reduction;
    ask.count = count;
    ask.send = ask.receive = data.data();
    return perform(communicator, ask) + compare(data, wanted, std::to_string(count) + " elements");
  };
  for (uint32_t ranks : {2u, 3u, 4u})
    expectAll(runThreads(ranks,
                         [&](fp8rt_communicator &communicator) {
                           std::string wrong;
                           for (uint64_t count : {1, 3, 8, 31, 33, 1023, 1024, 1025, 2060, 30000})
                             for (uint32_t reduction : {FP8RT_MAX, FP8RT_MIN})
                               wrong += check(communicator, count, reduction);
                           return wrong;
                         }),
              "");
}

TEST(Collectives, HalvesAreSummedInF32AndRoundedOnce) {
  // 1 + 2^-8 in bf16 is a tie, which goes to the even 1; 1 + 3 * 2^-8 to 1 + 2^-6.
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_BF16, FP8RT_SUM, 0x3f80, 0x3b80), 0x3f80);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_BF16, FP8RT_SUM, 0x3f80, 0x3c40), 0x3f82);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_BF16, FP8RT_SUM, 0x7f7f, 0x7f7f), 0x7f80); // overflow
  // f16: 1 + 2^-11 is a tie; denormals add exactly; 65504 + 16 overflows, + 15.99 does not.
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0x3c00, 0x1000), 0x3c00);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0x0001, 0x0003), 0x0004);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0x03ff, 0x0001), 0x0400);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0x7bff, 0x4c00), 0x7c00);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0x7bff, 0x4bff), 0x7bff);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0xfc00, 0x3c00), 0xfc00);
  EXPECT_EQ(reduceTwo<uint16_t>(FP8RT_F16, FP8RT_SUM, 0xfc00, 0x7c00) & 0x7fff, 0x7e00);
}

TEST(Collectives, EveryF16SurvivesAMaximum) {
  expectAll(runThreads(2,
                       [](fp8rt_communicator &communicator) {
                         std::vector<uint16_t> own(65536), result(65536);
                         for (uint32_t i = 0; i < 65536; ++i)
                           own[i] = static_cast<uint16_t>(i);
                         Ask ask;
                         ask.type = FP8RT_F16;
                         ask.reduction = FP8RT_MAX;
                         ask.count = own.size();
                         ask.send = own.data();
                         ask.receive = result.data();
                         std::string wrong = perform(communicator, ask);
                         for (uint32_t i = 0; i < 65536; ++i) {
                           bool isNaN = (i & 0x7fff) > 0x7c00;
                           if (isNaN ? (result[i] & 0x7fff) <= 0x7c00 : result[i] != i)
                             return wrong + "element " + std::to_string(i);
                         }
                         return wrong;
                       }),
            "");
}

TEST(Collectives, SeveralAreUnderWayAtATime) {
  expectAll(runThreads(4,
                       [](fp8rt_communicator &communicator) {
                         constexpr uint64_t kCount = 6;
                         const uint64_t sizes[kCount] = {10, 20, 300000, 30, 200000, 40};
                         std::string wrong;
                         for (int round = 0; round < 5; ++round) {
                           std::vector<std::vector<float>> data(kCount);
                           std::vector<Ask> asks(kCount);
                           fp8rt_group groups[kCount];
                           uint64_t tickets[kCount];
                           for (uint64_t i = 0; i < kCount; ++i) {
                             data[i] = numbersOf(i + communicator.rank, sizes[i]);
                             asks[i].count = sizes[i];
                             asks[i].send = asks[i].receive = data[i].data();
                             tickets[i] = begin(communicator, asks[i], groups[i]);
                           }
                           for (uint64_t i : {3, 5, 0, 2, 1, 4}) { // in any order
                             if (communicator.wait(communicator.context, tickets[i], nullptr))
                               return std::string(communicator.error(communicator.context));
                             wrong +=
                                 compare(data[i], orderedSum(4, sizes[i], i), "sum " + std::to_string(i));
                           }
                         }
                         return wrong;
                       }),
            "");
}

TEST(Collectives, ALargeOneGoesOnWhileTheProgramDoesSomethingElse) {
  // Rank 0 waits only after rank 1 says that it is done: by its progress alone rank 1 could not be.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  expectAll(runThreads(2,
                       [&](fp8rt_communicator &communicator) {
                         std::vector<float> data = numbersOf(communicator.rank, 500000);
                         Ask ask;
                         ask.count = data.size();
                         ask.send = ask.receive = data.data();
                         fp8rt_group group;
                         uint64_t ticket = begin(communicator, ask, group);
                         char byte = 0;
                         if (communicator.rank == 0 && read(ends[0], &byte, 1) != 1)
                           return std::string("pipe");
                         if (communicator.wait(communicator.context, ticket, nullptr))
                           return std::string(communicator.error(communicator.context));
                         if (communicator.rank == 1 && write(ends[1], &byte, 1) != 1)
                           return std::string("pipe");
                         return compare(data, orderedSum(2, 500000, 0), "sum");
                       }),
            "");
  close(ends[0]);
  close(ends[1]);
}

TEST(Collectives, RequestsAreChecked) {
  auto refused = [](const Ask &ask, const std::string &part) {
    std::string error =
        runThreads(2, [&](fp8rt_communicator &communicator) { return perform(communicator, ask); })[0];
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  float data[4] = {};
  Ask ask;
  ask.count = 3;
  ask.send = ask.receive = data;
  Ask wrong = ask;
  wrong.kind = 17;
  refused(wrong, "its kind is 17");
  wrong = ask;
  wrong.type = 99;
  refused(wrong, "its type is unknown");
  wrong = ask;
  wrong.send = nullptr;
  refused(wrong, "its memory is null");
  wrong = ask;
  wrong.type = FP8RT_BYTE;
  refused(wrong, "all_reduce sum of 3 bytes 'x': this is no reduction of numbers");
  wrong = ask;
  wrong.type = FP8RT_INT32;
  wrong.reduction = FP8RT_MEAN;
  refused(wrong, "a mean is of floating-point numbers");
  wrong = ask;
  wrong.kind = FP8RT_REDUCE_SCATTER;
  refused(wrong, "the count is no multiple of the 2 ranks");
  wrong = ask;
  wrong.kind = FP8RT_BROADCAST;
  wrong.root = 2;
  refused(wrong, "rank 2 is not in the group");
  wrong = ask;
  wrong.grid = {3, 1};
  refused(wrong, "the program's grid is 3x1, which does not fit 2 ranks");
  wrong = ask;
  wrong.grid = {0, 0};
  refused(wrong, "the program's grid is ?x?");
}

} // namespace
