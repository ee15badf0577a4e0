#include "serving/http/http_error.h"

#include <string>
#include <utility>

#include "core/base/json.h"

namespace cairn::serving {
namespace {

// A client that heeds Retry-After does not notice that its connection rests for the same second.
// One that ignores it is read no more than once a second.
constexpr std::chrono::seconds kRetryAfter{1};

}  // namespace

unsigned http_status(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kFailedPrecondition: return 400;
    case Code::kUnauthenticated: return 401;
    case Code::kPermissionDenied: return 403;
    case Code::kNotFound: return 404;
    case Code::kAlreadyExists:
    case Code::kAborted: return 409;
    case Code::kResourceExhausted: return 429;
    case Code::kUnimplemented: return 501;
    case Code::kUnavailable:
    case Code::kCancelled: return 503;
    case Code::kDeadlineExceeded: return 504;
    default: return 500;
  }
}

HttpResponse error_response(unsigned status, std::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = json_text(Json{{"error", std::string(text)}});
  if (status == 429) {
    response.headers.emplace_back("Retry-After", std::to_string(kRetryAfter.count()));
    response.rest = kRetryAfter;
  }
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse error_response(std::exception_ptr error) {
  const ErrorParts parts = error_parts(std::move(error));
  return error_response(http_status(parts.code), parts.message);
}

}  // namespace cairn::serving
