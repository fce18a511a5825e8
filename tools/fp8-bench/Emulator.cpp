// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the thread-instructions per second of the emulator. The kernels are written by hand in
// the form that compilers emit for elementwise code.

#include "Bench.h"

#include "fp8emu/Machine.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

using namespace fp8emu;

namespace {

constexpr uint32_t kElements = 1 << 20;

const char *const kHead = R"(
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py, .param .f32 pa, .param .u32 pn) {
  .reg .pred %p<2>; .reg .b16 %h<4>; .reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .f32 %f<12>;
  ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.f32 %f1, [pa]; ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra $end;
  cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
)";

/// y = max(a x + y, 0)
const char *const kElementwise = R"(
  mul.wide.s32 %rd5, %r5, 4; add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f2, [%rd6]; ld.global.f32 %f3, [%rd7];
  fma.rn.f32 %f4, %f1, %f2, %f3; max.f32 %f5, %f4, 0f00000000;
  st.global.f32 [%rd7], %f5;
$end:
  ret;
}
)";

/// Casts four f32 to E4M3 with a scale.
const char *const kCast = R"(
  mul.wide.s32 %rd5, %r5, 16; add.s64 %rd6, %rd3, %rd5; mul.wide.s32 %rd8, %r5, 4; add.s64 %rd7, %rd4, %rd8;
  ld.global.v4.f32 {%f2, %f3, %f4, %f5}, [%rd6];
  mul.f32 %f6, %f2, %f1; mul.f32 %f7, %f3, %f1; mul.f32 %f8, %f4, %f1; mul.f32 %f9, %f5, %f1;
  cvt.rn.satfinite.e4m3x2.f32 %h1, %f7, %f6; cvt.rn.satfinite.e4m3x2.f32 %h2, %f9, %f8;
  mov.b32 %r6, {%h1, %h2};
  st.global.u32 [%rd7], %r6;
$end:
  ret;
}
)";

/// A kernel with its buffers.
class Bench {
public:
  Bench(const std::string &body, uint32_t threads, bool checks, unsigned hostThreads)
      : module(machine.load(Source(kHead + body))) {
    settings.checks = checks;
    settings.threads = hostThreads;
    config.block = {256, 1, 1};
    config.grid = {threads / 256, 1, 1};
    append(buffer());
    append(buffer());
    append(1.5f);
    append(threads);
  }

  uint64_t threadInstructions() {
    ProfileReport report;
    launch(&report);
    return report.kernels().at("k").total.threadInstructions;
  }

  /// Returns the processor time of one launch in seconds.
  double measure(double seconds) {
    unsigned launches = 0;
    double begin = fp8bench::processorSeconds(), end = begin;
    for (; end - begin < seconds; end = fp8bench::processorSeconds(), ++launches)
      launch(nullptr);
    return (end - begin) / launches;
  }

private:
  uint64_t buffer() {
    uint64_t bytes = kElements * 4, address = machine.allocate(bytes, "a buffer").value();
    machine.markWritten(address, bytes);
    return address;
  }

  template <class T>
  void append(T value) {
    size_t place = config.parameters.size();
    config.parameters.resize(place + sizeof value);
    std::memcpy(config.parameters.data() + place, &value, sizeof value);
  }

  void launch(ProfileReport *report) {
    if (auto fault = machine.launch(*module->find("k"), config, settings, report))
      std::fprintf(stderr, "fp8-bench: %s\n", fault->text().c_str());
  }

  Machine machine;
  Settings settings;
  LaunchConfig config;
  std::unique_ptr<Module> module;
};

void row(const char *name, const std::string &body, uint32_t threads, unsigned hostThreads, double seconds) {
  std::printf("%-28s", name);
  for (bool checks : {false, true}) {
    Bench bench(body, threads, checks, hostThreads);
    uint64_t instructions = bench.threadInstructions();
    std::printf("%12.1f", double(instructions) / bench.measure(seconds) * 1e-6);
  }
  std::printf("\n");
}

} // namespace

double fp8bench::processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

void fp8bench::benchEmulator(unsigned threads, double seconds) {
  if (!threads)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::printf("Millions of thread-instructions per second and core, %u host threads\n%-28s%12s%12s\n",
              threads, "", "no checks", "checks");
  row("y = max(a x + y, 0), f32", kElementwise, kElements, threads, seconds);
  row("cast to E4M3", kCast, kElements / 4, threads, seconds);
}
