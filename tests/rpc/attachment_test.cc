#include "rpc/net/attachment.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/base/error.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

TEST(AttachmentKeysDeathTest, WhoeverFollowsAKeyFaults) {
  AttachmentKeys keys;
  const auto* key = static_cast<const volatile char*>(keys.next(64 << 20));
  EXPECT_DEATH((void)key[0], "");
  EXPECT_DEATH((void)key[(64 << 20) - 1], "");
  EXPECT_DEATH(const_cast<volatile char*>(key)[100] = 1, "");
}

TEST(AttachmentKeys, AreDistinctAndNoAddressOfMemory) {
  AttachmentKeys keys;
  std::set<const void*> seen;
  for (int i = 0; i < 1000; ++i) {
    const void* key = keys.next(8);
    EXPECT_TRUE(AttachmentKeys::is_key(key));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(key) % 8, 0u);
    EXPECT_TRUE(seen.insert(key).second);
  }
  const auto memory = std::make_unique<int>();
  EXPECT_FALSE(AttachmentKeys::is_key(memory.get()));
  EXPECT_FALSE(AttachmentKeys::is_key(&keys));
  EXPECT_FALSE(AttachmentKeys::is_key(nullptr));
}

TEST(AttachmentKeys, AreNotHadForMoreThanTheirRangeHolds) {
  AttachmentKeys keys;
  EXPECT_THROW(keys.next(AttachmentKeys::kAttachmentBytesMax + 1), ResourceExhaustedError);
}

TEST(Attachment, GoesOutInItsPiecesWithThePaddingOfAMessage) {
  const auto owner = std::make_shared<std::vector<std::uint64_t>>(4);
  const auto* data = reinterpret_cast<const kj::byte*>(owner->data());
  std::vector<ByteStream::Piece> pieces, out;
  pieces.push_back({kj::arrayPtr(data, 11), owner});
  pieces.push_back({kj::arrayPtr(data + 16, 2), owner});
  Attachment attachment(std::move(pieces));
  EXPECT_EQ(attachment.bytes(), 13u);
  attachment.append_to(out);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].bytes.size(), 11u);
  EXPECT_EQ(out[1].bytes.size(), 5u);
  EXPECT_EQ(attachment.bytes(), 0u);
}

TEST(Attachment, OfALoanIsReadFromWhereTheBytesAreWhenTheyLeave) {
  const std::vector<std::uint64_t> before(4, 1), after(4, 2);
  const auto loan = std::make_shared<Loan>(std::as_bytes(std::span(before)), nullptr);
  Attachment attachment(loan, 29);
  loan->move_to(std::as_bytes(std::span(after)), nullptr);
  std::vector<ByteStream::Piece> out;
  attachment.append_to(out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].bytes.size(), 32u);
  EXPECT_EQ(out[0].begin()[31], 0);
  EXPECT_EQ(out[0].begin()[24], 2);
}

class AttachedTest : public testing::Test {
 protected:
  ~AttachedTest() noexcept override {}
  // Attaches `bytes` bytes to a message, and goes away with the builder unless sent.
  capnp::Request<Echo::PushParams, Echo::PushResults> request_of(std::size_t bytes) {
    auto owner = std::make_shared<std::vector<std::uint8_t>>(bytes, std::uint8_t{7});
    seen = owner;
    auto request = client.pushRequest();
    const auto orphanage =
        capnp::Orphanage::getForMessageContaining(Echo::PushParams::Builder(request));
    const void* data = owner->data();
    request.adoptData(connection->attach(orphanage, Attachment(data, bytes, std::move(owner))));
    return request;
  }

  EchoPair pair;
  std::unique_ptr<Connection> connection = pair.connect();
  Echo::Client client = connection->bootstrap<Echo>();
  std::weak_ptr<void> seen;
};

TEST_F(AttachedTest, ArriveAndAreLetGoOf) {
  auto request = request_of(80'000);
  EXPECT_FALSE(seen.expired());
  pair.wait(kj::Promise<void>(request.send().ignoreResult()));
  EXPECT_EQ(pair.log.pushed, std::vector<std::uint8_t>(80'000, 7));
  pair.wait(echo(client, 1));
  EXPECT_TRUE(seen.expired());
}

TEST_F(AttachedTest, AreLetGoOfIfTheirMessageWasNeverSent) {
  { auto request = request_of(80'000); }
  EXPECT_FALSE(seen.expired());  // the turn of the loop is not over
  pair.wait(pair.reactor->yield());
  EXPECT_TRUE(seen.expired());
}

// Until then the loop cannot tell whose they are.
TEST_F(AttachedTest, AreLetGoOfOnceTheMessagesThatWereBeingSentHaveLeft) {
  auto large = request_of(30 << 20);
  const std::weak_ptr<void> sent = seen;
  auto sending = large.send().ignoreResult();
  { auto request = request_of(80'000); }
  pair.wait(kj::Promise<void>(kj::mv(sending)));
  EXPECT_EQ(pair.log.pushed.size(), std::size_t{30} << 20);
  pair.wait(pair.reactor->yield());
  EXPECT_TRUE(sent.expired());
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace cairn::rpc
