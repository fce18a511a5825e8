// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looking at the device, at NCCL and at the other ranks, a few hundred times per second.

#include "Watch.h"
#include "../../core/Status.h"
#include "../Missing.h"

#include <algorithm>
#include <cstring>

using namespace fp8rt;
using namespace fp8rt::collectives;
using namespace fp8rt::collectives::nccl;
using std::chrono::steady_clock;

/// Between two looks.
static constexpr std::chrono::milliseconds kNap(4);

Watch::Watch(Channel &channel, NcclGroups &groups, const Kernels &kernels)
    : channel(channel), groups(groups), kernels(kernels), notice(std::min(0.1, channel.deadline() / 4)),
      lastLook(steady_clock::now()), answered(channel.size()) {
  thread = std::thread([this] { work(); });
}

/// Ranks that wait for this one learn how far it has come.
Watch::~Watch() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  thread.join();
  Marks marks = kernels.marks();
  if (marks.arrived)
    announce(marks, /*isQuestion=*/false);
}

uint64_t Watch::numberOf(const Collective &collective, bool &isNew) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = std::find_if(knowns.begin(), knowns.end(), [&](const Known &known) {
    return !std::memcmp(&known.description, &collective.description, sizeof(Description));
  });
  isNew = found == knowns.end();
  if (!isNew)
    return static_cast<uint64_t>(found - knowns.begin());
  knowns.push_back({collective.description, collective.members});
  return knowns.size() - 1;
}

void Watch::check() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failure.empty())
    fail(FP8RT_RANKS, failure);
}

void Watch::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, kNap, [&] { return isEnding; })) {
    lock.unlock();
    std::string reason = look();
    if (!reason.empty())
      stop(reason);
    lock.lock();
    if (!reason.empty())
      return;
  }
}

/// The first reason of all ranks counts.
void Watch::takeFailure() {
  std::string first = channel.failure();
  std::lock_guard<std::mutex> lock(mutex);
  failure = first;
}

void Watch::stop(const std::string &reason) {
  channel.tellFailure(reason);
  takeFailure();
  groups.abort();
}

/// Returns why the collectives cannot go on; empty if they do.
std::string Watch::look() {
  std::string told = channel.failure();
  if (!told.empty())
    return told;
  std::string error = groups.error();
  if (!error.empty())
    return "rank " + std::to_string(channel.rank()) + " failed: NCCL: " + error;
  answer();
  return lookAtDevice();
}

Watch::Known Watch::knownOf(const Marks &marks) {
  std::lock_guard<std::mutex> lock(mutex);
  return knowns[marks.at];
}

void Watch::announce(const Marks &marks, bool isQuestion) {
  asks += isQuestion;
  channel.announce({marks.arrived, knownOf(marks).description, asks});
}

/// Says where this rank is, if another has asked.
void Watch::answer() {
  bool isAsked = false;
  for (uint32_t other = 0; other < channel.size(); ++other) {
    uint64_t count = other == channel.rank() ? 0 : channel.standing(other).asks;
    isAsked |= count != answered[other];
    answered[other] = count;
  }
  Marks marks = kernels.marks();
  if (isAsked && marks.arrived)
    announce(marks, /*isQuestion=*/false);
}

std::string Watch::lookAtDevice() {
  auto now = steady_clock::now();
  auto nap = now - std::exchange(lastLook, now);
  if (std::chrono::duration<double>(nap).count() > notice)
    since += nap; // this process was stopped, and has heard nothing
  Marks marks = kernels.marks();
  if (marks.arrived <= marks.completed)
    return "";
  if (marks.arrived != waitingFor) {
    waitingFor = marks.arrived;
    since = now;
    asked = 0;
  }
  double waited = std::chrono::duration<double>(now - since).count();
  if ((asked == 0 && waited > notice) || (asked == 1 && waited > channel.deadline() - notice)) {
    ++asked;
    announce(marks, /*isQuestion=*/true);
  }
  return waited > 2 * notice ? lookAtRanks(knownOf(marks), marks.arrived, waited) : "";
}

/// Returns why one of the ranks is waited for in vain; empty if it may still come.
std::string Watch::lookAtRanks(const Known &known, uint64_t number, double waited) {
  std::string what = known.description.text();
  std::vector<uint32_t> missing;
  bool isLate = waited > channel.deadline();
  for (uint32_t other : known.members) {
    if (other == channel.rank())
      continue;
    Absence absence = channel.absence(other);
    Standing standing = channel.standing(other); // looked at last: it is announced before the end
    bool hasArrived = standing.number >= number;
    if (standing.number == number && !standing.at.isSameAs(known.description))
      return describeDifference(channel.rank(), known.description, other, standing.at);
    if (absence != Absence::None && !hasArrived)
      return describeRanks({other}) + " did not arrive at " + what + ": " + describe(absence);
    if (absence == Absence::Gone && isLate)
      return describeRanks({other}) + " did not complete " + what + ": " + describe(absence);
    if (!hasArrived)
      missing.push_back(other);
  }
  if (!isLate)
    return "";
  std::string within = " within " + describeSeconds(channel.deadline());
  if (!missing.empty())
    return describeRanks(missing) + " did not arrive at " + what + within;
  return what + " was not complete" + within + ", though all of its ranks had arrived";
}
