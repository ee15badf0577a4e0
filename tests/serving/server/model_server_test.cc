// The server as a client sees it: forms of requests, refusals, versions that change under load, and
// the end.
#include "serving/server/model_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "core/base/json.h"
#include "serving/http/http_client.h"
#include "tests/serving/small_requests.h"

namespace cairn::serving::testing {
namespace {

using ::testing::HasSubstr;

struct ModelServerTest : SmallRequests {
  ModelServerOptions options() const {
    return {.models = {{.name = "small", .path = small.path}}, .look_every = Duration::zero()};
  }
  // Which has loaded its models.
  static std::unique_ptr<ModelServer> started(ModelServerOptions of) {
    auto server = std::make_unique<ModelServer>(std::move(of));
    server->reload();
    return server;
  }
  static HttpAnswer ask(const ModelServer& server, const std::string& method,
                        const std::string& target, const std::string& body = "") {
    return ask_http({.address = "127.0.0.1:" + std::to_string(server.port()),
                     .method = method,
                     .target = target,
                     .body = body,
                     .timeout = std::chrono::seconds(60)});
  }
  static HttpAnswer predict(const ModelServer& server, const std::string& body,
                            const std::string& query = "") {
    return ask(server, "POST", "/v1/models/small:predict" + query, body);
  }
  static constexpr const char* kOne =
      R"({"instances": [{"word": 100, "ids": [1, 2], "numeric": [0.5]}]})";
  // The lines of the data, with another word in each of those that training has not seen.
  std::string lines() const { return small.folder.read("data.csv"); }
};

TEST_F(ModelServerTest, RawRowsGetTheBitsOfALoadedModel) {
  const auto server = started(options());
  LoadedModel loaded = LoadedModel::load(small.path);
  const auto wanted = cairn::testing::loaded_predictions(loaded, loaded.examples({small.data}), 40);
  const HttpAnswer answer = predict(*server, lines(), "?raw");
  ASSERT_EQ(answer.status, 200u) << answer.body;
  const Json predictions = parse_json(answer.body, "")["predictions"];
  ASSERT_EQ(predictions.size(), 40u);
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_EQ(std::stof(json_text(predictions[i]["probability"])), wanted[0][0].values<float>()[i]);
}

// The headers of a request say what its body is.
TEST_F(ModelServerTest, BodiesAreReadAsTheirHeadersSay) {
  const auto server = started(options());
  const HttpAnswer text = predict(*server, "0,w100,1|2,0.5\n", "?raw");
  const HttpAnswer json = ask_http({.address = "127.0.0.1:" + std::to_string(server->port()),
                                    .method = "POST",
                                    .target = "/v1/models/small:predict?raw",
                                    .body = R"({"word": "w100", "ids": [1, 2], "x": 0.5})",
                                    .headers = {{"Content-Type", "application/json"}}});
  EXPECT_EQ(json.status, 200u) << json.body;
  EXPECT_EQ(json.body, text.body);
  const std::string head =
      R"({"inputs": [{"name": "word", "shape": [1], "datatype": "INT64", "data": [100]},)"
      R"({"name": "ids", "shape": [2], "datatype": "INT64", "data": [1, 2]},)"
      R"({"name": "ids/row_splits", "shape": [2], "datatype": "INT64", "data": [0, 2]},)"
      R"({"name": "numeric", "shape": [1, 1], "datatype": "FP32",)"
      R"( "parameters": {"binary_data_size": 4}}]})";
  const float half = 0.5f;
  std::string body = head + std::string(4, '\0');
  std::memcpy(body.data() + head.size(), &half, 4);
  const HttpAnswer binary =
      ask_http({.address = "127.0.0.1:" + std::to_string(server->port()),
                .method = "POST",
                .target = "/v2/models/small/infer",
                .body = body,
                .headers = {{"Inference-Header-Content-Length", std::to_string(head.size())}}});
  EXPECT_EQ(binary.status, 200u) << binary.body;
  EXPECT_EQ(parse_json(binary.body, "")["outputs"][0]["data"][0],
            parse_json(predict(*server, kOne).body, "")["predictions"][0]["probability"]);
}

TEST_F(ModelServerTest, SaysWhatIsWrongAndWhatWouldBeRight) {
  auto of = options();
  of.http.body_max = 1000;
  of.examples_max = 2;
  const auto server = started(of);
  const auto refused = [&](unsigned status, const HttpAnswer& answer, const std::string& text) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(parse_json(answer.body, "")["error"].get<std::string>(), HasSubstr(text));
  };
  refused(404, ask(*server, "GET", "/v1/models/smal"), "did you mean \"small\"?");
  refused(404, ask(*server, "GET", "/v1/models/small/versions/7"), "those that do: 12");
  refused(404, ask(*server, "GET", "/v1/model/small"), "models");
  refused(405, ask(*server, "DELETE", "/v1/models/small"), "GET");
  refused(400, predict(*server, "{"), "line 1");
  refused(400, predict(*server, R"({"instances": [{"word": 1}]})"), "\"numeric\"");
  refused(400, predict(*server, R"({"instances": [1, 2, 3]})"), "");
  refused(413, predict(*server, std::string(2000, ' ')), "1000");
  refused(400, predict(*server, lines().substr(0, 300), "?raw"), "2");
  refused(400, predict(*server, "1,w1,1,zero\n", "?raw"), "x");
  EXPECT_EQ(predict(*server, kOne).status, 200u);
}

TEST_F(ModelServerTest, IsNotReadyBeforeItsModelsServe) {
  const ModelServer server(options());
  EXPECT_EQ(ask(server, "GET", "/v2/health/live").status, 200u);
  EXPECT_EQ(ask(server, "GET", "/v2/health/ready").status, 503u);
  EXPECT_EQ(predict(server, kOne).status, 503u);
  EXPECT_EQ(ask(server, "POST", "/v2/repository/reload", "{}").status, 200u);
  EXPECT_EQ(ask(server, "GET", "/v2/health/ready").status, 200u);
  EXPECT_EQ(predict(server, kOne).status, 200u);
}

TEST_F(ModelServerTest, MoreThanTheQueueHoldsIsRefusedAndTheRestAnsweredAtItsDeadline) {
  auto of = options();
  of.queue_max = 1;
  of.batch_wait = std::chrono::hours(1);
  of.deadline = std::chrono::milliseconds(300);
  const auto server = started(of);
  std::atomic<int> late{0}, full{0}, other{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      const unsigned status = predict(*server, kOne).status;
      ++(status == 504 ? late : status == 429 ? full : other);
    });
  for (std::thread& each : clients) each.join();
  EXPECT_GE(late, 1);
  EXPECT_GE(full, 1);
  EXPECT_EQ(other, 0);
}

// Clients of other servers complain of this: a failed request, or an answer of an older version,
// while versions change.
TEST_F(ModelServerTest, TwentyVersionsTakeOverWhileClientsAsk) {
  auto of = options();
  of.threads = 2;
  of.look_every = std::chrono::milliseconds(1);
  const auto server = started(of);
  std::atomic<bool> ended{false};
  std::atomic<int> asked{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i)
    clients.emplace_back([&] {
      std::int64_t newest = 0;
      while (!ended) {
        const HttpAnswer answer = predict(*server, kOne);
        ASSERT_EQ(answer.status, 200u) << answer.body;
        ASSERT_GE(answer.step, newest);
        newest = answer.step;
        ++asked;
      }
    });
  for (int i = 0; i < 20; ++i) {
    train_on();
    const int before = asked;
    while (server->models().find("small").version < 13 + i || asked < before + 3)
      std::this_thread::yield();
  }
  ended = true;
  for (std::thread& each : clients) each.join();
  EXPECT_GT(asked, 60);
}

TEST_F(ModelServerTest, RequestsUnderWayEndBeforeTheServer) {
  auto of = options();
  of.batch_wait = std::chrono::milliseconds(200);
  const auto server = started(of);
  unsigned status = 0;
  std::thread client([&] { status = predict(*server, kOne).status; });
  const auto waits = [&] {
    return ask(*server, "GET", "/metrics").body.find("cairn_serve_queue_examples 1") !=
           std::string::npos;
  };
  while (!waits()) std::this_thread::yield();
  server->stop(std::chrono::seconds(30));
  client.join();
  EXPECT_EQ(status, 200u);
  EXPECT_THROW(ask(*server, "GET", "/v2/health/live"), UnavailableError);
}

TEST_F(ModelServerTest, CountsWhatItHasAnswered) {
  const auto server = started(options());
  for (int i = 0; i < 3; ++i) predict(*server, kOne);
  predict(*server, "{}");
  const std::string page = ask(*server, "GET", "/metrics").body;
  for (const char* line : {"cairn_serve_requests_total{model=\"small\",code=\"200\"} 3\n",
                           "cairn_serve_requests_total{model=\"small\",code=\"400\"} 1\n",
                           "cairn_serve_examples_total{model=\"small\"} 3\n",
                           "cairn_serve_ready 1\n", "cairn_serve_model_step{model=\"small\"} 12\n",
                           "cairn_serve_request_duration_seconds_count{model=\"small\"} 4\n"})
    EXPECT_THAT(page, HasSubstr(line));
}

}  // namespace
}  // namespace cairn::serving::testing
