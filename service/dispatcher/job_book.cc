#include "service/dispatcher/job_book.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::service {
namespace {

constexpr std::size_t kJobsMax = 1024, kConsumersMax = 16384;

}  // namespace

bool DataJob::finished() const {
  if (!dealt.empty() || !again.empty()) return false;
  // In mode OFF a lost worker's task is lost with it. The job ends when no task is left and at
  // least one worker has delivered the whole dataset.
  if (mode == ProcessingMode::kOff) return done > 0;
  if (mode != ProcessingMode::kDynamic) return next > 0;
  return plan.tasks() >= 0 && next >= static_cast<std::uint64_t>(plan.tasks());
}

std::uint64_t DataJob::handed() const {
  std::uint64_t sum = 0;
  for (const auto& [id, consumer] : consumers) sum += consumer.handed;
  return sum;
}

std::string DataJob::name() const {
  return named() ? str("job \"", key, "\"") : str("the job without a name ", id);
}

// ---- workers ----

std::vector<TaskRef> JobBook::report(const DataWorkerPlace& worker,
                                     const std::vector<TaskRef>& running, TimePoint now) {
  auto seat = seats_.find(worker.address);
  if (seat != seats_.end() && seat->second.incarnation != worker.incarnation) {
    lose({worker.address, seat->second.incarnation});
    seat = seats_.end();
  }
  if (seat == seats_.end()) {
    if (seats_.size() >= kWorkersMax)
      throw ResourceExhaustedError(
          str("the dispatcher has ", kWorkersMax, " data workers already"));
    seats_[worker.address] = {worker.incarnation, now};
    welcome(worker);
    ++changes_;
  } else {
    seat->second.heard = now;
  }
  std::vector<TaskRef> drop;
  for (const TaskRef& task : running)
    if (!adopt(worker, task)) drop.push_back(task);
  return drop;
}

// The task is this worker's. One that was taken from it, because it was silent for too long, is
// given back unless another worker has it by now.
bool JobBook::adopt(const DataWorkerPlace& worker, const TaskRef& task) {
  const auto found = jobs_.find(task.job);
  if (found == jobs_.end()) return false;
  DataJob& job = found->second;
  if (job.again.erase(task.number) > 0) job.dealt[task.number] = worker;
  const auto dealt = job.dealt.find(task.number);
  return dealt != job.dealt.end() && dealt->second == worker;
}

// A worker gives all of the dataset to every job in mode OFF, whenever it comes.
void JobBook::welcome(const DataWorkerPlace& worker) {
  for (auto& [id, job] : jobs_) {
    if (job.mode != ProcessingMode::kOff || job.finished()) continue;
    const auto has = [&](const auto& entry) { return entry.second == worker; };
    if (std::ranges::none_of(job.dealt, has)) job.dealt[job.next++] = worker;
  }
}

void JobBook::lose(const DataWorkerPlace& worker) {
  for (auto& [id, job] : jobs_) {
    for (auto entry = job.dealt.begin(); entry != job.dealt.end();) {
      if (entry->second != worker) {
        ++entry;
        continue;
      }
      if (job.mode != ProcessingMode::kOff) job.again.insert(entry->first);
      entry = job.dealt.erase(entry);
    }
  }
  seats_.erase(worker.address);
  ++changes_;
}

std::vector<DataWorkerPlace> JobBook::lose_silent(TimePoint before) {
  std::vector<DataWorkerPlace> lost;
  for (const auto& [address, seat] : seats_)
    if (seat.heard < before) lost.push_back({address, seat.incarnation});
  for (const DataWorkerPlace& worker : lost) lose(worker);
  return lost;
}

std::vector<DataWorkerPlace> JobBook::workers() const {
  std::vector<DataWorkerPlace> all;
  for (const auto& [address, seat] : seats_) all.push_back({address, seat.incarnation});
  return all;
}

std::optional<DataWorkerPlace> JobBook::place_of(ProcessIncarnation worker) const {
  for (const auto& [address, seat] : seats_)
    if (seat.incarnation == worker) return DataWorkerPlace{address, worker};
  return std::nullopt;
}

// ---- jobs ----

const DataJob& JobBook::open(const JobRequest& request, TimePoint now) {
  if (const auto known = keys_.find(request.key); known != keys_.end()) {
    DataJob& job = jobs_.at(known->second);
    if (job.dataset != request.dataset || job.mode != request.mode)
      throw FailedPreconditionError(str(
          job.name(), " reads ", job.dataset != request.dataset ? "another dataset" : "in mode ",
          job.dataset != request.dataset ? "" : name_of(job.mode),
          ": join it with the dataset and the mode that it was made with, or choose another "
          "name"));
    if (job.group != request.group)
      throw FailedPreconditionError(
          str(job.name(), " is read ",
              job.group == 0 ? "by consumers that read for themselves"
                             : str("in rounds by a group of ", job.group, " consumers"),
              ": join it with num_consumers = ", job.group, ", or choose another name"));
    job.seen = now;
    return job;
  }
  if (jobs_.size() >= kJobsMax)
    throw ResourceExhaustedError(
        str("the dispatcher has ", kJobsMax,
            " jobs: one is forgotten some minutes after its last consumer has gone"));
  DataJob job{.key = request.key, .mode = request.mode, .dataset = request.dataset};
  if (deals_by_list(job.mode)) {
    if (listed_.empty())
      throw NotFoundError(
          str("mode ", name_of(job.mode),
              " deals the data out by the dispatcher's list of workers, "
              "and that is empty: start cairn-data --role dispatcher with --workers and the "
              "address of each, or use mode DYNAMIC"));
    job.next = listed_.size();
    for (std::uint64_t i = 0; i < job.next; ++i) job.again.insert(i);
  }
  job.plan = request.plan;
  job.group = request.group;
  job.id = next_job_++;
  job.seen = now;
  keys_[job.key] = job.id;
  DataJob& made = jobs_[job.id] = std::move(job);
  if (made.mode == ProcessingMode::kOff)
    for (const DataWorkerPlace& worker : workers()) made.dealt[made.next++] = worker;
  return made;
}

DataJob& JobBook::at(std::uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end())
    throw NotFoundError(str("the dispatcher has no job ", id,
                            ": it was forgotten, or the dispatcher has lost its journal; begin "
                            "the job anew"));
  return found->second;
}
const DataJob& JobBook::job(std::uint64_t id) const { return const_cast<JobBook*>(this)->at(id); }

std::optional<std::uint64_t> JobBook::choose(const DataJob& job,
                                             const DataWorkerPlace& worker) const {
  if (deals_by_list(job.mode)) {
    for (const std::uint64_t number : job.again)
      if (number < listed_.size() && listed_[number] == worker.address) return number;
    return std::nullopt;
  }
  if (!job.again.empty()) return *job.again.begin();
  if (job.mode != ProcessingMode::kDynamic) return std::nullopt;
  const std::int64_t tasks = job.plan.tasks();
  if (tasks >= 0 && job.next >= static_cast<std::uint64_t>(tasks)) return std::nullopt;
  return job.next;
}

DealtTask JobBook::dealt_task(const DataJob& job, std::uint64_t number) const {
  const auto order = static_cast<std::int64_t>(number);
  if (job.mode == ProcessingMode::kDynamic) return {number, job.plan.piece(order)};
  if (job.mode == ProcessingMode::kOff)
    return {number, Piece{.of = Piece::Of::kAll, .order = order}};
  return {number, Piece{.of = Piece::Of::kShard,
                        .workers = static_cast<std::int64_t>(listed_.size()),
                        .worker = order,
                        .order = order}};
}

std::optional<DealtTask> JobBook::next_task(std::uint64_t id, ProcessIncarnation incarnation,
                                            const std::vector<std::uint64_t>& running) {
  DataJob& job = at(id);
  const auto worker = place_of(incarnation);
  if (!worker)
    throw FailedPreconditionError(
        "the dispatcher does not know this data worker: it has to report first");
  for (const auto& [number, holder] : job.dealt)
    if (holder == *worker && std::ranges::find(running, number) == running.end())
      return dealt_task(job, number);
  const auto chosen = choose(job, *worker);
  if (!chosen) return std::nullopt;
  if (job.again.erase(*chosen) == 0) job.next = *chosen + 1;
  job.dealt[*chosen] = *worker;
  return dealt_task(job, *chosen);
}

bool JobBook::finish(std::uint64_t id, std::uint64_t task, std::uint64_t elements) {
  DataJob& job = at(id);
  if (job.dealt.erase(task) + job.again.erase(task) == 0) return false;
  ++job.done;
  job.elements += elements;
  if (job.finished()) ++changes_;
  return true;
}

void JobBook::heard(std::uint64_t id, std::uint64_t consumer, ConsumerRecord record,
                    TimePoint now) {
  DataJob& job = at(id);
  if (job.consumers.size() >= kConsumersMax && !job.consumers.contains(consumer))
    throw ResourceExhaustedError(str(job.name(), " has had ", kConsumersMax, " consumers already"));
  ConsumerRecord& kept = job.consumers[consumer];
  kept.handed = std::max(kept.handed, record.handed);
  kept.left |= record.left;
  job.seen = now;
}

std::vector<DataJob> JobBook::forget(TimePoint before, TimePoint left_before) {
  std::vector<DataJob> gone;
  for (const auto& [id, job] : jobs_) {
    const bool left = !job.named() && !job.consumers.empty() &&
                      std::ranges::all_of(
                          job.consumers, [](const auto& consumer) { return consumer.second.left; });
    if (job.seen < (left ? left_before : before)) gone.push_back(job);
  }
  for (const DataJob& job : gone) {
    keys_.erase(job.key);
    jobs_.erase(job.id);
  }
  return gone;
}

}  // namespace cairn::service
