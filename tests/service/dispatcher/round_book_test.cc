// The order of rounds, without any network.
#include "service/dispatcher/round_book.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace cairn::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const DataWorkerPlace kLeft{"sim://left", 1}, kRight{"sim://right", 2};
constexpr std::uint64_t kFresh = 77;

TimePoint second_of(int seconds) { return TimePoint(std::chrono::seconds(seconds)); }

// A consumer of a group, as its process would report.
struct Consumer {
  std::uint32_t index;
  std::uint64_t identity;
  std::set<Round> here = {};
  std::uint64_t group = 0, sequence = 0, base = 0;
  std::vector<Round> known = {};
  std::uint64_t taken = 0;

  RoundOrder report(RoundBook& book, int seconds = 0) {
    const std::uint64_t from = book.report(
        {index, identity, group, ++sequence, base, known, here, taken}, second_of(seconds), kFresh);
    RoundOrder order =
        book.order(index, group == 0 ? book.group() : group, from, second_of(seconds - 5));
    if (group == 0) base = order.begin;
    group = order.group;
    for (const Round& round : order.rounds) {
      known.push_back(round);
      here.erase(round);
    }
    for (; base < order.base; ++base) known.erase(known.begin());
    return order;
  }
};

TEST(RoundBook, ARoundIsInTheOrderWhenAllHaveIt) {
  RoundBook book(2);
  Consumer zero{0, 10}, one{1, 11};
  zero.report(book);
  one.report(book);
  zero.here = {{kLeft, 0}, {kLeft, 1}};
  EXPECT_THAT(zero.report(book).rounds, IsEmpty());
  one.here = {{kLeft, 0}};
  EXPECT_THAT(one.report(book).rounds, ElementsAre(Round{kLeft, 0}));
  EXPECT_THAT(zero.report(book).rounds, ElementsAre(Round{kLeft, 0}));
}

TEST(RoundBook, WorkersTakeTurnsAsFarAsTheyHaveARound) {
  RoundBook book(1);
  Consumer only{0, 10, {{kLeft, 0}, {kLeft, 1}, {kLeft, 2}, {kRight, 0}}};
  only.report(book);
  only.here.clear();
  EXPECT_THAT(only.known,
              ElementsAre(Round{kLeft, 0}, Round{kRight, 0}, Round{kLeft, 1}, Round{kLeft, 2}));
}

TEST(RoundBook, ARoundThatSomebodyHasMissedIsLeftOut) {
  RoundBook book(2);
  Consumer zero{0, 10}, one{1, 11};
  zero.report(book);
  one.report(book);
  zero.here = {{kLeft, 3}, {kLeft, 4}};
  one.here = {{kLeft, 4}};
  zero.report(book);
  EXPECT_THAT(one.report(book).rounds, ElementsAre(Round{kLeft, 4}));
  one.here = {{kLeft, 3}};
  EXPECT_THAT(one.report(book).rounds, IsEmpty()) << "it came too late";
}

TEST(RoundBook, ABookThatBeginsEmptyLearnsTheOrderFromTheGroup) {
  RoundBook before(2);
  Consumer zero{0, 10}, one{1, 11};
  zero.report(before);
  one.report(before);
  zero.here = one.here = {{kLeft, 0}, {kRight, 0}};
  zero.report(before);
  EXPECT_EQ(one.report(before).rounds.size(), 2u);  // and zero has not learnt of them

  RoundBook after(2);
  EXPECT_THAT(zero.report(after).rounds, IsEmpty()) << "nobody knows yet what the others know";
  EXPECT_THAT(one.report(after).rounds, IsEmpty());
  EXPECT_EQ(zero.report(after).rounds.size(), 2u);
  EXPECT_EQ(zero.known, one.known);
}

TEST(RoundBook, AReportThatIsRepeatedLateChangesNothing) {
  RoundBook book(1);
  Consumer only{0, 10};
  only.report(book);
  RoundReport late{0, 10, only.group, only.sequence, 0, {}, {{kLeft, 0}}, 0};
  book.report(late, second_of(0), kFresh);
  EXPECT_EQ(book.end(), 0u);
}

TEST(RoundBook, WhoIsMissingAndWhoIsBehindIsTold) {
  RoundBook book(3);
  Consumer zero{0, 10}, one{1, 11};
  EXPECT_THAT(zero.report(book).missing, ElementsAre(1, 2));
  EXPECT_THAT(one.report(book).missing, ElementsAre(2));
  zero.here = {{kLeft, 0}};
  EXPECT_THAT(zero.report(book).behind, ElementsAre(1, 2));
  zero.here.clear();
  zero.taken = 1;
  EXPECT_THAT(zero.report(book).behind, ElementsAre(1, 2)) << "their programs have taken less";
  one.taken = 1;
  one.report(book);
  EXPECT_THAT(zero.report(book).behind, ElementsAre(2));
  EXPECT_THAT(zero.report(book, 9).missing, ElementsAre(1, 2)) << "silent for nine seconds";
}

TEST(RoundBook, WhoTakesAPlaceThatIsTakenBeginsTheGroupAnew) {
  RoundBook book(2);
  Consumer zero{0, 10}, one{1, 11};
  zero.report(book);
  one.report(book);
  zero.here = one.here = {{kLeft, 0}};
  zero.report(book);
  one.report(book);
  Consumer again{0, 12};
  book.report({0, 12, 0, 1, 0, {}, {}, 0}, second_of(0), kFresh + 1);
  EXPECT_THROW(one.report(book), FailedPreconditionError);
  EXPECT_THROW(zero.report(book), FailedPreconditionError);
  Consumer other{1, 13, {{kLeft, 0}}};
  again.here = {{kLeft, 0}};
  again.sequence = 1;
  again.report(book);
  other.report(book);
  EXPECT_THAT(other.report(book).rounds, IsEmpty());
  EXPECT_THAT(other.known, ElementsAre(Round{kLeft, 0}))
      << "what nobody of this group was given can be given again";
  EXPECT_THROW((Consumer{2, 14}.report(book)), InvalidArgumentError);
}

TEST(RoundBook, OptionsThatDoNotFitAreNamed) {
  EXPECT_NO_THROW(verify_group(0, 0, ""));
  EXPECT_NO_THROW(verify_group(2, 1, "job"));
  EXPECT_THROW(verify_group(2, 1, ""), InvalidArgumentError);
  EXPECT_THROW(verify_group(2, 2, "job"), InvalidArgumentError);
  EXPECT_THROW(verify_group(0, 1, "job"), InvalidArgumentError);
  EXPECT_THROW(verify_group(kGroupMax + 1, 0, "job"), InvalidArgumentError);
  EXPECT_EQ(consumers_text({1}, 3), "consumer 1 of 3");
  EXPECT_EQ(consumers_text({0, 2}, 3), "consumers 0 and 2 of 3");
}

}  // namespace
}  // namespace cairn::service
