#include "serving/server/model_server.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "core/base/json.h"
#include "data/feature/printable.h"
#include "serving/api/infer.h"
#include "serving/api/routes.h"
#include "serving/api/tf_json.h"
#include "serving/http/http_error.h"
#include "serving/model/served_model.h"
#include "serving/server/background.h"
#include "serving/server/batcher.h"
#include "serving/server/call.h"
#include "serving/server/metrics.h"
#include "serving/server/read_metrics.h"
#include "serving/server/version_candidates.h"
#include "serving/server/version_codecs.h"

namespace cairn::serving {
namespace {

// "index" is of Triton's extension for model repositories; "reload" is ours.
constexpr const char *kIndex = "/v2/repository/index", *kReload = "/v2/repository/reload";

// A larger body is read by a computing thread, so that it holds up no other connection.
constexpr std::size_t kReadHere = 64 << 10;

using CallPtr = std::shared_ptr<Call>;

// The newest step that an answer of this version may contain.
std::int64_t step_of(const ServedVersion& version) {
  const std::int64_t step =
      std::max(version.served->about().global_step, version.served->ps_step());
  return version.follower == nullptr ? step : std::max(step, version.follower->step());
}

std::string state_name(VersionStatus::State state) {
  switch (state) {
    case VersionStatus::State::kLoading: return "LOADING";
    case VersionStatus::State::kAvailable: return "AVAILABLE";
    case VersionStatus::State::kRefused: break;
  }
  return "END";
}

// "INVALID_ARGUMENT" of InvalidArgument.
std::string grpc_name(Code code) {
  std::string name;
  for (const char c : code_name(code)) {
    if (c >= 'A' && c <= 'Z' && !name.empty()) name += '_';
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

struct ModelServer::State {
  explicit State(ModelServerOptions of);

  void handle(HttpRequest request, HttpReply reply);
  HttpResponse about(const Route& route);
  std::string index();
  void reload(HttpReply reply);
  HttpResponse metrics_page();
  HttpResponse health(bool healthy, std::string body) const {
    return {.status = healthy ? 200u : 503u, .body = std::move(body)};
  }
  void begin(const CallPtr& call);
  void read(const CallPtr& call, int thread);
  void finish(Call& call, Answer answer);
  static void tell_age(const Call& call, std::int64_t stale_rows, HttpResponse& response);
  void refuse(Call& call, const std::exception_ptr& error);
  void answered(const Call& call, unsigned status, std::int64_t batch);
  HttpOptions http_options() {
    HttpOptions made = options.http;
    made.after_requests = [this] {
      if (batcher.wake()) give_way();
    };
    return made;
  }
  bool ready() const { return !ending.load() && directory.ready(); }

  const ModelServerOptions options;
  std::atomic<bool> ending{false};
  ModelDirectory directory;
  Metrics metrics;
  Batcher batcher;
  HttpServer http;  // last: it calls all of the above
};

ModelServer::State::State(ModelServerOptions of)
    : options(std::move(of)),
      directory(options.models, {.threads = options.threads,
                                 .look_every = options.look_every,
                                 .memory_limit = options.memory_limit,
                                 .read_candidates = options.read_candidates,
                                 .index = options.index}),
      metrics(directory.names()),
      batcher({.threads = options.threads,
               .queue_max = options.queue_max,
               .batch_max = options.batch_max,
               .batch_wait = options.batch_wait}),
      http(http_options(), [this](HttpRequest request, HttpReply reply) {
        handle(std::move(request), std::move(reply));
      }) {}

// ---- what a request means ----

void ModelServer::State::handle(HttpRequest request, HttpReply reply) {
  if (const std::string_view coding = request.header("content-encoding");
      !coding.empty() && coding != "identity") {
    HttpResponse response = error_response(
        415, str("the body is of the content encoding \"", printable(coding),
                 "\", and bodies are read as they are: send it without compression"));
    response.headers.emplace_back("Accept-Encoding", "identity");
    return reply.send(std::move(response));
  }
  Route route;
  try {
    if (request.target == kIndex || request.target == kReload) {
      if (request.method != "POST")
        throw WrongMethodError(
            str('"', request.target, "\" takes POST, and not ", printable(request.method)), "POST");
      if (request.target == kReload) return reload(std::move(reply));
      return reply.send({.body = index()});
    }
    route = parse_route(request.method, request.target);
  } catch (const WrongMethodError& error) {
    HttpResponse response = error_response(405, error.what());
    response.headers.emplace_back("Allow", error.allowed());
    return reply.send(std::move(response));
  }
  switch (route.kind) {
    case RouteKind::kTfPredict:
    case RouteKind::kTfClassify:
    case RouteKind::kTfRegress:
    case RouteKind::kTfRecommend:
    case RouteKind::kInfer: break;
    default: return reply.send(about(route));
  }
  begin(std::make_shared<Call>(std::move(route), std::move(request), std::move(reply)));
}

// Every version of every model, as Triton's extension for model repositories has them.
std::string ModelServer::State::index() {
  Json all = Json::array();
  for (const std::string& name : directory.names()) {
    const auto versions = directory.status(name);
    if (versions.empty()) all.push_back({{"name", name}, {"state", "UNAVAILABLE"}});
    for (const VersionStatus& each : versions) {
      const bool serves = each.state == VersionStatus::State::kAvailable;
      all.push_back(
          {{"name", name},
           {"version", std::to_string(each.version)},
           {"state", serves ? "READY" : "UNAVAILABLE"},
           {"reason", each.state == VersionStatus::State::kLoading ? "loading" : each.error}});
    }
  }
  return json_text(all);
}

void ModelServer::State::reload(HttpReply reply) {
  auto to = std::make_shared<HttpReply>(std::move(reply));
  directory.look_soon([this, to] { to->send({.body = index()}); });
}

HttpResponse ModelServer::State::about(const Route& route) {
  switch (route.kind) {
    case RouteKind::kMetrics: return metrics_page();
    case RouteKind::kInferServer: return {.body = infer_server_metadata(CAIRN_VERSION)};
    case RouteKind::kInferLive: return health(true, infer_server_live(true));
    case RouteKind::kInferReady: return health(ready(), infer_server_ready(ready()));
    case RouteKind::kInferModelReady: {
      bool serves = true;
      try {
        directory.find(route.model, route.version, route.label);
      } catch (const UnavailableError&) {
        serves = false;
      }
      return health(serves, infer_model_ready(route.model, serves));
    }
    case RouteKind::kInferModel: {
      std::vector<std::int64_t> versions;
      for (const VersionStatus& each : directory.status(route.model))
        if (each.state == VersionStatus::State::kAvailable) versions.push_back(each.version);
      const ServedVersion version = directory.find(route.model, route.version, route.label);
      const std::string more = version.candidates == nullptr
                                   ? ""
                                   : str(", \"parameters\": ",
                                         candidates_text(*version.candidates->index, "candidate_"));
      return {.body = infer_model_metadata(version.codecs->signature(), versions, more)};
    }
    case RouteKind::kTfMetadata: {
      const ServedVersion version = directory.find(route.model, route.version, route.label);
      const std::string more =
          version.candidates == nullptr
              ? ""
              : str(", \"candidates\": ", candidates_text(*version.candidates->index));
      return {.body = tf_metadata(version.codecs->signature(), version.version, more)};
    }
    case RouteKind::kTfStatus: {
      std::optional<std::int64_t> only = route.version;
      if (!route.label.empty()) only = directory.find(route.model, {}, route.label).version;
      std::vector<TfVersionStatus> versions;
      for (const VersionStatus& each : directory.status(route.model))
        if (!only || *only == each.version)
          versions.push_back({each.version, state_name(each.state),
                              each.error.empty() ? "OK" : grpc_name(each.code), each.error});
      if (versions.empty() && route.version)
        directory.find(route.model, route.version);  // says which versions there are
      return {.body = tf_status(versions)};
    }
    default: break;
  }
  throw UnimplementedError("this server does not answer that");
}

HttpResponse ModelServer::State::metrics_page() {
  const HttpCounts connections = http.counts();
  std::vector<Measured> now{
      {"cairn_serve_queue_examples", "", static_cast<double>(batcher.waiting())},
      {"cairn_serve_ready", "", ready() ? 1.0 : 0.0},
      {"cairn_serve_connections", "", static_cast<double>(connections.open)},
      {"cairn_serve_connections_accepted_total", "", static_cast<double>(connections.accepted)},
      {"cairn_serve_connections_cut_off_total", "", static_cast<double>(connections.cut_off)},
      {"cairn_serve_unread_requests_total", "", static_cast<double>(connections.refused)},
      {"process_resident_memory_bytes", "", resident_bytes()}};
  add_read_metrics(directory, now);
  for (const std::string& name : directory.names()) {
    const std::string model = str("model=\"", label_text(name), '"');
    double refused = 0;
    for (const VersionStatus& each : directory.status(name)) {
      if (each.state == VersionStatus::State::kRefused) ++refused;
      if (each.state != VersionStatus::State::kAvailable) continue;
      try {
        const ServedVersion version = directory.find(name, each.version);
        const std::string labels = str(model, ",version=\"", each.version, '"');
        const auto memory = version.served->memory();
        now.push_back({"cairn_serve_model_bytes", labels, static_cast<double>(memory.bytes)});
        now.push_back(
            {"cairn_serve_model_shared_bytes", labels, static_cast<double>(memory.shared)});
      } catch (const NotFoundError&) {  // it has gone since it was listed
      }
    }
    now.push_back({"cairn_serve_refused_versions", model, refused});
    try {
      const ServedVersion newest = directory.find(name);
      now.push_back({"cairn_serve_model_version", model, static_cast<double>(newest.version)});
      now.push_back({"cairn_serve_model_step", model, static_cast<double>(step_of(newest))});
    } catch (const UnavailableError&) {
    }
  }
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics.text(now)};
}

// ---- from a request to its answer ----

void ModelServer::State::begin(const CallPtr& call) {
  call->began = system_clock().now();
  try {
    call->version = directory.find(call->route.model, call->route.version, call->route.label);
    if (call->body->size() <= kReadHere) return read(call, options.threads);
    batcher.run([this, call](int thread) { read(call, thread); });
  } catch (...) {
    refuse(*call, std::current_exception());
  }
}

// Reads the examples, and has them computed.
void ModelServer::State::read(const CallPtr& call, int thread) {
  try {
    CallWork work = read_call(
        *call, thread, {.examples_max = options.examples_max, .allow_nan = options.allow_nan});
    Examples& examples = work.examples;
    call->examples = examples.examples;
    if (examples.columns.empty()) throw InvalidArgumentError("the request has no examples");
    directory.remember(call->version.model, examples.columns, work.search != nullptr);
    if (call->version.follower != nullptr) call->covered = call->version.follower->covered();
    // The connections' thread has the computing ones begin when it has read all that has come.
    const bool more = thread == options.threads;
    batcher.submit(
        {work.model, std::move(examples.columns), examples.examples, call->began + options.deadline,
         [this, call](Answer answer) { finish(*call, std::move(answer)); }, std::move(work.search)},
        more ? Batcher::Wake::kLater : Batcher::Wake::kNow);
  } catch (...) {
    refuse(*call, std::current_exception());
  }
}

void ModelServer::State::finish(Call& call, Answer answer) {
  if (answer.error) return refuse(call, answer.error);
  VersionCodecs& codecs =
      answer.best.empty() ? *call.version.codecs : *call.version.candidates->codecs;
  codecs.note_batch(answer.batch);
  try {
    HttpResponse response = call.answer(answer);
    tell_age(call, answer.stale_rows, response);
    answered(call, response.status, answer.batch);
    call.reply.send(std::move(response));
  } catch (...) {
    refuse(call, std::current_exception());
  }
  // The version may be gone before the client asks again.
  call.answer = nullptr;
  call.version = {};
}

// The step is taken after the rows were read and the age before, so that neither promises more than
// the answer holds.
void ModelServer::State::tell_age(const Call& call, std::int64_t stale_rows,
                                  HttpResponse& response) {
  if (stale_rows > 0)
    response.headers.emplace_back("x-cairn-stale-rows", std::to_string(stale_rows));
  if (call.covered != TimePoint::min())
    response.headers.emplace_back(
        "x-cairn-age-ms",
        std::to_string((system_clock().now() - call.covered) / std::chrono::milliseconds(1)));
  response.headers.emplace_back("x-cairn-step", std::to_string(step_of(call.version)));
}

void ModelServer::State::refuse(Call& call, const std::exception_ptr& error) {
  HttpResponse response = error_response(error);
  answered(call, response.status, 0);
  call.reply.send(std::move(response));
  call.answer = nullptr;
  call.version = {};
}

void ModelServer::State::answered(const Call& call, unsigned status, std::int64_t batch) {
  metrics.answered(call.route.model, status, system_clock().now() - call.began, call.examples,
                   batch);
}

// ---- the server ----

ModelServer::ModelServer(ModelServerOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ModelServer::~ModelServer() { stop(Duration::zero()); }

std::uint16_t ModelServer::port() const { return state_->http.port(); }
const ModelDirectory& ModelServer::models() const { return state_->directory; }
void ModelServer::reload() { state_->directory.look(); }
void ModelServer::reload_soon(std::function<void()> done) {
  state_->directory.look_soon(std::move(done));
}

void ModelServer::stop(Duration drain) {
  state_->ending = true;
  state_->directory.give_up();
  state_->http.stop(drain);
}

}  // namespace cairn::serving
