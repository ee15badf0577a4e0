// The promises of every Collective, whatever lies between its members.
#include <gmock/gmock.h>

#include <atomic>
#include <deque>

#include "collective/local/hierarchical_group.h"
#include "collective/local/thread_group.h"
#include "tests/collective/network/socket_group.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `processes`: of which a member is made of others, which must outlive it.
using MakeGroup = std::function<Members(int size, Duration timeout, Members& processes)>;
struct Kind {
  const char* name;
  MakeGroup make;
};

MakeGroup threads(ThreadGroupOptions options) {
  return [options](int size, Duration timeout, Members&) mutable {
    options.timeout = timeout;
    return make_thread_group(size, options);
  };
}

// The only process of its group: what its replicas promise one another.
Members replicas_of_one_process(int size, Duration timeout, Members& processes) {
  processes = make_thread_group(1, timeout);
  return make_hierarchical_group(*processes[0], size, timeout);
}

class CollectiveContract : public ::testing::TestWithParam<Kind> {
 protected:
  Members group(int size, Duration timeout = 1min) {
    return GetParam().make(size, timeout, *processes_.emplace(processes_.end()));
  }

 private:
  std::deque<Members> processes_;
};

INSTANTIATE_TEST_SUITE_P(
    Groups, CollectiveContract,
    ::testing::Values(Kind{"Threads", threads({})},
                      Kind{"ThreadsInPairs", threads({.order = SumOrder::kPairs})},
                      Kind{"ThreadsInARing", threads({.order = SumOrder::kRing})},
                      Kind{"ThreadsOfWhichOneAdds", threads({.adds = 0})},
                      Kind{"Sockets", [](int size, Duration timeout,
                                         Members&) { return make_socket_group(size, timeout); }},
                      Kind{"ReplicasOfOneProcess", replicas_of_one_process}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(CollectiveContract, AllMembersEndWithTheSameBitsAndEveryRunRepeatsThem) {
  const std::vector<std::int64_t> sizes = {1, 0, 100'000, 3, 32 * 1024};
  for (const int size : {1, 2, 3, 5}) {
    std::vector<Tensor> first_run;
    for (int run = 0; run < 2; ++run) {
      Members members = group(size);
      std::vector<std::vector<Tensor>> values(members.size());
      const auto errors = on_all(members, [&](Collective& member) {
        auto& own = values[static_cast<std::size_t>(member.rank())];
        std::vector<AllReduceBuffer> reductions;
        for (std::size_t i = 0; i < sizes.size(); ++i)
          own.push_back(uneven(sizes[i], static_cast<std::uint64_t>(member.rank()) * 10 + i));
        for (Tensor& each : own) reductions.push_back(in_place(each));
        member.wait(member.begin_all_reduce(reductions));
      });
      ASSERT_TRUE(all_well(errors));
      if (run == 0) first_run = values[0];
      for (const auto& of_member : values)
        for (std::size_t i = 0; i < sizes.size(); ++i)
          EXPECT_TRUE(same_bits(of_member[i], first_run[i])) << size << " members, value " << i;
    }
  }
}

TEST_P(CollectiveContract, MembersCountTheirCallsTheirOwnBytesAndWhatTheyWait) {
  constexpr int kBarriers = 1'000;  // in some of which one of them comes first
  Members members = group(2);
  std::vector<CollectiveCounts> counts(members.size());
  const auto errors = on_all(members, [&](Collective& member) {
    Tensor sum(DType::kFloat32, {10}), other(DType::kInt64, {3});
    member.wait(member.begin_all_reduce({in_place(sum), in_place(other)}));
    member.broadcast(Tensor(DType::kFloat32, {5}), 0);
    member.all_gather(Tensor(DType::kFloat32, {7}));
    for (int i = 0; i < kBarriers; ++i) member.barrier();
    counts[static_cast<std::size_t>(member.rank())] = member.counts();
  });
  all_well(errors);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    EXPECT_EQ(counts[rank].calls, 3u + kBarriers);
    EXPECT_EQ(counts[rank].bytes, 40u + 24u + (rank == 0 ? 20u : 0u) + 28u);
    EXPECT_GE(counts[rank].held_seconds, counts[rank].waited_seconds);
  }
  EXPECT_GT(counts[0].waited_seconds + counts[1].waited_seconds, 0);
}

TEST_P(CollectiveContract, SumsAndMeansOfEveryDtypeGoTogether) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    const auto rank = static_cast<float>(member.rank());
    Tensor sum = Tensor::of<float>({2}, std::vector{rank, 1.0f});
    Tensor mean = Tensor::scalar(rank * 3);
    Tensor ints = Tensor::scalar(std::int32_t{1} << member.rank());
    Tensor longs = Tensor::scalar(std::int64_t{1} << (40 + member.rank()));
    member.wait(member.begin_all_reduce(
        {in_place(sum), in_place(mean, ReduceOp::kMean), in_place(ints), in_place(longs)}));
    EXPECT_THAT(values_of<float>(sum), ElementsAre(3, 3));
    EXPECT_EQ(mean.item<float>(), 3);
    EXPECT_EQ(ints.item<std::int32_t>(), 7);
    EXPECT_EQ(longs.item<std::int64_t>(), std::int64_t{7} << 40);
  });
  all_well(errors);
}

TEST_P(CollectiveContract, TicketsAreAwaitedInAnyOrderAndOneEndsAllBeforeIt) {
  Members members = group(2);
  const auto errors = on_all(members, [&](Collective& member) {
    std::vector<Tensor> values;
    for (int i = 0; i < 20; ++i) values.push_back(Tensor::scalar(std::int32_t{i}));
    std::vector<Collective::Ticket> tickets;
    for (Tensor& each : values) tickets.push_back(member.begin_all_reduce({in_place(each)}));
    member.wait(tickets[12]);
    for (int i = 0; i <= 12; ++i)
      EXPECT_EQ(values[static_cast<std::size_t>(i)].item<std::int32_t>(), 2 * i);
    member.barrier();
    member.wait(tickets[3]);
    member.wait(tickets[19]);
    EXPECT_EQ(values[19].item<std::int32_t>(), 38);
  });
  all_well(errors);
}

TEST_P(CollectiveContract, ManyRoundsOfEveryCallMeetEachOther) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    Random random(5);  // the same on all members, so that they make the same calls
    for (std::int32_t round = 0; round < 200; ++round) {
      const auto own = Tensor::scalar(std::int32_t{round * 10 + member.rank()});
      const int root = static_cast<int>(random.below(3));
      const std::int32_t sum = round * 30 + 3;
      switch (random.below(5)) {
        case 0:
          EXPECT_EQ(member.broadcast(own, root).item<std::int32_t>(), round * 10 + root);
          break;
        case 1: EXPECT_EQ(member.all_gather(own)[2].item<std::int32_t>(), round * 10 + 2); break;
        case 2: {
          const Tensor reduced = member.reduce(ReduceOp::kSum, own, root);
          EXPECT_EQ(reduced.defined(), member.rank() == root);
          EXPECT_EQ(reduced.defined() ? reduced.item<std::int32_t>() : sum, sum);
          break;
        }
        case 3: {
          Tensor value = own.clone();
          member.wait(member.begin_all_reduce({in_place(value)}));
          EXPECT_EQ(value.item<std::int32_t>(), sum);
          break;
        }
        default: member.barrier();
      }
    }
  });
  all_well(errors);
}

// Where nothing is that could be summed, or read: of any size, whatever the machine has.
TEST_P(CollectiveContract, MembersMeetInACallWhoseValuesLieOnDevicesWithoutLookingForThem) {
  constexpr int kMembers = 3, kRounds = 20;
  Members members = group(kMembers);
  std::vector<std::atomic<int>> begun(kRounds);
  const auto errors = on_all(members, [&](Collective& member) {
    for (auto& round : begun) {
      const AllReduceBuffer somewhere{ReduceOp::kSum, DType::kFloat32, std::int64_t{1} << 40};
      const AllReduceBuffer nowhere{ReduceOp::kMean, DType::kFloat32, 0};
      ++round;
      const auto early = member.begin_all_reduce({somewhere, nowhere});
      const auto late = member.begin_all_reduce({somewhere});
      member.wait(early);
      EXPECT_EQ(round, kMembers);
      member.wait(late);
    }
  });
  all_well(errors);
}

TEST_P(CollectiveContract, AValueThatLiesOnADeviceOfOneMemberAloneIsRefused) {
  Members members = group(2);
  const auto errors = on_all(members, [&](Collective& member) {
    Tensor here = Tensor::zeros(DType::kFloat32, {3});
    const AllReduceBuffer there{ReduceOp::kSum, DType::kFloat32, 3};
    member.wait(member.begin_all_reduce({member.rank() == 0 ? in_place(here) : there}));
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr("on"),
                                 HasSubstr("device"), HasSubstr("rank 0"))));
}

TEST_P(CollectiveContract, GathersAndBroadcastsValuesOfAnyTypeStringsToo) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    const Tensor own[] = {Tensor::strings({2}, {"a", "b"}), Tensor::zeros(DType::kBool, {3, 1}),
                          Tensor::zeros(DType::kFloat32, {0, 4})};
    const auto all = member.all_gather(own[member.rank()]);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_THAT(all[0].string_values(), ElementsAre("a", "b"));
    EXPECT_EQ(all[1].type().to_string(), "bool[3, 1]");
    EXPECT_EQ(all[2].type().to_string(), "float32[0, 4]");
    EXPECT_EQ(member.broadcast(own[member.rank()], 0).string_values()[1], "b");
    EXPECT_EQ(member.broadcast(member.rank() == 1 ? own[1] : Tensor(), 1).elements(), 3);
  });
  all_well(errors);
}

TEST_P(CollectiveContract, AMeanIsReducedToItsRootAlone) {
  Members members = group(4);
  const auto errors = on_all(members, [&](Collective& member) {
    const Tensor own = Tensor::scalar(static_cast<float>(member.rank()));
    const Tensor mean = member.reduce(ReduceOp::kMean, own, 2);
    EXPECT_EQ(mean.defined() ? mean.item<float>() : -1, member.rank() == 2 ? 1.5f : -1);
    EXPECT_EQ(own.item<float>(), static_cast<float>(member.rank()));
  });
  all_well(errors);
}

// ---- refusals ----

TEST_P(CollectiveContract, ARefusedCallWasNotMadeAndTheGroupGoesOn) {
  Members members = group(2);
  const auto errors = on_all(members, [&](Collective& member) {
    Tensor flag = Tensor::scalar(true), number = Tensor::scalar(std::int32_t{1});
    if (member.rank() == 0) {
      EXPECT_THROW(member.begin_all_reduce({in_place(flag)}), InvalidArgumentError);
      EXPECT_THROW(member.begin_all_reduce({in_place(number, ReduceOp::kMean)}),
                   InvalidArgumentError);
      EXPECT_THROW(member.reduce(ReduceOp::kSum, Tensor::strings({1}, {"a"}), 0),
                   InvalidArgumentError);
      EXPECT_THROW(member.broadcast(number, 2), InvalidArgumentError);
      EXPECT_THROW(member.all_gather(Tensor()), InvalidArgumentError);
    }
    member.wait(member.begin_all_reduce({in_place(number)}));
    EXPECT_EQ(number.item<std::int32_t>(), 2);
  });
  all_well(errors);
}

TEST_P(CollectiveContract, CallsThatDifferFailAllMembersNamingBoth) {
  struct Case {
    std::function<void(Collective&)> first, second;
    const char* of_first;
    const char* of_second;
  };
  const auto reduce_values = [](std::vector<std::int64_t> sizes) {
    return [sizes](Collective& member) {
      std::vector<Tensor> values;
      std::vector<AllReduceBuffer> reductions;
      for (const std::int64_t size : sizes)
        values.push_back(Tensor::zeros(DType::kFloat32, {size}));
      for (Tensor& each : values) reductions.push_back(in_place(each));
      member.wait(member.begin_all_reduce(reductions));
    };
  };
  const auto broadcast = [](int root) {
    return [root](Collective& member) { member.broadcast(Tensor::scalar(1.0f), root); };
  };
  const Case cases[] = {
      {[](Collective& member) { member.barrier(); }, broadcast(1), "rank 0 calls barrier",
       "rank 1 calls broadcast from rank 1"},
      {broadcast(0), broadcast(1), "rank 0 calls broadcast from rank 0",
       "rank 1 calls broadcast from rank 1"},
      {reduce_values({4, 5}), reduce_values({4, 6}), "rank 0 calls all_reduce",
       "rank 1 calls all_reduce"},
      {reduce_values({4}), reduce_values({4, 1}), "rank 0 calls all_reduce of 1 values",
       "rank 1 calls all_reduce of 2 values"},
  };
  for (const Case& each : cases) {
    Members members = group(2);
    const auto errors = on_all(members, [&](Collective& member) {
      (member.rank() == 0 ? each.first : each.second)(member);
    });
    EXPECT_THAT(errors, Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr(each.of_first),
                                   HasSubstr(each.of_second))));
    EXPECT_THROW(members[0]->barrier(), FailedPreconditionError);
  }
}

// ---- members that are lost ----

TEST_P(CollectiveContract, AMemberThatLeavesFailsThoseThatWaitForIt) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    member.barrier();
    if (member.rank() == 1) {
      members[1].reset();
      return;
    }
    Tensor value = Tensor::scalar(1.0f);
    member.wait(member.begin_all_reduce({in_place(value)}));
  });
  EXPECT_EQ(errors[1], "");
  for (const auto& error : {errors[0], errors[2]})
    EXPECT_THAT(error, AllOf(HasSubstr("Unavailable"), HasSubstr("rank 1")));
  EXPECT_THROW(members[0]->all_gather(Tensor::scalar(1.0f)), UnavailableError);
}

TEST_P(CollectiveContract, WhoLeavesAfterItsLastCallFailsNobodyWhoIsStillInIt) {
  for (int round = 0; round < 20; ++round) {
    Members members = group(3);
    const auto errors = on_all(members, [&](Collective& member) {
      Tensor value = Tensor::scalar(std::int32_t{1});
      member.wait(member.begin_all_reduce({in_place(value)}));
      EXPECT_EQ(value.item<std::int32_t>(), 3);
      members[static_cast<std::size_t>(member.rank())].reset();
    });
    ASSERT_TRUE(all_well(errors));
  }
}

TEST_P(CollectiveContract, AnAbortIsToldToAllWithItsReason) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    if (member.rank() == 2) member.abort({Code::kOutOfRange, "the data ended", ""});
    member.barrier();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("OutOfRange"), HasSubstr("rank 2"),
                                 HasSubstr("the data ended"))));
}

TEST_P(CollectiveContract, TellsWithoutACallWhatItHasFailedWith) {
  Members members = group(3);
  const auto errors = on_all(members, [&](Collective& member) {
    member.barrier();
    member.require_well();
    if (member.rank() == 1) member.abort({Code::kOutOfRange, "the data ended"});
    EXPECT_THROW(member.barrier(), OutOfRangeError);
    member.require_well();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("OutOfRange"), HasSubstr("the data ended"))));
}

TEST_P(CollectiveContract, AMemberThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  Members members = group(3, 100ms);
  const auto errors = on_all(members, [&](Collective& member) {
    if (member.rank() != 1) member.barrier();
  });
  EXPECT_EQ(errors[1], "");
  for (const auto& error : {errors[0], errors[2]})
    EXPECT_THAT(error, AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("rank 1")));
}

TEST_P(CollectiveContract, OwnersOfReducedValuesAreLetGoOf) {
  Members members = group(2);
  std::vector<std::weak_ptr<const void>> owners(2);
  const auto errors = on_all(members, [&](Collective& member) {
    Tensor value = Tensor::zeros(DType::kFloat32, {1000});
    owners[static_cast<std::size_t>(member.rank())] = value.owner();
    member.wait(member.begin_all_reduce({in_place(value)}));
    member.barrier();  // the other has waited too
  });
  ASSERT_TRUE(all_well(errors));
  for (const auto& owner : owners) EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace cairn
