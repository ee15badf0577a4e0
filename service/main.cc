// cairn-data: a dispatcher or a data worker of the data service.
#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>

#include "core/base/log.h"
#include "rpc/server/server_main.h"
#include "service/dispatcher/dispatcher_server.h"
#include "service/worker/data_worker_server.h"

namespace {

using cairn::str;
using cairn::rpc::Address;
using cairn::rpc::RunningServer;
using cairn::rpc::ServerFlags;

// Flags of this program beside those of every server.
struct DataFlags {
  std::string role;
  std::string journal;
  std::vector<std::string> workers;
  double silence_seconds = 5;
  std::string dispatcher;
  std::string advertise;
  std::size_t buffer_elements = cairn::service::WorkerJobOptions().elements_max;
};

cairn::service::Door door_of(const ServerFlags& flags) {
  return {.address = Address::parse(flags.listen),
          .cluster = flags.cluster_id,
          .token = flags.token,
          .insecure = flags.insecure,
          .index = flags.index};
}

// Either server as the common main program sees it. Only a signal ends the program.
template <typename Server>
class Running final : public RunningServer {
 public:
  template <typename Make>
  Running(std::size_t threads, Make make)
      : offload_(cairn::make_thread_offload(threads)), server_(make(*offload_)) {}
  const Address& address() const override { return server_->address(); }
  void on_shutdown(std::function<void(const std::string&)>) override {}
  void stop() override { server_->stop(); }
  std::string status_json() const override { return server_->status_json(); }
  std::vector<cairn::rpc::NamedLoop> loops() const override { return {}; }

 private:
  std::unique_ptr<cairn::Offload> offload_;
  std::unique_ptr<Server> server_;
};

std::unique_ptr<RunningServer> start_dispatcher(cairn::rpc::Reactor& reactor,
                                                cairn::rpc::Network& network,
                                                const ServerFlags& flags, const DataFlags& data) {
  using cairn::service::DispatcherServer;
  cairn::service::DispatcherOptions options;
  options.journal = data.journal;
  options.workers = data.workers;
  options.silence =
      std::chrono::milliseconds(static_cast<std::int64_t>(data.silence_seconds * 1e3));
  if (data.journal.empty())
    cairn::log_warning("no --journal: a dispatcher that ends forgets its jobs");
  return std::make_unique<Running<DispatcherServer>>(1, [&](cairn::Offload& offload) {
    return std::make_unique<DispatcherServer>(reactor, network, offload, cairn::system_disk(),
                                              door_of(flags), options);
  });
}

std::unique_ptr<RunningServer> start_worker(cairn::rpc::Reactor& reactor,
                                            cairn::rpc::Network& network, const ServerFlags& flags,
                                            const DataFlags& data) {
  using cairn::service::DataWorkerServer;
  if (data.dispatcher.empty())
    throw cairn::InvalidArgumentError(
        "a data worker needs the address of its dispatcher: give --dispatcher HOST:PORT");
  cairn::service::DataWorkerOptions options;
  options.dispatcher = Address::parse(data.dispatcher);
  options.advertised = data.advertise;
  options.threads = flags.threads;
  options.job.elements_max = data.buffer_elements;
  return std::make_unique<Running<DataWorkerServer>>(flags.threads, [&](cairn::Offload& offload) {
    return std::make_unique<DataWorkerServer>(reactor, network, offload, door_of(flags), options);
  });
}

void add_flags(CLI::App& app, DataFlags& data) {
  app.add_option("--role", data.role, "dispatcher, or worker")
      ->required()
      ->check(CLI::IsMember({"dispatcher", "worker"}));
  app.add_option(
         "--journal", data.journal,
         "Dispatcher: folder of its journal, from which it goes on when it is started again")
      ->group("Dispatcher");
  app.add_option("--workers", data.workers,
                 "Addresses of the data workers, by which modes FILE, DATA, FILE_OR_DATA and HINT "
                 "deal the data out")
      ->delimiter(',')
      ->group("Dispatcher");
  app.add_option("--silence", data.silence_seconds,
                 "Seconds after which a silent data worker is lost")
      ->check(CLI::Range(0.5, 3600.0))
      ->group("Dispatcher");
  app.add_option("--dispatcher", data.dispatcher, "Address of the dispatcher: host:port")
      ->group("Worker");
  app.add_option("--advertise", data.advertise,
                 "Address at which consumers reach this worker, if it is not that of --listen")
      ->group("Worker");
  app.add_option("--buffer", data.buffer_elements,
                 "Elements of a job that are kept until consumers have acknowledged them")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->group("Worker");
}

// The role is needed before the flags are parsed: TF_CONFIG is read by it.
bool is_dispatcher(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--role=dispatcher") == 0) return true;
    if (std::strcmp(argv[i], "--role") == 0 && i + 1 < argc)
      return std::strcmp(argv[i + 1], "dispatcher") == 0;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  DataFlags data;
  const bool dispatcher = is_dispatcher(argc, argv);
  cairn::rpc::ServerProgram program;
  program.role = dispatcher ? cairn::rpc::Role::kDispatcher : cairn::rpc::Role::kDataWorker;
  program.name = "cairn-data";
  program.description =
      "The data service: a dispatcher deals datasets out to data workers, which run the pipelines "
      "and send the elements to any number of consumers.";
  program.threads_flag = "--threads";
  program.threads_help = "Worker: threads that run pipelines, of one job each";
  program.add_flags = [&data](CLI::App& app) { add_flags(app, data); };
  program.start = [&](cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
                      const ServerFlags& flags) {
    return dispatcher ? start_dispatcher(reactor, network, flags, data)
                      : start_worker(reactor, network, flags, data);
  };
  return cairn::rpc::server_main(argc, argv, program);
}
