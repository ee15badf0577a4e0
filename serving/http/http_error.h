// Errors as HTTP has them: a status, and a body {"error": "..."} as TensorFlow Serving's REST API
// and the Open Inference Protocol both write it.
//
//   400  InvalidArgument, OutOfRange, FailedPrecondition
//   401  Unauthenticated
//   403  PermissionDenied
//   404  NotFound
//   409  AlreadyExists, Aborted
//   429  ResourceExhausted, with Retry-After: 1
//   501  Unimplemented
//   503  Unavailable, Cancelled
//   504  DeadlineExceeded
//   500  all others, and foreign exceptions
//
// They are those of TensorFlow Serving, but for Cancelled, which is 499 there, a client that has
// gone. Here it is a server that stops, so that the client may repeat the request elsewhere.
//   Source  ToHTTPStatusCode() in tensorflow_serving/model_servers/http_server.cc.
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
