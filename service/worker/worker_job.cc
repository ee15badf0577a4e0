#include "service/worker/worker_job.h"

#include <algorithm>
#include <numeric>

#include "data/dataset/dataset.h"
#include "data/stage/dataset_wire.h"
#include "rpc/loop/error_wire.h"
#include "rpc/loop/on_offload.h"

namespace cairn::service {
namespace {

constexpr Duration kGetWithin = std::chrono::seconds(1);
// An error is answered for so long: every consumer that reads now asks within that time.
constexpr Duration kFailedFor = std::chrono::seconds(5);
// Read per change of threads: enough that the change costs little, and so little that consumers do
// not wait for it.
constexpr std::size_t kReadElements = 8, kReadBytes = std::size_t{1} << 20;
// An answer has at most so many bytes, but at least one element.
constexpr std::size_t kAnswerBytes = std::size_t{4} << 20;
constexpr std::size_t kConsumersHereMax = 1 << 16;

std::size_t bytes_of(const Element& element) {
  std::size_t bytes = 64;
  for (const Tensor& column : element) {
    bytes += 64 + column.bytes();
    if (column.dtype() == DType::kString)
      for (const std::string& text : column.string_values()) bytes += 32 + text.size();
  }
  return bytes;
}

}  // namespace

// The pipeline runs on the other thread, one piece of work at a time, and is shared with that work,
// which may end later than the job.
struct WorkerJob::Pipeline {
  Dataset dataset;
  std::optional<std::uint64_t> task;
  std::unique_ptr<DatasetIterator> iterator;
  std::vector<Element> read;
  bool ended = false;
};

WorkerJob::WorkerJob(WorkerJobHost host, const Described& job, WorkerJobOptions options)
    : host_(std::move(host)),
      mode_(job.mode),
      name_(job.name),
      options_(options),
      pipeline_(std::make_shared<Pipeline>()),
      ready_(std::max(1u, job.group)),
      seated_(ready_.size()),
      next_number_(host_.first_number),
      asked_(host_.reactor.now()) {
  pipeline_->dataset = parse_dataset(*job.description);
}

WorkerJob::~WorkerJob() = default;

void WorkerJob::begin() { tasks_.spawn(str("reading ", name_), produce()); }

// ---- reading ----

bool WorkerJob::room() const {
  if (held_.empty()) return tasks_held_.size() < options_.tasks_max;
  return held_.size() < options_.elements_max && counts_.bytes < options_.bytes_max &&
         tasks_held_.size() < options_.tasks_max && host_.reactor.now() - asked_ < options_.unasked;
}

kj::Promise<void> WorkerJob::change_before(Duration until) {
  const Duration left = std::max(Duration(0), until - host_.reactor.now());
  return changed_.wait().exclusiveJoin(host_.reactor.sleep(left));
}

// After an error this job is read no further, since the same would fail again; all consumers that
// ask get the error. The cause may be mended later, so get() begins anew after kFailedFor.
rpc::Task<void> WorkerJob::produce() {
  try {
    for (;;) {
      if (!room()) {
        auto change = changed_.wait();
        co_await kj::mv(change);
        continue;
      }
      if (!pipeline_->task) co_await begin_task();
      if (pipeline_->task) co_await read_some();
    }
  } catch (const CancelledError&) {
    throw;
  } catch (const Error& error) {
    error_ = rpc::error_text(std::current_exception());
    failed_at_ = host_.reactor.now();
    give_up_task();
    changed_.notify_all();
  }
}

// Treats the task as never received, so that the dispatcher deals it again. The old pipeline object
// is left alone, because the other thread may still use it if this was cancelled.
void WorkerJob::give_up_task() {
  if (pipeline_->task) drop(*pipeline_->task);
  pipeline_ = std::make_shared<Pipeline>(Pipeline{.dataset = pipeline_->dataset});
  round_.clear();
}

// There may be no task for the moment, or none any more.
rpc::Task<void> WorkerJob::begin_task() {
  if (host_.reactor.now() - asked_ >= options_.unasked) {
    auto change = changed_.wait();
    co_await kj::mv(change);
    co_return;
  }
  NextTask next = co_await host_.next_task(running());
  if (!next.task) {
    if (next.finished) {
      auto change = changed_.wait();
      co_await kj::mv(change);
    }
    co_return;
  }
  tasks_held_[next.task->number] = {};
  pipeline_->task = next.task->number;
  pipeline_->ended = false;
  std::function<void()> work = [pipeline = pipeline_, piece = next.task->piece, mode = mode_] {
    pipeline->iterator = open(dataset_of(pipeline->dataset, piece, mode));
  };
  auto opened = rpc::on_offload(host_.reactor, host_.offload, host_.lane, std::move(work));
  co_await kj::mv(opened);
}

rpc::Task<void> WorkerJob::read_some() {
  const std::uint64_t task = *pipeline_->task;
  const std::size_t most =
      std::min(kReadElements, std::max<std::size_t>(1, options_.elements_max - held_.size()));
  std::function<void()> work = [pipeline = pipeline_, most] {
    std::size_t bytes = 0;
    while (pipeline->read.size() < most && bytes < kReadBytes && !pipeline->ended) {
      auto element = pipeline->iterator->next();
      pipeline->ended = !element.has_value();
      if (!element) break;
      bytes += bytes_of(*element);
      pipeline->read.push_back(std::move(*element));
    }
  };
  auto read = rpc::on_offload(host_.reactor, host_.offload, host_.lane, std::move(work));
  co_await kj::mv(read);
  std::vector<Element> elements = std::exchange(pipeline_->read, {});
  const auto reading = tasks_held_.find(task);
  const bool dropped = reading == tasks_held_.end();
  if (!dropped) keep_rounds(task, std::move(elements));
  if (dropped || pipeline_->ended) {
    pipeline_->task.reset();
    pipeline_->iterator.reset();
    round_.clear();
  }
  if (dropped) co_return;
  reading->second.complete = pipeline_->ended;
  settle(task);
  changed_.notify_all();
}

void WorkerJob::keep_rounds(std::uint64_t task, std::vector<Element> elements) {
  for (Element& element : elements) {
    round_.push_back(std::move(element));
    if (round_.size() < ready_.size()) continue;
    for (Element& one : std::exchange(round_, {})) keep(task, std::move(one));
  }
}

void WorkerJob::keep(std::uint64_t task, Element element) {
  const std::size_t bytes = bytes_of(element);
  held_[next_number_] = {task, std::make_shared<const Element>(std::move(element)), bytes};
  ready_[place_of(next_number_)].insert(next_number_);
  ++next_number_;
  counts_.bytes += bytes;
  ++counts_.produced;
  Reading& reading = tasks_held_.at(task);
  ++reading.produced;
  ++reading.kept;
}

// ---- delivering ----

// If another consumer takes a place, the group has started over. Rounds of which some elements were
// already acknowledged can no longer be given to all of it, so what is left of them is dropped.
void WorkerJob::seat(std::uint32_t index, std::uint64_t consumer) {
  if (ready_.size() == 1 || seated_[index] == consumer) return;
  if (std::exchange(seated_[index], consumer) == 0) return;
  std::map<std::uint64_t, std::size_t> parts;  // by the first number of the round
  for (const auto& [number, held] : held_) ++parts[number - place_of(number)];
  for (const auto& [first, count] : parts) {
    if (count == ready_.size()) continue;
    std::vector<std::uint64_t> rest(ready_.size());
    std::iota(rest.begin(), rest.end(), first);
    acknowledge(rest);
  }
}

rpc::Task<Sent> WorkerJob::get(std::uint64_t connection, std::uint64_t consumer,
                               std::uint32_t index, std::size_t most) {
  auto self = shared_from_this();
  if (index >= ready_.size())
    throw InvalidArgumentError(str(name_, " has ", ready_.size(), " consumers a round, and this ",
                                   "one is number ", index, ", counted from 0"));
  asked_ = host_.reactor.now();
  changed_.notify_all();
  // A consumer uses one connection. If it calls on another, the earlier one is lost, even if this
  // side has not noticed.
  const auto known = connection_of_.find(consumer);
  if (known == connection_of_.end() && connection_of_.size() >= kConsumersHereMax)
    throw ResourceExhaustedError(
        str(name_, " has ", kConsumersHereMax, " consumers at this data worker already"));
  if (known != connection_of_.end() && known->second != connection)
    connection_ended(std::uint64_t{known->second});
  connection_of_[consumer] = connection;
  seat(index, consumer);
  std::set<std::uint64_t>& ready = ready_[index];
  if (error_ && host_.reactor.now() - failed_at_ >= kFailedFor) {
    error_.reset();
    begin();
  }
  const Duration until = host_.reactor.now() + kGetWithin;
  while (ready.empty() && !error_ && host_.reactor.now() < until) {
    auto change = change_before(until);
    co_await kj::mv(change);
  }
  asked_ = host_.reactor.now();
  Sent sent;
  // The consumer may have called on another connection meanwhile, and wants them there.
  if (const auto now = connection_of_.find(consumer);
      now == connection_of_.end() || now->second != connection)
    co_return sent;
  std::size_t bytes = 0;
  while (!ready.empty() && sent.elements.size() < most && bytes < kAnswerBytes) {
    const std::uint64_t number = *ready.begin();
    Held& held = held_.at(number);
    if (!sent.elements.empty() && bytes + held.bytes > kAnswerBytes) break;
    bytes += held.bytes;
    held.connection = connection;
    sent.elements.push_back({number, held.columns});
    ready.erase(ready.begin());
  }
  if (sent.elements.empty() && error_) sent.error = *error_;
  co_return sent;
}

void WorkerJob::acknowledge(const std::vector<std::uint64_t>& numbers) {
  asked_ = host_.reactor.now();
  for (const std::uint64_t number : numbers) {
    const auto held = held_.find(number);
    if (held == held_.end()) continue;
    const std::uint64_t task = held->second.task;
    ++counts_.acknowledged;
    forget(held);
    settle(task);
  }
  changed_.notify_all();
}

void WorkerJob::forget(std::map<std::uint64_t, Held>::iterator held) {
  counts_.bytes -= held->second.bytes;
  --tasks_held_.at(held->second.task).kept;
  ready_[place_of(held->first)].erase(held->first);
  held_.erase(held);
}

// Once; the task stays among those that run until the dispatcher has it on its disk.
void WorkerJob::settle(std::uint64_t task) {
  Reading& reading = tasks_held_.at(task);
  if (!reading.complete || reading.kept > 0 || reading.finishing) return;
  reading.finishing = true;
  tasks_.spawn(str("telling that a task of ", name_, " is done"),
               tell_finished(task, reading.produced));
}

rpc::Task<void> WorkerJob::tell_finished(std::uint64_t task, std::uint64_t elements) {
  co_await host_.finish(task, elements);
  tasks_held_.erase(task);
  changed_.notify_all();
}

void WorkerJob::connection_ended(std::uint64_t connection) {
  for (auto& [number, held] : held_) {
    if (held.connection != connection) continue;
    held.connection = 0;
    ready_[place_of(number)].insert(number);
    ++counts_.sent_again;
  }
  std::erase_if(connection_of_, [&](const auto& of) { return of.second == connection; });
  changed_.notify_all();
}

void WorkerJob::drop(std::uint64_t task) {
  const auto reading = tasks_held_.find(task);
  if (reading == tasks_held_.end() || reading->second.finishing) return;
  for (auto held = held_.begin(); held != held_.end();) {
    const auto at = held++;
    if (at->second.task == task) forget(at);
  }
  tasks_held_.erase(reading);
  changed_.notify_all();
}

std::vector<std::uint64_t> WorkerJob::running() const {
  std::vector<std::uint64_t> all;
  for (const auto& [number, reading] : tasks_held_) all.push_back(number);
  return all;
}

std::size_t WorkerJob::ready_count() const {
  std::size_t count = 0;
  for (const auto& ready : ready_) count += ready.size();
  return count;
}

WorkerJobCounts WorkerJob::counts() const {
  WorkerJobCounts counts = counts_;
  counts.tasks = tasks_held_.size();
  counts.ready = ready_count();
  counts.sent = held_.size() - counts.ready;
  return counts;
}

}  // namespace cairn::service
