// cairn-ps: holds its share of the variables, and gives and takes their rows.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "ps/server/ps_server.h"
#include "ps/server/save_memory.h"
#include "rpc/server/server_main.h"

namespace {

using cairn::rpc::RunningServer;

class Running final : public RunningServer {
 public:
  Running(cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
          const cairn::ps::PsServerOptions& options)
      : store_(cairn::storage::make_rocks_row_store()),
        offload_(cairn::make_thread_offload(2 * options.shards)),
        server_(reactor, network, *offload_, *store_, options) {}
  const cairn::rpc::Address& address() const override { return server_.address(); }
  void on_shutdown(std::function<void(const std::string&)> handler) override {
    server_.on_shutdown(std::move(handler));
  }
  void stop() override { server_.stop(); }
  std::string status_json() const override { return server_.status_json(); }
  std::vector<cairn::rpc::NamedLoop> loops() const override { return server_.loops(); }

 private:
  std::unique_ptr<cairn::storage::RowStore> store_;
  std::unique_ptr<cairn::Offload> offload_;
  cairn::ps::PsServer server_;
};

std::unique_ptr<RunningServer> start(cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
                                     const cairn::rpc::ServerFlags& flags,
                                     const std::string& save_memory) {
  cairn::ps::PsServerOptions options;
  options.shard.save_memory = cairn::ps::parse_save_memory(save_memory);
  options.index = flags.index;
  options.listen = flags.listen;
  options.cluster = flags.cluster_id;
  options.token = flags.token;
  options.insecure = flags.insecure;
  options.shards = flags.threads;
  options.shards_why = flags.threads_why;
  cairn::log_info("--shards ", options.shards, ": ", options.shards_why);
  return std::make_unique<Running>(reactor, network, options);
}

std::string wrong_save_memory(const std::string& text) {
  try {
    cairn::ps::parse_save_memory(text);
    return "";
  } catch (const cairn::InvalidArgumentError& error) {
    return error.what();
  }
}

void add_flags(CLI::App& app, std::string& save_memory) {
  app.add_option("--save-memory", save_memory,
                 "Memory for rows that change while a checkpoint is written, copied aside until "
                 "they are: a share of the rows' bytes, as 25%, or bytes, as \"2 GB\"; at this "
                 "bound, updates of rows that are still to be written wait")
      ->check(wrong_save_memory, "", "")
      ->capture_default_str();
}

// Large messages come and go all the time: keep their pages instead of faulting new ones in.
void keep_freed_pages() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_pages();
  cairn::rpc::ServerProgram program;
  program.role = cairn::rpc::Role::kPs;
  program.name = "cairn-ps";
  program.description =
      "Holds variables for a cluster: answers pulls, applies pushes, writes and reads checkpoints.";
  program.threads_flag = "--shards";
  program.threads_help = "Threads that share the rows, one shard each: a number, or auto (default)";
  program.threads_auto = true;
  std::string save_memory = "25%";
  program.add_flags = [&save_memory](CLI::App& app) { add_flags(app, save_memory); };
  program.start = [&save_memory](auto& reactor, auto& network, const auto& flags) {
    return start(reactor, network, flags, save_memory);
  };
  return cairn::rpc::server_main(argc, argv, program);
}
