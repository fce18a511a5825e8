// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mistakes in PTX.

#include "Mutation.h"

#include <algorithm>
#include <cctype>
#include <sstream>

using namespace fp8emu_test;

namespace {

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '$';
}

/// A piece of a line: [begin, end).
struct Token {
  size_t begin, end;
  std::string in(const std::string &line) const { return line.substr(begin, end - begin); }
};

std::vector<Token> tokens(const std::string &line, size_t from = 0) {
  std::vector<Token> out;
  for (size_t i = from; i < line.size();) {
    size_t end = i + 1;
    if (isWord(line[i]))
      while (end < line.size() && isWord(line[end]))
        ++end;
    if (isWord(line[i]))
      out.push_back({i, end});
    i = end;
  }
  return out;
}

bool isRegister(const std::string &token) { return token.size() > 1 && token[0] == '%'; }
bool isNumber(const std::string &token) { return std::isdigit(static_cast<unsigned char>(token[0])); }

/// As in "%rd" of %rd17.
std::string classOf(const std::string &name) { return name.substr(0, name.find_first_of("0123456789")); }

/// Where the opcode begins; npos where the line is no instruction.
size_t opcodeAt(const std::string &line) {
  size_t at = line.find_first_not_of(" \t");
  if (at != std::string::npos && line[at] == '@')
    at = line.find_first_not_of(" \t", std::min(line.find_first_of(" \t", at), line.size()));
  if (at == std::string::npos || !std::islower(static_cast<unsigned char>(line[at])) ||
      line.find(';') == std::string::npos)
    return std::string::npos;
  return at;
}

/// Opcode and modifiers.
Token mnemonic(const std::string &line) {
  size_t at = opcodeAt(line);
  return {at, std::min(line.find_first_of(" \t;", at), line.size())};
}

std::string opcode(const std::string &mnemonic) { return mnemonic.substr(0, mnemonic.find('.')); }

} // namespace

Mutation::Mutation(const std::vector<std::string> &texts) {
  for (const std::string &text : texts)
    split(text);
  for (const Lines &lines : modules)
    for (const std::string &line : lines) {
      if (opcodeAt(line) == std::string::npos)
        continue;
      instructions.push_back(line);
      std::string name = mnemonic(line).in(line);
      auto &known = modifiers[opcode(name)];
      if (std::find(known.begin(), known.end(), name) == known.end())
        known.push_back(name);
    }
}

/// A module for each kernel: what is outside of kernels, and it.
void Mutation::split(const std::string &text) {
  Lines common;
  std::vector<Lines> kernels;
  std::istringstream in(text);
  bool inKernel = false, inBody = false;
  int64_t depth = 0;
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    if (line.find(".entry ") != std::string::npos) {
      kernels.emplace_back();
      inKernel = true;
      inBody = false;
    }
    (inKernel ? kernels.back() : common).push_back(line);
    const auto opened = std::count(line.begin(), line.end(), '{');
    depth += opened - std::count(line.begin(), line.end(), '}');
    inBody |= opened > 0;
    inKernel &= !inBody || depth > 0;
  }
  for (const Lines &kernel : kernels) {
    modules.push_back(common);
    modules.back().insert(modules.back().end(), kernel.begin(), kernel.end());
  }
}

std::string Mutation::operator()(Chance &chance) const {
  Lines lines = chance.pick(modules);
  for (uint64_t changes = chance.below(7); changes > 0; --changes)
    change(lines, chance);
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

void Mutation::change(Lines &lines, Chance &chance) const {
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i)
    if (opcodeAt(lines[i]) != std::string::npos)
      places.push_back(i);
  if (places.empty())
    return;
  const size_t at = chance.pick(places);
  switch (chance.below(8)) {
  case 0:
    lines.erase(lines.begin() + int64_t(at));
    break;
  case 1:
    lines.insert(lines.begin() + int64_t(chance.pick(places)), lines[at]);
    break;
  case 2:
    std::swap(lines[at], lines[chance.pick(places)]);
    break;
  case 3:
    lines.insert(lines.begin() + int64_t(at), fitted(chance.pick(instructions), lines, chance));
    break;
  case 4:
  case 5:
    changeModifiers(lines[at], chance);
    break;
  default:
    // Also of a declaration.
    changeOperand(lines, chance.oneIn(12) ? lines[chance.below(lines.size())] : lines[at], chance);
  }
}

void Mutation::changeOperand(Lines &lines, std::string &line, Chance &chance) const {
  static const std::vector<std::string> kNumbers = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "4",
                                                    "7",
                                                    "8",
                                                    "15",
                                                    "16",
                                                    "17",
                                                    "31",
                                                    "32",
                                                    "33",
                                                    "64",
                                                    "127",
                                                    "128",
                                                    "255",
                                                    "256",
                                                    "1000",
                                                    "1024",
                                                    "4096",
                                                    "65535",
                                                    "65536",
                                                    "0x7FFFFFFF",
                                                    "0x80000000",
                                                    "4294967295",
                                                    "0x100000000",
                                                    "0x7FFFFFFFFFFFFFFF",
                                                    "0x8000000000000000",
                                                    "0f3F800000",
                                                    "0f7FC00000",
                                                    "0d3FF0000000000000"};
  const size_t at = opcodeAt(line);
  std::vector<Token> all = tokens(line, at == std::string::npos ? 0 : mnemonic(line).end);
  if (at != std::string::npos)
    for (const Token &token : tokens(line.substr(0, at)))
      all.push_back(token);
  if (all.empty())
    return;
  const Token token = chance.pick(all);
  const std::string old = token.in(line);
  if (isNumber(old) || chance.oneIn(8)) {
    line.replace(token.begin, old.size(), (chance.oneIn(8) ? "-" : "") + chance.pick(kNumbers));
    return;
  }
  // Another operand of the module, mostly of the same kind.
  std::vector<std::string> others;
  for (int tries = 0; tries < 200 && others.size() < 8; ++tries) {
    const std::string &from = chance.pick(lines);
    for (const Token &other : tokens(from)) {
      const std::string name = other.in(from);
      if (isRegister(old) ? isRegister(name) && (classOf(name) == classOf(old) || tries > 150)
                          : !isRegister(name) && !isNumber(name))
        others.push_back(name);
    }
  }
  if (!others.empty())
    line.replace(token.begin, old.size(), chance.pick(others));
}

void Mutation::changeModifiers(std::string &line, Chance &chance) const {
  const Token place = mnemonic(line);
  std::string name = place.in(line);
  const auto &known = modifiers.at(opcode(name));
  const std::string &other = chance.pick(known);
  size_t dot = name.find('.');
  std::vector<size_t> dots;
  for (; dot != std::string::npos; dot = name.find('.', dot + 1))
    dots.push_back(dot);
  if (chance.oneIn(2) || dots.empty()) {
    name = other;
  } else {
    const size_t at = chance.pick(dots), end = std::min(name.find('.', at + 1), name.size());
    const size_t from = other.find('.', chance.below(other.size()));
    const std::string piece =
        from == std::string::npos ? "" : other.substr(from, other.find('.', from + 1) - from);
    chance.oneIn(3) ? name.insert(at, piece) : name.replace(at, end - at, piece);
  }
  line.replace(place.begin, place.end - place.begin, name);
}

/// An instruction of another module, with registers and names of this one.
std::string Mutation::fitted(std::string line, const Lines &lines, Chance &chance) const {
  std::map<std::string, std::vector<std::string>> registers;
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    const std::string &from = chance.pick(lines);
    const bool isInstruction = opcodeAt(from) != std::string::npos;
    for (const Token &token : tokens(from, isInstruction ? mnemonic(from).end : 0)) {
      const std::string name = token.in(from);
      if (isRegister(name) && isInstruction)
        registers[classOf(name)].push_back(name);
      else if (isInstruction && !isNumber(name))
        names.push_back(name);
    }
  }
  std::vector<Token> all = tokens(line, mnemonic(line).end);
  for (const Token &token : tokens(line.substr(0, opcodeAt(line))))
    all.push_back(token);
  std::sort(all.begin(), all.end(), [](const Token &a, const Token &b) { return a.begin > b.begin; });
  for (const Token &token : all) {
    const std::string old = token.in(line);
    auto same = registers.find(classOf(old));
    if (same != registers.end())
      line.replace(token.begin, old.size(), chance.pick(same->second));
    else if (!isRegister(old) && !isNumber(old) && !names.empty())
      line.replace(token.begin, old.size(), chance.pick(names));
  }
  return line;
}
