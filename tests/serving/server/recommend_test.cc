// ":recommend" as a client sees it: the best candidates, refusals, and versions with their own.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/base/json.h"
#include "core/base/look_up.h"
#include "serving/http/http_client.h"
#include "serving/server/model_server.h"
#include "tests/serving/two_towers.h"

namespace cairn::serving::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Recommend : ::testing::Test {
  TwoTowers towers;
  CandidateData data = TwoTowers::candidates();

  Recommend() { towers.save(1, towers.path + "/1"); }

  std::unique_ptr<ModelServer> started(const CandidateIndexOptions& index = {}) {
    auto server = std::make_unique<ModelServer>(ModelServerOptions{
        .models = {{.name = "films", .path = towers.path, .candidates = "films"}},
        .threads = 2,
        .look_every = Duration::zero(),
        .read_candidates = [this](const SavedModel&, const std::string&) { return data; },
        .index = index});
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
  static HttpAnswer recommend(const ModelServer& server, const std::string& body) {
    return ask(server, "POST", "/v1/models/films:recommend", body);
  }
  static std::vector<std::int64_t> ids(const HttpAnswer& answer, std::size_t query = 0) {
    EXPECT_EQ(answer.status, 200u) << answer.body;
    if (answer.status != 200) return {};
    return parse_json(answer.body, "")["recommendations"][query]["ids"]
        .get<std::vector<std::int64_t>>();
  }
  std::vector<std::int64_t> best(std::int64_t user, std::int64_t k, int version = 1) const {
    return TwoTowers::best_for(towers.path + "/" + std::to_string(version), user, k);
  }
  static std::string one(std::int64_t user, const std::string& more = "") {
    return str(R"({"instances": [{"user": )", user, R"(, "seen": []}])", more, "}");
  }
};

TEST_F(Recommend, GivesTheBestCandidatesByTheirProducts) {
  const auto server = started();
  for (const std::int64_t user : {0, 7, 39}) {
    EXPECT_EQ(ids(recommend(*server, one(user))), best(user, 10));
    EXPECT_EQ(ids(recommend(*server, one(user, R"(, "k": 3)"))), best(user, 3));
  }
  EXPECT_EQ(ids(recommend(*server, one(5, R"(, "k": 60)"))), best(5, 60)) << "all there are";
}

TEST_F(Recommend, AnswersEachQueryAloneWhateverItCameWith) {
  const auto server = started();
  std::string several = R"({"k": 4, "instances": [)";
  for (int user = 0; user < 40; ++user)
    several += str(user == 0 ? "" : ",", R"({"seen": [)", user % 3 == 0 ? "" : "1, 2",
                   R"(], "user": )", user, "}");
  const HttpAnswer together = recommend(*server, several + "]}");
  for (int user = 0; user < 40; ++user) {
    const std::string seen = user % 3 == 0 ? "[]" : "[1, 2]";
    const HttpAnswer alone = recommend(
        *server, str(R"({"k": 4, "instances": [{"user": )", user, R"(, "seen": )", seen, "}]}"));
    EXPECT_EQ(parse_json(alone.body, "")["recommendations"][0],
              parse_json(together.body, "")["recommendations"][static_cast<std::size_t>(user)]);
  }
}

TEST_F(Recommend, LeavesOutWhatTheRequestExcludes) {
  const auto server = started();
  const auto all = best(3, 6);
  const std::string exclude = str(R"(, "k": 4, "exclude": [[)", all[0], ", ", all[2], "]]");
  EXPECT_EQ(ids(recommend(*server, one(3, exclude))),
            (std::vector<std::int64_t>{all[1], all[3], all[4], all[5]}));
  EXPECT_EQ(
      ids(recommend(*server, one(3, str(exclude, R"(, "signature_name": "serving_default")"))))
          .size(),
      4u);
}

TEST_F(Recommend, HasColumnsForColumns) {
  const auto server = started();
  const HttpAnswer answer =
      recommend(*server, R"({"inputs": {"user": [1, 2], "seen": [[], []]}, "k": 2})");
  ASSERT_EQ(answer.status, 200u) << answer.body;
  const Json outputs = parse_json(answer.body, "")["outputs"];
  EXPECT_EQ(outputs["ids"][0].get<std::vector<std::int64_t>>(), best(1, 2));
  EXPECT_EQ(outputs["ids"][1].get<std::vector<std::int64_t>>(), best(2, 2));
  EXPECT_EQ(outputs["scores"][1].size(), 2u);
  EXPECT_GE(outputs["scores"][0][0], outputs["scores"][0][1]);
}

TEST_F(Recommend, SaysWhatIsWrong) {
  const auto server = started();
  const auto refused = [&](const std::string& body, const std::string& text) {
    const HttpAnswer answer = recommend(*server, body);
    EXPECT_EQ(answer.status, 400u) << answer.body;
    EXPECT_THAT(parse_json(answer.body, "")["error"].get<std::string>(), HasSubstr(text));
  };
  refused(one(1, R"(, "k": 61)"), "\"k\" is 61, and the model has 60 candidates");
  refused(one(1, R"(, "k": 0)"), "\"k\" is the number 0, and a whole number from 1 on is wanted");
  refused(one(1, R"(, "k": 2.5)"), "2.5");
  refused(one(1, R"(, "k": "3")"), "\"k\" is a text");
  refused(one(1, R"(, "k": 3, "k": 3)"), "twice");
  refused(one(1, R"(, "exclude": [[1000, 7]])"), "list 0: there is no candidate 7; at byte 60");
  refused(one(1, R"(, "exclude": [["Heat"]])"), "their ids are numbers");
  refused(one(1, R"(, "exclude": [1000])"), "one list of ids per instance");
  refused(one(1, R"(, "exclude": [[null]])"), "the id of a candidate is wanted");
  refused(one(1, R"(, "exclude": [[], []])"), "\"exclude\" has 2 lists for 1 instances");
  refused(R"({"instances": [{"user": 1, "film": 2, "seen": []}]})", "no input \"film\"");
  refused(R"({"instances": [{"seen": []}]})", "\"user\"");
  EXPECT_EQ(recommend(*server, one(1)).status, 200u);
  // The keys are words of ":recommend" alone.
  EXPECT_EQ(ask(*server, "POST", "/v1/models/films:predict", one(1, R"(, "k": 3)")).status, 400u);
}

TEST_F(Recommend, NeedsCandidates) {
  const ModelServer server(
      {.models = {{.name = "films", .path = towers.path}}, .look_every = Duration::zero()});
  ask(server, "POST", "/v2/repository/reload", "{}");
  const HttpAnswer answer = recommend(server, one(1));
  EXPECT_EQ(answer.status, 400u);
  EXPECT_THAT(answer.body, HasSubstr("--candidates FILE"));
}

TEST_F(Recommend, TellsOfItsCandidates) {
  const auto server = started({.kind = IndexKind::kHnsw});
  const Json told = parse_json(ask(*server, "GET", "/v1/models/films/metadata").body,
                               "")["metadata"]["candidates"];
  EXPECT_EQ(told["count"], 60);
  EXPECT_EQ(told["width"], 8);
  EXPECT_EQ(told["index"], "hnsw");
  EXPECT_GT(told["recall_at_10"].get<double>(), 0.9);
  const Json parameters =
      parse_json(ask(*server, "GET", "/v2/models/films").body, "")["parameters"];
  EXPECT_EQ(parameters["candidate_recall_at_10"], told["recall_at_10"]);
  EXPECT_EQ(ids(recommend(*server, one(9))).size(), 10u);
}

TEST_F(Recommend, EachVersionHasItsOwnVectors) {
  const auto server = started();
  EXPECT_EQ(ids(recommend(*server, one(4))), best(4, 10));
  towers.save(2, towers.path + "/2");
  ask(*server, "POST", "/v2/repository/reload", "{}");
  EXPECT_EQ(ids(recommend(*server, one(4))), best(4, 10, 2));
  EXPECT_NE(best(4, 10, 1), best(4, 10, 2));
}

TEST_F(Recommend, AVersionWhoseCandidatesDoNotFitIsRefused) {
  const auto server = started();
  const auto refused = [&](const CandidateData& wrong, const std::string& text) {
    data = wrong;
    towers.save(2, towers.path + "/2");
    ask(*server, "POST", "/v2/repository/reload", "{}");
    const auto newest = server->models().status("films").front();
    EXPECT_EQ(newest.version, 2);
    EXPECT_THAT(newest.error, StartsWith("the candidates in films: "));
    EXPECT_THAT(newest.error, HasSubstr(text));
    EXPECT_EQ(ids(recommend(*server, one(4))), best(4, 10)) << "the one before serves on";
    std::filesystem::remove_all(towers.path + "/2");
    ask(*server, "POST", "/v2/repository/reload", "{}");
  };
  const CandidateData right = data;
  CandidateData wrong = right;
  wrong.columns.erase("weight");
  refused(wrong, "no column \"weight\", which the model's output \"candidate\"");
  wrong = right;
  wrong.columns["film"] = wrong.columns["film"].rows(0, 59);
  refused(wrong, "another one 59");
  wrong = right;
  wrong.ids = wrong.ids.rows(0, 59);
  refused(wrong, "an id");
  wrong = {.ids = right.ids, .vectors = Tensor(DType::kFloat32, {60, 8})};
  refused(wrong, "do not say of which training step");
  wrong.step = 77;
  refused(wrong, "are of the training step 77");
  wrong.step = 0;
  wrong.vectors = Tensor(DType::kFloat32, {60, 4});
  refused(wrong, "both have the same width");
}

// Clients of ":recommend" rely on candidates, and on the inputs of queries.
TEST_F(Recommend, AVersionThatWouldBreakItsClientsIsRefused) {
  const auto server = started();
  EXPECT_EQ(ids(recommend(*server, one(4))), best(4, 10));
  towers.save(2, towers.path + "/2", false);
  ask(*server, "POST", "/v2/repository/reload", "{}");
  EXPECT_THAT(server->models().status("films").front().error,
              HasSubstr("its queries are computed from \"user\" int64[?], and those of that one"));
  EXPECT_EQ(ids(recommend(*server, one(4))), best(4, 10));
}

TEST_F(Recommend, AVersionWithoutTheFileThatTheOneBeforeHasIsRefused) {
  std::ofstream(towers.path + "/1/" + kCandidatesFile) << "read by a function of the test";
  ModelServer server(ModelServerOptions{
      .models = {{.name = "films", .path = towers.path}},
      .look_every = Duration::zero(),
      .read_candidates = [this](const SavedModel&, const std::string&) { return data; }});
  server.reload();
  towers.save(2, towers.path + "/2");
  server.reload();
  EXPECT_THAT(server.models().status("films").front().error, HasSubstr("candidates.npz"));
  EXPECT_EQ(ids(recommend(server, one(4))), best(4, 10)) << "of version 1";
  std::ofstream(towers.path + "/2/" + kCandidatesFile) << "the same";
  server.reload();
  EXPECT_EQ(ids(recommend(server, one(4))), best(4, 10, 2));
}

// A signal to end must not wait for gigabytes to be read.
TEST_F(Recommend, TheEndOfTheServerGivesUpWhatIsBeingLoaded) {
  std::promise<void> begun, ended;
  bool given_up = false;
  auto server = std::make_unique<ModelServer>(ModelServerOptions{
      .models = {{.name = "films", .path = towers.path, .candidates = "films"}},
      .read_candidates = [&](const SavedModel&, const std::string&) {
        begun.set_value();
        try {
          const TimePoint patience = system_clock().now() + std::chrono::seconds(60);
          while (system_clock().now() < patience) {
            look_up();
            std::this_thread::yield();
          }
        } catch (const CancelledError&) {
          given_up = true;
          throw;
        }
        return data;
      }});
  server->reload_soon([&] { ended.set_value(); });
  begun.get_future().wait();
  server->stop(Duration::zero());
  ended.get_future().wait();
  EXPECT_TRUE(given_up);
  EXPECT_TRUE(server->models().status("films").empty()) << "neither loading nor refused";
  bool called = false;
  server->reload_soon([&] { called = true; });
  server.reset();
  EXPECT_TRUE(called) << "nobody waits for ever";
}

}  // namespace
}  // namespace cairn::serving::testing
