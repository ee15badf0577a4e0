#include "model/history.h"

#include <limits>

#include "core/base/error.h"
#include "core/tensor/element.h"
#include "model/logs.h"

namespace cairn {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

template <typename Map>
[[noreturn]] void refuse(const char* these, const std::string& name, const Map& all) {
  std::vector<std::string> names;
  for (const auto& [each, value] : all) names.push_back(each);
  const std::string near = nearest_name(name, names);
  throw InvalidArgumentError(
      str(these, " no \"", name, "\"", near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

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
  if (found == history.end()) refuse("the history has", name, history);
  return found->second;
}

double Logs::at(const std::string& name) const {
  const auto found = find(name);
  if (found == end()) refuse("the logs have", name, *this);
  return found->second;
}

}  // namespace cairn
