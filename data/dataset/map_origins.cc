#include "data/dataset/map_origins.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

constexpr std::size_t kGraphsMax = 4096;

struct Recorded {
  std::string op;
  Origin origin;
};
// Never destroyed: threads that read data may outlive main().
struct Known {
  std::mutex mutex;  // all
  std::map<std::size_t, std::vector<Recorded>> all;
};
Known& known() {
  static Known& only = *new Known;
  return only;
}

std::size_t key_of(std::span<const std::byte> bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// The number and the operation of "node 3, gather(" at `at`, and where that ends.
struct Named {
  std::size_t node = 0, end = 0;
  std::string_view op;
};
constexpr std::string_view kNode = "node ";
Named named_at(std::string_view message, std::size_t at) {
  Named made;
  const char* last = message.data() + message.size();
  const auto number = std::from_chars(message.data() + at + kNode.size(), last, made.node);
  const auto behind = static_cast<std::size_t>(number.ptr - message.data());
  const std::size_t open = message.find('(', behind);
  if (message.substr(behind, 2) != ", " || open == std::string_view::npos) return {};
  made.end = behind + 2;
  made.op = message.substr(made.end, open - made.end);
  return made;
}

}  // namespace

std::vector<std::byte> serialize_with_origins(const Graph& traced) {
  std::vector<std::byte> bytes = serialize(traced);
  std::vector<Recorded> recorded;
  bool any = false;
  for (const Node& node : traced.nodes) {
    recorded.push_back({std::string(node.op->name), node.origin});
    any = any || node.origin.known();
  }
  if (!any) return bytes;
  const std::lock_guard hold(known().mutex);
  if (known().all.size() >= kGraphsMax) known().all.clear();
  known().all[key_of(bytes)] = std::move(recorded);
  return bytes;
}

Graph parse_with_origins(std::span<const std::byte> bytes) {
  Graph graph = parse_graph(bytes);
  const std::lock_guard hold(known().mutex);
  const auto found = known().all.find(key_of(bytes));
  if (found == known().all.end() || found->second.size() != graph.nodes.size()) return graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    graph.nodes[i].origin = found->second[i].origin;
  return graph;
}

void add_map_origin(ErrorParts& parts) {
  const std::size_t at = parts.message.find(kNode);
  if (at == std::string::npos || !parts.place.origin.empty()) return;
  const Named named = named_at(parts.message, at);
  if (named.op.empty()) return;
  Origin only;
  const std::lock_guard hold(known().mutex);
  for (const auto& [key, recorded] : known().all) {
    if (named.node >= recorded.size() || recorded[named.node].op != named.op) continue;
    const Origin& origin = recorded[named.node].origin;
    if (only.known() && only.path_and_line() != origin.path_and_line()) return;
    only = origin;
  }
  if (!only.known()) return;
  parts.message.replace(at, named.end - at, only.text() + ": ");
  parts.place.origin = only.path_and_line();
}

}  // namespace cairn
