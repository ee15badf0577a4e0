// Batcher: the computing threads, and the examples that wait for one.
//
// A thread that is free takes what waits for one version of a model, up to batch_max examples, and
// computes it as one batch. Nothing waits for company unless batch_wait says so. Models take turns,
// and so do the requests of a model (request_line.h): a flood holds up nobody but itself.
//   Thread  any.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/tensor/element.h"
#include "serving/retrieval/best_list.h"

namespace cairn::serving {

class CandidateIndex;
class ServedModel;

struct BatcherOptions {
  int threads = 1;
  std::int64_t queue_max = 65'536;  // examples that wait
  // Examples in one batch; a larger request is one by itself. More at once would be computed only
  // a little faster, and a request waits for the batch before it.
  std::int64_t batch_max = 256;
  Duration batch_wait{};  // that the first of a batch waits for others, at most
};

// The end of a request: the outputs of its own examples, or an error.
struct Answer {
  std::vector<Tensor> outputs;
  std::exception_ptr error;
  std::int64_t batch = 0;       // examples that were computed together; 0: none were
  std::int64_t stale_rows = 0;  // of that batch, that did not come from the ps in time
  // The best candidates for each of its own examples, if the request has a search.
  std::vector<std::vector<ScoredPlace>> best = {};
};

// The examples' one output holds queries, for which the best candidates are looked for.
struct CandidateSearch {
  std::shared_ptr<const CandidateIndex> index;
  std::int64_t k = 1;
  std::vector<std::vector<std::int64_t>> leave_out = {};  // places, by example; none: nothing is
};

struct WaitingExamples {
  std::shared_ptr<const ServedModel> model;
  Element columns;  // as ServedModel::predict() takes them
  std::int64_t examples = 0;
  TimePoint deadline = TimePoint::max();  // later: DeadlineExceeded
  // Called once, on a computing thread. Must not throw.
  std::function<void(Answer)> done;
  // Either all requests for a model have one, and the same index, or none has.
  std::shared_ptr<CandidateSearch> search = {};
};

class Batcher {
 public:
  explicit Batcher(BatcherOptions options);
  ~Batcher();  // what still waits is answered Cancelled
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // Whether a thread that is free begins at once, or when wake() is called: a caller that has more
  // requests at hand submits them all first, so that they are computed together.
  enum class Wake : bool { kNow, kLater };
  //   Errors  ResourceExhausted: more than queue_max examples would wait, and no request has a
  //           further turn than this one, whose `done` is not called. Otherwise those with the
  //           furthest turns get that error.
  void submit(WaitingExamples request, Wake wake = Wake::kNow);
  bool wake();  // whether examples wait
  // Runs `work` on a computing thread, whose number it is given, before examples that wait. What
  // has not begun when the batcher ends is dropped.
  void run(std::function<void(int thread)> work);
  std::int64_t waiting() const;  // examples

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::serving
