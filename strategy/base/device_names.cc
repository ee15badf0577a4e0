#include "strategy/base/device_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/kernels/cuda/library.h"

namespace cairn {

std::string DeviceName::text() const { return str(kind == Kind::kGpu ? "gpu:" : "cpu:", ordinal); }

DeviceName parse_device_name(const std::string& name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = lower;
  for (std::string_view prefix : {"/device:", "/"})
    if (rest.starts_with(prefix)) {
      rest.remove_prefix(prefix.size());
      break;
    }
  DeviceName parsed{rest.starts_with("gpu:") ? DeviceName::Kind::kGpu : DeviceName::Kind::kCpu, -1};
  if (rest.starts_with("cpu:") || rest.starts_with("gpu:")) {
    rest.remove_prefix(4);
    int& number = parsed.ordinal;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end != rest.data() + rest.size()) number = -1;
  }
  const bool cpu = parsed.kind == DeviceName::Kind::kCpu;
  if (parsed.ordinal < 0 || (cpu && parsed.ordinal >= kLogicalCpusMax))
    throw InvalidArgumentError(str("there is no device \"", name,
                                   "\"; there are \"cpu:0\" to \"cpu:", kLogicalCpusMax - 1,
                                   "\", and \"gpu:0\" onwards where there are GPUs"));
  return parsed;
}

NamedDevice device_named(const std::string& name) {
  const DeviceName parsed = parse_device_name(name);
  if (parsed.kind == DeviceName::Kind::kCpu) return {parsed.text(), &cpu_device()};
  try {
    return {parsed.text(), &gpu(parsed.ordinal)};
  } catch (const NotFoundError& error) {
    throw NotFoundError(str("the device \"", name, "\" was named: ", error.what()));
  }
}

std::vector<NamedDevice> devices_of(const std::vector<std::string>& names) {
  if (names.empty()) return {{"cpu:0", &cpu_device()}};
  std::set<std::string> seen;
  std::vector<NamedDevice> devices;
  for (const std::string& name : names) {
    devices.push_back(device_named(name));
    const NamedDevice& last = devices.back();
    if (last.device == &cpu_device() && !seen.insert(last.name).second)
      throw InvalidArgumentError(
          str("the device \"", name, "\" is named twice; each replica needs one of its own"));
  }
  return devices;
}

}  // namespace cairn
