#include "core/base/json.h"

#include "core/base/error.h"

namespace cairn {

Json parse_json(std::string_view text, const std::string& what, int depth_max) {
  // Asked while the text is read, so that a value that is too deep is never built and need not be
  // freed.
  auto not_too_deep = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > depth_max)
      throw InvalidArgumentError(
          str(what, ": lists and objects within each other more than ", depth_max, " deep"));
    return true;
  };
  try {
    return Json::parse(text, not_too_deep);
  } catch (const Json::exception& error) {
    throw InvalidArgumentError(str(what, " is not JSON: ", error.what()));
  }
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cairn
