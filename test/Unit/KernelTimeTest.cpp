// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The model of kernels' times beside the products and casts that were measured on an H100
// (lib/Conversion/FP8ToGPU/FIGURES.md, "On an H100"). Each is predicted with constants that are fitted to all
// others. The steps of a GPT are in test/python/tools/test_predict.py.

#include "fp8/Dialect/FP8/IR/KernelTime.h"
#include "../../lib/Conversion/FP8ToGPU/Matmul/MatmulConfig.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

#include <array>
#include <cmath>

using namespace fp8;

namespace {

/// The goals of the model: of the errors of all predictions the median, and the worst.
constexpr double kMedian = 0.15, kWorst = 0.3;

const Chip &getH100() {
  return *llvm::find_if(listChips(), [](const Chip &chip) { return chip.name == "sm_90a"; });
}

enum class Scaling { none, tensor, row, block };
constexpr const char *kRecipes[] = {"bf16", "delayed", "row", "block"};
constexpr const char *kRoles[] = {"fprop", "dgrad", "wgrad"};

struct Product {
  Scaling scaling;
  unsigned role; // fprop: one sum; dgrad and wgrad of FP8: sums of 128
  int64_t m, n, k;
  double teraflops; // as measured
  MatmulWork work = {};

  double getOperations() const { return 2.0 * double(m) * double(n) * double(k); }
  double getSeconds() const { return getOperations() / (teraflops * 1e12); }
};

/// Describes the kernel that the compiler chooses for `product`.
MatmulWork describe(const Product &product) {
  mlir::MLIRContext context;
  bool isFP8 = product.scaling != Scaling::none, hasBlocks = product.scaling == Scaling::block;
  mlir::Type type = isFP8 ? mlir::Type(mlir::Float8E4M3FNType::get(&context))
                          : mlir::Type(mlir::BFloat16Type::get(&context));
  bool split = hasBlocks || (isFP8 && product.role != 0);
  MatmulProblem problem{type,
                        type,
                        split,
                        /*strict=*/false,
                        hasBlocks ? ScalesAlongK::blocks : ScalesAlongK::none,
                        /*batch=*/1,
                        product.m,
                        product.n,
                        product.k};
  MatmulConfig config = chooseMatmulConfig(getH100(), problem);
  MatmulWork work{1,
                  product.m,
                  product.n,
                  product.k,
                  isFP8 ? 1 : 2,
                  /*usesTensorCores=*/true,
                  config.tileM,
                  config.tileN,
                  config.tileKBytes,
                  config.isSwapped};
  work.part = split ? kPart : 0;
  work.hasScaledParts = hasBlocks;
  work.hasRowScales = product.scaling == Scaling::row;
  return work;
}

/// The table of products: TFLOP/s by recipe, size and role.
std::vector<Product> listProducts() {
  const int64_t sizes[][3] = {{4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 16384, 2048}};
  const double teraflops[4][3][3] = {
      {{682, 713, 713}, {737, 746, 734}, {642, 795, 759}},
      {{1164, 1014, 1024}, {1361, 1102, 1120}, {998, 1199, 1132}},
      {{1035, 897, 899}, {1291, 1083, 1082}, {772, 1166, 1081}},
      {{701, 713, 644}, {799, 798, 752}, {735, 783, 724}},
  };
  std::vector<Product> products;
  for (unsigned recipe = 0; recipe < 4; ++recipe)
    for (unsigned size = 0; size < 3; ++size)
      for (unsigned role = 0; role < 3; ++role) {
        auto [m, n, k] = sizes[size];
        // y = x w is [M, N]; the gradient of x is [M, K], a sum over N; that of w [K, N], a sum over M.
        const std::array<int64_t, 3> ofRole[] = {{m, n, k}, {m, k, n}, {k, n, m}};
        Product product{Scaling(recipe), role,
                        ofRole[role][0], ofRole[role][1],
                        ofRole[role][2], teraflops[recipe][size][role]};
        product.work = describe(product);
        products.push_back(product);
      }
  return products;
}

double predict(const Product &product, const TimeCalibration &calibration) {
  double elementBytes = double(product.work.elementBytes), m = double(product.m), n = double(product.n);
  KernelCost cost;
  cost.read = static_cast<int64_t>(elementBytes * (m + n) * double(product.k));
  cost.written = 2 * product.m * product.n; // bf16
  cost.matmul = countMatmulClocks(getH100(), product.work, calibration);
  return predictKernel(getH100(), "products", cost, calibration)->getTotal();
}

double getError(double predicted, double measured) { return predicted / measured - 1; }

/// Returns the constants of matmuls for which the errors of all products but number `left` are the least:
/// descends along one constant at a time, by steps that shrink.
TimeCalibration fit(const std::vector<Product> &products, size_t left) {
  auto sum = [&](const TimeCalibration &calibration) {
    double errors = 0;
    for (size_t i = 0; i < products.size(); ++i)
      if (i != left)
        errors += std::abs(std::log(predict(products[i], calibration) / products[i].getSeconds()));
    return errors;
  };
  TimeCalibration best;
  double least = sum(best);
  for (double step = 0.1; step > 1e-3; step /= 2)
    for (bool improves = true; improves;) {
      improves = false;
      for (double TimeCalibration::*constant :
           {&TimeCalibration::tensorShare, &TimeCalibration::epilogueClocks, &TimeCalibration::rowScaleClocks,
            &TimeCalibration::scaledPartInstructions})
        for (double factor : {1 + step, 1 / (1 + step)}) {
          TimeCalibration changed = best;
          changed.*constant *= factor;
          if (double errors = sum(changed); errors < least) {
            least = errors;
            best = changed;
            improves = true;
          }
        }
    }
  return best;
}

void expectGoals(std::vector<double> errors) {
  llvm::sort(errors);
  size_t half = errors.size() / 2;
  double median = errors.size() % 2 == 0 ? (errors[half - 1] + errors[half]) / 2 : errors[half];
  llvm::outs() << llvm::format("median %.1f %%, worst %.1f %%\n", 100 * median, 100 * errors.back());
  llvm::outs().flush();
  EXPECT_LE(median, kMedian);
  EXPECT_LE(errors.back(), kWorst);
}

TEST(KernelTimeTest, ProductsOfAnH100ArePredictedFromTheOthers) {
  std::vector<Product> products = listProducts();
  std::vector<double> errors;
  llvm::outs() << "| product | M x N x K | measured us | predicted us | error |\n|---|---|---|---|---|\n";
  for (auto [i, product] : llvm::enumerate(products)) {
    double predicted = predict(product, fit(products, i)), error = getError(predicted, product.getSeconds());
    llvm::outs() << "| " << kRecipes[unsigned(product.scaling)] << ", " << kRoles[product.role] << " | "
                 << product.m << " x " << product.n << " x " << product.k
                 << llvm::format(" | %.0f | %.0f | %+.1f %% |\n", product.getSeconds() * 1e6, predicted * 1e6,
                                 100 * error);
    errors.push_back(std::abs(error));
  }
  expectGoals(errors);
}

TEST(KernelTimeTest, CastsOfAnH100ArePredictedFromTheOthers) {
  const double rates[] = {2220, 2780, 2460, 3010}; // GB/s, the least and the most of two recipes
  std::vector<double> errors;
  llvm::outs() << "| casts | measured GB/s | predicted GB/s | error of the time |\n|---|---|---|---|\n";
  for (unsigned i = 0; i < 4; ++i) {
    TimeCalibration calibration;
    double logs = 0;
    for (unsigned other = 0; other < 4; ++other)
      logs += other == i ? 0 : std::log(rates[other]) / 3;
    calibration.castShare = std::exp(logs) / double(getH100().memoryGBs);
    KernelCost cost{int64_t(1) << 30, int64_t(1) << 30, std::nullopt};
    double bytes = double(*cost.read + *cost.written);
    double predicted = predictKernel(getH100(), "casts", cost, calibration)->getTotal();
    errors.push_back(std::abs(getError(predicted, bytes / (rates[i] * 1e9))));
    llvm::outs() << "| " << (i < 2 ? "delayed" : "current") << (i % 2 == 0 ? ", slowest" : ", fastest")
                 << llvm::format(" | %.0f | %.0f | %+.1f %% |\n", rates[i], bytes / predicted / 1e9,
                                 100 * getError(predicted, bytes / (rates[i] * 1e9)));
  }
  expectGoals(errors);
}

TEST(KernelTimeTest, TheConstantsAreThoseThatFitAllProducts) {
  TimeCalibration given, fitted = fit(listProducts(), /*left=*/-1);
  // A step of the last round of the descent is 0.2 %; the errors are flat around their least sum.
  EXPECT_NEAR(given.tensorShare, fitted.tensorShare, 0.02 * given.tensorShare);
  EXPECT_NEAR(given.epilogueClocks, fitted.epilogueClocks, 0.02 * given.epilogueClocks);
  EXPECT_NEAR(given.rowScaleClocks, fitted.rowScaleClocks, 0.02 * given.rowScaleClocks);
  EXPECT_NEAR(given.scaledPartInstructions, fitted.scaledPartInstructions,
              0.02 * given.scaledPartInstructions);
}

TEST(KernelTimeTest, ClocksAreThoseOfTheBusiestMultiprocessor) {
  // 133 tiles of 128 x 256 on 132 multiprocessors: one has two, of 4 stages of 128 bytes each.
  MatmulWork work{1, 128 * 133, 256, 512, 1, true, 128, 256, 128};
  TimeCalibration exact;
  exact.tensorShare = 1;
  exact.epilogueClocks = 0.5;
  MatmulClocks clocks = countMatmulClocks(getH100(), work, exact);
  EXPECT_EQ(clocks.tensor, 2 * 4 * 128 * 256 * 128 / 4096);
  EXPECT_EQ(clocks.l2, std::llround(2 * 4 * (128 + 256) * 128 / 46.6));
  EXPECT_EQ(clocks.issue, 0);
  EXPECT_EQ(clocks.latency, 2 * 128 * 256 / 2);
  EXPECT_EQ(clocks.floor, std::llround(133.0 * 4 * 128 * 256 * 128 / 4096 / 132));
  work.part = 128; // an addition of each element of a tile for each of 4 parts
  EXPECT_EQ(countMatmulClocks(getH100(), work, exact).issue, 2 * 4 * 128 * 256 / 128);
}

TEST(KernelTimeTest, AKernelIsBoundByItsLongestTerm) {
  KernelTime time;
  time.memory = 3;
  time.l2 = 2;
  time.tensor = 2;
  time.issue = 0.5;
  EXPECT_EQ(time.getTotal(), 3);
  EXPECT_EQ(time.getBound(), "memory");
  time.issue = 1.5; // behind the tensor cores
  EXPECT_EQ(time.getTotal(), 3.5);
  EXPECT_EQ(time.getBound(), "tensor");
  time.matmulFloor = 1.75;
  EXPECT_EQ(time.getBound(), "issue");
  EXPECT_EQ(time.getLosses().issue, 1.5);
  EXPECT_EQ(time.getLosses().tensor, 0.25);
  time.latency = 4;
  EXPECT_EQ(time.getTotal(), 7.5);
  EXPECT_EQ(time.getBound(), "latency");
  EXPECT_FALSE(predictKernel(getH100(), "casts", {std::nullopt, 4, std::nullopt}));
}

} // namespace
