#include "coordinator/device_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

#include "core/base/error.h"

namespace cairn {

int logical_cpu(const std::string& name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = lower;
  for (std::string_view prefix : {"/device:", "/"})
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  int number = -1;
  if (rest.starts_with("cpu:")) {
    rest.remove_prefix(4);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end != rest.data() + rest.size()) number = -1;
  }
  if (number < 0 || number >= kLogicalCpusMax)
    throw InvalidArgumentError(str("there is no device \"", name,
                                   "\"; there are \"cpu:0\" to \"cpu:", kLogicalCpusMax - 1, "\""));
  return number;
}

std::vector<NamedDevice> devices_of(const std::vector<std::string>& names) {
  if (names.empty()) return {{"cpu:0", &cpu_device()}};
  std::set<int> seen;
  std::vector<NamedDevice> devices;
  for (const std::string& name : names) {
    const int number = logical_cpu(name);
    if (!seen.insert(number).second)
      throw InvalidArgumentError(
          str("the device \"", name, "\" is named twice; each replica needs one of its own"));
    devices.push_back({str("cpu:", number), &cpu_device()});
  }
  return devices;
}

}  // namespace cairn
