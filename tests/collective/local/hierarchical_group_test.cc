// Replicas of several processes in one group: what they promise beyond CollectiveContract, which
// they answer to as well.
#include "collective/local/hierarchical_group.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "collective/base/sum.h"
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

// All replicas of all processes, by rank, and the processes' own members.
struct Hierarchy {
  Hierarchy(Members of_processes, int replicas, Duration timeout = 1min)
      : processes(std::move(of_processes)) {
    for (auto& process : processes)
      for (auto& member : make_hierarchical_group(*process, replicas, timeout))
        members.push_back(std::move(member));
  }
  Members processes, members;
};

struct ProcessesKind {
  const char* name;
  Members (*make)(int size, Duration timeout);
};

class ReplicasOfProcesses : public ::testing::TestWithParam<ProcessesKind> {
 protected:
  static Members processes(int size) { return GetParam().make(size, 1min); }
};

INSTANTIATE_TEST_SUITE_P(Groups, ReplicasOfProcesses,
                         ::testing::Values(ProcessesKind{"AsThreads",
                                                         [](int size, Duration timeout) {
                                                           return make_thread_group(size, timeout);
                                                         }},
                                           ProcessesKind{"AtSockets", make_socket_group}),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- values ----

TEST_P(ReplicasOfProcesses, RanksCountTheReplicasOfOneProcessAfterThoseOfAnother) {
  Hierarchy all(processes(2), 3);
  for (std::size_t rank = 0; rank < all.members.size(); ++rank) {
    EXPECT_EQ(all.members[rank]->rank(), static_cast<int>(rank));
    EXPECT_EQ(all.members[rank]->size(), 6);
  }
}

// The group has two processes: a sum of two numbers is the same in either order.
TEST_P(ReplicasOfProcesses, AddsInTheOrderOfReplicasInEachProcessAndThenTheProcesses) {
  constexpr std::int64_t kElements = 50'001;
  Hierarchy all(processes(2), 3);
  std::vector<Tensor> sums, means;
  for (std::uint64_t rank = 0; rank < 6; ++rank) {
    sums.push_back(uneven(kElements, rank));
    means.push_back(uneven(kElements, rank));
  }
  Tensor expected = sums[0].clone(), second = sums[3].clone();
  for (const auto& [into, from] :
       {std::pair(&expected, 1), {&expected, 2}, {&second, 4}, {&second, 5}})
    add_to(DType::kFloat32, into->mutable_raw(), sums[static_cast<std::size_t>(from)].raw(),
           kElements);
  add_to(DType::kFloat32, expected.mutable_raw(), second.raw(), kElements);
  Tensor mean = expected.clone();
  divide_by(6, mean.mutable_raw(), kElements);

  const auto errors = on_all(all.members, [&](Collective& member) {
    const auto own = static_cast<std::size_t>(member.rank());
    member.wait(
        member.begin_all_reduce({in_place(sums[own]), in_place(means[own], ReduceOp::kMean)}));
  });

  ASSERT_TRUE(all_well(errors));
  for (const Tensor& each : sums) EXPECT_TRUE(same_bits(each, expected));
  for (const Tensor& each : means) EXPECT_TRUE(same_bits(each, mean));
}

TEST_P(ReplicasOfProcesses, RepeatsBitForBitWhoeverComesFirst) {
  for (const int count : {2, 3}) {
    Tensor first_run;
    for (int run = 0; run < 5; ++run) {
      Hierarchy all(processes(count), 2);
      std::vector<Tensor> values(all.members.size());
      const auto errors = on_all(all.members, [&](Collective& member) {
        Tensor& own = values[static_cast<std::size_t>(member.rank())];
        own = uneven(100'000, static_cast<std::uint64_t>(member.rank()));
        member.wait(member.begin_all_reduce({in_place(own)}));
      });
      ASSERT_TRUE(all_well(errors));
      if (run == 0) first_run = values[0];
      for (const Tensor& each : values) EXPECT_TRUE(same_bits(each, first_run));
    }
  }
}

TEST_P(ReplicasOfProcesses, ManyRoundsOfEveryCallMeetEachOther) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    Random random(5);  // the same on all members, so that they make the same calls
    struct Begun {
      Tensor value;
      float sum;
      Collective::Ticket ticket;
    };
    std::vector<Begun> begun;
    for (std::int32_t round = 0; round < 200; ++round) {
      const auto own = Tensor::scalar(static_cast<float>(round * 10 + member.rank()));
      const int root = static_cast<int>(random.below(4));
      const auto sum = static_cast<float>(round * 40 + 6);
      switch (random.below(6)) {
        case 0:
          EXPECT_EQ(member.broadcast(own, root).item<float>(),
                    static_cast<float>(round * 10 + root));
          break;
        case 1: {
          const auto gathered = member.all_gather(own);
          ASSERT_EQ(gathered.size(), 4u);
          for (int rank = 0; rank < 4; ++rank)
            EXPECT_EQ(gathered[static_cast<std::size_t>(rank)].item<float>(),
                      static_cast<float>(round * 10 + rank));
          break;
        }
        case 2: {
          const bool mean = random.below(2) == 0;
          const Tensor reduced = member.reduce(mean ? ReduceOp::kMean : ReduceOp::kSum, own, root);
          ASSERT_EQ(reduced.defined(), member.rank() == root);
          EXPECT_EQ(reduced.defined() ? reduced.item<float>() : sum,
                    mean && reduced.defined() ? sum / 4 : sum);
          EXPECT_EQ(own.item<float>(), static_cast<float>(round * 10 + member.rank()));
          break;
        }
        case 3:
        case 4: {
          Begun& one = begun.emplace_back(Begun{own.clone(), sum, 0});
          one.ticket = member.begin_all_reduce({in_place(one.value)});
          break;
        }
        default: member.barrier();
      }
      if (random.below(4) != 0 || begun.empty()) continue;
      member.wait(begun.back().ticket);
      for (const Begun& each : begun) EXPECT_EQ(each.value.item<float>(), each.sum);
      begun.clear();
    }
  });
  all_well(errors);
}

TEST_P(ReplicasOfProcesses, GathersAndBroadcastsValuesOfAnyTypeByTheirRanks) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    const Tensor own[] = {Tensor::strings({2}, {"a", "b"}), Tensor::zeros(DType::kBool, {3, 1}),
                          Tensor::zeros(DType::kFloat32, {0, 4}), Tensor::scalar(7.0f)};
    const auto gathered = member.all_gather(own[member.rank()]);
    ASSERT_EQ(gathered.size(), 4u);
    EXPECT_THAT(gathered[0].string_values(), ElementsAre("a", "b"));
    EXPECT_EQ(gathered[1].type().to_string(), "bool[3, 1]");
    EXPECT_EQ(gathered[2].type().to_string(), "float32[0, 4]");
    EXPECT_EQ(gathered[3].item<float>(), 7.0f);
    EXPECT_EQ(member.broadcast(member.rank() == 3 ? own[3] : Tensor(), 3).item<float>(), 7.0f);
    EXPECT_EQ(member.broadcast(own[member.rank()], 0).string_values()[1], "b");
  });
  all_well(errors);
}

// ---- failures ----

TEST_P(ReplicasOfProcesses, AnAbortOfOneReplicaReachesAllOfAllProcesses) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    member.barrier();
    if (member.rank() == 3) member.abort({Code::kOutOfRange, "the data ended", ""});
    Tensor value = Tensor::scalar(1.0f);
    member.wait(member.begin_all_reduce({in_place(value)}));
  });
  for (const std::size_t rank : {2, 3})
    EXPECT_THAT(errors[rank], HasSubstr("OutOfRange: rank 3 gave up: the data ended"));
  for (const std::size_t rank : {0, 1})
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("OutOfRange: rank 1"),
                                    HasSubstr("gave up: its replica 3: the data ended")));
  for (auto& member : all.members) EXPECT_THROW(member->barrier(), OutOfRangeError);
}

TEST_P(ReplicasOfProcesses, AReplicaThatLeavesFailsTheOthersOfAllProcesses) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    member.barrier();
    if (member.rank() == 1) {
      all.members[1].reset();
      return;
    }
    member.all_gather(Tensor::scalar(1.0f));
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[0], HasSubstr("Unavailable: rank 1 has left the group"));
  for (const std::size_t rank : {2, 3})
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("Unavailable"), HasSubstr("rank 0"),
                                    HasSubstr("gave up"), HasSubstr("rank 1 has left the group")));
}

TEST_P(ReplicasOfProcesses, ReplicasThatLeaveAfterTheirLastCallFailNobodyWhoIsStillInIt) {
  for (int round = 0; round < 10; ++round) {
    Hierarchy all(processes(2), 2);
    const auto errors = on_all(all.members, [&](Collective& member) {
      Tensor value = Tensor::scalar(std::int32_t{1});
      member.wait(member.begin_all_reduce({in_place(value)}));
      EXPECT_EQ(value.item<std::int32_t>(), 4);
      all.members[static_cast<std::size_t>(member.rank())].reset();
    });
    ASSERT_TRUE(all_well(errors));
  }
}

TEST_P(ReplicasOfProcesses, CallsThatDifferWithinAProcessFailAllProcesses) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    if (member.rank() == 2)
      member.broadcast(Tensor::scalar(1.0f), 2);
    else
      member.barrier();
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr("rank 3 calls barrier"),
                                 HasSubstr("rank 2 calls broadcast from rank 2"))));
}

TEST_P(ReplicasOfProcesses, CallsThatDifferAmongProcessesFailAllReplicas) {
  Hierarchy all(processes(2), 2);
  const auto errors = on_all(all.members, [&](Collective& member) {
    Tensor value = Tensor::zeros(DType::kFloat32, {member.rank() / 2 + 4});
    member.wait(member.begin_all_reduce({in_place(value)}));
  });
  EXPECT_THAT(errors,
              Each(AllOf(HasSubstr("FailedPrecondition"), HasSubstr("rank 0 calls all_reduce"),
                         HasSubstr("rank 1 calls all_reduce"))));
}

TEST_P(ReplicasOfProcesses, AReplicaThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  Hierarchy all(processes(2), 2, 100ms);
  const auto errors = on_all(all.members, [&](Collective& member) {
    if (member.rank() != 1) member.barrier();
  });
  EXPECT_EQ(errors[1], "");
  for (const std::size_t rank : {0, 2, 3})
    EXPECT_THAT(errors[rank], AllOf(HasSubstr("DeadlineExceeded"), HasSubstr("for rank 1")));
}

TEST(HierarchicalGroup, ALostProcessIsUnavailableNamingItsTaskOnAllReplicasOfTheOthers) {
  Hierarchy all(make_socket_group(3, 1min), 2);
  std::atomic<int> there = 2;  // replicas of process 1
  std::vector<std::string> tasks(all.members.size());
  const auto errors = on_all(all.members, [&](Collective& member) {
    member.barrier();
    const auto rank = static_cast<std::size_t>(member.rank());
    if (rank / 2 == 1) {
      all.members[rank].reset();
      if (--there == 0) all.processes[1].reset();
      return;
    }
    try {
      member.barrier();
    } catch (const UnavailableError& error) {
      tasks[rank] = error.task();
    }
  });
  ASSERT_TRUE(all_well(errors));
  const std::string lost = "/job:worker/task:1";
  EXPECT_THAT(tasks, ElementsAre(lost, lost, "", "", lost, lost));
}

// ---- overlap ----

// Records the calls to the processes; the rest is a group of one.
class Asked final : public Collective {
 public:
  int rank() const override { return one_->rank(); }
  int size() const override { return one_->size(); }
  Ticket begin_all_reduce(std::vector<AllReduceBuffer> reductions) override {
    const Ticket ticket = one_->begin_all_reduce(std::move(reductions));
    if (ticket == 1) second_begun.set_value();
    return ticket;
  }
  void wait(Ticket ticket) override { one_->wait(ticket); }
  Tensor broadcast(const Tensor& value, int root) override { return one_->broadcast(value, root); }
  std::vector<Tensor> all_gather(const Tensor& value) override { return one_->all_gather(value); }
  Tensor reduce(ReduceOp op, const Tensor& value, int root) override {
    return one_->reduce(op, value, root);
  }
  void barrier() override { one_->barrier(); }
  void abort(const ErrorParts& error) override { one_->abort(error); }

  std::promise<void> second_begun;

 private:
  const std::unique_ptr<Collective> one_ = std::move(make_thread_group(1)[0]);
};

TEST(HierarchicalGroup, AllReducesGoOnAmongProcessesBeforeAnyReplicaWaitsForThem) {
  Asked processes;
  Members members = make_hierarchical_group(processes, 2);
  std::vector<Tensor> values(4);
  for (Tensor& each : values) each = Tensor::scalar(1.0f);
  for (const std::size_t call : {0, 1})
    for (const std::size_t replica : {0, 1})
      members[replica]->begin_all_reduce({in_place(values[2 * call + replica])});
  ASSERT_EQ(processes.second_begun.get_future().wait_for(1min), std::future_status::ready);
  for (auto& member : members) member->wait(1);
  for (const Tensor& each : values) EXPECT_EQ(each.item<float>(), 2.0f);
}

// ---- refusals ----

TEST(HierarchicalGroup, OneReplicaOfAProcessIsAMemberOfItsGroup) {
  Members processes = make_thread_group(2);
  Members members = make_hierarchical_group(*processes[1], 1);
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members[0]->rank(), 1);
  EXPECT_EQ(members[0]->size(), 2);
}

TEST(HierarchicalGroup, RefusesGroupsThatCannotBe) {
  Members processes = make_thread_group(1);
  EXPECT_THROW(make_hierarchical_group(*processes[0], 0), InvalidArgumentError);
  EXPECT_THROW(make_hierarchical_group(*processes[0], 2, 0s), InvalidArgumentError);
}

// ---- who waits elsewhere ----

// A promise that is kept twice would throw.
std::future<void> told_of_failure(Collective& member) {
  auto failed = std::make_shared<std::promise<void>>();
  auto told = failed->get_future();
  member.when_failed([failed] { failed->set_value(); });
  return told;
}

TEST(FailureOfAGroup, IsToldToThoseThatAskedBeforeItAndAfterIt) {
  Members processes = make_socket_group(2, 1min);
  Members only = make_hierarchical_group(*processes[0], 1);
  auto before = told_of_failure(*only[0]), own = told_of_failure(*processes[1]);
  processes[1]->abort({Code::kInternal, "no more"});
  for (auto* told : {&before, &own}) ASSERT_EQ(told->wait_for(1min), std::future_status::ready);
  auto after = told_of_failure(*only[0]);
  EXPECT_EQ(after.wait_for(1min), std::future_status::ready);
}

TEST(FailureOfAGroup, IsNotItsEnd) {
  Members processes = make_socket_group(2, 1min);
  auto first = told_of_failure(*processes[0]), last = told_of_failure(*processes[1]);
  on_all(processes, [](Collective& member) { member.barrier(); });
  processes.clear();
  // The promises went, unkept.
  EXPECT_THROW(first.get(), std::future_error);
  EXPECT_THROW(last.get(), std::future_error);
}

}  // namespace
}  // namespace cairn
