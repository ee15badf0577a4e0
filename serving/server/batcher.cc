#include "serving/server/batcher.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "serving/http/http_server.h"
#include "serving/model/served_model.h"
#include "serving/retrieval/candidate_index.h"
#include "serving/server/background.h"
#include "serving/server/joined_examples.h"
#include "serving/server/request_line.h"

namespace cairn::serving {
namespace {

void answer_error(WaitingExamples& request, std::exception_ptr error) {
  request.done({{}, std::move(error)});
}

std::exception_ptr queue_is_full(std::int64_t waiting, std::int64_t queue_max) {
  return std::make_exception_ptr(
      ResourceExhaustedError(str(waiting, " examples wait already, and --queue allows ", queue_max,
                                 ": ask again later, or let more servers share the requests")));
}

std::exception_ptr too_late(const WaitingExamples& request) {
  return std::make_exception_ptr(DeadlineExceededError(
      str("the deadline passed while ", request.examples,
          " examples waited to be computed: the server has more requests than it can answer")));
}

// An output whose rows are not those of the examples cannot be dealt out to the requests.
void verify_rows(const ServedModel& model, const std::vector<Tensor>& outputs,
                 std::int64_t examples) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].shape()[0] != examples)
      throw FailedPreconditionError(str("the output \"", model.about().outputs[i].name, "\" has ",
                                        outputs[i].shape()[0], " rows for ", examples,
                                        " examples, so that it cannot be served: save the model ",
                                        "without it, or with a row for each example"));
}

std::vector<Tensor> outputs_of(const ServedModel& model, const std::vector<WaitingExamples>& batch,
                               std::int64_t examples, int thread) {
  const std::int64_t computed = model.is_by_example() ? computed_as(examples) : examples;
  if (batch.size() == 1 && computed == examples)
    return model.predict(batch.front().columns, thread);
  std::vector<const Element*> parts;
  for (const WaitingExamples& request : batch) parts.push_back(&request.columns);
  return model.predict(joined_examples(model.about().input, parts, computed), thread);
}

// The best candidates for the queries of a whole batch, which are looked for together: a list for
// the largest k begins with that for each smaller one.
std::vector<std::vector<ScoredPlace>> search(const std::vector<WaitingExamples>& batch,
                                             const Tensor& queries) {
  std::int64_t k = 1;
  std::vector<std::vector<std::int64_t>> leave_out;
  for (const WaitingExamples& request : batch) {
    k = std::max(k, request.search->k);
    const auto& own = request.search->leave_out;
    leave_out.insert(leave_out.end(), own.begin(), own.end());
    leave_out.resize(leave_out.size() + static_cast<std::size_t>(request.examples) - own.size());
  }
  return batch.front().search->index->top(queries, k, leave_out);
}

// A joined batch that fails is computed once more request by request, so that the others do not
// suffer from the fault of one.
void compute(const ServedModel& model, std::vector<WaitingExamples>& batch, int thread) {
  std::int64_t examples = 0;
  for (const WaitingExamples& request : batch) examples += request.examples;
  std::vector<Tensor> outputs;
  std::vector<std::vector<ScoredPlace>> best;
  try {
    outputs = outputs_of(model, batch, examples, thread);
    if (model.is_by_example()) verify_rows(model, outputs, computed_as(examples));
    if (batch.front().search) best = search(batch, outputs.at(0).rows(0, examples));
  } catch (...) {
    if (batch.size() == 1) return answer_error(batch.front(), std::current_exception());
    for (WaitingExamples& request : batch) {
      std::vector<WaitingExamples> alone;
      alone.push_back(std::move(request));
      compute(model, alone, thread);
    }
    return;
  }
  std::int64_t begin = 0;
  for (WaitingExamples& request : batch) {
    const std::int64_t end = begin + request.examples;
    Answer answer{.batch = examples, .stale_rows = model.stale_rows(thread)};
    for (const Tensor& output : outputs)
      answer.outputs.push_back(model.is_by_example() ? output.rows(begin, end) : output);
    for (std::int64_t i = begin; request.search && i < end; ++i) {
      auto& list = best[static_cast<std::size_t>(i)];
      list.resize(std::min(list.size(), static_cast<std::size_t>(request.search->k)));
      answer.best.push_back(std::move(list));
    }
    begin = end;
    request.done(std::move(answer));
  }
}

}  // namespace

struct Batcher::State {
  explicit State(const BatcherOptions& of) : options(of) {}

  // The next batch of the line whose turn it is; empty: nothing is ready.
  std::vector<WaitingExamples> take(TimePoint now) {
    for (auto line = lines.begin(); line != lines.end(); ++line) {
      const bool ready = line->examples() >= options.batch_max || stopping ||
                         now - line->since() >= options.batch_wait;
      if (!ready) continue;
      const std::int64_t before = line->examples();
      std::vector<WaitingExamples> batch = line->take(options.batch_max);
      waiting -= before - line->examples();
      // Behind the others.
      if (line->empty())
        lines.erase(line);
      else
        lines.splice(lines.end(), lines, line);
      return batch;
    }
    return {};
  }

  // Takes out the requests whose deadlines have passed.
  std::vector<WaitingExamples> take_late(TimePoint now) {
    std::vector<WaitingExamples> late;
    for (auto line = lines.begin(); line != lines.end();) {
      for (WaitingExamples& request : line->take_late(now)) {
        waiting -= request.examples;
        late.push_back(std::move(request));
      }
      line = line->empty() ? lines.erase(line) : std::next(line);
    }
    return late;
  }

  // When the first line that still waits for company is ready, or its first request is late.
  TimePoint next_event() const {
    TimePoint at = TimePoint::max();
    for (const RequestLine& line : lines)
      at = std::min({at, line.since() + options.batch_wait, line.first_deadline()});
    return at;
  }

  void add(WaitingExamples request);
  void compute_until_stopped(int thread);

  const BatcherOptions options;
  mutable std::mutex mutex;  // guards all below
  std::condition_variable changed;
  std::list<RequestLine> lines;  // none empty, in the order of their turns
  std::deque<std::function<void(int)>> work;
  std::int64_t waiting = 0;
  int idle = 0;  // threads that wait for something to do
  bool stopping = false;
  std::vector<std::thread> threads;
};

void Batcher::State::compute_until_stopped(int thread) {
  std::unique_lock hold(mutex);
  for (;;) {
    if (!work.empty()) {
      const std::function<void(int)> next = std::move(work.front());
      work.pop_front();
      hold.unlock();
      next(thread);
      hold.lock();
      continue;
    }
    if (stopping) return;
    const TimePoint now = system_clock().now();
    std::vector<WaitingExamples> late = take_late(now);
    if (!late.empty()) {
      hold.unlock();
      for (WaitingExamples& request : late) answer_error(request, too_late(request));
      late.clear();
      hold.lock();
      continue;
    }
    std::vector<WaitingExamples> batch = take(now);
    if (batch.empty()) {
      ++idle;
      if (lines.empty())
        changed.wait(hold);
      else
        changed.wait_for(hold, next_event() - now);
      --idle;
      continue;
    }
    if (!lines.empty() && idle > 0) changed.notify_one();
    hold.unlock();
    const std::shared_ptr<const ServedModel> model = batch.front().model;
    {
      const RepliesTogether together;
      compute(*model, batch, thread);
    }
    batch.clear();
    give_way();  // to the thread that sends the answers, where they share a processor
    hold.lock();
  }
}

Batcher::Batcher(BatcherOptions options) : state_(std::make_unique<State>(options)) {
  CAIRN_CHECK(options.threads > 0, "no thread computes");
  for (int i = 0; i < options.threads; ++i)
    state_->threads.emplace_back([state = state_.get(), i] { state->compute_until_stopped(i); });
}

Batcher::~Batcher() {
  std::list<RequestLine> left;
  {
    const std::lock_guard hold(state_->mutex);
    state_->stopping = true;
    left.swap(state_->lines);
    state_->changed.notify_all();
  }
  for (std::thread& each : state_->threads) each.join();
  const auto error = std::make_exception_ptr(CancelledError("the server ends: ask another one"));
  for (RequestLine& line : left)
    while (!line.empty()) {
      WaitingExamples request = line.take_last();
      answer_error(request, error);
    }
}

// While too many examples wait, the model with most of them gives way: its request whose turn is
// last is refused. So a flood is refused, and a client that asks for little is not.
void Batcher::State::add(WaitingExamples request) {
  auto own = std::ranges::find(lines, request.model, &RequestLine::model);
  if (own == lines.end()) own = lines.emplace(lines.end(), request.model, system_clock().now());
  const std::int64_t more = request.examples;
  const RequestLine::Turn turn = own->add(std::move(request));
  waiting += more;
  // A request that is larger than the queue is let in where nothing else waits, since it would
  // never fit.
  while (waiting > options.queue_max && waiting > more) {
    const auto longest = std::ranges::max_element(lines, {}, &RequestLine::examples);
    const bool is_the_new_one = longest == own && own->last_turn() == turn;
    WaitingExamples last = longest->take_last();
    waiting -= last.examples;
    if (longest->empty()) lines.erase(longest);
    const auto error = queue_is_full(waiting, options.queue_max);
    if (is_the_new_one) std::rethrow_exception(error);
    // A computing thread answers it, as it does all others.
    work.push_back([refused = std::make_shared<WaitingExamples>(std::move(last)), error](int) {
      answer_error(*refused, error);
    });
  }
}

void Batcher::submit(WaitingExamples request, Wake wake) {
  State& state = *state_;
  const std::lock_guard hold(state.mutex);
  state.add(std::move(request));
  if (wake == Wake::kNow && state.idle > 0) state.changed.notify_one();
}

bool Batcher::wake() {
  const std::lock_guard hold(state_->mutex);
  if (state_->lines.empty()) return false;
  if (state_->idle > 0) state_->changed.notify_one();
  return true;
}

void Batcher::run(std::function<void(int)> work) {
  const std::lock_guard hold(state_->mutex);
  state_->work.push_back(std::move(work));
  if (state_->idle > 0) state_->changed.notify_one();
}

std::int64_t Batcher::waiting() const {
  const std::lock_guard hold(state_->mutex);
  return state_->waiting;
}

}  // namespace cairn::serving
