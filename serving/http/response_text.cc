#include "serving/http/response_text.h"

#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

namespace cairn::serving {
namespace {

void append_number(std::string& out, std::uint64_t number) {
  char text[20];
  out.append(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

// A line break in a value that a handler took from somewhere would begin a header of its own.
void append_value(std::string& out, std::string_view value) {
  for (const char c : value) out += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
}

void append_status_line(std::string& out, unsigned status) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(status));
  out += "HTTP/1.1 ";
  append_number(out, status);
  out += ' ';
  out.append(reason.data(), reason.size());
  out += "\r\n";
}

}  // namespace

bool has_body(unsigned status) { return status >= 200 && status != 204 && status != 304; }

void append_head(std::string& out, const HttpResponse& response, const HeadOptions& options) {
  append_status_line(out, response.status);
  if (has_body(response.status)) {
    out += "Content-Type: ";
    append_value(out, response.content_type);
    out += "\r\nContent-Length: ";
    append_number(out, response.body.size());
    out += "\r\n";
  }
  out += "Date: ";
  out += options.date;
  out += "\r\n";
  for (const auto& [name, value] : response.headers) {
    append_value(out, name);
    out += ": ";
    append_value(out, value);
    out += "\r\n";
  }
  if (!options.keep_alive) {
    out += "Connection: close\r\n";
  } else if (!options.http11) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

std::string http_date(std::int64_t wall_microseconds) {
  const std::time_t seconds = wall_microseconds / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  // The locale of a process that never calls setlocale() is "C", whose names HTTP demands.
  return {text, std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

}  // namespace cairn::serving
