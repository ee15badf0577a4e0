// RequestLine: the requests that wait for one version of a model, and whose turn it is.
//
// Each request has an equal share of the computing while it waits, so that one with few examples
// passes those with many, and none waits forever: a request's turn is the moment at which its last
// example would be computed if one example of each were computed in turn. Requests that are alike
// keep the order in which they came.
//   Source  A. Demers, S. Keshav, S. Shenker, Analysis and simulation of a fair queueing algorithm,
//           SIGCOMM 1989. A connection has one request under way, so that requests stand for
//           clients here.
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
  // The first of all deadlines; the line is not empty.
  TimePoint first_deadline() const { return deadlines_.begin()->first; }

  // In rounds of one example of each request; then in the order in which they came.
  using Turn = std::pair<double, std::uint64_t>;
  Turn add(WaitingExamples request);
  // Those whose turn it is: examples_max examples at most, or one request that has more.
  std::vector<WaitingExamples> take(std::int64_t examples_max);
  // Those whose deadlines are before `now`.
  std::vector<WaitingExamples> take_late(TimePoint now);
  // The one that is last in turn, and which turn that is; the line is not empty.
  Turn last_turn() const { return requests_.rbegin()->first; }
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
