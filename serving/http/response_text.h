// The bytes of an answer, made by hand: one string with the head in it costs a third of what
// Beast's serializer takes for it.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "serving/http/http_server.h"

namespace cairn::serving {

struct HeadOptions {
  bool keep_alive = true;
  bool http11 = true;     // the request was of HTTP/1.1, where connections stay by default
  std::string_view date;  // as http_date() writes it
};

// Whether an answer of this status has a body at all (RFC 9110, section 6.4.1).
bool has_body(unsigned status);

// Appends the status line and the header, with the empty line after it, to `out`.
void append_head(std::string& out, const HttpResponse& response, const HeadOptions& options);

// "Sun, 06 Nov 1994 08:49:37 GMT", of microseconds since 1970 UTC.
std::string http_date(std::int64_t wall_microseconds);

}  // namespace cairn::serving
