// cairn-worker: runs closures for a coordinator.
#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/kernels/chosen_devices.h"
#include "rpc/server/server_main.h"
#include "service/consumer/consumers.h"
#include "worker/worker_server.h"

namespace {

// The worker as the common main program of ps and worker sees it.
class Running final : public cairn::rpc::RunningServer {
 public:
  Running(cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
          cairn::worker::WorkerOptions options, cairn::service::ConsumersOptions reading)
      : consumers_(std::move(reading)),
        server_(reactor, network, with_consumers(std::move(options))) {}
  const cairn::rpc::Address& address() const override { return server_.address(); }
  void on_shutdown(std::function<void(const std::string&)> handler) override {
    server_.on_shutdown(std::move(handler));
  }
  // A lane that waits for an element would keep the server from ending.
  void stop() override {
    consumers_.stop();
    server_.stop();
  }
  std::string status_json() const override { return server_.status_json(); }
  std::vector<cairn::rpc::NamedLoop> loops() const override { return server_.loops(); }

 private:
  cairn::worker::WorkerOptions with_consumers(cairn::worker::WorkerOptions options) const {
    options.open_elements = consumers_.opener();
    return options;
  }
  cairn::service::Consumers consumers_;
  cairn::worker::WorkerServer server_;
};

// The device that lanes compute on, and whether results must repeat.
struct Computing {
  std::string device = "auto";
  bool deterministic = false;
};

std::unique_ptr<cairn::rpc::RunningServer> start(cairn::rpc::Reactor& reactor,
                                                 cairn::rpc::Network& network,
                                                 const cairn::rpc::ServerFlags& flags,
                                                 const Computing& computing) {
  cairn::worker::WorkerOptions options;
  options.index = flags.index;
  options.address = cairn::rpc::Address::parse(flags.listen);
  options.cluster = flags.cluster_id;
  options.token = flags.token;
  options.insecure = flags.insecure;
  options.lanes = flags.threads;
  options.lanes_why = flags.threads_why;
  options.deterministic = computing.deterministic;
  cairn::ChosenDevices chosen = cairn::chosen_devices(computing.device);
  cairn::log_info("computes on ", chosen.text);
  options.devices = std::move(chosen.devices);
  // Lanes of one GPU take turns there, and each has memory of its own.
  if (flags.threads_chosen && options.devices.front() != &cairn::cpu_device()) {
    options.lanes = 1;
    options.lanes_why = "it computes on a GPU";
  }
  cairn::log_info("--lanes ", options.lanes, ": ", options.lanes_why);
  cairn::service::ConsumersOptions reading;
  reading.cluster = flags.cluster_id;
  reading.token = flags.token;
  reading.role = cairn::rpc::Role::kWorker;
  reading.task = flags.index;
  reading.transport = flags.transport;
  return std::make_unique<Running>(reactor, network, std::move(options), std::move(reading));
}

// A missing device is reported as wrong usage: if the program is started again after an error, that
// would not help.
std::string wrong_device(const std::string& choice) {
  try {
    cairn::chosen_devices(choice);
    return "";
  } catch (const cairn::Error& error) {
    return error.what();
  }
}

void add_flags(CLI::App& app, Computing& computing) {
  app.add_option(
         "--device", computing.device,
         "What lanes compute on: auto (the GPUs, or the CPU where there is none), cpu, gpu, "
         "or one GPU, as gpu:0")
      ->check(wrong_device, "", "")
      ->capture_default_str();
  app.add_flag("--deterministic", computing.deterministic,
               "On GPUs: what lanes compute repeats bit for bit, at the price of slower products");
}

}  // namespace

int main(int argc, char** argv) {
  cairn::rpc::ServerProgram program;
  program.role = cairn::rpc::Role::kWorker;
  program.name = "cairn-worker";
  program.description =
      "Runs the closures that a coordinator sends, against the variables of the cluster's ps.";
  program.threads_flag = "--lanes";
  program.threads_help =
      "Closures that compute at once, a thread each: a number, or auto (default)";
  program.threads_auto = true;
  Computing computing;
  program.add_flags = [&computing](CLI::App& app) { add_flags(app, computing); };
  program.start = [&computing](auto& reactor, auto& network, const auto& flags) {
    return start(reactor, network, flags, computing);
  };
  return cairn::rpc::server_main(argc, argv, program);
}
