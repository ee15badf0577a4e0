#include "service/consumer/element_buffer.h"

#include <algorithm>

namespace cairn::service {

std::optional<Element> ElementBuffer::take() {
  std::unique_lock hold(mutex_);
  if (waiting_.empty()) return std::nullopt;
  Waiting oldest = std::move(waiting_.front());
  waiting_.pop_front();
  ++taken_;
  bool demand = false;
  if (const auto from = workers_.find(oldest.worker); from != workers_.end()) {
    Worker& worker = from->second;
    worker.taken.insert(oldest.number);
    demand = --worker.waiting == low_ || worker.taken.size() == 1;
  }
  hold.unlock();
  if (demand) on_demand_();
  return std::move(oldest.element);
}

std::uint64_t ElementBuffer::taken() const {
  std::lock_guard hold(mutex_);
  return taken_;
}

void ElementBuffer::put(const DataWorkerPlace& worker, std::uint64_t number, Element element) {
  std::lock_guard hold(mutex_);
  if (closed_) return;
  waiting_.push_back({worker, number, std::move(element)});
  ++workers_[worker].waiting;
}

bool ElementBuffer::empty() const {
  std::lock_guard hold(mutex_);
  return waiting_.empty();
}

std::size_t ElementBuffer::waiting(const DataWorkerPlace& worker) const {
  std::lock_guard hold(mutex_);
  const auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.waiting;
}

void ElementBuffer::set_low(std::size_t waiting) {
  std::lock_guard hold(mutex_);
  low_ = waiting;
}

std::vector<std::uint64_t> ElementBuffer::unacknowledged(const DataWorkerPlace& worker,
                                                         std::size_t most) const {
  std::lock_guard hold(mutex_);
  std::vector<std::uint64_t> numbers;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return numbers;
  for (const std::uint64_t number : found->second.taken)
    if (numbers.size() < most) numbers.push_back(number);
  return numbers;
}

void ElementBuffer::acknowledged(const DataWorkerPlace& worker,
                                 const std::vector<std::uint64_t>& numbers) {
  std::lock_guard hold(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  for (const std::uint64_t number : numbers) found->second.taken.erase(number);
}

void ElementBuffer::discard(const DataWorkerPlace& worker, std::uint64_t number) {
  std::lock_guard hold(mutex_);
  const auto waits = [&](const Waiting& one) {
    return one.number == number && one.worker == worker;
  };
  if (std::ranges::none_of(waiting_, waits)) workers_[worker].taken.insert(number);
}

void ElementBuffer::forget(const DataWorkerPlace& worker) {
  std::lock_guard hold(mutex_);
  std::erase_if(waiting_, [&](const Waiting& element) { return element.worker == worker; });
  if (const auto found = workers_.find(worker); found != workers_.end()) found->second.waiting = 0;
}

void ElementBuffer::remove(const DataWorkerPlace& worker) {
  forget(worker);
  std::lock_guard hold(mutex_);
  workers_.erase(worker);
}

bool ElementBuffer::give_back() {
  std::lock_guard hold(mutex_);
  if (waiting_.empty()) return false;
  for (const auto& [place, worker] : workers_)
    if (!worker.taken.empty()) return false;
  waiting_.clear();
  workers_.clear();
  return true;
}

void ElementBuffer::close() {
  std::lock_guard hold(mutex_);
  closed_ = true;
  waiting_.clear();
}

}  // namespace cairn::service
