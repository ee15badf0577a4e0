// Follower: keeps the rows of a live model as a training run changes them.
//
//   A run that has gone leaves the model with the rows that it has, and position() says how old
//   they are. It is looked for again, at the places that `where` then names: a run that is resumed
//   has other processes, and its shards begin anew.
//   Thread  one of its own, at a low priority, applies what comes; position() from any.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "serving/follow/row_stream.h"

namespace cairn::serving {

class ServedModel;

class Follower {
 public:
  struct Position {
    std::int64_t step = 0;  // the newest that the rows may contain
    // Every change that is older is in the rows. TimePoint::min(): they have not all come yet.
    TimePoint covered = TimePoint::min();
    bool complete = false;          // all rows of the run have come, at least once
    std::uint64_t rows = 0;         // that were changed since the beginning
    std::vector<std::string> away;  // ps that do not answer, and why
    std::string trouble;            // why nothing is followed at present; empty: something is
  };

  // `name`, of the model, for the log.
  Follower(std::string name, std::shared_ptr<const ServedModel> model, RowsOfRun where);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  Position position() const;
  // Those members of it alone, for each request.
  TimePoint covered() const;
  std::int64_t step() const;
  // Waits until the run's rows have come once. False: they did not within `patience`.
  bool wait_complete(Duration patience) const;

 private:
  void run();
  void follow(RowStream& stream);
  void apply(const RowChanges& changes, std::uint64_t seed);
  void tell(const RowStreamState& state);
  void in_trouble(const std::string& why);
  bool stopping() const;
  bool pause(Duration duration) const;  // false: it is to end

  const std::string name_;
  const std::shared_ptr<const ServedModel> model_;
  const RowsOfRun where_;
  mutable std::mutex mutex_;  // guards the two below
  mutable std::condition_variable changed_;
  Position position_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cairn::serving
