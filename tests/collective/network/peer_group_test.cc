// A group of processes, simulated: what its sums are, and how many messages they take.
#include "collective/network/peer_group.h"

#include <gmock/gmock.h>

#include <cstring>

#include "collective/base/sum.h"
#include "core/tensor/bfloat16.h"
#include "tests/collective/collective_testing.h"
#include "tests/collective/network/sim_group.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<Tensor>;  // of one member

CollectiveCall all_reduce_of(Values& values, ReduceOp op = ReduceOp::kSum) {
  CollectiveCall call;
  call.kind = CallKind::kAllReduce;
  for (Tensor& each : values) call.reductions.push_back(in_place(each, op));
  return call;
}

std::vector<std::string> reduce_all_members(SimGroup& group, std::vector<Values>& values,
                                            ReduceOp op = ReduceOp::kSum) {
  return group.all([&](PeerGroup& member) {
    return outcome_of(
        member.run(all_reduce_of(values[static_cast<std::size_t>(member.rank())], op)));
  });
}

// The order of summation as network_group.h has it, written down a second time: over the values one
// behind the other, each padded to 8 bytes.
class Reference {
 public:
  explicit Reference(const std::vector<Values>& by_rank) {
    for (const Values& values : by_rank) {
      std::vector<float> row;
      for (const Tensor& each : values) {
        const auto floats = each.values<float>();
        row.insert(row.end(), floats.begin(), floats.end());
        if (row.size() % 2 == 1) row.push_back(0);
      }
      rows_.push_back(std::move(row));
    }
    sum_.resize(rows_[0].size());
  }

  std::vector<float> sum(std::size_t pack_bytes, std::size_t tree_bytes_max) {
    const std::size_t pack = pack_bytes / 4;
    for (std::size_t begin = 0; begin < sum_.size(); begin += pack) {
      const std::size_t end = std::min(sum_.size(), begin + pack);
      if ((end - begin) * 4 <= tree_bytes_max)
        tree(begin, end);
      else
        ring(begin, end);
    }
    return sum_;
  }

 private:
  void ring(std::size_t begin, std::size_t end) {
    const std::size_t n = rows_.size(), units = (end - begin) / 2;
    for (std::size_t s = 0; s < n; ++s)
      for (std::size_t i = begin + units * s / n * 2; i < begin + units * (s + 1) / n * 2; ++i) {
        sum_[i] = rows_[(s + 1) % n][i];
        for (std::size_t k = 2; k <= n; ++k) sum_[i] += rows_[(s + k) % n][i];
      }
  }
  void tree(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) sum_[i] = below(0, i);
  }
  float below(std::size_t v, std::size_t i) const {
    float sum = rows_[v][i];
    for (std::size_t bit = 1; bit < rows_.size() && (v & bit) == 0; bit <<= 1)
      if (v + bit < rows_.size()) sum += below(v + bit, i);
    return sum;
  }

  std::vector<std::vector<float>> rows_;  // by rank
  std::vector<float> sum_;
};

std::vector<float> row_of(const Values& values) {
  std::vector<float> row;
  for (const Tensor& each : values) {
    const auto floats = each.values<float>();
    row.insert(row.end(), floats.begin(), floats.end());
    if (row.size() % 2 == 1) row.push_back(0);
  }
  return row;
}

TEST(PeerGroup, SumsInTheDocumentedOrderOnAllMembersWhateverTheSizes) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    CommunicationOptions communication;
    const bool ring_only = random.below(2) == 0;
    if (ring_only) communication.implementation = CommunicationImplementation::kRing;
    communication.bytes_per_pack = random.below(2) == 0 ? 0 : 8 * (1 + random.below(40'000));
    const int size = 2 + static_cast<int>(random.below(4));
    SimGroup group(size, seed, communication);
    group.start_and_form();
    std::vector<std::int64_t> sizes(1 + random.below(12));
    for (auto& each : sizes)
      each = static_cast<std::int64_t>(random.below(random.below(2) ? 9 : 60'000));
    std::vector<Values> values(static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < values.size(); ++rank)
      for (std::size_t i = 0; i < sizes.size(); ++i)
        values[rank].push_back(uneven(sizes[i], seed * 1000 + rank * 100 + i));
    Reference reference(values);
    const auto pack = communication.bytes_per_pack == 0
                          ? std::size_t{4} << 20
                          : static_cast<std::size_t>(communication.bytes_per_pack);
    const auto expected = reference.sum(pack, ring_only ? 0 : std::size_t{64} << 10);

    EXPECT_THAT(reduce_all_members(group, values), Each(""));

    for (const Values& own : values) {
      const auto row = row_of(own);
      ASSERT_EQ(std::memcmp(row.data(), expected.data(), row.size() * sizeof(float)), 0);
    }
  }
}

TEST(PeerGroup, CallsBegunOneBehindTheOtherAllEndRight) {
  SimGroup group(4, 3);
  group.start_and_form();
  std::vector<kj::Promise<std::string>> outcomes;
  std::vector<std::vector<Values>> values(30, std::vector<Values>(4));
  for (int rank = 0; rank < 4; ++rank) {
    for (std::size_t call = 0; call < values.size(); ++call) {
      Values& own = values[call][static_cast<std::size_t>(rank)];
      own = {Tensor::zeros(DType::kInt32, {call % 3 == 0 ? 200'000 : 5})};
      std::ranges::fill(own[0].mutable_values<std::int32_t>(), rank + static_cast<int>(call));
      outcomes.push_back(
          outcome_of(group.member(rank).run(all_reduce_of(own))).eagerlyEvaluate(nullptr));
    }
  }
  for (auto& each : outcomes) EXPECT_EQ(group.reactor.wait(kj::mv(each)), "");
  for (std::size_t call = 0; call < values.size(); ++call)
    for (const Values& own : values[call])
      EXPECT_THAT(values_of<std::int32_t>(own[0]), Each(6 + 4 * static_cast<int>(call)));
}

TEST(PeerGroup, OverBfloat16AllMembersHoldTheSameBitsNearTheSum) {
  for (const std::int64_t elements : {7, 100'001}) {
    CommunicationOptions communication;
    communication.bfloat16_on_wire = true;
    SimGroup group(3, 5, communication);
    group.start_and_form();
    std::vector<Values> values(3);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      values[rank] = {Tensor(DType::kFloat32, {elements}), Tensor::scalar(std::int32_t{100'001})};
      for (std::int64_t i = 0; i < elements; ++i)
        values[rank][0].mutable_values<float>()[static_cast<std::size_t>(i)] =
            1.0f + 0.001f * static_cast<float>(i % 100) + static_cast<float>(rank);
    }
    EXPECT_THAT(reduce_all_members(group, values), Each(""));
    for (const Values& own : values) {
      EXPECT_TRUE(same_bits(own[0], values[0][0]));
      EXPECT_EQ(own[1].item<std::int32_t>(), 300'003);  // integers are not rounded
      for (std::int64_t i = 0; i < elements; ++i)
        ASSERT_NEAR(own[0].values<float>()[static_cast<std::size_t>(i)],
                    6.0f + 0.003f * static_cast<float>(i % 100), 6.3f / 64);
    }
  }
}

TEST(PeerGroup, AThousandSmallValuesAreAFewMessages) {
  SimGroup group(2);
  group.start_and_form();
  std::vector<Values> many(2), one(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 1000; ++i) many[rank].push_back(Tensor::zeros(DType::kFloat32, {1024}));
    one[rank] = {Tensor::zeros(DType::kFloat32, {1024 * 1000})};
  }
  const auto messages_of = [&](std::vector<Values>& values) {
    const auto before = group.network.deliveries();
    EXPECT_THAT(reduce_all_members(group, values), Each(""));
    return group.network.deliveries() - before;
  };
  const auto of_one = messages_of(one);
  EXPECT_LE(messages_of(many), of_one + 4);  // a heartbeat may fall into it
  EXPECT_LE(of_one, 40u);
}

TEST(PeerGroup, LargeTensorsAreBroadcastAndGatheredInPieces) {
  SimGroup group(5, 9);
  group.start_and_form();
  const std::int64_t elements = 3'000'001;
  for (const int root : {0, 3}) {
    const Tensor value = uneven(elements, 77);
    std::vector<Tensor> got(5);
    const auto outcomes = group.all([&](PeerGroup& member) {
      CollectiveCall call{.kind = CallKind::kBroadcast, .root = root};
      if (member.rank() == root) call.value = value;
      auto keep = [&got, rank = member.rank()](std::vector<Tensor> results) {
        got[static_cast<std::size_t>(rank)] = results.at(0);
      };
      return outcome_of(member.run(call).then(kj::mv(keep)));
    });
    EXPECT_THAT(outcomes, Each(""));
    for (const Tensor& each : got) EXPECT_TRUE(same_bits(each, value));
  }
}

TEST(PeerGroup, ManyMembersGatherAndReduceToARoot) {
  SimGroup group(11, 4);
  group.start_and_form();
  std::vector<std::vector<Tensor>> got(11);
  const auto gathered = group.all([&](PeerGroup& member) {
    auto keep = [&own = got[static_cast<std::size_t>(member.rank())]](std::vector<Tensor> results) {
      own = std::move(results);
    };
    CollectiveCall call{.kind = CallKind::kAllGather, .value = Tensor::scalar(member.rank())};
    return outcome_of(member.run(call).then(kj::mv(keep)));
  });
  EXPECT_THAT(gathered, Each(""));
  for (const auto& own : got) {
    ASSERT_EQ(own.size(), 11u);
    for (int rank = 0; rank < 11; ++rank)
      EXPECT_EQ(own[static_cast<std::size_t>(rank)].item<std::int32_t>(), rank);
  }
  const auto reduced = group.all([&](PeerGroup& member) {
    auto keep = [&own = got[static_cast<std::size_t>(member.rank())]](std::vector<Tensor> results) {
      own = std::move(results);
    };
    Tensor value = Tensor::zeros(DType::kInt32, {1'000'000});
    std::ranges::fill(value.mutable_values<std::int32_t>(), member.rank());
    CollectiveCall call{.kind = CallKind::kReduce, .root = 7, .value = value};
    return outcome_of(member.run(call).then(kj::mv(keep)));
  });
  EXPECT_THAT(reduced, Each(""));
  for (std::size_t rank = 0; rank < 11; ++rank) EXPECT_EQ(got[rank].size(), rank == 7 ? 1u : 0u);
  EXPECT_THAT(values_of<std::int32_t>(got[7].at(0)), Each(55));
}

TEST(PeerGroup, AGroupOfOneNeedsNobody) {
  SimGroup group(1);
  group.start_and_form();
  std::vector<Values> values = {{Tensor::scalar(3.0f)}};
  EXPECT_THAT(reduce_all_members(group, values, ReduceOp::kMean), ElementsAre(""));
  EXPECT_EQ(values[0][0].item<float>(), 3.0f);
}

TEST(CommunicationOptions, AreCheckedAsTheReferenceChecksThem) {
  EXPECT_THROW(checked({.bytes_per_pack = -1}, 2), InvalidArgumentError);
  EXPECT_THROW(checked({.timeout = -1s}, 2), InvalidArgumentError);
  EXPECT_EQ(checked({}, 2).timeout, kCollectiveTimeout);
  EXPECT_GT(checked({}, 2).bytes_per_pack, 0);
  EXPECT_EQ(checked({.bytes_per_pack = 1000, .timeout = 5s}, 2).bytes_per_pack, 1000);
  EXPECT_LE(checked({.bytes_per_pack = std::int64_t{1} << 40}, 2).bytes_per_pack, 8 << 20);
}

}  // namespace
}  // namespace cairn
