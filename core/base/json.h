// JSON through nlohmann's library. Its parser and printer are compiled once, behind these two: they
// cost each file that uses them seconds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cairn {

using Json = nlohmann::ordered_json;  // keys keep the order they are written in

// of lists and objects within each other; each takes stack to copy, print and free
constexpr int kJsonDepthMax = 64;

// `what` names the text in errors: a file, a variable.
//   Errors  InvalidArgument: no JSON, with line and column; deeper than `depth_max`.
Json parse_json(std::string_view text, const std::string& what, int depth_max = kJsonDepthMax);

// indent -1: on one line. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

}  // namespace cairn
