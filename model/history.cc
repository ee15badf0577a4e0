#include "model/history.h"

#include <limits>

#include "core/base/error.h"
#include "core/tensor/element.h"

namespace cairn {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void History::add(std::int64_t number, const std::map<std::string, double>& logs) {
  for (const auto& [name, value] : logs) history[name].resize(epoch.size(), kNone);
  epoch.push_back(number);
  for (auto& [name, values] : history) {
    const auto found = logs.find(name);
    values.push_back(found == logs.end() ? kNone : found->second);
  }
}

void History::set_last(const std::string& name, double value) {
  auto& values = history[name];
  values.resize(epoch.size(), kNone);
  values.back() = value;
}

const std::vector<double>& History::operator[](const std::string& name) const {
  const auto found = history.find(name);
  if (found != history.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, values] : history) names.push_back(each);
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(str("the history has no \"", name, "\"",
                                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

}  // namespace cairn
