#include "tools/cli/serve_command.h"

#include <malloc.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/memory_limit.h"
#include "core/base/processors.h"
#include "rpc/server/token.h"
#include "serving/http/http_client.h"
#include "serving/model/served_model.h"
#include "serving/server/model_server.h"
#include "tools/cli/access_log.h"
#include "tools/cli/served_models.h"
#include "tools/export/read_candidates.h"

namespace cairn::tools {
namespace {

constexpr Duration kSignalsEvery = std::chrono::milliseconds(50);

using serving::ModelServerOptions;

struct ServeRequest {
  ServedModels models;
  std::string token_file, access_log, memory_limit = "none", index = "exact";
  double batch_wait_ms = 0, deadline = 30, drain = 10, look_every = 1, max_body = 16;
  ModelServerOptions options;
  int threads = 0;
};
struct AskRequest {
  std::string address = "127.0.0.1:8501", token_file;
  double timeout = 300;
};

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

// A model that has nothing to serve at the start, and a reason for that, is a mistake of the
// command line; one that has nothing yet is waited for.
void verify_served(const serving::ModelServer& server) {
  for (const std::string& name : server.models().names()) {
    const auto versions = server.models().status(name);
    using State = serving::VersionStatus::State;
    const bool serves = std::ranges::any_of(
        versions, [](const auto& each) { return each.state == State::kAvailable; });
    if (serves) {
      std::printf("model %s: version %lld\n", name.c_str(),
                  static_cast<long long>(server.models().find(name).version));
      continue;
    }
    for (const auto& each : versions)
      if (each.state == State::kRefused)
        throw_error(each.code, str("model ", name, ": version ", each.version,
                                   " cannot be served: ", each.error));
    std::printf("model %s: nothing to serve yet; it is looked for\n", name.c_str());
  }
}

std::size_t memory_limit_of(const ServeRequest& request) {
  try {
    return parse_memory_limit(request.memory_limit);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("--memory-limit: ", error.what()));
  }
}

// Loads the models. Whether a signal came before they were there.
bool ended_while_loading(serving::ModelServer& server, const sigset_t& ends) {
  const auto loaded = std::make_shared<std::promise<void>>();
  server.reload_soon([loaded] { loaded->set_value(); });
  const auto done = loaded->get_future();
  while (done.wait_for(kSignalsEvery) != std::future_status::ready) {
    const timespec at_once{};
    if (sigtimedwait(&ends, nullptr, &at_once) > 0) return true;
  }
  return false;
}

// By default glibc raises its threshold for memory that is mapped on its own to the largest weights
// that were ever given back, and keeps twice as much at the end of each thread's heap, where
// malloc_trim() does not reach: an old version's weights stayed there. A megabyte is more than the
// tensors of most requests take.
void give_memory_back() {
  constexpr int kThreshold = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kThreshold);
  mallopt(M_TRIM_THRESHOLD, kThreshold);
}

int serve(ServeRequest& request) {
  give_memory_back();
  // Before any thread begins, so that the signals come to this one.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  ModelServerOptions& options = request.options;
  options.models = models_of(request.models);
  options.threads = request.threads > 0 ? request.threads
                                        : std::max(1, static_cast<int>(usable_processors()) - 1);
  options.read_candidates = [](const SavedModel& about, const std::string& file) {
    return read_candidates(about, file);
  };
  if (request.index == "hnsw") options.index.kind = serving::IndexKind::kHnsw;
  options.batch_wait = seconds(request.batch_wait_ms / 1000);
  options.deadline = seconds(request.deadline);
  options.look_every = seconds(request.look_every);
  options.http.body_max = static_cast<std::size_t>(request.max_body * (1 << 20));
  options.http.token = request.token_file.empty() ? rpc::token_of_environment()
                                                  : rpc::read_token(request.token_file);
  options.memory_limit = memory_limit_of(request);
  if (!request.access_log.empty()) {
    const auto log = std::make_shared<AccessLog>(request.access_log);
    options.http.access_log = [log](const serving::AccessLine& line) { log->write(line); };
  }
  const std::string host = options.http.host;
  serving::ModelServer server(std::move(options));
  if (ended_while_loading(server, ends)) {
    log_info("ending: the models were still being loaded");
    server.stop(Duration::zero());
    return 0;
  }
  verify_served(server);
  const bool is_v6 = host.find(':') != std::string::npos;
  std::printf("serving at http://%s%s%s:%u\n", is_v6 ? "[" : "", host.c_str(), is_v6 ? "]" : "",
              static_cast<unsigned>(server.port()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  log_info("ending: requests under way have ", fixed(request.drain, 0), " s");
  server.stop(seconds(request.drain));
  return 0;
}

serving::HttpAnswer asked(const AskRequest& request, const std::string& method,
                          const std::string& target) {
  const serving::HttpAnswer answer =
      serving::ask_http({.address = request.address,
                         .method = method,
                         .target = target,
                         .token = request.token_file.empty() ? rpc::token_of_environment()
                                                             : rpc::read_token(request.token_file),
                         .timeout = seconds(request.timeout)});
  if (answer.status != 200)
    throw FailedPreconditionError(
        str(request.address, " answered ", answer.status, ": ", answer.body));
  return answer;
}

// A line for each version: NAME, VERSION, STATE, and the reason of one that was refused.
int print_index(const AskRequest& request, const std::string& target) {
  const serving::HttpAnswer answer = asked(request, "POST", target);
  const Json index = parse_json(answer.body, "the answer of " + request.address);
  bool all = true;
  for (const Json& each : index) {
    const std::string state = each.value("state", "");
    all = all && state == "READY";
    std::printf("%-24s %12s  %-12s %s\n", each.value("name", "").c_str(),
                each.value("version", "-").c_str(), state.c_str(),
                each.value("reason", "").c_str());
  }
  return all ? 0 : 1;
}

// CLI::Range lets NaN pass.
CLI::Validator within(double least, double most) {
  const auto refused = [least, most](std::string& text) {
    double value = 0;
    const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    return fits ? std::string() : str("Value ", text, " not in range ", least, " to ", most);
  };
  return {refused, str('[', least, " - ", most, ']')};
}

void add_ask(CLI::App& command, AskRequest& request) {
  command.add_option("--address", request.address, "HOST:PORT of the server")
      ->capture_default_str();
  command.add_option("--token-file", request.token_file,
                     "The file with the server's token; by default CAIRN_TOKEN_FILE names it");
  command.add_option("--timeout", request.timeout, "Seconds to wait")
      ->check(within(0, 86'400))
      ->capture_default_str();
}

void add_options(CLI::App& command, ServeRequest& request) {
  ModelServerOptions& options = request.options;
  add_model_flags(command, request.models);
  command.add_option("--host", options.http.host, "The address to listen at")
      ->capture_default_str();
  options.http.port = 8501;
  command.add_option("--port", options.http.port, "Its port; 0: any that is free")
      ->capture_default_str();
  command.add_option("--token-file", request.token_file,
                     "A file whose first line clients send as \"Authorization: Bearer\"; needed "
                     "for an address that is not loopback");
  command
      .add_option("--index", request.index,
                  "How candidates are looked for: exact looks at all, hnsw at some of them")
      ->check(CLI::IsMember({"exact", "hnsw"}))
      ->capture_default_str();
  command
      .add_option("--threads", request.threads,
                  "Threads that compute; by default all processors but one")
      ->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--memory-limit", request.memory_limit,
          "Memory of the server, as \"8 GB\" or \"50%\" of the machine's: tables that do not "
          "fit are read from the model's files, and hot rows are kept in memory")
      ->capture_default_str();
  command.add_option("--queue", options.queue_max, "Examples that may wait; more: status 429")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command.add_option("--batch-max", options.batch_max, "Examples that are computed together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->capture_default_str();
  command
      .add_option("--batch-wait", request.batch_wait_ms,
                  "Milliseconds that a request waits for others to be computed with")
      ->check(within(0, 60'000))
      ->capture_default_str();
  command.add_option("--deadline", request.deadline, "Seconds a request may take; then status 504")
      ->check(within(0.001, 86'400))
      ->capture_default_str();
  command.add_option("--max-body", request.max_body, "MB of a request's body; more: status 413")
      ->check(within(0.001, 65'536))
      ->capture_default_str();
  command.add_flag("--allow-nan", options.allow_nan,
                   "Take NaN and infinities in requests for numbers");
  command
      .add_option("--look-every", request.look_every,
                  "Seconds between two looks for new versions; 0: at `cairn serve reload` alone")
      ->check(within(0, 86'400))
      ->capture_default_str();
  command
      .add_option("--drain", request.drain,
                  "Seconds that requests under way have to end after SIGTERM")
      ->check(within(0, 86'400))
      ->capture_default_str();
  command.add_option("--access-log", request.access_log,
                     "A file to write a line for each answer to; -: standard output");
}

}  // namespace

void add_serve_command(CLI::App& app, int& status) {
  auto request = std::make_shared<ServeRequest>();
  auto ask = std::make_shared<AskRequest>();
  CLI::App* command = app.add_subcommand(
      "serve", "Answer requests for models over HTTP, and follow their new versions");
  add_options(*command, *request);
  CLI::App* about =
      command->add_subcommand("status", "The versions that a server serves, or why not");
  CLI::App* reload =
      command->add_subcommand("reload", "Have a server look for new versions, and wait for them");
  add_ask(*about, *ask);
  add_ask(*reload, *ask);
  about->callback([ask, &status] { status = print_index(*ask, "/v2/repository/index"); });
  reload->callback([ask, &status] { status = print_index(*ask, "/v2/repository/reload"); });
  command->callback([request, command, &status] {
    if (!command->get_subcommands().empty()) return;
    if (request->models.none())
      throw InvalidArgumentError(
          "serve: there is no model: name a saved model, a folder of versions or a run, such as "
          "`cairn serve runs/adult`");
    status = serve(*request);
  });
}

}  // namespace cairn::tools
