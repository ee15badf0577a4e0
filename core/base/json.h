// JSON through nlohmann's library. Its parser and printer are compiled once, behind these two
// functions, because they cost every file that uses them seconds of compiling.
//   Source  RFC 8259, "The JavaScript Object Notation (JSON) Data Interchange Format".
//   Thread  any.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cairn {

using Json = nlohmann::ordered_json;  // keys keep the order they are written in

// How deep lists and objects may lie within each other. Copying, printing and freeing a value
// recurses once per level, so that a hostile text could otherwise exhaust the stack.
constexpr int kJsonDepthMax = 64;

// The value that `text` holds.  `what` names the text in errors: a file, a variable.
//   Errors  InvalidArgument: it is not JSON, with line and column; or it is deeper than
//           `depth_max`.
Json parse_json(std::string_view text, const std::string& what, int depth_max = kJsonDepthMax);

// The value as text: on one line if `indent` is -1, otherwise one field per line and `indent`
// spaces per level. Bytes that are not UTF-8 become U+FFFD, so that a foreign file name cannot make
// this throw.
std::string json_text(const Json& value, int indent = -1);

}  // namespace cairn
