#include "service/worker/data_worker.h"

#include "core/base/json.h"
#include "core/graph/wire/wire.h"
#include "rpc/loop/on_offload.h"
#include "service/service.capnp.h"

namespace cairn::service {
namespace {

using Client = wire::DataDispatcher::Client;
using rpc::Task;

Task<std::vector<TaskRef>> send_report(Client client, std::string address,
                                       std::vector<TaskRef> running) {
  auto request = client.reportRequest();
  request.setAddress(address);
  auto tasks = request.initRunning(static_cast<unsigned>(running.size()));
  for (unsigned i = 0; i < tasks.size(); ++i) {
    tasks[i].setJob(running[i].job);
    tasks[i].setNumber(running[i].number);
  }
  kj::Promise<capnp::Response<wire::DataDispatcher::ReportResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  std::vector<TaskRef> drop;
  for (auto task : wire::bounded(reply.getDrop(), kRunningMax, "tasks"))
    drop.push_back({task.getJob(), task.getNumber()});
  co_return drop;
}

Task<Described> ask_description(Client client, std::uint64_t job) {
  auto request = client.describeRequest();
  request.setJob(job);
  kj::Promise<capnp::Response<wire::DataDispatcher::DescribeResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  const auto bytes = reply.getDescription();
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.begin());
  Described described;
  described.mode = processing_mode(reply.getMode());
  described.description =
      std::make_shared<const std::vector<std::byte>>(begin, begin + bytes.size());
  described.name = wire::read_name(reply.getName());
  described.group = std::min(reply.getConsumers(), kGroupMax);
  co_return described;
}

Piece read_piece(wire::DataPiece::Reader in) {
  if (in.getKind() > static_cast<std::uint8_t>(Piece::Of::kShard))
    throw InvalidArgumentError(
        str("a task of kind ", unsigned{in.getKind()}, ": is the dispatcher newer?"));
  return {static_cast<Piece::Of>(in.getKind()),
          in.getBegin(),
          in.getEnd(),
          in.getWorkers(),
          in.getWorker(),
          in.getOrder()};
}

Task<NextTask> ask_next_task(Client client, std::uint64_t job, std::vector<std::uint64_t> running) {
  auto request = client.nextTaskRequest();
  request.setJob(job);
  auto numbers = request.initRunning(static_cast<unsigned>(running.size()));
  for (unsigned i = 0; i < numbers.size(); ++i) numbers.set(i, running[i]);
  kj::Promise<capnp::Response<wire::DataDispatcher::NextTaskResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  NextTask next;
  next.finished = reply.getFinished();
  if (reply.getFound()) next.task = DealtTask{reply.getNumber(), read_piece(reply.getPiece())};
  co_return next;
}

// A bool, because ask() gives a value.
Task<bool> send_finish(Client client, TaskRef task, std::uint64_t elements) {
  auto request = client.finishRequest();
  request.setJob(task.job);
  request.setNumber(task.number);
  request.setElements(elements);
  kj::Promise<capnp::Response<wire::DataDispatcher::FinishResults>> sent = request.send();
  auto reply = co_await kj::mv(sent);
  co_return true;
}

// A job gives far fewer elements than there are numbers between two jobs.
std::uint64_t first_number(std::uint64_t jobs_before, std::uint32_t group) {
  const std::uint64_t begin = jobs_before << 40;
  return begin - begin % std::max(1u, group) + 1;
}

}  // namespace

DataWorker::DataWorker(rpc::Reactor& reactor, rpc::Network& network, Offload& offload,
                       rpc::Hello hello, DataWorkerOptions options)
    : reactor_(reactor),
      offload_(offload),
      options_(std::move(options)),
      dispatcher_(std::make_unique<Link>(reactor, network, options_.dispatcher, std::move(hello),
                                         "the dispatcher", options_.link)) {
  if (options_.threads == 0) throw InvalidArgumentError("a data worker needs a thread to read on");
}

DataWorker::~DataWorker() = default;

void DataWorker::end() {
  tasks_.cancel_all();
  jobs_.clear();
}

void DataWorker::begin(std::string address) {
  address_ = std::move(address);
  tasks_.spawn("reporting to the dispatcher", report_on());
}

// ---- the dispatcher ----

// A worker outlives its dispatcher: it delivers what it has, and reports again when there is one.
Task<void> DataWorker::report_on() {
  for (;;) {
    std::string why;
    try {
      co_await report();
      if (away_) options_.log(LogLevel::kInfo, str(dispatcher_->name(), " is back"));
      away_ = false;
    } catch (const Error& error) {
      why = error.what();
    }
    if (!why.empty() && !away_) {
      away_ = true;
      options_.log(LogLevel::kWarning,
                   str("reporting to ", dispatcher_->name(), ": ", why, "; going on trying"));
    }
    put_away_silent();
    co_await reactor_.sleep(options_.report_interval);
  }
}

Task<void> DataWorker::report() {
  std::vector<TaskRef> running;
  for (const auto& [id, job] : jobs_)
    for (const std::uint64_t number : job->running())
      if (running.size() < kRunningMax) running.push_back({id, number});
  auto connection = co_await dispatcher_->connection();
  auto answer = reactor_.with_deadline(
      send_report(connection->bootstrap<wire::DataDispatcher>(), address_, std::move(running)),
      options_.report_deadline, "a report");
  std::vector<TaskRef> drop;
  try {
    drop = co_await kj::mv(answer);
  } catch (const DeadlineExceededError&) {
    dispatcher_->close(connection);
    throw;
  }
  for (const TaskRef& task : drop)
    if (const auto job = jobs_.find(task.job); job != jobs_.end()) job->second->drop(task.number);
}

// A dispatcher that was just started does not know this worker until the next report.
Task<NextTask> DataWorker::next_task(std::uint64_t job, std::vector<std::uint64_t> running) {
  for (;;) {
    std::function<Task<NextTask>(Client)> call = [job, running](Client client) {
      return ask_next_task(kj::mv(client), job, running);
    };
    try {
      NextTask next = co_await dispatcher_->ask(std::move(call), "asking for a task");
      co_return next;
    } catch (const FailedPreconditionError&) {
    } catch (const UnavailableError&) {
    }
    co_await reactor_.sleep(options_.report_interval);
  }
}

// Repeated until the dispatcher has it. NotFound means that the job is forgotten, and with it the
// task.
Task<void> DataWorker::finish(std::uint64_t job, std::uint64_t task, std::uint64_t elements) {
  for (;;) {
    std::function<Task<bool>(Client)> call = [job, task, elements](Client client) {
      return send_finish(kj::mv(client), {job, task}, elements);
    };
    std::string why;
    try {
      co_await dispatcher_->ask(std::move(call), "telling that a task is done");
      co_return;
    } catch (const NotFoundError&) {
      co_return;
    } catch (const Error& error) {
      why = error.what();
    }
    options_.log(LogLevel::kWarning, str("telling that task ", task, " of job ", job,
                                         " is done: ", why, "; going on trying"));
    co_await reactor_.sleep(options_.report_interval);
  }
}

// ---- consumers ----

Task<std::shared_ptr<WorkerJob>> DataWorker::job(std::uint64_t id) {
  if (const auto known = jobs_.find(id); known != jobs_.end()) co_return known->second;
  std::function<Task<Described>(Client)> call = [id](Client client) {
    return ask_description(kj::mv(client), id);
  };
  const Described described = co_await dispatcher_->ask(std::move(call), "asking what a job is");
  // Another call may have made it meanwhile.
  if (const auto known = jobs_.find(id); known != jobs_.end()) co_return known->second;
  const std::weak_ptr<DataWorker> self = weak_from_this();
  const std::uint64_t begun = jobs_begun_++;
  WorkerJobHost host{reactor_,
                     offload_,
                     begun % options_.threads,
                     first_number(begun, described.group),
                     [self, id](std::vector<std::uint64_t> running) {
                       return self.lock()->next_task(id, std::move(running));
                     },
                     [self, id](std::uint64_t task, std::uint64_t elements) {
                       return self.lock()->finish(id, task, elements);
                     }};
  auto made = std::make_shared<WorkerJob>(std::move(host), described, options_.job);
  jobs_[id] = made;
  made->begin();
  co_return made;
}

Task<Sent> DataWorker::get(std::uint64_t connection, std::uint64_t id, std::uint64_t consumer,
                           std::uint32_t index, std::size_t most) {
  auto self = shared_from_this();
  const auto asked = co_await job(id);
  Sent sent = co_await asked->get(connection, consumer, index, most);
  co_return sent;
}

Task<std::vector<PackedElement>> DataWorker::packed(std::uint64_t id, Sent sent) {
  auto self = shared_from_this();
  auto all = std::make_shared<std::vector<PackedElement>>();
  std::function<void()> work = [all, elements = std::move(sent.elements)] {
    for (const SentElement& element : elements) all->push_back(pack(*element.columns));
  };
  const auto job = jobs_.find(id);
  const std::size_t lane = job == jobs_.end() ? 0 : job->second->lane();
  auto done = rpc::on_offload(reactor_, offload_, lane, std::move(work));
  co_await kj::mv(done);
  co_return std::move(*all);
}

void DataWorker::acknowledge(std::uint64_t id, const std::vector<std::uint64_t>& numbers) {
  if (const auto job = jobs_.find(id); job != jobs_.end()) job->second->acknowledge(numbers);
}

void DataWorker::connection_ended(std::uint64_t connection) {
  for (const auto& [id, job] : jobs_) job->connection_ended(connection);
}

// Its tasks stay dealt to this worker; the next call of a consumer begins them anew.
void DataWorker::put_away_silent() {
  std::erase_if(jobs_, [this](const auto& entry) {
    return reactor_.now() - entry.second->asked() > options_.job_silence;
  });
}

std::string DataWorker::status_json() const {
  Json jobs = Json::array();
  for (const auto& [id, job] : jobs_) {
    const WorkerJobCounts counts = job->counts();
    jobs.push_back({{"id", id},
                    {"tasks", counts.tasks},
                    {"ready", counts.ready},
                    {"sent", counts.sent},
                    {"bytes", counts.bytes},
                    {"produced", counts.produced},
                    {"acknowledged", counts.acknowledged},
                    {"sent_again", counts.sent_again}});
  }
  return json_text({{"role", "worker"},
                    {"address", address_},
                    {"dispatcher", options_.dispatcher.str()},
                    {"dispatcher_away", away_},
                    {"jobs", jobs}});
}

}  // namespace cairn::service
