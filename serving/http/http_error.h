// Errors as HTTP has them: a status, and a body {"error": "..."} as TensorFlow Serving's REST API
// and the Open Inference Protocol both write it.
//
//   InvalidArgument, OutOfRange   400        FailedPrecondition    412
//   Unauthenticated               401        ResourceExhausted     429, with Retry-After: 1
//   PermissionDenied              403        Unimplemented         501
//   NotFound                      404        Unavailable           503
//   AlreadyExists, Aborted        409        DeadlineExceeded      504
//
// All others, foreign exceptions among them, are 500.
//   Source  ToHTTPStatusCode() of TensorFlow Serving, util/net_http/... and google/rpc/code.proto.
//   Thread  any.
#pragma once
#include <exception>
#include <string_view>

#include "core/base/error.h"
#include "serving/http/http_server.h"

namespace cairn::serving {

unsigned http_status(Code code);

// Bytes of `text` that are not UTF-8 become U+FFFD.
HttpResponse error_response(unsigned status, std::string_view text);

// `error` must not be null.
HttpResponse error_response(std::exception_ptr error);

}  // namespace cairn::serving
