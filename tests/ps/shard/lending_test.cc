// Rows that leave from where a table has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <thread>

#include "core/disk/memory_disk.h"
#include "tests/ps/server/server_fixture.h"

namespace cairn::ps {
namespace {

// 24 MB: more than any socket takes. So many rows that slots lie beside them.
constexpr std::int64_t kLentRows = 20'000, kLentDim = 300;
constexpr std::size_t kElements = kLentRows * kLentDim;

TableConfig ones(VariableId id, Shape shape, UpdateRule rule = sgd()) {
  return whole_table(id, variable(str("v", id), std::move(shape), Initializer::constant(1)), rule);
}

bool all_are(float value, std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [value](float each) { return each == value; });
}

std::span<const float> floats_of(const Loan& loan) {
  return {reinterpret_cast<const float*>(loan.bytes().data()), loan.bytes().size() / sizeof(float)};
}

// The parameter: whether the reader pins the loan, as for a thread that reads without asking it.
class Loans : public testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<Loan> lend(const Ids& rows) {
    const ReadHeader header{0, 0, static_cast<std::uint32_t>(rows.size()), false};
    auto loan = shard.shard.pull({shard.step(0), {&header, 1}, rows}).lend();
    if (loan != nullptr && GetParam()) loan->pin();
    return loan;
  }
  std::shared_ptr<Loan> lend_whole() {
    const ReadHeader header{0, 0, 0, true};
    auto loan = shard.shard.pull({shard.step(0), {&header, 1}, {}}).lend();
    if (loan != nullptr && GetParam()) loan->pin();
    return loan;
  }
  ShardHarness shard{{ones(0, {kLentRows, kLentDim})}};
};
INSTANTIATE_TEST_SUITE_P(Pinned, Loans, testing::Bool(),
                         [](const auto& info) { return info.param ? "Pinned" : "Movable"; });

TEST_P(Loans, ReadAsTheRowsWereWhenTheyWereLent) {
  const auto before = lend_whole(), again = lend_whole();
  ASSERT_TRUE(before && again);
  EXPECT_EQ(before->bytes().data(), again->bytes().data());
  shard.push_whole(shard.step(1), 0, Floats(kElements, 1));
  const auto between = lend_whole();
  shard.push(shard.step(2), 0, {0, kLentRows - 1}, Floats(2 * kLentDim, 5));
  EXPECT_TRUE(all_are(1.0f, floats_of(*before)));
  EXPECT_TRUE(all_are(1.0f, floats_of(*again)));
  EXPECT_TRUE(all_are(0.0f, floats_of(*between)));
  EXPECT_EQ(shard.pull(0, {0, 1, kLentRows - 1}), [] {
    Floats expected(3 * kLentDim, -5);
    std::fill_n(expected.begin() + kLentDim, kLentDim, 0.0f);
    return expected;
  }());
}

TEST_P(Loans, StayWhereTheyAreWhileOthersRowsChange) {
  Ids rows(3000);
  std::iota(rows.begin(), rows.end(), 1000);
  const auto loan = lend(rows);
  ASSERT_NE(loan, nullptr);
  const auto* at = loan->bytes().data();
  shard.push(shard.step(1), 0, {0, 999, 4000, kLentRows - 1}, Floats(4 * kLentDim, 5));
  EXPECT_EQ(loan->bytes().data(), at);
  shard.push(shard.step(2), 0, {3999}, Floats(kLentDim, 5));
  EXPECT_NE(loan->bytes().data(), at);
  EXPECT_TRUE(all_are(1.0f, floats_of(*loan)));
}

TEST_P(Loans, OutliveTheTable) {
  const auto loan = lend_whole();
  ASSERT_NE(loan, nullptr);
  shard.shard.configure({ShardHarness::kSession + 1, 1, 42, {}, ShardHarness::kEpoch});
  EXPECT_TRUE(all_are(1.0f, floats_of(*loan)));
}

TEST_P(Loans, SurviveARestore) {
  shard.push_whole(shard.step(1), 0, Floats(kElements, 1));
  const auto loan = lend_whole();
  ASSERT_NE(loan, nullptr);
  shard.shard.begin_restore();  // every row has its initial value again
  EXPECT_TRUE(all_are(0, floats_of(*loan)));
  shard.shard.end_restore({});
  shard.shard.open();
  EXPECT_TRUE(all_are(1, shard.pull_whole(0)));
}

TEST_P(Loans, SurviveNewSlots) {
  const auto loan = lend_whole();
  shard.shard.configure({ShardHarness::kSession,
                         2,
                         42,
                         {ones(0, {kLentRows, kLentDim}, adagrad())},
                         ShardHarness::kEpoch});
  EXPECT_TRUE(all_are(1.0f, floats_of(*loan)));
  EXPECT_EQ(lend_whole(), nullptr);  // beside their slots they do not lie as they travel
  EXPECT_EQ(shard.pull(0, {5}), Floats(kLentDim, 1));
}

TEST(Loan, IsNotHadOfRowsThatDoNotLieAsTheyTravel) {
  ShardHarness shard({ones(0, {kLentRows, kLentDim}), ones(1, {10, 10})});
  const Ids scattered{0, 2, 3}, together{2, 3};
  auto lent = [&](std::vector<ReadHeader> headers, const Ids& ids,
                  RowEncoding encoding = RowEncoding::kRaw) {
    return shard.shard.pull({shard.step(0), headers, ids, encoding}).lend() != nullptr;
  };
  EXPECT_TRUE(lent({{0, 0, 2}}, together));
  EXPECT_FALSE(lent({{0, 0, 3}}, scattered));
  EXPECT_FALSE(lent({{0, 0, 2}}, together, RowEncoding::kBfloat16));
  EXPECT_FALSE(lent({{0, 0, 0, true}, {1, 0, 0, true}}, {}));
  EXPECT_FALSE(lent({{1, 0, 0, true}}, {}));  // it has no pages of its own
}

// Sockets of one kind, and shards with a thread each.
class LoansOverSockets : public testing::TestWithParam<rpc::Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, LoansOverSockets,
                         testing::Values(rpc::Transport::kTcp, rpc::Transport::kUnix),
                         [](const auto& info) {
                           return info.param == rpc::Transport::kTcp ? "Tcp" : "Unix";
                         });

// A push of another worker while an answer is on its way does not change the answer.
TEST_P(LoansOverSockets, AWorkerThatReadsLateReadsTheRowsAsTheyWere) {
  MemoryDisk disk;
  auto store = storage::make_memory_row_store(disk);
  auto offload = make_thread_offload(1);
  auto reactor = rpc::make_reactor();
  auto network = rpc::make_socket_network(GetParam());
  PsServer server(*reactor, *network, *offload, *store, server_options("tcp://127.0.0.1:0", 1));
  ShardClient client(*reactor, *network, server.address());
  client.configure({ones(0, {kLentRows, kLentDim})});
  client.open();
  std::promise<void> pushed;
  Floats read;
  std::thread late([&, until = pushed.get_future()] {
    auto own_reactor = rpc::make_reactor();
    auto own_network = rpc::make_socket_network(GetParam());
    ShardClient own(*own_reactor, *own_network, server.address());
    auto asked = own.pull_later(0);
    own_reactor->wait(own_reactor->yield());
    until.wait();  // this loop does not read meanwhile
    read = own.wait(kj::mv(asked));
  });
  const auto connection =
      reactor->wait(network->connect(*reactor, server.address(), hello_to(0), kPatience));
  auto control = connection->bootstrap<wire::TaskControl>();
  for (std::string status; status.find("\"pulls\":1") == std::string::npos;) {
    kj::Promise<capnp::Response<wire::TaskControl::StatusResults>> asked =
        control.statusRequest().send();
    status = client.wait(kj::mv(asked)).getJson();
  }
  client.push(1, 0, Floats(kElements, 1));
  pushed.set_value();
  late.join();
  EXPECT_EQ(read.size(), kElements);
  EXPECT_TRUE(all_are(1, read));
  EXPECT_TRUE(all_are(0, client.pull(0)));
}

}  // namespace
}  // namespace cairn::ps
