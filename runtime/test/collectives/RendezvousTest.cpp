// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that find each other through TCP, and those that do not.

#include "RankSupport.h"

#include <arpa/inet.h>
#include <chrono>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

/// How one process was started.
struct Started {
  uint32_t rank, size;
  int afterMilliseconds = 0;
};

/// Lets each come to the same address; returns the errors, or the ranks that were gathered.
std::vector<std::string> meetAs(const std::vector<Started> &ranks, double deadline,
                                const std::string &address = freeAddress()) {
  std::vector<std::string> texts(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      std::this_thread::sleep_for(std::chrono::milliseconds(ranks[i].afterMilliseconds));
      fp8rt_communicator *created = nullptr;
      if (fp8rt_communicator_create_tcp(address.c_str(), ranks[i].rank, ranks[i].size, deadline, &created)) {
        texts[i] = fp8rt_last_error();
        return;
      }
      Communicator communicator(created);
      std::string all(ranks[i].size, '?');
      char own = static_cast<char>('0' + communicator->rank);
      texts[i] =
          fp8rt_communicator_gather(communicator.get(), &own, 1, all.data()) ? fp8rt_last_error() : all;
    });
  for (std::thread &thread : threads)
    thread.join();
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Rendezvous, RanksMeetInAnyOrder) {
  EXPECT_EQ(meetAs({{0, 1}}, 10), Texts{"0"});
  EXPECT_EQ(meetAs({{3, 4}, {1, 4, 100}, {0, 4, 300}, {2, 4, 50}}, 10), Texts(4, "0123"));
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  std::string address = freeAddress();
  for (const std::string &text : meetAs({{0, 4}, {2, 4}}, 0.5, address))
    EXPECT_EQ(text, "ranks 1 and 3 did not come to " + address + " within 0.5 s");
  EXPECT_EQ(meetAs({{1, 2}}, 0.3, address), Texts{"rank 0 did not listen at " + address + " within 0.3 s"});
}

TEST(Rendezvous, RanksThatWereStartedDifferentlyAreNamed) {
  EXPECT_EQ(meetAs({{0, 2}, {1, 3, 100}}, 5),
            Texts(2, "rank 1 was started as one of 3 ranks, rank 0 as one of 2"));
  for (const std::string &text : meetAs({{0, 3}, {1, 3, 100}, {1, 3, 100}}, 5))
    EXPECT_EQ(text, "two processes were started as rank 1");
}

TEST(Rendezvous, WhoIsNoRankIsNotListenedTo) {
  std::string address = freeAddress();
  std::thread stranger([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    int file = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(file, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
    EXPECT_EQ(send(file, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36, MSG_NOSIGNAL), 36);
    close(file);
  });
  EXPECT_EQ(meetAs({{0, 2}, {1, 2, 400}}, 10, address), Texts(2, "01"));
  stranger.join();
}

TEST(Rendezvous, WrongAddresses) {
  fp8rt_communicator *created = nullptr;
  for (const char *address : {"", "host", "host:", ":1", "host:0", "host:65536", "host:x", "a:1:"})
    EXPECT_FP8RT_ERROR(fp8rt_communicator_create_tcp(address, 0, 1, 1, &created), FP8RT_INVALID_ARGUMENT,
                       "expected HOST:PORT");
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_tcp("no-such-host.invalid:1234", 0, 1, 1, &created),
                     FP8RT_NOT_FOUND, "'no-such-host.invalid:1234': ");
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_tcp("127.0.0.1:1234", 2, 2, 1, &created),
                     FP8RT_INVALID_ARGUMENT, "rank 2 of 2 ranks");
}

} // namespace
