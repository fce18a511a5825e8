// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel launch: the grid, and the threads of the host that run it.

#ifndef FP8EMU_EXEC_LAUNCH_H
#define FP8EMU_EXEC_LAUNCH_H

#include "Observer.h"
#include "Program.h"
#include "profile/Profile.h"

#include "fp8emu/Types.h"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace fp8emu {

class DeviceMemory;

class Launch {
public:
  Launch(const Program &program, const FunctionCode &kernel, LaunchConfig config, DeviceMemory &memory,
         const Settings &settings, uint64_t number, ObserverFactory observe = {});

  /// Runs all of the grid. Returns the first fault that stopped it; nothing where the grid
  /// ended well. Instructions are counted in `profile`, where there is one.
  std::optional<Fault> run(Profile *profile = nullptr);

  const Program &program() const { return code; }
  const FunctionCode &kernel() const { return entry; }
  const LaunchConfig &config() const { return sizes; }
  DeviceMemory &memory() const { return device; }
  const Settings &settings() const { return options; }
  uint64_t number() const { return launchNumber; }
  /// The address of the kernel's parameters in device memory.
  uint64_t parameterAddress() const { return parameters; }
  /// Memory for the barrier of a cooperative grid; 0 for other launches.
  uint64_t gridWorkspace() const { return workspace; }
  /// Is told what happens while the launch runs; null where nothing is observed.
  Observer *observer() const { return watching.get(); }
  uint32_t localBytesPerThread() const { return localBytes; }
  std::array<uint32_t, 3> clusterGrid() const;

  /// Counts instructions that warps have run. Faults where there are more than
  /// Settings::instructionLimit.
  void count(uint64_t instructions);

  /// Takes a cluster that has not begun out of the launch (clusterlaunchcontrol). Returns the
  /// index of its first block; nothing where all clusters have begun.
  std::optional<std::array<uint32_t, 3>> cancelCluster();

  /// Hands a fault after which the kernel can go on to Settings::found; throws it where nobody
  /// is to be told.
  void find(const Fault &fault) const;

  /// Puts kernel, PTX line, source line and instruction of a pc into the fault.
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
  mutable std::mutex mutex;
  std::atomic<uint64_t> nextCluster{0};
  std::atomic<uint64_t> executed{0};
  std::atomic<bool> stopped{false};
  std::optional<Fault> firstFault;
  ObserverFactory observe;
  std::unique_ptr<Observer> watching;
};

} // namespace fp8emu

#endif // FP8EMU_EXEC_LAUNCH_H
