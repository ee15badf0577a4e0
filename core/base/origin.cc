#include "core/base/origin.h"

#include <atomic>
#include <mutex>
#include <set>

#include "core/base/error.h"

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

}  // namespace cairn
