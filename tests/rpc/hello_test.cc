#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/random.h"
#include "rpc/net/hello.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

Hello full_hello() {
  auto hello = worker_hello();
  hello.session = 0x0102030405060708;
  hello.term = 0x1112131415161718;
  hello.endpoint = 9;
  hello.token = "secret";
  return hello;
}

Hello decode_all(const std::vector<std::uint8_t>& bytes) {
  std::span<const std::uint8_t> all(bytes);
  auto prefix = decode_prefix(all.first<kHelloPrefixBytes>());
  return decode_hello(prefix.version, all.subspan(kHelloPrefixBytes));
}

TEST(Hello, EveryFieldReadsBack) {
  auto sent = full_hello();
  auto back = decode_all(encode(sent));
  EXPECT_EQ(back.cluster, sent.cluster);
  EXPECT_EQ(back.session, sent.session);
  EXPECT_EQ(back.term, sent.term);
  EXPECT_EQ(back.role, sent.role);
  EXPECT_EQ(back.task, sent.task);
  EXPECT_EQ(back.incarnation, sent.incarnation);
  EXPECT_EQ(back.endpoint, sent.endpoint);
  EXPECT_EQ(back.token, sent.token);
}

TEST(Hello, TheReplyReadsBackAndALongReasonIsCut) {
  HelloReply sent;
  sent.code = Code::kPermissionDenied;
  sent.reason = std::string(5000, 'x');
  sent.role = Role::kPs;
  sent.task = 3;
  sent.endpoints = 4;
  auto bytes = encode(sent);
  ASSERT_LE(bytes.size(), kHelloBytesMax);
  auto back = decode_reply(kProtocolVersion, std::span(bytes).subspan(kHelloPrefixBytes));
  EXPECT_FALSE(back.accepted);
  EXPECT_EQ(back.code, Code::kPermissionDenied);
  EXPECT_EQ(back.reason, std::string(kReasonBytesMax, 'x'));
  EXPECT_EQ(back.endpoints, 4u);
}

TEST(Hello, EveryTruncationAndEveryExtraByteIsRefused) {
  auto bytes = encode(full_hello());
  auto rest = std::span<const std::uint8_t>(bytes).subspan(kHelloPrefixBytes);
  for (std::size_t size = 0; size < rest.size(); ++size) {
    EXPECT_THROW(decode_hello(kProtocolVersion, rest.first(size)), InvalidArgumentError) << size;
  }
  bytes.push_back(0);
  EXPECT_THROW(decode_hello(kProtocolVersion,
                            std::span<const std::uint8_t>(bytes).subspan(kHelloPrefixBytes)),
               InvalidArgumentError);
}

TEST(Hello, RandomBytesNeverDoMoreThanThrow) {
  Random random(11);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = encode(full_hello());
    for (int flips = 0; flips < 3; ++flips)
      bytes[random.below(bytes.size())] ^= static_cast<std::uint8_t>(random.bits());
    try {
      decode_all(bytes);
      ++accepted;
    } catch (const InvalidArgumentError&) {
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 20'000);
}

TEST(Hello, ATooLongNameIsRefusedBeforeItIsSent) {
  auto hello = full_hello();
  hello.cluster = std::string(kNameBytesMax + 1, 'c');
  EXPECT_THROW(encode(hello), InvalidArgumentError);
}

TEST(Hello, SecretsAreEqualOnlyWhenEveryByteIs) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "abcabc"));
  EXPECT_FALSE(same_secret("abcabc", "abc"));
  EXPECT_FALSE(same_secret("", "a"));
  EXPECT_FALSE(same_secret("a", ""));
}

}  // namespace
}  // namespace cairn::rpc
