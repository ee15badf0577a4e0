#include "tools/job/toml/toml_json.h"

#include <cstdint>
#include <limits>
#include <utility>

namespace cairn::tools {
namespace {

toml::array array_of(const Json& values, const std::string& key);

// Calls put(value) with the value in TOML.
template <typename Put>
void put_value(const Json& value, const std::string& key, Put put) {
  switch (value.type()) {
    case Json::value_t::object: return put(table_of_json(value, key));
    case Json::value_t::array: return put(array_of(value, key));
    case Json::value_t::string: return put(value.get<std::string>());
    case Json::value_t::boolean: return put(value.get<bool>());
    case Json::value_t::number_float: return put(value.get<double>());
    case Json::value_t::number_integer: return put(value.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = value.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        throw InvalidArgumentError(str(key, " is ", number, ": at most 2^63 - 1 is possible"));
      return put(static_cast<std::int64_t>(number));
    }
    default: throw InvalidArgumentError(str(key, " has no value: leave the key out instead"));
  }
}

toml::array array_of(const Json& values, const std::string& key) {
  toml::array made;
  for (const Json& value : values)
    put_value(value, key, [&](auto item) { made.push_back(std::move(item)); });
  return made;
}

}  // namespace

toml::table table_of_json(const Json& object, const std::string& name) {
  if (!object.is_object())
    throw InvalidArgumentError(str(name, " must be a table: sections or keys by name"));
  toml::table made;
  for (const auto& [key, value] : object.items())
    put_value(value, str(name, ".", key),
              [&, &key = key](auto item) { made.insert_or_assign(key, std::move(item)); });
  return made;
}

}  // namespace cairn::tools
