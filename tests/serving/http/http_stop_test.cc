#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "serving/http/http_server.h"
#include "tests/serving/http/raw_client.h"

namespace cairn::serving {
namespace {

using namespace std::chrono_literals;

// A server that holds the reply to "/hold" until the test sends it.
struct Held {
  std::promise<HttpReply> taken;
  HttpServer server{{}, [this](HttpRequest request, HttpReply reply) {
                      if (request.target == "/hold") return taken.set_value(std::move(reply));
                      echo(std::move(request), std::move(reply));
                    }};
  std::optional<std::thread> stopping;

  HttpReply reply() { return taken.get_future().get(); }
  void stop(Duration drain) {
    stopping.emplace([this, drain] { server.stop(drain); });
  }
  ~Held() {
    if (stopping) stopping->join();
  }
};

TEST(HttpStop, RequestUnderWayIsAnsweredAndThenItsConnectionCloses) {
  Held held;
  RawClient client(held.server.port()), idle(held.server.port());
  EXPECT_EQ(idle.ask(get("/")).status, 200);
  client.send(get("/hold"));
  HttpReply reply = held.reply();
  held.stop(1h);
  EXPECT_TRUE(idle.is_ended());  // at once: the drain is for the others
  reply.send({.body = "whole"});
  const RawResponse response = client.receive();
  EXPECT_EQ(response.body, "whole");
  EXPECT_EQ(response.headers.at("connection"), "close");
  EXPECT_TRUE(client.is_ended());
  held.stopping->join();
  held.stopping.reset();
  EXPECT_EQ(held.server.counts().open, 0u);
}

TEST(HttpStop, HalfARequestMayEnd) {
  Held held;
  RawClient client(held.server.port()), idle(held.server.port());
  EXPECT_EQ(idle.ask(get("/")).status, 200);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  held.stop(1h);
  EXPECT_TRUE(idle.is_ended());
  const RawResponse response = client.ask("ending");
  EXPECT_EQ(response.body, "POST / ending");
  EXPECT_EQ(response.headers.at("connection"), "close");
}

TEST(HttpStop, WhatIsLeftAfterTheDrainIsClosed) {
  Held held;
  RawClient client(held.server.port());
  client.send(get("/hold"));
  HttpReply reply = held.reply();
  held.server.stop(20ms);
  EXPECT_TRUE(client.is_ended());
  reply.send({.body = "dropped"});
}

TEST(HttpStop, ConnectionsThatRestAreNotWaitedFor) {
  HttpServer server({}, [](HttpRequest request, HttpReply reply) {
    reply.send({.body = request.target, .rest = 24h});
  });
  RawClient idle(server.port()), pipelined(server.port());
  EXPECT_EQ(idle.ask(get("/1")).body, "/1");
  pipelined.send(get("/1") + get("/2"));
  EXPECT_EQ(pipelined.receive().body, "/1");
  server.stop(1h);
  EXPECT_TRUE(idle.is_ended());
  const RawResponse last = pipelined.receive();  // it had arrived
  EXPECT_EQ(last.body, "/2");
  EXPECT_EQ(last.headers.at("connection"), "close");
}

TEST(HttpStop, NoConnectionIsAcceptedAfterwards) {
  HttpServer server({}, echo);
  const std::uint16_t port = server.port();
  server.stop(1h);
  EXPECT_THROW(RawClient client(port), std::runtime_error);
  server.stop(1h);  // a second time: nothing is left to do
}

TEST(HttpStop, RequestThatHadArrivedIsAnswered) {
  for (int i = 0; i < 50; ++i) {
    Held held;
    RawClient client(held.server.port());
    client.send(get("/sent"));
    held.stop(1h);
    EXPECT_EQ(client.receive().body, "GET /sent ");
  }
}

TEST(HttpStop, StoppingUnderLoadLosesNoRequestOfItsMiddle) {
  HttpServer server({}, echo);
  std::promise<void> answered;
  std::thread client([&] {
    RawClient connection(server.port());
    for (int i = 0;; ++i) {
      if (!connection.send(get("/"))) break;
      const RawResponse response = connection.receive();
      if (response.status == 0) break;  // closed before the request had arrived
      EXPECT_EQ(response.status, 200);
      if (i == 100) answered.set_value();
      if (response.headers.count("connection") > 0) break;
    }
  });
  answered.get_future().wait();
  server.stop(10s);
  client.join();
}

}  // namespace
}  // namespace cairn::serving
