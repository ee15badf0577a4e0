#include "serving/server/request_line.h"

#include <iterator>

#include "serving/model/served_model.h"

namespace cairn::serving {

RequestLine::RequestLine(std::shared_ptr<const ServedModel> model, TimePoint since)
    : model_(std::move(model)), since_(since) {}

RequestLine::Turn RequestLine::add(WaitingExamples request) {
  const Turn turn{rounds_ + static_cast<double>(request.examples), ++added_};
  examples_ += request.examples;
  deadlines_.emplace(request.deadline, turn);
  requests_.emplace(turn, std::move(request));
  return turn;
}

std::vector<WaitingExamples> RequestLine::take(std::int64_t examples_max) {
  std::vector<WaitingExamples> batch;
  std::int64_t examples = 0;
  while (!requests_.empty()) {
    const auto next = requests_.begin();
    const std::int64_t more = next->second.examples;
    if (!batch.empty() && (examples + more > examples_max || !model_->is_by_example())) break;
    examples += more;
    rounds_ += static_cast<double>(more) / static_cast<double>(requests_.size());
    batch.push_back(remove(next));
  }
  return batch;
}

std::vector<WaitingExamples> RequestLine::take_late(TimePoint now) {
  std::vector<WaitingExamples> late;
  while (!deadlines_.empty() && first_deadline() < now)
    late.push_back(remove(requests_.find(deadlines_.begin()->second)));
  return late;
}

WaitingExamples RequestLine::take_last() { return remove(std::prev(requests_.end())); }

WaitingExamples RequestLine::remove(Requests::iterator request) {
  WaitingExamples taken = std::move(request->second);
  examples_ -= taken.examples;
  deadlines_.erase({taken.deadline, request->first});
  requests_.erase(request);
  return taken;
}

}  // namespace cairn::serving
