// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel launch: its sizes and parameters, the grid, the threads of the host that
// run it.

#ifndef FP8EMU_EXEC_LAUNCH_H
#define FP8EMU_EXEC_LAUNCH_H

#include "Fault.h"
#include "Profile.h"
#include "Program.h"
#include "num/DotProduct.h"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fp8emu {

class DeviceMemory;
namespace check {
struct LaunchRaces;
}

/// How kernels are run: set once for a device, from its environment or by a caller.
struct Settings {
  /// Look for mistakes besides computing values.
  bool checks = true;
  /// How tensor cores sum: the default is as those of the module's target do.
  num::SumModel sums = num::SumModel::Truncating;
  /// Of them, look for data races (check/).
  bool races = true;
  /// Decides the order of warps, blocks and asynchronous completions.
  uint64_t seed = 0;
  /// Host threads that run blocks; 0 for one per processor.
  unsigned threads = 0;
  /// Of the chip that is stood for: its number in %nsmid, and how many blocks are
  /// resident at a time.
  unsigned multiprocessors = 132;
  /// Instructions that the warps of a launch may run, all together and about, before it
  /// stops with FaultKind::Timeout; 0 for any number.
  uint64_t instructionLimit = 0;
  /// Bytes of call stack each thread has beyond what its kernel declares. Frames of
  /// PTX are larger than those of machine code, which keeps more in registers: what
  /// CU_LIMIT_STACK_SIZE says is taken four times.
  uint32_t stackBytes = 1024;
  /// Where printf of kernels goes.
  std::function<void(const std::string &)> print;
};

/// The model of that name: hardware, exact, korder.
std::optional<num::SumModel> findSumModel(const std::string &name);

struct LaunchConfig {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  uint32_t dynamicShared = 0;
  bool cooperative = false;
  /// The kernel's parameters, laid out as the kernel declares them.
  std::vector<uint8_t> parameters;
};

class Launch {
public:
  Launch(const Program &program, const FunctionCode &kernel, LaunchConfig config, DeviceMemory &memory,
         const Settings &settings, uint64_t number);

  /// Runs all of the grid. The first fault by which it stopped; none where it
  /// ended well.
  std::optional<Fault> run(Profile *profile = nullptr);

  const Program &program() const { return code; }
  const FunctionCode &kernel() const { return entry; }
  const LaunchConfig &config() const { return sizes; }
  DeviceMemory &memory() const { return device; }
  const Settings &settings() const { return options; }
  uint64_t number() const { return launchNumber; }
  /// Where the kernel's parameters lie in device memory.
  uint64_t parameterAddress() const { return parameters; }
  /// Memory for the barrier of a cooperative grid; 0 for other launches.
  uint64_t gridWorkspace() const { return workspace; }
  /// What was accessed by whom; null where that is not checked.
  check::LaunchRaces *races() const { return accesses.get(); }
  uint32_t localBytesPerThread() const { return localBytes; }
  std::array<uint32_t, 3> clusterGrid() const;

  /// Counts instructions that warps have run: a fault where they are too many.
  void count(uint64_t instructions);

  /// Takes a cluster that has not begun out of the launch: the index of its first
  /// block; none where all have begun (clusterlaunchcontrol).
  std::optional<std::array<uint32_t, 3>> cancelCluster();

  /// Kernel, PTX line, source line and instruction of a pc.
  void locate(Fault &fault, uint32_t pc) const;

private:
  void work(unsigned resident);
  bool allocate();
  void finish(const Profile &counts);
  uint64_t clusters() const;
  void fail(const Fault &fault);

  const Program &code;
  const FunctionCode &entry;
  LaunchConfig sizes;
  DeviceMemory &device;
  const Settings &options;
  uint64_t launchNumber;
  uint64_t parameters = 0, workspace = 0;
  uint32_t localBytes = 0;
  Profile *total = nullptr;
  std::mutex mutex;
  std::atomic<uint64_t> nextCluster{0};
  std::atomic<uint64_t> executed{0};
  std::atomic<bool> stopped{false};
  std::optional<Fault> firstFault;
  std::shared_ptr<check::LaunchRaces> accesses;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_LAUNCH_H
