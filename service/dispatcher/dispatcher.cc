#include "service/dispatcher/dispatcher.h"

#include <algorithm>
#include <random>

#include "data/stage/dataset_wire.h"
#include "rpc/loop/on_offload.h"
#include "rpc/net/network.h"
#include "rpc/server/task_addresses.h"

namespace cairn::service {
namespace {

// How long a question about changes is kept open.
constexpr Duration kAnswerWithin = std::chrono::seconds(1);
constexpr int kLooksPerSilence = 8;

// A dataset whose file is being written for a job that the book does not have yet.
class Opening {
 public:
  Opening(std::multiset<std::uint64_t>& all, std::uint64_t id) : all_(all), at_(all.insert(id)) {}
  ~Opening() { all_.erase(at_); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  std::multiset<std::uint64_t>& all_;
  std::multiset<std::uint64_t>::iterator at_;
};

std::vector<std::string> canonical(std::vector<std::string> addresses) {
  std::vector<rpc::TaskAddress> tasks;
  for (std::string& address : addresses) {
    address = rpc::Address::parse(address).str();
    tasks.push_back({str("data worker ", tasks.size(), " of --workers"), address});
  }
  rpc::verify_distinct(tasks);
  return addresses;
}

}  // namespace

std::uint64_t random_number() {
  std::random_device device;
  std::uint64_t drawn = 0;
  while (drawn == 0) drawn = (std::uint64_t{device()} << 32) | device();
  return drawn;
}

Dispatcher::Dispatcher(rpc::Reactor& reactor, Offload& offload, Disk& disk,
                       DispatcherOptions options)
    : reactor_(reactor),
      offload_(offload),
      options_(std::move(options)),
      book_(canonical(options_.workers),
            options_.first_job == 0 ? random_number() >> 16 : options_.first_job),
      journal_(reactor, offload, disk, options_.journal, [this] { return book_.json(); }),
      looked_(reactor.now()) {
  load();
}

void Dispatcher::load() {
  const Json journal = journal_.load();
  if (journal.is_null()) return;
  book_.load(journal, reactor_.clock().now());
  for (const std::uint64_t id : used_datasets()) {
    auto bytes = std::make_shared<const std::vector<std::byte>>(journal_.load_dataset(id));
    parse_dataset(*bytes);  // refuses damaged ones before any are sent
    datasets_[id] = std::move(bytes);
  }
  options_.log(LogLevel::kInfo, str("goes on from its journal in ", options_.journal, " with ",
                                    book_.jobs().size(), " jobs"));
}

std::set<std::uint64_t> Dispatcher::used_datasets() const {
  std::set<std::uint64_t> used;
  for (const auto& [id, job] : book_.jobs()) used.insert(job.dataset);
  used.insert(opening_.begin(), opening_.end());
  return used;
}

// ---- consumers ----

rpc::Task<std::uint64_t> Dispatcher::open_job(std::string key, ProcessingMode mode,
                                              Bytes description, std::uint32_t group) {
  if (key.empty() || key.size() > 1024)
    throw InvalidArgumentError(
        str("a job's name has ", key.size(), " bytes, from 1 to 1024 are possible"));
  verify_group(group, 0, key);
  const Dataset dataset = parse_dataset(*description);
  JobRequest request{
      .key = key, .mode = mode, .dataset = fingerprint(dataset), .plan = {}, .group = group};
  auto self = shared_from_this();
  if (mode == ProcessingMode::kDynamic) {
    auto plan = std::make_shared<SplitPlan>();
    std::function<void()> work = [plan, dataset, group] {
      *plan = plan_splits(dataset, std::max<std::int64_t>(1, group));
    };
    auto planned = rpc::on_offload(reactor_, offload_, 0, std::move(work));
    co_await kj::mv(planned);
    request.plan = *plan;
  } else if (deals_by_list(mode) && !options_.workers.empty()) {
    const auto workers = static_cast<std::int64_t>(options_.workers.size());
    dataset_of(dataset, {.of = Piece::Of::kShard, .workers = workers}, mode);  // refuses
  }
  // The dataset's file comes before the job that names it.
  const Opening opening(opening_, request.dataset);
  if (!datasets_.contains(request.dataset)) {
    co_await journal_.keep_dataset(request.dataset, description);
    datasets_[request.dataset] = description;
  }
  const std::size_t before = book_.jobs().size();
  const std::uint64_t id = book_.open(request, reactor_.clock().now()).id;
  if (book_.jobs().size() > before)
    options_.log(LogLevel::kInfo, str(book_.job(id).name(), " begins in mode ", name_of(mode)));
  changed_.notify_all();
  co_await journal_.commit();
  co_return id;
}

kj::Promise<void> Dispatcher::change_before(Duration until, rpc::Signal& of) {
  const Duration left = std::max(Duration(0), until - reactor_.now());
  return of.wait().exclusiveJoin(reactor_.sleep(left));
}

rpc::Task<Watched> Dispatcher::watch(std::uint64_t job, std::uint64_t consumer,
                                     std::uint64_t handed, std::uint64_t seen) {
  auto self = shared_from_this();
  const Duration until = reactor_.now() + kAnswerWithin;
  book_.heard(job, consumer, {handed}, reactor_.clock().now());
  // A `seen` that differs may also come from the dispatcher before this one: then the list is sent
  // at once.
  while (seen == book_.changes() && !book_.job(job).finished() && reactor_.now() < until) {
    auto change = change_before(until, changed_);
    co_await kj::mv(change);
  }
  co_return Watched{book_.changes(), book_.workers(), book_.job(job).finished()};
}

rpc::Task<std::pair<std::uint64_t, std::uint64_t>> Dispatcher::leave(std::uint64_t job,
                                                                     std::uint64_t consumer,
                                                                     std::uint64_t handed) {
  auto self = shared_from_this();
  book_.heard(job, consumer, {handed, true}, reactor_.clock().now());
  co_await journal_.commit();
  const DataJob& left = book_.job(job);
  co_return std::pair(left.elements, left.handed());
}

rpc::Task<RoundOrder> Dispatcher::rounds(std::uint64_t job, RoundReport report, bool wait) {
  auto self = shared_from_this();
  const Duration until = reactor_.now() + kAnswerWithin;
  const DataJob& read = book_.job(job);
  if (read.group == 0) throw FailedPreconditionError(str(read.name(), " is not read in rounds"));
  book_.heard(job, report.consumer, {}, reactor_.clock().now());
  RoundBook& before = rounds_.try_emplace(job, read.group).first->second;
  const std::uint64_t end = before.end();
  const std::uint64_t from = before.report(report, reactor_.clock().now(), random_number());
  const std::uint64_t group = before.group();
  if (before.end() != end) rounds_changed_.notify_all();
  for (;;) {
    const auto now = rounds_.find(job);
    if (now == rounds_.end()) throw NotFoundError("the job was forgotten meanwhile");
    const RoundBook& book = now->second;
    if (!wait || book.group() != group || book.end() != from || reactor_.now() >= until)
      co_return book.order(report.index, group, from, reactor_.clock().now() - options_.silence);
    auto change = change_before(until, rounds_changed_);
    co_await kj::mv(change);
  }
}

// ---- data workers ----

std::vector<TaskRef> Dispatcher::report(const DataWorkerPlace& worker,
                                        const std::vector<TaskRef>& running) {
  const std::uint64_t before = book_.changes();
  auto drop = book_.report(worker, running, reactor_.clock().now());
  if (book_.changes() != before) {
    options_.log(LogLevel::kInfo, str("data worker ", worker.address, " is here"));
    changed_.notify_all();
  }
  return drop;
}

Described Dispatcher::describe(std::uint64_t job) const {
  const DataJob& known = book_.job(job);
  return {known.mode, datasets_.at(known.dataset), known.name(), known.group};
}

// A deal is on the disk before the worker hears of it: after a restart the split is not dealt to
// another while this one reads it.
rpc::Task<NextTask> Dispatcher::next_task(std::uint64_t job, ProcessIncarnation worker,
                                          std::vector<std::uint64_t> running) {
  auto self = shared_from_this();
  const Duration until = reactor_.now() + kAnswerWithin;
  for (;;) {
    auto task = book_.next_task(job, worker, running);
    if (task) {
      co_await journal_.commit();
      co_return NextTask{std::move(task), false};
    }
    const bool finished = book_.job(job).finished();
    if (finished || reactor_.now() >= until) co_return NextTask{{}, finished};
    auto change = change_before(until, changed_);
    co_await kj::mv(change);
  }
}

rpc::Task<void> Dispatcher::finish(std::uint64_t job, std::uint64_t task, std::uint64_t elements) {
  auto self = shared_from_this();
  const bool first = book_.finish(job, task, elements);
  // A task that was answered as done must stay so.
  co_await journal_.commit();
  if (first) changed_.notify_all();
}

// ---- time ----

rpc::Task<void> Dispatcher::look_after() {
  for (;;) {
    co_await reactor_.sleep(options_.silence / kLooksPerSilence);
    look();
  }
}

// A loop that was itself held up has missed the workers' reports, and waits another round.
void Dispatcher::look() {
  const Duration since = reactor_.now() - looked_;
  looked_ = reactor_.now();
  if (since > options_.silence / 2) return;
  const TimePoint now = reactor_.clock().now();
  const auto lost = book_.lose_silent(now - options_.silence);
  for (const DataWorkerPlace& worker : lost)
    options_.log(LogLevel::kWarning,
                 str("data worker ", worker.address, " was silent for ",
                     fixed(std::chrono::duration<double>(options_.silence).count(), 1),
                     " s and is lost: what it had not delivered is dealt again"));
  // Also for the places that waits which ended otherwise have left behind.
  changed_.notify_all();
  const auto gone = book_.forget(now - options_.job_silence, now - options_.left_silence);
  if (gone.empty()) return;
  for (const DataJob& job : gone) rounds_.erase(job.id);
  for (const DataJob& job : gone)
    options_.log(LogLevel::kInfo, str(job.name(), " is forgotten: its consumers have gone"));
  const auto used = used_datasets();
  std::erase_if(datasets_, [&](const auto& entry) { return !used.contains(entry.first); });
  journal_.remove_unused(used);
}

}  // namespace cairn::service
