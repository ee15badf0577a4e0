// OpenMeetings: the calls that some members of this process have made and others have not.
//   Thread  guarded by the mutex of the group that has it.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/base/call.h"
#include "core/base/error.h"

namespace cairn {

// One call, as far as it is known who has made it.
struct JoinedCalls {
  explicit JoinedCalls(int members) : calls(static_cast<std::size_t>(members)) {}

  std::vector<std::optional<CollectiveCall>> calls;  // by member here; empty: has not joined
  int joined = 0;

  bool all_joined() const { return joined == static_cast<int>(calls.size()); }
};

// `Meeting`: a JoinedCalls and what a group keeps beside it.
template <typename Meeting>
class OpenMeetings {
 public:
  struct Joined {
    std::shared_ptr<Meeting> meeting;
    // How the call differs from those of the members that came before; the group is to fail then,
    // and the call has not joined. Empty: it does not.
    std::string differs;
  };

  // Member `member`, whose rank is `first_rank` more, makes its call of this number. `make` makes a
  // meeting for the first member that comes to it. A meeting that all have joined is open no more.
  template <typename Make>
  Joined join(int member, int first_rank, std::int64_t number, CollectiveCall call, Make make) {
    const auto place = static_cast<std::size_t>(number - first_);
    // A member is at most one ahead of the last meeting: it joins every one of them, in order.
    if (place == open_.size()) open_.push_back(make());
    Joined out{open_[place], {}};
    Meeting& meeting = *out.meeting;
    // All that have joined agree, so one of them speaks for the others.
    for (std::size_t other = 0; other < meeting.calls.size(); ++other) {
      if (!meeting.calls[other]) continue;
      const std::string differs = difference(
          *meeting.calls[other], first_rank + static_cast<int>(other), call, first_rank + member);
      if (differs.empty()) break;
      out.differs = str("call ", number, " of the group: ", differs,
                        "; all members must make the same calls in the same order");
      return out;
    }
    meeting.calls[static_cast<std::size_t>(member)] = std::move(call);
    // Every member joins in order, so no later meeting is complete before this one.
    if (++meeting.joined == static_cast<int>(meeting.calls.size())) {
      open_.pop_front();
      ++first_;
    }
    return out;
  }
  void clear() { open_.clear(); }

 private:
  std::deque<std::shared_ptr<Meeting>> open_;
  std::int64_t first_ = 0;  // the number of the first of open_
};

}  // namespace cairn
