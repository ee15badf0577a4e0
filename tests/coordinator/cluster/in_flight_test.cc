#include "coordinator/cluster/in_flight.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

std::shared_ptr<Closure> closure(std::uint64_t sequence) {
  auto made = std::make_shared<Closure>();
  made->sequence = sequence;
  return made;
}

InFlight with(std::initializer_list<std::uint64_t> sequences) {
  InFlight closures;
  for (const std::uint64_t sequence : sequences) closures.add(closure(sequence));
  return closures;
}

std::vector<std::uint64_t> sequences_of(const InFlight& closures) {
  std::vector<std::uint64_t> all;
  for (const auto& [sequence, one] : closures) all.push_back(sequence);
  return all;
}

TEST(InFlight, GivesTheClosureOfANumber) {
  const InFlight closures = with({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (std::uint64_t sequence = 1; sequence <= 12; ++sequence)
    EXPECT_EQ(closures.find(sequence)->sequence, sequence);
}

TEST(InFlight, HasNoneOfANumberThatWasNotSentOrHasBeenRemoved) {
  InFlight closures = with({3, 4});
  closures.remove(3);
  closures.remove(17);
  EXPECT_EQ(closures.find(3), nullptr);
  EXPECT_EQ(closures.find(17), nullptr);
  EXPECT_EQ(sequences_of(closures), (std::vector<std::uint64_t>{4}));
}

// A closure that came back from a lost lane is older than those that this one has.
TEST(InFlight, KeepsTheOrderOfSendingWhateverTheNumbers) {
  InFlight closures = with({7, 2, 9});
  closures.remove(2);
  closures.add(closure(1));
  EXPECT_EQ(sequences_of(closures), (std::vector<std::uint64_t>{7, 9, 1}));
}

TEST(InFlight, IsEmptyOnceAllAreTaken) {
  InFlight closures = with({5, 6});
  const auto all = closures.take_all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1]->sequence, 6u);
  EXPECT_EQ(closures.size(), 0u);
  EXPECT_EQ(closures.find(5), nullptr);
}

}  // namespace
}  // namespace cairn
