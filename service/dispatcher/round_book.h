// RoundBook: the rounds of a group of consumers that read in step, and their order. No network,
// disk and clock.
//
// A round is as many consecutive elements of one data worker's pipeline as the group has consumers,
// one for each. Consumers read rounds from all data workers ahead of their programs, and report
// which they have. A round that all consumers have is put into the order, and only then handed out:
// so all of the group are given the same rounds, whatever is lost afterwards. Data workers take
// turns, as far as they have a round that is complete.
//
// The order is kept for as long as one of the consumers may not know it. A book that begins empty,
// of a dispatcher that was started again, learns it from them.
//   Thread  one at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "service/dispatcher/job_book.h"

namespace cairn::service {

struct Round {
  DataWorkerPlace worker;
  std::uint64_t number = 0;  // among those of this worker
  auto operator<=>(const Round&) const = default;
};

// A consumer's report: the rounds it has, and its end of the order.
struct RoundReport {
  std::uint32_t index = 0;     // its place in the group
  std::uint64_t consumer = 0;  // who it is
  std::uint64_t group = 0;     // that it belongs to; 0: it begins
  std::uint64_t sequence = 0;  // of its reports, from 1 on
  std::uint64_t base = 0;      // where `known` begins
  std::vector<Round> known;    // of the order, what others may not know
  std::set<Round> here;        // that it has and that are not in the order, as far as it knows
  std::uint64_t taken = 0;     // rounds, by its program
};

struct RoundOrder {
  std::uint64_t group = 0;
  std::uint64_t base = 0;   // all consumers know the order before it
  std::uint64_t begin = 0;  // where `rounds` begins
  std::vector<Round> rounds;
  // Consumers of the group that are not there; that the others wait for.
  std::vector<std::uint32_t> missing, behind;
};

inline constexpr std::uint32_t kGroupMax = 4096;  // consumers

class RoundBook {
 public:
  explicit RoundBook(std::uint32_t consumers) : seats_(consumers) {}

  // Takes in a consumer's report, and returns how many rounds of the order that consumer knows.
  //   fresh   the number that the group is given if it has to start over
  //   Errors  InvalidArgument: there is no such place in the group. FailedPrecondition: another
  //           consumer has taken it, or the group has begun anew since this one joined it.
  std::uint64_t report(const RoundReport& report, TimePoint now, std::uint64_t fresh);
  // The order from there on, for a consumer of `group`. One that has been silent since
  // `silent_before` is missing.
  //   Errors  FailedPrecondition: the group has begun anew.
  RoundOrder order(std::uint32_t index, std::uint64_t group, std::uint64_t from,
                   TimePoint silent_before) const;
  std::uint64_t end() const { return base_ + order_.size(); }
  std::uint64_t group() const { return group_; }

 private:
  struct Seat {
    std::uint64_t consumer = 0;  // 0: the place is free
    std::uint64_t sequence = 0;
    std::uint64_t known = 0;  // of the order
    std::set<Round> here;
    std::uint64_t taken = 0;
    TimePoint heard;
  };
  Seat& seat_of(const RoundReport& report, std::uint64_t fresh);
  void begin_anew(std::uint64_t fresh);
  void append(const Round& round);
  void choose();
  void trim();
  bool is_new(const Round& round) const;
  std::vector<std::uint32_t> behind() const;

  std::vector<Seat> seats_;
  std::uint64_t group_ = 0;  // 0: no consumer has joined
  std::uint64_t base_ = 0;   // the place of the first of order_
  std::deque<Round> order_;
  std::map<DataWorkerPlace, std::uint64_t> last_;  // in the order, of each worker
  DataWorkerPlace turn_;                           // whose round came last
};

// Verifies the options of a consumer in a group of `consumers`; 0: it is in no group.
//   Errors  InvalidArgument: names the option.
void verify_group(std::uint32_t consumers, std::uint32_t index, const std::string& job_name);
// "consumer 1 of 3"; "consumers 0 and 2 of 3".
std::string consumers_text(const std::vector<std::uint32_t>& some, std::uint32_t consumers);

}  // namespace cairn::service
