// Targets of requests: which form of the API, which model, which version.
//
//   /v1/models/NAME[/versions/V|/labels/L]                      its status
//   /v1/models/NAME[/versions/V|/labels/L]/metadata
//   /v1/models/NAME[/versions/V|/labels/L]:predict[?raw]        and :classify, :regress
//   /v1/models/NAME[/versions/V|/labels/L]:recommend[?raw[&k=10]]
//   /v2, /v2/health/live, /v2/health/ready
//   /v2/models/NAME[/versions/V][/ready|/infer]
//   /metrics
//
//   Source  RFC 3986 (percent-encoding); RFC 9112, section 3.2 (forms of a target); the paths are
//           those of tf_json.h and infer.h.
//   Thread  any.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace cairn::serving {

enum class RouteKind : std::uint8_t {
  kTfStatus,
  kTfMetadata,
  kTfPredict,
  kTfClassify,
  kTfRegress,
  kTfRecommend,
  kInferServer,  // /v2
  kInferLive,
  kInferReady,
  kInferModel,  // /v2/models/NAME
  kInferModelReady,
  kInfer,
  kMetrics,
};

struct Route {
  RouteKind kind = RouteKind::kMetrics;
  std::string model = "";  // decoded; empty for routes without one
  std::optional<std::int64_t> version = {};
  std::string label = "";  // decoded; empty: none
  // ":predict?raw", ":recommend?raw": the body has rows as the training data has them.
  bool raw = false;
  std::optional<std::int64_t> k = {};  // ":recommend?raw&k=10"
};

// The path is known, and it does not take this method: status 405 with the header "Allow".
class WrongMethodError final : public InvalidArgumentError {
 public:
  WrongMethodError(const std::string& message, std::string allowed)
      : InvalidArgumentError(message), allowed_(std::move(allowed)) {}
  const std::string& allowed() const { return allowed_; }  // "GET, HEAD"

 private:
  std::string allowed_;
};

// Parameters of the query other than "raw", and "k" of ":recommend", are passed over.
//   Errors  NotFound: there is no such path; names the nearest. WrongMethodError.
//           InvalidArgument: a version or a k that is no such number, or a percent sign without two
//           hexadecimal digits.
Route parse_route(std::string_view method, std::string_view target);

}  // namespace cairn::serving
