// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The processes of --ranks: started together, and ended together if one of them fails.

#include "Ranks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fp8run;
using Clock = std::chrono::steady_clock;

/// Divides this machine's processors among the ranks, for OpenMP, unless the user has. Processors to which
/// mpirun has bound this process are its own.
static void divideThreads(uint32_t ranks) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set))
    return;
  auto processors = static_cast<uint32_t>(CPU_COUNT(&set));
  bool isBound = processors < static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  uint32_t threads = std::max(1u, isBound ? processors : processors / ranks);
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), /*overwrite=*/0);
}

llvm::Expected<Ranks> Ranks::join(int file, uint32_t number, double deadline) {
  Ranks ranks;
  fp8rt_communicator *created = nullptr;
  if (llvm::Error error = check(fp8rt_communicator_create_local(file, number, deadline, &created)))
    return error;
  ranks.communicator.reset(created);
  ranks.onMachine = number;
  return ranks;
}

/// Returns a number in the environment; none if there is no such variable.
static std::optional<uint32_t> numberIn(const char *variable) {
  const char *text = std::getenv(variable);
  uint32_t number = 0;
  if (!text || llvm::StringRef(text).getAsInteger(10, number))
    return std::nullopt;
  return number;
}

llvm::Expected<Ranks> Ranks::joinTcp(const std::string &address, double deadline) {
  std::optional<uint32_t> number = numberIn("FP8RT_RANK"), size = numberIn("FP8RT_SIZE");
  if (!number || !size)
    return failure("--rendezvous=" + address +
                   ": FP8RT_RANK and FP8RT_SIZE in the environment must say which "
                   "rank this is, from 0, and how many there are");
  Ranks ranks;
  fp8rt_communicator *created = nullptr;
  if (llvm::Error error =
          check(fp8rt_communicator_create_tcp(address.c_str(), *number, *size, deadline, &created)))
    return error;
  ranks.communicator.reset(created);
  ranks.onMachine = numberIn("FP8RT_LOCAL_RANK");
  return ranks;
}

llvm::Error Ranks::useNccl() {
  fp8rt_communicator *created = nullptr;
  if (llvm::Error error = check(fp8rt_communicator_create_nccl(communicator.get(), &created)))
    return error;
  static_cast<void>(communicator.release()); // it belongs to the new one
  communicator.reset(created);
  return llvm::Error::success();
}

llvm::Expected<Ranks> Ranks::joinMpi(double deadline) {
  std::optional<uint32_t> sharing = numberIn("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (sharing && *sharing)
    divideThreads(*sharing);
  Ranks ranks;
  fp8rt_communicator *created = nullptr;
  if (llvm::Error error = check(fp8rt_communicator_create_mpi(deadline, &created)))
    return error;
  ranks.communicator.reset(created);
  ranks.onMachine = numberIn("OMPI_COMM_WORLD_LOCAL_RANK");
  return ranks;
}

void Ranks::fillIn(Options &options) const {
  auto replace = [&](std::string &path) {
    bool isOwn = false;
    for (size_t at; (at = path.find("{rank}")) != std::string::npos; isOwn = true)
      path.replace(at, 6, std::to_string(number()));
    return isOwn;
  };
  options.inputsAreOwn = replace(options.inputs);
  options.warns = replace(options.state) || isFirst();
  options.writesState = replace(options.saveState) || isFirst();
  options.writesOutputs = replace(options.outputs) || isFirst();
  if (options.comm == "nccl" && options.device == "cuda" && onMachine) // NCCL takes one rank for each GPU
    options.device += ":" + std::to_string(*onMachine);
  bool profileIsOwn = replace(options.profileFile), monitorIsOwn = replace(options.monitorFile);
  if (isFirst())
    return;
  options.print.clear();
  options.timing = false;
  options.profile &= profileIsOwn;
  options.monitor &= monitorIsOwn;
}

void Ranks::tell(llvm::StringRef error) const {
  if (communicator)
    fp8rt_communicator_fail(communicator.get(), error.str().c_str());
}

namespace {

bool isStopped(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t name = text.rfind(") ");
  return name != std::string::npos && text.size() > name + 2 && text[name + 2] == 'T';
}

/// The parent's view of its processes.
class Processes {
public:
  Processes(int file, double deadline) : file(file), deadline(deadline) {
    sigemptyset(&awaited);
    for (int signal : {SIGCHLD, SIGHUP, SIGINT, SIGTERM})
      sigaddset(&awaited, signal);
    pthread_sigmask(SIG_BLOCK, &awaited, &maskBefore); // they stay pending until waitForSignal takes them
  }

  bool start(uint32_t count, const std::function<int(int, uint32_t)> &body);
  int waitForAll();

private:
  int waitForSignal() const;
  void noteEnd(size_t rank, int status);
  void endLate();
  void endAllAndRaise(int signal);

  struct Process {
    pid_t number;
    bool hasEnded;
  };
  int file;
  double deadline;
  sigset_t awaited, maskBefore;
  std::vector<Process> processes;
  bool hasFailed = false;
  Clock::time_point failedAt;
};

bool Processes::start(uint32_t count, const std::function<int(int, uint32_t)> &body) {
  pid_t parent = getpid();
  std::signal(SIGCHLD, SIG_DFL); // whoever ignores it, as some launchers do, is not told how a process ended
  llvm::outs().flush();
  for (uint32_t rank = 0; rank < count; ++rank) {
    pid_t process = fork();
    if (process == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); // no rank outlives its parent
      if (getppid() != parent)
        _exit(1);
      pthread_sigmask(SIG_SETMASK, &maskBefore, nullptr);
      divideThreads(count);
      std::exit(body(file, rank));
    }
    if (process < 0) {
      llvm::errs() << "fp8-run: error: cannot start rank " << rank << ": " << std::strerror(errno) << "\n";
      for (const Process &started : processes)
        kill(started.number, SIGKILL);
      return false;
    }
    processes.push_back({process, false});
  }
  return true;
}

/// Notes how a process has ended, and tells the others if it has not done its work.
void Processes::noteEnd(size_t rank, int status) {
  processes[rank].hasEnded = true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  std::string reason = "rank " + std::to_string(rank);
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    reason += " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    if (!hasFailed)
      llvm::errs() << "fp8-run: error: " << reason << "\n";
  } else {
    reason += " ended with exit code " + std::to_string(WEXITSTATUS(status));
  }
  fp8rt_local_memory_fail(file, reason.c_str());
  if (!hasFailed)
    failedAt = Clock::now();
  hasFailed = true;
}

/// After a failure: ends what is stopped, and what has not noticed the failure after the deadline.
void Processes::endLate() {
  std::chrono::duration<double> since = Clock::now() - failedAt;
  for (const Process &process : processes)
    if (!process.hasEnded && (since.count() > deadline || isStopped(process.number)))
      kill(process.number, SIGKILL);
}

/// Ends the processes and then this one, by a signal that asked it to end: nobody is left to wait for them.
void Processes::endAllAndRaise(int signal) {
  for (const Process &process : processes)
    if (!process.hasEnded) {
      kill(process.number, SIGKILL);
      waitpid(process.number, nullptr, 0);
    }
  std::signal(signal, SIG_DFL);
  raise(signal);
  pthread_sigmask(SIG_SETMASK, &maskBefore, nullptr);
}

/// Returns the next signal, 0 for none; after a failure it waits a moment only.
int Processes::waitForSignal() const {
  timespec moment = {0, 10'000'000};
  int signal = hasFailed ? sigtimedwait(&awaited, nullptr, &moment) : sigwaitinfo(&awaited, nullptr);
  return std::max(signal, 0);
}

int Processes::waitForAll() {
  for (size_t left = processes.size(); left;) {
    if (int signal = waitForSignal(); signal != 0 && signal != SIGCHLD)
      endAllAndRaise(signal);
    for (size_t rank = 0; rank < processes.size(); ++rank)
      if (int status = 0;
          !processes[rank].hasEnded && waitpid(processes[rank].number, &status, WNOHANG) > 0) {
        noteEnd(rank, status);
        --left;
      }
    if (hasFailed)
      endLate();
  }
  return hasFailed ? 1 : 0;
}

} // namespace

int fp8run::runInProcesses(const Options &options, const std::function<int(int, uint32_t)> &body) {
  int file = -1;
  if (llvm::Error error = check(fp8rt_local_memory_create(options.ranks, &file))) {
    llvm::errs() << "fp8-run: error: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  Processes processes(file, options.deadline);
  return processes.start(options.ranks, body) ? processes.waitForAll() : 1;
}
