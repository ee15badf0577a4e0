#include "serving/http/http_server.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/serving/http/raw_client.h"
#include "tests/serving/http/waiting_replies.h"

namespace cairn::serving {
namespace {

TEST(HttpServer, ConnectionStaysForTheNextRequest) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  for (const char* body : {"a", "", "c"}) {
    const RawResponse response = client.ask(post("/x?y", body));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, std::string("POST /x?y ") + body);
    EXPECT_EQ(response.headers.at("content-type"), "text/plain");
    EXPECT_EQ(response.headers.count("connection"), 0u);
    EXPECT_EQ(response.headers.at("date").size(), 29u);
  }
  EXPECT_EQ(server.counts().accepted, 1u);
  EXPECT_EQ(server.counts().open, 1u);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 3000; ++i) all += post("/" + std::to_string(i), std::to_string(i));
  std::thread sender([&] { client.send(all); });
  for (int i = 0; i < 3000; ++i) {
    const std::string n = std::to_string(i);
    ASSERT_EQ(client.receive().body, "POST /" + n + " " + n);
  }
  sender.join();
}

TEST(HttpServer, PipelinedRequestWaitsForTheAnswerBeforeIt) {
  WaitingReplies waiting;
  HttpServer server({}, waiting.handler());
  RawClient client(server.port());
  client.send(get("/1") + get("/2"));
  for (const char* target : {"/1", "/2"}) {
    auto [request, reply] = waiting.next();
    EXPECT_EQ(request.target, target);
    reply.send({.body = request.target});
    EXPECT_EQ(client.receive().body, target);
  }
}

TEST(HttpServer, ConnectionOfAClientThatShallComeLaterRests) {
  using namespace std::chrono_literals;
  HttpServer server({}, [](HttpRequest request, HttpReply reply) {
    HttpResponse response{.body = request.target};
    if (request.target == "/rest") response.rest = 60ms;
    reply.send(std::move(response));
  });
  RawClient client(server.port()), other(server.port());
  const TimePoint began = system_clock().now();
  client.send(get("/rest") + get("/pipelined") + get("/rest"));
  EXPECT_EQ(client.receive().body, "/rest");
  EXPECT_EQ(other.ask(get("/other")).body, "/other");
  EXPECT_EQ(client.receive().body, "/pipelined");
  EXPECT_GE(system_clock().now() - began, 60ms);
  EXPECT_EQ(client.receive().body, "/rest");
  EXPECT_EQ(client.ask(get("/later")).body, "/later");
  EXPECT_GE(system_clock().now() - began, 120ms);
}

TEST(HttpServer, ChunkedBodyIsRead) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  client.send("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "POST /c abcde");
}

TEST(HttpServer, ClientThatWaitsForItIsToldToSendTheBody) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.ask("abc").body, "POST / abc");
  EXPECT_EQ(client.ask(get("/")).status, 200);
}

TEST(HttpServer, LargeBodiesGoBothWays) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  std::string body(15 << 20, 'x');
  std::mt19937 random(7);
  for (std::size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>(random());
  for (int i = 0; i < 2; ++i) {
    std::thread sender([&] { client.send(post("/", body)); });
    const RawResponse response = client.receive();
    sender.join();
    EXPECT_TRUE(response.body == "POST / " + body);
  }
}

TEST(HttpServer, HeadIsAnsweredWithoutTheBody) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  client.send("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\n" + get("/d"));
  const RawResponse response = client.receive(true);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-length"), "10");
  EXPECT_EQ(client.receive().body, "GET /d ");
}

TEST(HttpServer, OptionsAndForeignMethodsReachTheHandler) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  EXPECT_EQ(client.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").body, "OPTIONS * ");
  EXPECT_EQ(client.ask("BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n").body, "BREW /pot ");
}

TEST(HttpServer, ConnectionIsClosedIfTheClientWantsThat) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  const RawResponse response = client.ask(get("/", "Connection: close\r\n"));
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_ended());
}

TEST(HttpServer, ClientOfHttp10IsClosedUnlessItAsksOtherwise) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  const RawResponse kept = client.ask("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.headers.at("connection"), "keep-alive");
  const RawResponse closed = client.ask("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closed.body, "GET /2 ");
  EXPECT_EQ(closed.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_ended());
}

TEST(HttpServer, ClientThatEndsItsSideStillGetsItsAnswer) {
  WaitingReplies waiting;
  HttpServer server({}, waiting.handler());
  RawClient client(server.port());
  client.send(get("/1"));
  client.end();
  waiting.next().second.send({.body = "late"});
  EXPECT_EQ(client.receive().body, "late");
  EXPECT_TRUE(client.is_ended());
}

TEST(HttpServer, AnswersComeFromOtherThreads) {
  WaitingReplies waiting;
  HttpServer server({}, waiting.handler());
  constexpr int kClients = 40, kRounds = 25;
  std::vector<std::thread> computing;
  for (int i = 0; i < 2; ++i) {
    computing.emplace_back([&] {
      for (int n = 0; n < kClients * kRounds / 2; ++n) {
        auto [request, reply] = waiting.next();
        reply.send({.body = request.body});
      }
    });
  }
  std::vector<RawClient> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back(server.port());
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kClients; ++i)
      clients[i].send(post("/", std::to_string(round * kClients + i)));
    for (int i = 0; i < kClients; ++i)
      EXPECT_EQ(clients[i].receive().body, std::to_string(round * kClients + i));
  }
  for (auto& thread : computing) thread.join();
}

TEST(HttpServer, ReplyGivenUpIsAServersError) {
  HttpServer server({}, [](HttpRequest, HttpReply) {});
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {  // and the connection stays
    const RawResponse response = client.ask(get("/"));
    EXPECT_EQ(response.status, 500);
    EXPECT_NE(response.body.find("without an answer"), std::string::npos);
  }
}

TEST(HttpServer, HandlerThatThrowsAnswersWithTheError) {
  HttpServer server({}, [](HttpRequest request, HttpReply) {
    if (request.target == "/1") throw NotFoundError("no model \"1\"");
    throw std::runtime_error("a cause");
  });
  RawClient client(server.port());
  const RawResponse ours = client.ask(get("/1"));
  EXPECT_EQ(ours.status, 404);
  EXPECT_EQ(ours.body, R"({"error":"no model \"1\""})");
  const RawResponse foreign = client.ask(get("/2"));
  EXPECT_EQ(foreign.status, 500);
  EXPECT_NE(foreign.body.find("a cause"), std::string::npos);
}

TEST(HttpServer, HandlerThatThrowsAfterItHandedTheReplyOnDoesNotAnswerTwice) {
  std::promise<HttpReply> handed_on;
  HttpServer server({}, [&](HttpRequest request, HttpReply reply) {
    if (request.target == "/2") return reply.send({.body = "second"});
    handed_on.set_value(std::move(reply));
    throw std::runtime_error("too late");
  });
  RawClient client(server.port());
  client.send(get("/1") + get("/2"));
  HttpReply reply = handed_on.get_future().get();
  RawClient other(server.port());
  EXPECT_EQ(other.ask(get("/2")).body, "second");  // the handler has thrown by now
  reply.send({.body = "first"});
  EXPECT_EQ(client.receive().body, "first");
  EXPECT_EQ(client.receive().body, "second");
}

TEST(HttpServer, AnswerForAClientThatHasGoneIsDropped) {
  WaitingReplies waiting;
  HttpServer server({}, waiting.handler());
  RawClient client(server.port());
  client.send(get("/1"));
  auto [request, reply] = waiting.next();
  client.reset();
  reply.send({.body = std::string(1 << 20, 'x')});
  EXPECT_TRUE(eventually([&] { return server.counts().open == 0; }));
  RawClient next(server.port());
  next.send(get("/2"));
  waiting.next().second.send({.body = "served on"});
  EXPECT_EQ(next.receive().body, "served on");
}

TEST(HttpServer, ReplyMayOutliveTheServer) {
  WaitingReplies waiting;
  auto server = std::make_unique<HttpServer>(HttpOptions{}, waiting.handler());
  RawClient client(server->port());
  client.send(get("/1"));
  auto [request, reply] = waiting.next();
  server.reset();
  reply.send({.body = "too late"});
  EXPECT_TRUE(client.is_ended());
}

TEST(HttpServer, RefusalIsReadableThoughTheBodyWasNotRead) {
  HttpServer server({.body_max = 1000}, echo);
  RawClient client(server.port());
  // More than the kernel's buffers hold: the server must take it until the client has the answer.
  const RawResponse response = client.ask(post("/", std::string(8 << 20, 'x')));
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_ended());
  EXPECT_EQ(server.counts().refused, 1u);
}

TEST(HttpServer, GarbageIsRefusedAndOthersAreServed) {
  HttpServer server({}, echo);
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = i % 2 == 0 ? "" : post("/", "abc");
    for (std::size_t n = 1 + random() % 300; n-- > 0;)
      bytes.insert(random() % (bytes.size() + 1), 1, static_cast<char>(random()));
    RawClient client(server.port());
    client.send(bytes);
    client.end();
    client.receive_to_end();
  }
  EXPECT_EQ(RawClient(server.port()).ask(get("/fine")).body, "GET /fine ");
  EXPECT_GT(server.counts().refused, 100u);
}

TEST(HttpServer, BodySentByteByByteIsRead) {
  HttpServer server({}, echo);
  RawClient client(server.port());
  for (const char byte : post("/", "some bytes")) client.send({&byte, 1});
  EXPECT_EQ(client.receive().body, "POST / some bytes");
}

TEST(HttpServer, AccessLogHasALineForEachAnswer) {
  std::mutex mutex;
  std::vector<std::string> lines;
  HttpOptions options{.body_max = 1000};
  options.access_log = [&](const AccessLine& line) {
    EXPECT_EQ(line.remote, "127.0.0.1");
    EXPECT_GE(line.microseconds, 0);
    std::lock_guard hold(mutex);
    lines.push_back(str(line.method, ' ', line.target, ' ', line.status, ' ', line.bytes_in, ' ',
                        line.bytes_out));
  };
  {
    HttpServer server(options, echo);
    RawClient client(server.port());
    client.ask(post("/m?x", "four"));
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.receive(true);
    client.send(post("/large", std::string(1001, 'x')));
    client.receive_to_end();
    RawClient other(server.port());
    other.send("nonsense\r\n\r\n");
    other.receive_to_end();
  }
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "POST /m?x 200 4 14");
  EXPECT_EQ(lines[1], "HEAD / 200 0 0");
  EXPECT_EQ(lines[2].substr(0, 17), "POST /large 413 0");
  EXPECT_EQ(lines[3].substr(0, 8), "  400 0 ");
}

}  // namespace
}  // namespace cairn::serving
