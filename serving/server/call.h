// Call: one request for examples on its way from its body to its answer.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "serving/api/routes.h"
#include "serving/api/tensors.h"
#include "serving/http/http_server.h"
#include "serving/server/batcher.h"
#include "serving/server/model_directory.h"

namespace cairn::serving {

struct Call {
  Call(Route of, HttpRequest asked, HttpReply to);

  Route route;
  std::shared_ptr<const std::string> body;
  std::string content_type, header_length;
  HttpReply reply;
  ServedVersion version;
  TimePoint began;
  TimePoint covered = TimePoint::min();  // Follower::Position's, before its rows are read
  std::int64_t examples = 0;
  // Writes the answer from what its examples gave.
  std::function<HttpResponse(const Answer&)> answer;
};

// The examples of a call, and the model, or the part of one, that is to compute them.
struct CallWork {
  std::shared_ptr<const ServedModel> model;
  Examples examples;
  std::shared_ptr<CandidateSearch> search = {};
};

// Reads the body by the codecs that the call's version has for this thread, and sets call.answer.
//   Errors  those of the codecs. FailedPrecondition: the model has no candidates to recommend.
//           InvalidArgument: more candidates are wanted than there are; an id to leave out that no
//           candidate has.
CallWork read_call(Call& call, int thread, const DecodeLimits& limits);

}  // namespace cairn::serving
