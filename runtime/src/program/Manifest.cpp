// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses the manifest from JSON to structs and checks the type of every field.
// ManifestRules.cpp checks rules between fields.

#include "../core/Status.h"
#include "ManifestRules.h"

#include "fp8rt/call.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace fp8rt;
using nlohmann::json;

namespace {

/// A JSON value in the manifest, and its path for messages.
class Node {
public:
  Node(const json &value, std::string path) : value(value), path(std::move(path)) {}

  [[noreturn]] void reject(const std::string &what) const {
    fail(FP8RT_CORRUPT, "manifest" + path + " " + what);
  }

  /// Returns a field that may be absent or null.
  std::optional<Node> get(const char *key) const {
    if (!value.is_object())
      reject("is not an object");
    auto found = value.find(key);
    if (found == value.end() || found->is_null())
      return std::nullopt;
    return Node(*found, path + "." + key);
  }

  Node at(const char *key) const {
    std::optional<Node> node = get(key);
    if (!node)
      reject(std::string("has no ") + key);
    return *node;
  }

  std::vector<Node> list() const {
    if (!value.is_array())
      reject("is not a list");
    std::vector<Node> nodes;
    for (size_t i = 0; i < value.size(); ++i)
      nodes.emplace_back(value[i], path + "[" + std::to_string(i) + "]");
    return nodes;
  }

  std::string string() const {
    if (!value.is_string())
      reject("is not a string");
    std::string text = value;
    if (text.find('\0') != std::string::npos)
      reject("contains a NUL");
    return text;
  }

  int64_t integer(int64_t low, int64_t high) const {
    bool fits =
        value.is_number_unsigned() ? value.get<uint64_t>() <= uint64_t(INT64_MAX) : value.is_number_integer();
    if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high)
      reject("is " + value.dump() + ", expected an integer from " + std::to_string(low) + " to " +
             std::to_string(high));
    return value;
  }

  Number number() const {
    if (value == "-0.0") // as a number it would lose its sign
      return {false, 0, -0.0};
    if (value == "nan")
      return {false, 0, std::nan("")};
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      reject("is not a number");
    bool isWhole = value.is_number_integer() &&
                   !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX));
    double real = value.get<double>();
    // Nothing is lost where a whole number was written as 1.0.
    if (!isWhole && std::trunc(real) == real && std::fabs(real) < 0x1p53 && real != 0.0)
      return {true, static_cast<int64_t>(real), real};
    return {isWhole, isWhole ? value.get<int64_t>() : 0, real};
  }

  bool boolean() const {
    if (!value.is_boolean())
      reject("is not a boolean");
    return value;
  }

  std::string dump() const { return value.dump(); }
  bool isList() const { return value.is_array(); }
  bool isNull() const { return value.is_null(); }

private:
  const json &value;
  std::string path;
};

const DType *parseType(const Node &node) {
  const DType *type = findMlirType(node.string());
  if (!type)
    fail(FP8RT_UNSUPPORTED, "the manifest's type " + inQuotes(node.string()) +
                                " is unknown to this runtime; is the library newer?");
  return type;
}

Shape parseShape(const Node &node) {
  Shape shape;
  for (const Node &dim : node.list())
    shape.push_back(dim.isNull() ? kDynamicDim : dim.integer(kDynamicDim, INT64_MAX));
  return shape;
}

fp8rt_kind parseKind(const Node &value) {
  std::optional<Node> node = value.get("kind");
  std::string kind = node ? node->string() : "user";
  if (kind == "user")
    return FP8RT_KIND_USER;
  if (kind == "state")
    return FP8RT_KIND_STATE;
  if (kind == "residual")
    return FP8RT_KIND_RESIDUAL;
  node->reject("is " + inQuotes(kind));
}

int32_t parseIndex(const Node &value, const char *key) {
  std::optional<Node> node = value.get(key);
  return node ? static_cast<int32_t>(node->integer(0, INT32_MAX)) : -1;
}

/// One object, or a list of them.
std::vector<Shard> parseShards(const Node &node) {
  std::vector<Shard> shards;
  for (const Node &shard : node.isList() ? node.list() : std::vector<Node>{node})
    shards.push_back({static_cast<uint32_t>(shard.at("axis").integer(0, 31)),
                      static_cast<uint32_t>(shard.at("dim").integer(0, INT32_MAX))});
  return shards;
}

Value parseValue(const Node &node) {
  Value value;
  if (std::optional<Node> name = node.get("name"))
    value.name = name->string();
  value.type = parseType(node.at("type"));
  value.shape = parseShape(node.at("shape"));
  value.kind = parseKind(node);
  value.carry = parseIndex(node, "carry");
  value.alias = parseIndex(node, "alias");
  if (std::optional<Node> written = node.get("written"))
    value.written = written->boolean();
  if (std::optional<Node> shard = node.get("shard"))
    value.shards = parseShards(*shard);
  if (std::optional<Node> batch = node.get("batch"))
    value.differs = batch->boolean();
  return value;
}

std::vector<Value> parseValues(const Node &list) {
  std::vector<Value> values;
  for (const Node &node : list.list()) {
    int64_t index = static_cast<int64_t>(values.size());
    if (std::optional<Node> given = node.get("index"))
      given->integer(index, index);
    values.push_back(parseValue(node));
  }
  return values;
}

std::vector<uint32_t> parseIndices(const Node &list) {
  std::vector<uint32_t> indices;
  for (const Node &node : list.list())
    indices.push_back(static_cast<uint32_t>(node.integer(0, UINT32_MAX)));
  return indices;
}

void parseParameters(const Node &node, Entry &entry) {
  entry.initializer = node.at("entry").string();
  entry.initializerArguments = parseIndices(node.at("arguments"));
  for (const Node &cast : node.at("casts").list()) {
    entry.casts.push_back({parseIndices(cast.at("arguments")), {}});
    for (const Node &name : cast.at("tensors").list())
      entry.casts.back().tensors.push_back(name.string());
  }
}

Entry parseEntry(const Node &node) {
  Entry entry;
  entry.name = node.at("name").string();
  entry.arguments = parseValues(node.at("arguments"));
  entry.results = parseValues(node.at("results"));
  if (std::optional<Node> bytes = node.get("workspace_bytes"))
    entry.workspaceBytes = uint64_t(bytes->integer(0, INT64_MAX));
  if (std::optional<Node> alignment = node.get("workspace_alignment")) {
    entry.workspaceAlignment = uint64_t(alignment->integer(1, 1 << 21));
    if (entry.workspaceAlignment & (entry.workspaceAlignment - 1))
      alignment->reject("is not a power of two");
  }
  if (std::optional<Node> capturable = node.get("capturable"))
    entry.capturable = capturable->boolean();
  if (std::optional<Node> checks = node.get("checks"))
    entry.checks = uint64_t(checks->integer(0, INT64_MAX));
  if (std::optional<Node> parameters = node.get("parameters"))
    parseParameters(*parameters, entry);
  return entry;
}

/// A number for all elements, or a list with one for each.
std::vector<Number> parseInitial(const Node &node, const Shape &shape) {
  if (!node.isList())
    return {node.number()};
  std::vector<Number> numbers;
  for (const Node &number : node.list())
    numbers.push_back(number.number());
  uint64_t elements = 1;
  for (int64_t size : shape)
    elements = size > 0 && elements <= numbers.size() ? elements * static_cast<uint64_t>(size) : 0;
  if (elements != numbers.size())
    node.reject("has " + std::to_string(numbers.size()) + " numbers, not one for each element");
  return numbers;
}

StateTensor parseStateTensor(const Node &node) {
  StateTensor tensor;
  tensor.name = node.at("name").string();
  tensor.type = parseType(node.at("type"));
  tensor.shape = parseShape(node.at("shape"));
  if (std::optional<Node> initial = node.get("initial"))
    tensor.initial = parseInitial(*initial, tensor.shape);
  if (std::optional<Node> derived = node.get("derived"))
    tensor.derived = derived->boolean();
  return tensor;
}

/// Parses "state", which may be absent or empty for a program without FP8 state.
void parseState(const Node &root, Manifest &manifest) {
  std::optional<Node> state = root.get("state");
  manifest.columns = "[]";
  if (!state)
    return;
  if (std::optional<Node> hash = state->get("layout_hash"))
    manifest.layoutHash = hash->string();
  if (std::optional<Node> columns = state->get("columns"))
    manifest.columns = columns->dump();
  if (std::optional<Node> tensors = state->get("tensors"))
    for (const Node &node : tensors->list())
      manifest.state.push_back(parseStateTensor(node));
}

uint32_t parseCallVersion(const Node &root) {
  std::optional<Node> node = root.get("call");
  int64_t version = node ? node->integer(1, INT32_MAX) : 1;
  if (version > FP8RT_CALL_VERSION)
    fail(FP8RT_UNSUPPORTED, "the library takes calls of version " + std::to_string(version) +
                                ", this runtime makes those up to " + std::to_string(FP8RT_CALL_VERSION) +
                                ": use a newer runtime");
  return static_cast<uint32_t>(version);
}

/// A manifest without "cpu" is that of a library of any processor.
RequiredProcessor parseProcessor(const Node &root) {
  RequiredProcessor required;
  std::optional<Node> cpu = root.get("cpu");
  if (!cpu)
    return required;
  required.name = cpu->at("name").string();
  for (const Node &feature : cpu->at("features").list())
    required.features.push_back(feature.string());
  return required;
}

} // namespace

const StateTensor *Manifest::findState(const std::string &name) const {
  for (const StateTensor &tensor : state)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

const Entry *Manifest::findEntry(const std::string &name) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

Manifest fp8rt::parseManifest(const std::string &text) {
  json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded())
    fail(FP8RT_CORRUPT, "the manifest is not JSON");
  Node root(parsed, "");
  root.at("version").integer(1, 1);
  Manifest manifest;
  manifest.callVersion = parseCallVersion(root);
  manifest.processor = parseProcessor(root);
  parseState(root, manifest);
  if (std::optional<Node> grid = root.get("grid"))
    manifest.grid = parseShape(grid->at("shape"));
  for (const Node &node : root.at("entries").list())
    manifest.entries.push_back(parseEntry(node));
  checkManifest(manifest);
  return manifest;
}
