#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "serving/http/http_server.h"
#include "tests/serving/http/raw_client.h"
#include "tests/serving/http/waiting_replies.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;

HttpOptions impatient() { return {.progress_timeout = 30ms}; }

TEST(HttpLimits, HalfABodyIsCutOff) {
  HttpServer server(impatient(), echo);
  RawClient client(server.port());
  const RawResponse response =
      client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nfive!");
  EXPECT_EQ(response.status, 408);
  EXPECT_NE(response.body.find("0.03 s"), std::string::npos) << response.body;
  EXPECT_TRUE(client.is_ended());
  EXPECT_EQ(server.counts().cut_off, 1u);
}

TEST(HttpLimits, BodyThatTricklesIsCutOff) {
  HttpServer server({.transfer_timeout = 30ms}, echo);
  RawClient client(server.port());
  client.send(post("/", std::string(1 << 20, 'x')).substr(0, 100));
  EXPECT_TRUE(eventually([&] { return !client.send("x") || server.counts().cut_off == 1; }));
  EXPECT_EQ(client.receive().status, 408);
}

TEST(HttpLimits, HalfAHeaderIsCutOff) {
  HttpServer server(impatient(), echo);
  RawClient client(server.port());
  EXPECT_EQ(client.ask("GET / HT").status, 408);
  EXPECT_TRUE(client.is_ended());
}

TEST(HttpLimits, ReaderThatTakesNoByteIsCutOff) {
  HttpServer server(impatient(), [](HttpRequest, HttpReply reply) {
    reply.send({.body = std::string(64 << 20, 'x')});
  });
  RawClient client(server.port(), 4096);
  client.send(get("/"));
  EXPECT_TRUE(eventually([&] { return server.counts().cut_off == 1; }));
  EXPECT_TRUE(eventually([&] { return server.counts().open == 0; }));
  EXPECT_LT(client.receive_to_end().size(), std::size_t{64} << 20);
}

TEST(HttpLimits, IdleConnectionIsClosedAfterItsOwnTimeout) {
  HttpServer server({.progress_timeout = 60s, .idle_timeout = 30ms}, echo);
  EXPECT_TRUE(RawClient(server.port()).is_ended());
  // The machine may be so busy that the request comes after the timeout.
  EXPECT_TRUE(eventually([&] {
    RawClient client(server.port());
    return client.ask(get("/")).status == 200 && client.is_ended();
  }));
}

TEST(HttpLimits, HandlerMayTakeLongerThanTheTimeouts) {
  WaitingReplies waiting;
  HttpServer server({.progress_timeout = 10ms}, waiting.handler());
  RawClient client(server.port());
  client.send(get("/"));
  HttpReply reply = waiting.next().second;
  // Others are cut off in the meantime, one after the other.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(RawClient(server.port()).ask("GET").status, 408);
  reply.send({.body = "done"});
  EXPECT_EQ(client.receive().body, "done");
}

TEST(HttpLimits, PipelinedRequestsThatWaitAreBounded) {
  WaitingReplies waiting;
  HttpServer server({.buffered_max = 512 << 10}, waiting.handler());
  std::string many;
  while (many.size() < 128 << 10) many += get("/");
  std::vector<RawClient> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(many);
  }
  EXPECT_TRUE(eventually([&] { return server.counts().cut_off > 0; }));
  EXPECT_GT(server.counts().open, 0u);
}

TEST(HttpLimits, ConnectionsBeyondTheLimitWaitForOneToClose) {
  HttpServer server({.connections_max = 2}, echo);
  RawClient first(server.port());
  EXPECT_EQ(first.ask(get("/1")).status, 200);
  {
    RawClient second(server.port());
    EXPECT_EQ(second.ask(get("/2")).status, 200);
    RawClient third(server.port());
    third.send(get("/3"));
    EXPECT_EQ(first.ask(get("/1")).status, 200);
    EXPECT_EQ(server.counts().accepted, 2u);
    second.reset();
    EXPECT_EQ(third.receive().body, "GET /3 ");
  }
}

// A flood of half-sent bodies fills what there is for bodies. Small requests are served all the
// while, and large ones again when the flood has gone.
TEST(HttpLimits, BodiesOfAllConnectionsTogetherAreBounded) {
  HttpServer server({.buffered_max = 3 << 20}, echo);
  const std::string half = post("/", std::string(1 << 20, 'x')).substr(0, 900 << 10);
  std::vector<RawClient> flood;
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    flood.emplace_back(server.port());
    flood.back().send(half);
  }
  ASSERT_TRUE(eventually([&] { return server.counts().refused >= 5; }));
  RawClient small(server.port());
  EXPECT_EQ(small.ask(post("/", std::string(10'000, 'y'))).status, 200);
  for (auto& client : flood) {
    client.end();
    const RawResponse response = client.receive();
    if (response.status == 0) continue;  // half a body, and then the end
    ++refused;
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(response.headers.at("retry-after"), "1");
  }
  EXPECT_LT(refused, 8);
  flood.clear();
  ASSERT_TRUE(eventually([&] { return server.counts().open == 1; }));
  EXPECT_EQ(small.ask(post("/", std::string(1 << 20, 'y'))).status, 200);
}

TEST(HttpLimits, AnswersThatWaitForTheirClientsAreBounded) {
  std::atomic<int> served{0};
  HttpServer server({.buffered_max = 100 << 20}, [&](HttpRequest, HttpReply reply) {
    reply.send({.body = std::string(64 << 20, 'x')});
    ++served;
  });
  RawClient first(server.port(), 4096), second(server.port(), 4096);
  first.send(get("/"));
  ASSERT_TRUE(eventually([&] { return served == 1; }));
  second.send(get("/"));
  EXPECT_TRUE(eventually([&] { return server.counts().cut_off == 1; }));
  EXPECT_EQ(first.receive().body.size(), std::size_t{64} << 20);
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * 4096;
}

TEST(HttpLimits, ThousandsOfConnectionsAreServedAndCostLittle) {
  HttpServer server({}, echo);
  rlimit limit{};  // which the server has raised
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const std::size_t count = std::min<std::size_t>(2000, (limit.rlim_cur - 200) / 2);
  std::vector<RawClient> clients;
  clients.reserve(count);
  clients.emplace_back(server.port());
  EXPECT_EQ(clients[0].ask(get("/")).status, 200);
  const std::size_t before = resident_bytes();
  while (clients.size() < count) clients.emplace_back(server.port());
  for (auto& client : clients) client.send(post("/", std::string(3000, 'b')));
  for (auto& client : clients) EXPECT_EQ(client.receive().body.size(), 3007u);
  EXPECT_EQ(server.counts().open, count);
#ifndef CAIRN_SANITIZED
  // 10,000 idle connections are to cost 100 MB at most; the clients themselves are in this sum.
  EXPECT_LT(resident_bytes() - before, count * 10'000);
#else
  EXPECT_GT(before, 0u);
#endif
}

TEST(HttpLimits, GigabyteIsRefusedByItsLength) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  const RawResponse response =
      client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n");
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.body,
            "{\"error\":\"the body has 1073741824 bytes, and the limit is 16777216 bytes: send "
            "fewer examples per request, or raise --max-body\"}");
}

TEST(HttpLimits, TokenOpensAndItsLackIsNamed) {
  HttpServer server({.token = "s3cret"}, echo);
  RawClient with(server.port()), without(server.port());
  EXPECT_EQ(with.ask(get("/", "Authorization: Bearer s3cret\r\n")).status, 200);
  const RawResponse refused = without.ask(get("/"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  EXPECT_NE(refused.body.find("--token-file"), std::string::npos);
  EXPECT_TRUE(without.is_ended());
}

std::string failure(const HttpOptions& options) {
  try {
    HttpServer server(options, echo);
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "";
}

TEST(HttpLimits, AddressOfTheNetworkNeedsAToken) {
  const std::string error = failure({.host = "0.0.0.0"});
  EXPECT_EQ(error.substr(0, 15), "InvalidArgument");
  EXPECT_NE(error.find("--token-file"), std::string::npos) << error;
  EXPECT_EQ(failure({.host = "0.0.0.0", .token = "t"}), "");
  EXPECT_EQ(failure({.host = "localhost"}), "");
}

TEST(HttpLimits, AddressThatCannotBeIsRefused) {
  EXPECT_EQ(failure({.host = "example"}).substr(0, 15), "InvalidArgument");
  HttpServer server({}, echo);
  const std::string error = failure({.port = server.port()});
  EXPECT_EQ(error.substr(0, 11), "Unavailable");
  EXPECT_NE(error.find(std::to_string(server.port())), std::string::npos) << error;
}

}  // namespace
}  // namespace cairn::serving
