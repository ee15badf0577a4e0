#include <gtest/gtest.h>

#include "core/base/error.h"
#include "rpc/net/network.h"

namespace cairn::rpc {
namespace {

TEST(Address, EverySchemeReadsBackAsWritten) {
  for (auto text : {"tcp://127.0.0.1:80", "tcp://host.example:0", "tcp://[::1]:65535",
                    "unix:/run/a.sock", "sim://ps0"}) {
    EXPECT_EQ(Address::parse(text).str(), text);
  }
  EXPECT_EQ(Address::parse("localhost:2222"), (Address{Address::Scheme::kTcp, "localhost", 2222}));
  EXPECT_EQ(Address::parse("unix:///run/a.sock").host, "/run/a.sock");
}

TEST(Address, NonsenseIsRefusedWithTheTextAndTheCure) {
  for (auto text : {"", "host", "host:", ":80", "host:65536", "host:8x", "::1:80", "http://host:80",
                    "unix:", "sim://", "host:-1"}) {
    try {
      Address::parse(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const InvalidArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find("expected host:port"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Transport, OnlyTheThreeNamesAreKnown) {
  EXPECT_EQ(parse_transport("auto"), Transport::kAuto);
  EXPECT_EQ(parse_transport("tcp"), Transport::kTcp);
  EXPECT_EQ(parse_transport("unix"), Transport::kUnix);
  EXPECT_THROW(parse_transport("udp"), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::rpc
