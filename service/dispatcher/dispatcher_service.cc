#include "service/dispatcher/dispatcher_service.h"

#include "core/graph/wire/wire.h"
#include "rpc/net/network.h"
#include "service/dispatcher/round_wire.h"
#include "service/service.capnp.h"

namespace cairn::service {
namespace {

using rpc::Role;
using rpc::Task;

std::vector<TaskRef> read_tasks(capnp::List<wire::DataTask>::Reader in) {
  std::vector<TaskRef> tasks;
  for (auto task : wire::bounded(in, kRunningMax, "tasks"))
    tasks.push_back({task.getJob(), task.getNumber()});
  return tasks;
}

void write(wire::DataPiece::Builder out, const Piece& piece) {
  out.setKind(static_cast<std::uint8_t>(piece.of));
  out.setBegin(piece.begin);
  out.setEnd(piece.end);
  out.setWorkers(piece.workers);
  out.setWorker(piece.worker);
  out.setOrder(piece.order);
}

void write(capnp::List<std::uint32_t>::Builder out, const std::vector<std::uint32_t>& numbers) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, numbers[i]);
}

class DispatcherService final : public wire::DataDispatcher::Server {
 public:
  DispatcherService(std::shared_ptr<Dispatcher> dispatcher, rpc::Connection& connection)
      : dispatcher_(std::move(dispatcher)), connection_(connection) {}

 protected:
  kj::Promise<void> openJob(OpenJobContext context) override {
    return connection_.guard(open_job(context));
  }
  kj::Promise<void> watch(WatchContext context) override {
    return connection_.guard(watch_job(context));
  }
  kj::Promise<void> leave(LeaveContext context) override {
    return connection_.guard(leave_job(context));
  }
  kj::Promise<void> rounds(RoundsContext context) override {
    return connection_.guard(tell_rounds(context));
  }
  kj::Promise<void> nextTask(NextTaskContext context) override {
    return connection_.guard(next_task(context));
  }
  kj::Promise<void> finish(FinishContext context) override {
    return connection_.guard(finish_task(context));
  }

  kj::Promise<void> report(ReportContext context) override {
    return rpc::at_once([&] {
      connection_.allow({Role::kDataWorker}, "DataDispatcher.report");
      auto in = context.getParams();
      // One spelling, as in the list of workers, and none that a consumer could not read.
      const DataWorkerPlace place{rpc::Address::parse(wire::read_name(in.getAddress())).str(),
                                  connection_.peer().incarnation};
      const auto drop = dispatcher_->report(place, read_tasks(in.getRunning()));
      auto out = context.getResults().initDrop(static_cast<unsigned>(drop.size()));
      for (unsigned i = 0; i < out.size(); ++i) {
        out[i].setJob(drop[i].job);
        out[i].setNumber(drop[i].number);
      }
    });
  }
  kj::Promise<void> describe(DescribeContext context) override {
    return rpc::at_once([&] {
      connection_.allow({Role::kDataWorker}, "DataDispatcher.describe");
      const Described job = dispatcher_->describe(context.getParams().getJob());
      auto out = context.getResults();
      out.setMode(static_cast<std::uint8_t>(job.mode));
      out.setDescription(
          {reinterpret_cast<const kj::byte*>(job.description->data()), job.description->size()});
      out.setName(job.name);
      out.setConsumers(job.group);
    });
  }
  kj::Promise<void> status(StatusContext context) override {
    return rpc::at_once([&] { context.getResults().setJson(status_json(dispatcher_->book())); });
  }

 private:
  void allow_consumer(std::string_view call) const {
    connection_.allow({Role::kCoordinator, Role::kWorker, Role::kTool}, call);
  }

  Task<void> open_job(OpenJobContext context) {
    allow_consumer("DataDispatcher.openJob");
    auto in = context.getParams();
    const auto bytes = in.getDescription();
    if (bytes.size() > kDescriptionBytesMax)
      throw InvalidArgumentError(str("the dataset's description has ", bytes.size(), " bytes, ",
                                     kDescriptionBytesMax,
                                     " are possible: put its tensors into files"));
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.begin());
    Bytes description = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes.size());
    const ProcessingMode mode = processing_mode(in.getMode());
    std::string key = wire::read_name(in.getKey());
    const std::uint64_t job =
        co_await dispatcher_->open_job(std::move(key), mode, description, in.getConsumers());
    context.getResults().setJob(job);
  }

  Task<void> watch_job(WatchContext context) {
    allow_consumer("DataDispatcher.watch");
    auto in = context.getParams();
    const Watched watched =
        co_await dispatcher_->watch(in.getJob(), in.getConsumer(), in.getHanded(), in.getSeen());
    auto out = context.getResults();
    out.setChange(watched.change);
    out.setFinished(watched.finished);
    auto workers = out.initWorkers(static_cast<unsigned>(watched.workers.size()));
    for (unsigned i = 0; i < workers.size(); ++i) {
      workers[i].setAddress(watched.workers[i].address);
      workers[i].setIncarnation(watched.workers[i].incarnation.number);
    }
  }

  Task<void> leave_job(LeaveContext context) {
    allow_consumer("DataDispatcher.leave");
    auto in = context.getParams();
    const auto counts = co_await dispatcher_->leave(in.getJob(), in.getConsumer(), in.getHanded());
    context.getResults().setElements(counts.first);
    context.getResults().setHanded(counts.second);
  }

  Task<void> tell_rounds(RoundsContext context) {
    allow_consumer("DataDispatcher.rounds");
    auto in = context.getParams();
    RoundReport report;
    report.index = in.getIndex();
    report.consumer = in.getConsumer();
    report.group = in.getGroup();
    report.sequence = in.getSequence();
    report.base = in.getBase();
    report.known = read_rounds(in.getKnown());
    for (Round& round : read_rounds(in.getHere())) report.here.insert(std::move(round));
    report.taken = in.getTaken();
    const bool wait = in.getWait();
    const RoundOrder order = co_await dispatcher_->rounds(in.getJob(), std::move(report), wait);
    auto out = context.getResults();
    out.setGroup(order.group);
    out.setBase(order.base);
    out.setBegin(order.begin);
    write(out.initRounds(static_cast<unsigned>(order.rounds.size())), order.rounds);
    write(out.initMissing(static_cast<unsigned>(order.missing.size())), order.missing);
    write(out.initBehind(static_cast<unsigned>(order.behind.size())), order.behind);
  }

  Task<void> next_task(NextTaskContext context) {
    connection_.allow({Role::kDataWorker}, "DataDispatcher.nextTask");
    auto in = context.getParams();
    std::vector<std::uint64_t> running;
    for (const std::uint64_t number : wire::bounded(in.getRunning(), kRunningMax, "tasks"))
      running.push_back(number);
    const NextTask next = co_await dispatcher_->next_task(
        in.getJob(), connection_.peer().incarnation, std::move(running));
    auto out = context.getResults();
    out.setFinished(next.finished);
    if (!next.task) co_return;
    out.setFound(true);
    out.setNumber(next.task->number);
    write(out.initPiece(), next.task->piece);
  }

  Task<void> finish_task(FinishContext context) {
    connection_.allow({Role::kDataWorker}, "DataDispatcher.finish");
    auto in = context.getParams();
    co_await dispatcher_->finish(in.getJob(), in.getNumber(), in.getElements());
  }

  std::shared_ptr<Dispatcher> dispatcher_;
  rpc::Connection& connection_;
};

}  // namespace

std::string status_json(const JobBook& book) {
  Json workers = Json::array(), jobs = Json::array();
  for (const DataWorkerPlace& worker : book.workers()) workers.push_back(worker.address);
  for (const auto& [id, job] : book.jobs())
    jobs.push_back({{"id", id},
                    {"name", job.key},
                    {"mode", name_of(job.mode)},
                    {"finished", job.finished()},
                    {"tasks_done", job.done},
                    {"tasks_dealt", job.dealt.size()},
                    {"elements_done", job.elements},
                    {"elements_handed_out", job.handed()},
                    {"consumers", job.consumers.size()},
                    {"num_consumers", job.group}});
  return json_text({{"role", "dispatcher"}, {"workers", workers}, {"jobs", jobs}});
}

capnp::Capability::Client make_dispatcher_service(std::shared_ptr<Dispatcher> dispatcher,
                                                  rpc::Connection& connection) {
  return wire::DataDispatcher::Client(
      kj::heap<DispatcherService>(std::move(dispatcher), connection));
}

}  // namespace cairn::service
