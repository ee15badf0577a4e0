// Fetching copies of variables from the ps, reading them, and what is refused.
#include "rpc/loop/error_wire.h"
#include "tests/worker/rows/mirror_fixture.h"

namespace cairn::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const UpdateRule kSgd{RuleKind::kSgd, {}}, kMomentum{RuleKind::kMomentum, {0.9f, 1}},
    kAdagrad{RuleKind::kAdagrad, {0.1f, 1e-7f}}, kAdam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}},
    kFtrl{RuleKind::kFtrl, {-0.5f, 0.1f, 0.01f, 0.02f, 0.1f, 0.03f}};

Tensor ids_of(const Ids& ids) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())}, ids);
}

// Two ps hold half of each variable; the lane that fetches late has missed the first updates.
TEST_F(MirrorTest, FetchedLateItStaysEqualToThePsAndToOneFetchedEarly) {
  for (const UpdateRule& rule : {kSgd, kMomentum, kAdagrad, kAdam, kFtrl}) {
    all.clear();
    chiefs = {};
    context.closure = 0;
    use(rule, {{9, 5}, {301}});
    Mirror early, late;
    ASSERT_EQ(fetch(early, all), "");
    std::uint64_t round = 0;
    auto update = [&](std::vector<Mirror*> mirrors) {
      const std::vector<Update> updates{whole(0, rule, ++round), whole(1, rule, round + 50)};
      push(updates, round);
      for (Mirror* one : mirrors) one->apply(updates, round);
    };
    for (int i = 0; i < 4; ++i) update({&early});
    ASSERT_EQ(fetch(late, all), "");
    EXPECT_EQ(late.round(), 0u);
    late.stands_at(round);
    for (int i = 0; i < 4; ++i) update({&early, &late});
    EXPECT_EQ(late.round(), 8u);
    EXPECT_EQ(early.fingerprint(), late.fingerprint()) << rule_name(rule.kind);
    EXPECT_EQ(late.fingerprint(), fingerprint_of_ps()) << rule_name(rule.kind);
  }
}

TEST_F(MirrorTest, ReadsWholeVariablesAndRowsAsAPullDoes) {
  use(kAdagrad, {{9, 5}, {}, {16'385, 3}, {6}});
  ASSERT_EQ(fetch(mirror, all), "");
  for (const VariableId one : all) EXPECT_EQ(read(mirror, one), pull(one));
  for (const Ids& rows : {Ids{}, Ids{0}, Ids{0, 2, 4, 5, 8}, Ids{5, 6}, Ids{0, 1, 2, 3}}) {
    EXPECT_EQ(read(mirror, 0, ids_of(rows)), pull(0, ids_of(rows)));
    EXPECT_EQ(read(mirror, 2, ids_of(rows)), pull(2, ids_of(rows)));
  }
  Read scalar{1, {}, {}};
  mirror.read({&scalar, 1});
  EXPECT_EQ(scalar.value.shape(), Shape({}));
}

TEST_F(MirrorTest, WhatWasReadStaysAsItIsWhenAnUpdateIsApplied) {
  use(kSgd, {{4}});
  ASSERT_EQ(fetch(mirror, all), "");
  Read before{0, {}, {}};
  mirror.read({&before, 1});
  const auto values = before.value.values<float>();
  const Floats then(values.begin(), values.end());
  const Update update = whole(0, kSgd, 1);
  mirror.apply({&update, 1}, 1);
  EXPECT_EQ(Floats(values.begin(), values.end()), then);
  EXPECT_NE(read(mirror, 0), then);
}

TEST_F(MirrorTest, FetchesOnlyWhatItLacks) {
  use(kSgd, {{4}, {5}});
  ASSERT_EQ(fetch(mirror, {0}), "");
  const Update update = whole(0, kSgd, 1);
  mirror.apply({&update, 1}, 3);
  const Floats changed = read(mirror, 0);
  EXPECT_FALSE(mirror.has(1));
  ASSERT_EQ(fetch(mirror, {0, 1, 1}), "");
  EXPECT_TRUE(mirror.has(1));
  EXPECT_EQ(read(mirror, 0), changed);
  EXPECT_EQ(mirror.round(), 3u);
}

TEST_F(MirrorTest, ThatForgotHasNoCopies) {
  use(kSgd, {{4}});
  ASSERT_EQ(fetch(mirror, all), "");
  mirror.stands_at(3);
  mirror.forget();
  EXPECT_EQ(mirror.round(), 0u);
  EXPECT_FALSE(mirror.has(0));
  EXPECT_THROW(read(mirror, 0), FailedPreconditionError);
}

// Assignments and optimizers of integers too: an optimizer's count of its steps is a variable.
TEST_F(MirrorTest, HoldsVariablesOfOtherTypes) {
  use(kSgd, {{4}});
  VariableSpec spec{.name = "steps", .dtype = DType::kInt64, .shape = {}};
  layout->variables.push_back({1, std::make_shared<const VariableSpec>(spec), {}, {{1, {0, 1}}}});
  for (std::uint32_t i = 0; i < kServers; ++i) configure(i);
  store->set_layout(layout);
  const Update count{1, counter_rule(), 0, {}, Tensor::of<std::int64_t>({}, Ids{1})};
  push({count}, 1);
  ASSERT_EQ(fetch(mirror, {0, 1}), "");
  push({count}, 2);
  mirror.apply({&count, 1}, 2, RowEncoding::kBfloat16);
  Read read{1, {}, {}};
  mirror.read({&read, 1});
  EXPECT_THAT(read.value.values<std::int64_t>(), ElementsAre(2));
  all = {0, 1};
  EXPECT_EQ(mirror.fingerprint(), fingerprint_of_ps());
}

TEST_F(MirrorTest, FingerprintsTellParametersAndSlotsApart) {
  use(kMomentum, {{4}});
  ASSERT_EQ(fetch(mirror, all), "");
  const std::uint64_t fetched = mirror.fingerprint();
  Update still = whole(0, kMomentum, 1);
  still.rule = {RuleKind::kMomentum, {0.9f, 0}};
  mirror.apply({&still, 1}, 1);
  const Update back{0, {RuleKind::kAssign, {}}, 0, {}, Tensor::of<float>({4}, pull(0))};
  mirror.apply({&back, 1}, 2);
  EXPECT_EQ(read(mirror, 0), pull(0));
  EXPECT_NE(mirror.fingerprint(), fetched) << "the slots have changed";
}

// ---- refusals ----

TEST_F(MirrorTest, AFetchFromAShardThatIsAwayIsUnavailableAndChangesNothing) {
  use(kAdam, {{9, 5}, {301}});
  ASSERT_EQ(fetch(mirror, {0}), "");
  mirror.stands_at(7);
  const std::uint64_t before = mirror.fingerprint();
  crash(1);
  EXPECT_THAT(fetch(mirror, {1}), StartsWith("Unavailable: "));
  EXPECT_FALSE(mirror.has(1));
  EXPECT_EQ(mirror.fingerprint(), before);
  EXPECT_EQ(mirror.round(), 7u);
}

TEST_F(MirrorTest, AFetchFromAPsThatTheLayoutSaysIsAwayIsUnavailable) {
  use(kSgd, {{4}});
  auto without = std::make_shared<Layout>(*layout);
  without->shards[1].primary.process = {};
  store->set_layout(without);
  EXPECT_THAT(fetch(mirror, all), HasSubstr("is away"));
  EXPECT_FALSE(mirror.has(0));
}

// A copy that is read in several calls is of one state of the ps.
class InSeveralCalls : public MirrorTest {
 protected:
  void SetUp() override {
    ShardLinkOptions link;
    link.piece_bytes_max = 64;
    use(kAdagrad, {{400, 1}, {2}}, RowEncoding::kRaw, link);
  }
  // Begins to fetch, and does `between` when the first calls have been answered.
  template <typename F>
  std::string interrupted(F between) {
    std::string outcome = "not ended";
    auto fetching = mirror.fetch(*store, context, {0, 1})
                        .start()
                        .then([&] { outcome = ""; },
                              [&](kj::Exception&& error) {
                                const ErrorParts parts = rpc::from_kj(error);
                                outcome = str(code_name(parts.code), ": ", parts.message);
                              })
                        .eagerlyEvaluate(nullptr);
    const auto answered = [&] { return servers[0]->counters(0).pulls.calls.load(); };
    while (answered() < 3) reactor.advance(std::chrono::microseconds(200));
    between();
    reactor.wait(kj::mv(fetching));
    return outcome;
  }
};

TEST_F(InSeveralCalls, ItIsWhole) {
  EXPECT_EQ(interrupted([] {}), "");
  EXPECT_EQ(read(mirror, 0), pull(0));
  EXPECT_GE(servers[0]->counters(0).pulls.calls.load(), 25u);
}

TEST_F(InSeveralCalls, ItIsAbortedWhereThePartIsWrittenInBetween) {
  EXPECT_THAT(interrupted([&] { push({whole(0, kAdagrad, 1)}); }),
              AllOf(StartsWith("Aborted: "), HasSubstr("was written to")));
  EXPECT_FALSE(mirror.has(0) || mirror.has(1));
  EXPECT_EQ(fetch(mirror, all), "");
}

TEST_F(InSeveralCalls, ItIsUnavailableWhereTheShardIsReplacedInBetween) {
  const std::string outcome = interrupted([&] {
    crash(0);
    start(0, 300);
    configure(0);
  });
  EXPECT_THAT(outcome, StartsWith("Unavailable: ")) << "the call that was under way is lost";
  EXPECT_FALSE(mirror.has(0) || mirror.has(1));
}

TEST_F(InSeveralCalls, ItIsAbortedWhereTheShardIsRestoredInBetween) {
  EXPECT_THAT(interrupted([&] {
                auto restored = chiefs[0]->ruled.restoreRequest().send().ignoreResult();
                chiefs[0]->wait(chiefs[0]->ruled.openRequest().send().ignoreResult());
                chiefs[0]->wait(kj::mv(restored));
              }),
              AllOf(StartsWith("Aborted: "), HasSubstr("was replaced or restored")));
  EXPECT_FALSE(mirror.has(0) || mirror.has(1));
}

TEST_F(InSeveralCalls, ItIsAbortedWhereTheLayoutChangesInBetween) {
  EXPECT_THAT(interrupted([&] {
                auto next = std::make_shared<Layout>(*layout);
                next->version = 2;
                store->set_layout(next);
              }),
              StartsWith("Aborted: the layout changed"));
}

TEST_F(InSeveralCalls, ItIsAbortedWhereTheMirrorChangesInBetween) {
  EXPECT_THAT(interrupted([&] { mirror.forget(); }), StartsWith("Aborted: "));
  EXPECT_FALSE(mirror.has(0) || mirror.has(1));
}

TEST_F(MirrorTest, SlotsThatTheLayoutDoesNotKnowYetAbortAFetch) {
  use(kSgd, {{4}});
  layout = std::make_shared<Layout>(*layout);
  layout->variables[0].rule = kAdam;
  for (std::uint32_t i = 0; i < kServers; ++i) configure(i);
  EXPECT_THAT(fetch(mirror, all), AllOf(StartsWith("Aborted: "), HasSubstr("layout version 1")));
}

TEST_F(MirrorTest, AHashedVariableIsNotFetched) {
  use(kSgd, {{4}});
  layout = std::make_shared<Layout>(*layout);
  VariableSpec spec{.name = "hashed", .shape = {1000, 2}};
  spec.hashed = true;
  layout->variables.push_back(
      {1, std::make_shared<const VariableSpec>(spec), {}, {{0, {0, 1000}}}});
  store->set_layout(layout);
  EXPECT_THAT(fetch(mirror, {0, 1}), StartsWith("InvalidArgument: "));
  EXPECT_FALSE(mirror.has(0));
  EXPECT_THAT(fetch(mirror, {2}), StartsWith("NotFound: "));
}

TEST_F(MirrorTest, WithoutALayoutNothingIsFetched) {
  use(kSgd, {{4}});
  store->forget_layout();
  EXPECT_THAT(fetch(mirror, all), StartsWith("FailedPrecondition: "));
}

TEST_F(MirrorTest, AnUpdateThatDoesNotFitLeavesTheCopiesAsTheyWere) {
  use(kAdam, {{4, 2}, {3}});
  ASSERT_EQ(fetch(mirror, {0}), "");
  const std::uint64_t before = mirror.fingerprint();
  auto refused = [&](Update bad) {
    const std::vector<Update> updates{whole(0, kAdam, 1), std::move(bad)};
    try {
      mirror.apply(updates, 9);
      return std::string("applied");
    } catch (const Error& error) {
      return std::string(code_name(error.code()));
    }
  };
  EXPECT_EQ(refused(whole(1, kAdam, 1)), "FailedPrecondition");
  EXPECT_EQ(refused(whole(0, kAdagrad, 1)), "FailedPrecondition");
  EXPECT_EQ(refused({0, kAdam, 0.1f, {}, gradient({4, 3}, 1)}), "InvalidArgument");
  EXPECT_EQ(refused({0, kAdam, -1, {}, gradient({4, 2}, 1)}), "InvalidArgument");
  EXPECT_EQ(refused({0, kAdam, 0.1f, ids_of({1, 1}), gradient({2, 2}, 1)}), "InvalidArgument");
  EXPECT_EQ(refused({0, kAdam, 0.1f, ids_of({4}), gradient({1, 2}, 1)}), "InvalidArgument");
  EXPECT_EQ(mirror.fingerprint(), before);
  EXPECT_EQ(mirror.round(), 0u);
}

}  // namespace
}  // namespace cairn::worker
