#include "core/base/device_cache.h"

#include <charconv>
#include <utility>

#include "core/base/error.h"

namespace cairn {
namespace {

constexpr double kBytesMax = 0x1p60;

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// 0: no unit of bytes.
double bytes_of_unit(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [name, bytes] : kUnits)
    if (unit == name) return bytes;
  return 0;
}

}  // namespace

DeviceCache parse_device_cache(std::string_view text) {
  const std::string_view given = without_spaces(text);
  if (given == "auto") return {};
  double number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  const std::string_view unit =
      without_spaces(given.substr(static_cast<std::size_t>(end - given.data())));
  DeviceCache made;
  if (error == std::errc() && number > 0) {
    const double each = bytes_of_unit(unit), share = unit == "%" ? number / 100 : number;
    if (each > 0 && number * each < kBytesMax)
      made.bytes = static_cast<std::size_t>(number * each);
    else if ((unit.empty() || unit == "%") && share <= 1)
      made.share = share;
  }
  if (!made.given())
    throw InvalidArgumentError(
        str("\"", text,
            "\" is no size of a cache on a device: bytes with their unit, as \"8 GB\", "
            "a share of the device's memory, as \"0.1\" or \"10%\", or \"auto\""));
  return made;
}

}  // namespace cairn
