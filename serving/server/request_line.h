// RequestLine: the requests that wait for one version of a model, and whose turn it is.
//
// Suppose that all waiting requests were computed in rounds, one example of each request in every
// round: requests are taken in the order in which they would finish then. So a small request
// overtakes large ones, no request waits for ever, and requests of one size stay in their order of
// arrival. Clients are treated alike, because a connection has one request under way at a time.
//   Source  A. Demers, S. Keshav, S. Shenker, Analysis and simulation of a fair queueing algorithm,
//           SIGCOMM 1989.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "serving/server/batcher.h"

namespace cairn::serving {

class RequestLine {
 public:
  // `since`: when its first request comes.
  RequestLine(std::shared_ptr<const ServedModel> model, TimePoint since);

  const std::shared_ptr<const ServedModel>& model() const { return model_; }
  TimePoint since() const { return since_; }
  bool empty() const { return requests_.empty(); }
  std::int64_t examples() const { return examples_; }
  // The first of all deadlines; the line must not be empty.
  TimePoint first_deadline() const { return deadlines_.begin()->first; }

  // The round in which the request would be finished, and a number that counts requests.
  using Turn = std::pair<double, std::uint64_t>;
  Turn add(WaitingExamples request);
  // Takes the requests whose turn it is: examples_max examples at most, or one request with more.
  std::vector<WaitingExamples> take(std::int64_t examples_max);
  // Takes the requests whose deadlines are before `now`.
  std::vector<WaitingExamples> take_late(TimePoint now);
  // The turn of the request that would be finished last. The line must not be empty.
  Turn last_turn() const { return requests_.rbegin()->first; }
  // Takes that request.
  WaitingExamples take_last();

 private:
  using Requests = std::map<Turn, WaitingExamples>;
  WaitingExamples remove(Requests::iterator request);

  std::shared_ptr<const ServedModel> model_;
  TimePoint since_;
  Requests requests_;
  std::set<std::pair<TimePoint, Turn>> deadlines_;  // of requests_
  std::int64_t examples_ = 0;
  double rounds_ = 0;  // so far
  std::uint64_t added_ = 0;
};

}  // namespace cairn::serving
