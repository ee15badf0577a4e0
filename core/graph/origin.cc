#include "core/graph/origin.h"

#include <atomic>
#include <mutex>
#include <set>

#include "core/base/error.h"
#include "core/graph/graph.h"

namespace cairn {
namespace {

std::atomic<OriginSource> origin_source{nullptr};
thread_local Origin scope_origin;

// Never destroyed: threads that outlive main() may still tell an error's origin.
const std::string* kept(std::string_view name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  const std::lock_guard hold(mutex);
  auto found = names.find(name);
  if (found == names.end()) found = names.emplace(name).first;
  return &*found;
}

}  // namespace

std::string Origin::text() const {
  if (!known()) return {};
  const std::string name = file->substr(file->rfind('/') + 1);
  return function->empty() ? str(name, ":", line) : str(name, ":", line, ", in ", *function);
}

std::string Origin::path_and_line() const { return known() ? str(*file, ":", line) : ""; }

Origin make_origin(std::string_view file, std::string_view function, std::int32_t line) {
  return {kept(file), kept(function), line};
}

void set_origin_source(OriginSource source) { origin_source.store(source); }

Origin current_origin() {
  if (scope_origin.known()) return scope_origin;
  const OriginSource source = origin_source.load(std::memory_order_relaxed);
  return source == nullptr ? Origin{} : source();
}

OriginScope::OriginScope(const Origin& origin) : before_(scope_origin) {
  if (origin.known()) scope_origin = origin;
}
OriginScope::~OriginScope() { scope_origin = before_; }

ErrorPlace place_of(const Graph& graph, std::int32_t number) {
  const Node& node = graph.nodes[static_cast<std::size_t>(number)];
  return {node.original < 0 ? number : node.original, node.origin.path_and_line()};
}

void fail_at(const Graph& graph, std::int32_t number, Code code, const std::string& message) {
  const Origin& origin = graph.nodes[static_cast<std::size_t>(number)].origin;
  const ErrorPlace place = place_of(graph, number);
  const std::string before = origin.known() ? origin.text() + ": " : str("node ", place.node, ", ");
  throw_error(code, before + message, {}, place);
}

// Whoever passed the error on may have put words of their own before it, so the node's number is
// looked for in the message.
std::exception_ptr with_origin(std::exception_ptr error, const Graph& graph) {
  ErrorParts parts = error_parts(error);
  const std::int32_t node = parts.place.node;
  if (node < 0 || !parts.place.origin.empty()) return error;
  if (static_cast<std::size_t>(node) >= graph.nodes.size()) return error;
  const Origin& origin = graph.nodes[static_cast<std::size_t>(node)].origin;
  if (!origin.known()) return error;
  parts.place.origin = origin.path_and_line();
  const std::string number = str("node ", node, ", ");
  if (const auto at = parts.message.find(number); at != std::string::npos)
    parts.message.replace(at, number.size(), origin.text() + ": ");
  else
    parts.message = origin.text() + ": " + parts.message;
  try {
    throw_error(parts);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace cairn
