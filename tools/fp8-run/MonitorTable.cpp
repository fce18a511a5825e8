// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Drawing the table of --monitor.

#include "MonitorTable.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace fp8run;

MonitorTable::MonitorTable(llvm::raw_ostream &os, unsigned rows, unsigned columns)
    : os(os), height(rows), width(columns), sparks(columns < 110 ? 8 : 16),
      nameWidth(columns < 110 ? 18 : 28) {}

std::string fp8run::sparkline(const std::deque<double> &values) {
  static constexpr const char *bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double low = INFINITY, high = -INFINITY;
  for (double value : values)
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  std::string text;
  for (double value : values) {
    double part = high > low ? (value - low) / (high - low) : 0;
    text += std::isnan(value) ? " " : bars[std::clamp(static_cast<int>(part * 7.99), 0, 7)];
  }
  return text;
}

std::vector<size_t> fp8run::orderByNeed(const std::vector<Reading> &readings) {
  std::vector<size_t> order(readings.size());
  std::iota(order.begin(), order.end(), 0);
  // The error of zeros is no number, and neither is the part of no elements.
  auto known = [](std::optional<double> value) { return value && std::isfinite(*value) ? *value : 0; };
  auto need = [&](size_t i) {
    const Reading &reading = readings[i];
    bool isInfinite = reading.amax && !std::isfinite(*reading.amax);
    bool holdsNaN = reading.mse && std::isnan(*reading.mse) && reading.amax != 0.0;
    return std::make_tuple(!isInfinite && !holdsNaN, -known(reading.overflow), -known(reading.underflow),
                           -known(reading.mse), i);
  };
  llvm::sort(order, [&](size_t a, size_t b) { return need(a) < need(b); });
  return order;
}

/// Keeps the last values, in powers of two for amaxes.
void MonitorTable::remember(const std::vector<Reading> &readings) {
  amaxes.resize(readings.size());
  underflows.resize(readings.size());
  auto add = [this](std::deque<double> &values, std::optional<double> value) {
    values.push_back(value.value_or(NAN));
    if (values.size() > sparks)
      values.pop_front();
  };
  for (auto [i, reading] : llvm::enumerate(readings)) {
    bool hasAmax = reading.amax && *reading.amax > 0;
    add(amaxes[i], hasAmax ? std::optional(std::log2(*reading.amax)) : std::nullopt);
    add(underflows[i], reading.underflow);
  }
}

/// Returns `text` with spaces up to `width` characters of the terminal.
static std::string padded(std::string text, size_t width) {
  size_t characters = llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  return text.append(width > characters ? width - characters : 0, ' ');
}

static std::string number(std::optional<double> value) {
  if (!value)
    return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", *value);
  return text;
}

static std::string percent(std::optional<double> value) {
  if (!value)
    return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f%%", 100 * *value);
  return text;
}

std::string MonitorTable::describe(const Reading &reading, size_t index) const {
  std::string name = reading.sites.empty() ? "" : reading.sites.front();
  if (reading.sites.size() > 1)
    name += "+" + std::to_string(reading.sites.size() - 1);
  name += " " + reading.tensor;
  if (name.size() > nameWidth)
    name = "…" + name.substr(name.size() - nameWidth + 1);
  return padded(name, nameWidth) + " " + padded(number(reading.amax), 9) +
         padded(sparkline(amaxes[index]), sparks) + " " + padded(number(reading.scale), 9) +
         padded(percent(reading.underflow), 8) + padded(sparkline(underflows[index]), sparks) + " " +
         padded(percent(reading.overflow), 8) + " " + number(reading.mse);
}

/// Prints one line, cut at the terminal's width.
void MonitorTable::line(std::string text) {
  unsigned characters = 0;
  size_t end = 0;
  for (; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && ++characters > width)
      break;
  os << text.substr(0, end) << "\x1b[K\n";
  ++drawn;
}

void MonitorTable::draw(uint64_t step, llvm::StringRef printed, const std::vector<Reading> &readings) {
  remember(readings);
  if (drawn)
    os << "\x1b[" << drawn << "A";
  drawn = 0;
  line("step " + std::to_string(step) + (printed.empty() ? "" : "  result " + printed.str()));
  line(padded("tensor", nameWidth) + " " + padded("amax", 9 + sparks) + " " + padded("scale", 9) +
       padded("underflow", 8 + sparks) + " overflow mse");
  size_t room = height > 4 ? height - 4 : 1;
  std::vector<size_t> order = orderByNeed(readings);
  for (size_t i : llvm::ArrayRef(order).take_front(room))
    line(describe(readings[i], i));
  if (order.size() > room)
    line("… and " + std::to_string(order.size() - room) + " more");
  os << "\x1b[J";
  os.flush();
}
