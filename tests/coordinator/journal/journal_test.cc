#include "coordinator/journal/journal.h"

#include <gmock/gmock.h>

#include "coordinator/journal/config_store.h"
#include "core/base/error.h"
#include "core/disk/memory_disk.h"
#include "rpc/loop/sim_offload.h"
#include "rpc/loop/sim_reactor.h"

namespace cairn::journal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSession = 7;

ClosureSent sent(std::uint64_t sequence) {
  return {.sequence = sequence, .arguments = {Tensor::scalar(static_cast<float>(sequence))}};
}
ClosureEnded ended(std::uint64_t sequence) {
  return {.sequence = sequence, .updated = true, .steps = 1, .sent_layout = 1};
}

// A coordinator's process, as far as its journal goes.
struct Coordinator {
  Coordinator(MemoryDisk& disk, rpc::SimReactor& loop, std::uint64_t term,
              Duration sync_after = Duration::zero(), std::uint64_t seed = 1)
      : reactor(loop),
        offload(reactor, seed, std::chrono::microseconds(300)),
        journal(Journal::open(disk, {"folder", sync_after}, "test")) {
    reactor.wait(journal->begin(reactor, offload, Opened{"test", kSession, term, "host"}, 2));
  }
  void note(Event event) { journal->note(std::move(event)); }
  void keep() { reactor.wait(journal->kept()); }
  void write() { reactor.wait(journal->written()); }

  rpc::SimReactor& reactor;
  rpc::SimOffload offload;
  std::shared_ptr<Journal> journal;
};

class JournalTest : public ::testing::Test {
 public:
  ~JournalTest() noexcept override {}  // a reactor's may throw

 protected:
  std::vector<std::string> files(const std::string& prefix) const {
    std::vector<std::string> all = disk.list("folder");
    std::erase_if(all, [&](const std::string& name) { return !name.starts_with(prefix); });
    return all;
  }
  static std::vector<std::uint64_t> open_numbers(const Journal& journal) {
    std::vector<std::uint64_t> open;
    for (const auto& [sequence, closure] : journal.found()->open()) open.push_back(sequence);
    return open;
  }
  std::vector<std::uint64_t> open_closures() {
    return open_numbers(*Journal::open(disk, {"folder"}, "test"));
  }
  std::string error_of_opening(const std::string& cluster = "test") {
    try {
      Journal::open(disk, {"folder"}, cluster);
    } catch (const Error& error) {
      return str(code_name(error.code()), ": ", error.what());
    }
    return "it was opened";
  }

  rpc::SimReactor reactor;
  MemoryDisk disk;
};

TEST_F(JournalTest, TellsASuccessorWhatWasOpenAndWhatHasEnded) {
  {
    Coordinator first(disk, reactor, 1);
    EXPECT_FALSE(first.journal->found());
    first.note(FunctionMade{.id = 0, .name = "step"});
    for (std::uint64_t i = 1; i <= 5; ++i) first.note(sent(i));
    first.note(ended(2));
    first.note(ended(5));
    first.note(Announced{100});
    first.write();
  }
  Coordinator second(disk, reactor, 2);
  const JournalState& found = *second.journal->found();
  EXPECT_EQ(found.opened().session, kSession);
  EXPECT_EQ(found.opened().term, 1u);
  EXPECT_EQ(found.functions().at(0).name, "step");
  EXPECT_EQ(found.global_step(), 2);
  EXPECT_EQ(found.closures_below(), 100u);
  ASSERT_EQ(found.open().size(), 3u);
  EXPECT_EQ(found.open().at(3).arguments.at(0).values<float>()[0], 3.f);
  EXPECT_THAT(files("journal-"), ElementsAre("journal-2-1"));
}

TEST_F(JournalTest, ASuccessorGoesOnWithIt) {
  {
    Coordinator first(disk, reactor, 1);
    first.note(FunctionMade{.id = 0, .name = "step"});
    first.note(sent(1));
    first.write();
  }
  {
    Coordinator second(disk, reactor, 2);
    second.note(FunctionMade{.id = 1, .name = "other"});
    second.note(ended(1));
    second.note(sent(2));
    second.write();
  }
  const auto third = Journal::open(disk, {"folder"}, "test");
  EXPECT_EQ(third->found()->functions().size(), 2u);
  EXPECT_EQ(third->found()->global_step(), 1);
  EXPECT_TRUE(third->found()->open().contains(2));
  EXPECT_EQ(third->found()->opened().term, 2u);
}

// A coordinator that another one has succeeded may still write for a while.
TEST_F(JournalTest, TheLaterTermCountsWhateverTheEarlierOneStillWrites) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  first.note(sent(1));
  first.write();
  MemoryDisk later;  // as the successor finds the folder
  later.make_folder("folder");
  for (const std::string& name : disk.list("folder"))
    later.write_atomically("folder/" + name, disk.read("folder/" + name));
  Coordinator second(later, reactor, 2);
  second.note(ended(1));
  second.write();
  for (const std::string& name : later.list("folder"))
    if (name.starts_with("journal-") || name.starts_with("made-"))
      disk.write_atomically("folder/" + name, later.read("folder/" + name));
  first.journal->begin_anew();
  first.note(sent(2));
  first.write();
  EXPECT_THAT(files("journal-"), ElementsAre("journal-1-2", "journal-2-1"));
  first.journal.reset();
  EXPECT_THAT(open_closures(), ElementsAre());
}

// It stands still, and comes to life when another one has taken the folder.
TEST_F(JournalTest, OneThatWasTakenOverSpoilsNothingOfItsSuccessor) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  first.note(sent(1));
  first.write();
  EXPECT_THAT(error_of_opening(), HasSubstr("in use"));
  {
    const auto journal = Journal::open(disk, {"folder"}, "test", FolderInUse::kTakeOver);
    first.note(FunctionMade{.id = 1, .name = "late"});
    first.note(sent(2));
    first.write();
    rpc::SimOffload offload(reactor, 9, std::chrono::microseconds(300));
    reactor.wait(journal->read_again(reactor, offload));
    EXPECT_EQ(journal->found()->open().size(), 2u);
    // An open file outlives its removal, as that of a process that stands still.
    const std::string made = disk.read("folder/made-7-1"), log = disk.read("folder/journal-1-1");
    reactor.wait(journal->begin(reactor, offload, Opened{"test", kSession, 2, "host"}, 2));
    EXPECT_THAT(files("made-"), ElementsAre("made-7-2"));
    disk.write_atomically("folder/made-7-1", made);
    disk.write_atomically("folder/journal-1-1", log);
    first.note(FunctionMade{.id = 2, .name = "of the first"});
    first.journal->begin_anew();
    first.note(ended(1));
    first.write();
    journal->note(FunctionMade{.id = 2, .name = "of the second"});
    journal->note(sent(3));
    reactor.wait(journal->written());
  }
  first.journal.reset();
  const auto third = Journal::open(disk, {"folder"}, "test");
  EXPECT_EQ(third->found()->opened().term, 2u);
  EXPECT_EQ(third->found()->functions().at(2).name, "of the second");
  EXPECT_THAT(open_numbers(*third), ElementsAre(1, 2, 3));
}

TEST_F(JournalTest, AFileThatIsBegunAnewHoldsAllThatStillCounts) {
  {
    Coordinator first(disk, reactor, 1);
    first.note(FunctionMade{.id = 0, .name = "step"});
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      first.note(sent(i));
      if (i > 3) first.note(ended(i - 3));
    }
    first.write();
    const std::uint64_t long_one = disk.size("folder/journal-1-1");
    first.journal->begin_anew();
    first.note(sent(1001));
    first.write();
    EXPECT_THAT(files("journal-"), ElementsAre("journal-1-2"));
    EXPECT_LT(disk.size("folder/journal-1-2"), long_one / 50);
  }
  EXPECT_THAT(open_closures(), ElementsAre(998, 999, 1000, 1001));
}

TEST_F(JournalTest, AFileThatHasGrownLongIsBegunAnewByItself) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  const Tensor large = Tensor::of<float>({1 << 18}, std::vector<float>(1 << 18));  // 1 MB
  for (std::uint64_t i = 1; i <= 70; ++i) {
    first.note(ClosureSent{.sequence = i, .arguments = {large}});
    first.note(ended(i));
    first.keep();
  }
  EXPECT_THAT(files("journal-"), ElementsAre("journal-1-2"));
  EXPECT_LT(disk.bytes_used(), std::uint64_t{16} << 20);
}

TEST_F(JournalTest, WhatIsNotedTogetherIsWrittenTogether) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  first.keep();
  const std::uint64_t before = disk.steps();
  for (std::uint64_t i = 1; i <= 100; ++i) first.note(sent(i));
  first.keep();
  EXPECT_EQ(disk.steps() - before, 2u);  // a write, and a sync
}

// Wherever the power goes: all that was said to be kept is there, nothing is there that was not
// noted, and the journal can always be gone on with.
TEST_F(JournalTest, LosesNothingThatWasKeptWhereverThePowerGoes) {
  for (const int unsynced : {0, 50, 100})
    for (const auto moment :
         {MemoryDisk::Moment::kBefore, MemoryDisk::Moment::kWithin, MemoryDisk::Moment::kAfter})
      for (std::uint64_t step = 0;; ++step) {
        MemoryDisk power;
        power.set_unsynced_kept(unsynced);
        power.crash_at_step(step, moment);
        std::uint64_t noted = 0, kept = 0;
        bool crashed = false, begun = false;
        try {
          Coordinator first(power, reactor, 1, std::chrono::hours(1), step);
          begun = true;
          first.note(FunctionMade{.id = 0, .name = "step"});
          while (noted < 12) {
            first.note(sent(++noted));
            if (noted % 4 == 1) first.write();
            if (noted % 4 == 3) {
              first.keep();
              kept = noted;
            }
            if (noted % 5 == 0) first.journal->begin_anew();
          }
        } catch (const UnavailableError&) {
          crashed = true;
        }
        if (!crashed) break;
        power.recover();
        const auto second = Journal::open(power, {"folder"}, "test");
        if (!second->found()) {
          ASSERT_FALSE(begun && kept > 0) << "step " << step;
          continue;
        }
        const auto& open = second->found()->open();
        ASSERT_GE(open.size(), kept) << "step " << step;
        ASSERT_LE(open.size(), noted);
        for (std::uint64_t i = 1; i <= open.size(); ++i) ASSERT_TRUE(open.contains(i));
      }
}

TEST_F(JournalTest, IsSyncedSoonWhetherOrNotSomebodyWaits) {
  Coordinator first(disk, reactor, 1, std::chrono::milliseconds(50));
  first.note(FunctionMade{.id = 0, .name = "step"});
  first.note(sent(1));
  reactor.advance(std::chrono::milliseconds(60));
  first.note(sent(2));
  reactor.advance(std::chrono::milliseconds(10));
  disk.set_unsynced_kept(0);
  disk.crash_at_step(0, MemoryDisk::Moment::kBefore);
  first.note(sent(3));
  EXPECT_THROW(first.write(), UnavailableError);
  first.journal.reset();
  disk.recover();
  EXPECT_THAT(open_closures(), ElementsAre(1));
}

TEST_F(JournalTest, SaysThatItCannotBeWrittenToWhoeverWaits) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  first.keep();
  disk.set_capacity(disk.bytes_used());
  first.note(sent(1));
  for (int i = 0; i < 2; ++i) {
    try {
      first.write();
      FAIL() << "it was written";
    } catch (const ResourceExhaustedError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("the journal in folder cannot be written"),
                                      HasSubstr("no space left")));
    }
    first.note(sent(2));
  }
}

// The record itself was written. Whatever is noted afterwards is not, and whoever waits for that
// must not go on.
TEST_F(JournalTest, SaysThatItCannotBeWrittenAlsoIfItIsTheNextFileThatFails) {
  Coordinator first(disk, reactor, 1);
  first.note(FunctionMade{.id = 0, .name = "step"});
  ClosureSent large = sent(1);
  large.arguments = {Tensor::of<float>({4096}, std::vector<float>(4096))};
  first.note(std::move(large));
  first.keep();
  disk.set_capacity(disk.bytes_used() + 4096);
  first.journal->begin_anew();
  first.note(sent(2));
  reactor.advance(std::chrono::seconds(1));
  first.note(sent(3));
  EXPECT_THROW(first.write(), ResourceExhaustedError);
  first.note(sent(4));
  EXPECT_THROW(first.keep(), ResourceExhaustedError);
}

TEST_F(JournalTest, NamesWhoHasItAndWhoseItIs) {
  {
    Coordinator first(disk, reactor, 1);
    EXPECT_THAT(error_of_opening(),
                AllOf(HasSubstr("FailedPrecondition: the journal in folder is in use by a "
                                "coordinator, "),
                      HasSubstr("another folder")));
  }
  EXPECT_THAT(error_of_opening("other"), AllOf(HasSubstr("FailedPrecondition"),
                                               HasSubstr("\"test\""), HasSubstr("\"other\"")));
  EXPECT_EQ(error_of_opening(), "it was opened");
}

TEST_F(JournalTest, DamageIsToldWithItsPlaceAndTheWayOn) {
  {
    Coordinator first(disk, reactor, 1);
    first.note(FunctionMade{.id = 0, .name = "step"});
    for (std::uint64_t i = 1; i <= 3; ++i) {
      first.note(sent(i));
      first.keep();
    }
  }
  disk.flip_bit("folder/journal-1-1", disk.size("folder/journal-1-1") / 2);
  EXPECT_THAT(error_of_opening(),
              AllOf(HasSubstr("DataLoss"), HasSubstr("folder/journal-1-1 is damaged at byte "),
                    HasSubstr("cairn ckpt")));
  disk.remove("folder/journal-1-1");
  EXPECT_EQ(error_of_opening(), "it was opened");
}

TEST_F(JournalTest, ATornEndIsCutOff) {
  {
    Coordinator first(disk, reactor, 1, std::chrono::hours(1));
    first.note(FunctionMade{.id = 0, .name = "step"});
    first.note(sent(1));
    first.keep();
    first.note(sent(2));
    first.write();
  }
  disk.truncate("folder/journal-1-1", disk.size("folder/journal-1-1") - 1);
  EXPECT_THAT(open_closures(), ElementsAre(1));
}

}  // namespace
}  // namespace cairn::journal
