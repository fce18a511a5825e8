// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks for tests, as threads and as processes.

#include "RankSupport.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

/// The memory of `size` ranks, closed at the end; and where they meet without it.
struct RankMemory {
  explicit RankMemory(uint32_t size) { EXPECT_EQ(fp8rt_local_memory_create(size, &file), FP8RT_OK); }
  RankMemory(const RankMemory &) = delete;
  RankMemory &operator=(const RankMemory &) = delete;
  ~RankMemory() { close(file); }
  int file = -1;
  std::string address = isThroughTcp() ? freeAddress() : "";
};

std::string runRank(const RankMemory &memory, uint32_t rank, uint32_t size, double deadline,
                    const RankBody &body, const Wrap &wrap) {
  fp8rt_communicator *created = nullptr;
  if (isThroughTcp() ? fp8rt_communicator_create_tcp(memory.address.c_str(), rank, size, deadline, &created)
                     : fp8rt_communicator_create_local(memory.file, rank, deadline, &created))
    return fp8rt_last_error();
  Communicator communicator(created);
  if (wrap) {
    if (wrap(created, &created))
      return fp8rt_last_error();
    static_cast<void>(communicator.release()); // it belongs to the other one
    communicator.reset(created);
  }
  return body(*communicator);
}

std::string readAll(int file) {
  std::string text;
  char part[512];
  for (ssize_t size; (size = read(file, part, sizeof(part))) > 0;)
    text.append(part, static_cast<size_t>(size));
  return text;
}

} // namespace

bool fp8rt_test::isThroughTcp() {
  const char *chosen = std::getenv("FP8RT_TEST_RANKS");
  return chosen && std::string(chosen) == "tcp";
}

std::string fp8rt_test::freeAddress() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  int file = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(bind(file, reinterpret_cast<sockaddr *>(&address), size), 0);
  EXPECT_EQ(getsockname(file, reinterpret_cast<sockaddr *>(&address), &size), 0);
  close(file);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

std::vector<std::string> fp8rt_test::runThreads(uint32_t size, const RankBody &body, double deadline,
                                                const Wrap &wrap) {
  RankMemory memory(size);
  std::vector<std::string> texts(size);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] { texts[rank] = runRank(memory, rank, size, deadline, body, wrap); });
  for (std::thread &thread : threads)
    thread.join();
  return texts;
}

std::vector<std::string>
fp8rt_test::runProcesses(uint32_t size, const RankBody &body, double deadline,
                         const std::function<void(const std::vector<pid_t> &)> &onStart, const Wrap &wrap) {
  RankMemory memory(size);
  std::vector<pid_t> processes;
  std::vector<int> results;
  for (uint32_t rank = 0; rank < size; ++rank) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t process = fork();
    if (process == 0) {
      close(ends[0]);
      std::string text = runRank(memory, rank, size, deadline, body, wrap);
      ssize_t written = write(ends[1], text.data(), text.size());
      _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    processes.push_back(process);
    results.push_back(ends[0]);
  }
  if (onStart)
    onStart(processes);
  std::vector<std::string> texts;
  for (uint32_t rank = 0; rank < size; ++rank) {
    texts.push_back(readAll(results[rank]));
    close(results[rank]);
    int status = 0;
    waitpid(processes[rank], &status, 0);
    if (WIFSIGNALED(status))
      texts.back() = "signal " + std::to_string(WTERMSIG(status));
  }
  return texts;
}

static fp8rt_collective toCollective(const Ask &ask, fp8rt_group &group) {
  group = {ask.grid.data(), static_cast<uint32_t>(ask.grid.size()), ask.axes};
  return {ask.kind, ask.reduction, ask.type, ask.root, &group, ask.send, ask.receive, ask.count, ask.name};
}

uint64_t fp8rt_test::begin(fp8rt_communicator &communicator, const Ask &ask, fp8rt_group &group) {
  fp8rt_collective collective = toCollective(ask, group);
  uint64_t ticket = 0;
  EXPECT_EQ(communicator.start(communicator.context, &collective, nullptr, &ticket), 0)
      << communicator.error(communicator.context);
  return ticket;
}

std::string fp8rt_test::perform(fp8rt_communicator &communicator, const Ask &ask) {
  fp8rt_group group;
  fp8rt_collective collective = toCollective(ask, group);
  uint64_t ticket = 0;
  if (communicator.start(communicator.context, &collective, nullptr, &ticket) ||
      communicator.wait(communicator.context, ticket, nullptr))
    return communicator.error(communicator.context);
  return "";
}
