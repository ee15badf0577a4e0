// Subscriptions: those that follow the rows of a shard, and how far each of them is.
//
//   A subscriber asks again and again, and is answered at once with rows that have changed, as they
//   are now. What it is still to be sent is kept in the tables (TableChanges), so that training
//   waits for no subscriber, and one that is slow costs no more memory.
//   Cursor   Each answer has the next cursor. Who asks with the newest one has all that came
//            before; with the one before it, the last answer was lost, and its rows are sent again.
//            Any other cursor, or another incarnation, is of a subscription that is not this one:
//            all tables begin anew.
//   Order    A hand goes round over the tables and their places, so that no row waits for ever.
//   Thread   the shard's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "ps/shard/shard.h"

namespace cairn::ps {

struct ChangesRequest {
  std::uint64_t subscriber = 0;
  std::uint64_t described = 0;  // Shard::Described, as the subscriber has it
  std::uint64_t incarnation = 0, cursor = 0;
  std::size_t bytes_max = 0;
  std::vector<VariableId> variables;  // ascending; none: all
  std::string from;                   // for people
};

struct ChangesAnswer {
  std::uint64_t described = 0;  // another one than in the request: nothing else is answered
  std::uint64_t incarnation = 0, cursor = 0;
  ChangedRows changed;
  std::int64_t step = 0;  // the newest that the rows may contain; 0: not known
  Duration age{0};        // every change that is older has been sent
  bool more = false;      // ask again at once
};

class Subscriptions {
 public:
  static constexpr std::size_t kSubscribersMax = 16;
  static constexpr Duration kIdleMax = std::chrono::minutes(10);
  static constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;

  // Both outlive it.
  Subscriptions(Shard& shard, const Clock& clock) : shard_(shard), clock_(clock) {}

  //   Errors  Unavailable: the shard is not open. InvalidArgument: subscriber 0.
  //           ResourceExhausted: a subscriber more than there may be; names those that are there.
  //           DataLoss: rows on this machine's disk cannot be read.
  ChangesAnswer changes(const ChangesRequest& request);
  // Those that have not asked for kIdleMax are forgotten. Call it now and then.
  void forget_idle();
  std::size_t size() const { return all_.size(); }

 private:
  struct Subscription {
    std::uint64_t incarnation = 0, cursor = 0;
    std::vector<VariableId> variables;
    std::string from;
    TimePoint asked;
    // The table that is looked at next; since when this pass over all tables goes on; every change
    // that is older than `covered` was sent, or has left its place. It was `covered_before` until
    // the last answer.
    std::size_t hand = 0;
    TimePoint pass_began, covered, covered_before;
  };
  struct Followed {
    TableId id;
    Table* table;
    TableChanges* changes;
  };

  Subscription& find(const ChangesRequest& request, const Shard::Described& described);
  std::vector<Followed> follow(const ChangesRequest& request, const Shard::Described& described);
  bool take(Subscription& subscription, const std::vector<Followed>& tables, std::size_t bytes_max,
            ChangedRows& out);
  void forget(std::uint64_t subscriber, const Shard::Described& described);
  std::string names() const;
  void count(const Shard::Described& described);

  Shard& shard_;
  const Clock& clock_;
  std::map<std::uint64_t, Subscription> all_;  // by the subscriber's number
  std::uint64_t made_ = 0;
};

}  // namespace cairn::ps
