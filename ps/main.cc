// cairn-ps: holds its share of the variables, and gives and takes their rows.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory_limit.h"
#include "ps/server/ps_server.h"
#include "ps/server/row_log_folder.h"
#include "ps/server/save_memory.h"
#include "rpc/server/server_main.h"

namespace {

using cairn::rpc::RunningServer;

class Running final : public RunningServer {
 public:
  Running(cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
          const cairn::ps::PsServerOptions& options,
          std::unique_ptr<cairn::ps::RowLogFolder> row_log)
      : row_log_(std::move(row_log)),
        store_(cairn::storage::make_rocks_row_store()),
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
  std::unique_ptr<cairn::ps::RowLogFolder> row_log_;
  std::unique_ptr<cairn::storage::RowStore> store_;
  std::unique_ptr<cairn::Offload> offload_;
  cairn::ps::PsServer server_;
};

struct Flags {
  std::string save_memory = "25%", memory_limit = "none", row_log;
};

std::unique_ptr<RunningServer> start(cairn::rpc::Reactor& reactor, cairn::rpc::Network& network,
                                     const cairn::rpc::ServerFlags& flags, const Flags& own) {
  cairn::ps::PsServerOptions options;
  options.shard.save_memory = cairn::ps::parse_save_memory(own.save_memory);
  options.memory_limit = cairn::parse_memory_limit(own.memory_limit);
  if (options.memory_limit > 0 && own.row_log.empty())
    throw cairn::InvalidArgumentError(
        "--memory-limit wants --row-log FOLDER, on a local disk, for the rows that do not fit");
  std::unique_ptr<cairn::ps::RowLogFolder> row_log;
  if (options.memory_limit > 0) {
    row_log =
        std::make_unique<cairn::ps::RowLogFolder>(own.row_log, cairn::str("ps-", flags.index));
    options.row_log_folder = row_log->path();
  }
  options.index = flags.index;
  options.listen = flags.listen;
  options.cluster = flags.cluster_id;
  options.token = flags.token;
  options.insecure = flags.insecure;
  options.shards = flags.threads;
  options.shards_why = flags.threads_why;
  cairn::log_info("--shards ", options.shards, ": ", options.shards_why);
  return std::make_unique<Running>(reactor, network, options, std::move(row_log));
}

// The check of an option, as CLI11 wants it: it says what is wrong with the text.
template <typename Parse>
auto refused_by(Parse parse) {
  return [parse](const std::string& text) -> std::string {
    try {
      parse(text);
      return "";
    } catch (const cairn::InvalidArgumentError& error) {
      return error.what();
    }
  };
}

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--memory-limit", flags.memory_limit,
                 "Memory for all that this ps takes, as \"8 GB\" or a share of the machine's, as "
                 "50%: rows of hashed variables (embeddings of ids without a vocabulary) that do "
                 "not fit lie on a disk, those in use in memory; \"none\": all are in memory")
      ->check(refused_by(cairn::parse_memory_limit), "", "")
      ->capture_default_str();
  app.add_option(
      "--row-log", flags.row_log,
      "With --memory-limit: the folder, on a local disk, for rows that do not fit; what is written "
      "there goes with the process");
  app.add_option("--save-memory", flags.save_memory,
                 "Memory for rows that change while a checkpoint is written, copied aside until "
                 "they are: a share of the rows' bytes, as 25%, or bytes, as \"2 GB\"; at this "
                 "bound, updates of rows that are still to be written wait")
      ->check(refused_by(cairn::ps::parse_save_memory), "", "")
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
  Flags own;
  program.add_flags = [&own](CLI::App& app) { add_flags(app, own); };
  program.start = [&own](auto& reactor, auto& network, const auto& flags) {
    return start(reactor, network, flags, own);
  };
  return cairn::rpc::server_main(argc, argv, program);
}
