#include "tests/simulation/part_follower.h"

#include <cstring>

namespace cairn::simulation {

void PartFollower::take_cursor(const PartFollower& before) {
  number_ = before.number_;
  described_ = before.described_;
  now_.incarnation = before.now_.incarnation;
  now_.cursor = before.now_.cursor;
}

void PartFollower::ask(ps::Subscriptions& subscriptions) {
  settled_ = false;
  if (resting_ > 0) {
    --resting_;
    return;
  }
  const std::uint64_t what = random_.below(50);
  if (what == 0) resting_ = random_.below(60);
  if (what == 1) now_ = {};
  if (what == 2) now_ = {}, number_ += 2;
  if (what == 3) backup_ = now_;
  // The cursor that it comes back with is that of the subscription that there is now.
  if (backup_.incarnation != 0 && backup_.incarnation != now_.incarnation &&
      backup_.cursor == now_.cursor && random_.below(2) == 0)
    now_ = backup_;
  call(subscriptions, random_.below(4) == 0, random_.below(3) > 0);
}

void PartFollower::ask_well(ps::Subscriptions& subscriptions) {
  call(subscriptions, false, random_.below(2) == 0);
}

void PartFollower::call(ps::Subscriptions& subscriptions, bool lost, bool small) {
  const std::size_t most = small ? 1 + random_.below(200) : 100'000;
  ps::ChangesAnswer answer = subscriptions.changes(
      {number_, described_, now_.incarnation, now_.cursor, most, {}, "a follower"});
  if (answer.described != described_) {
    described_ = answer.described;
    now_.complete = false;
    return;
  }
  if (!lost) apply(answer);
}

void PartFollower::apply(const ps::ChangesAnswer& answer) {
  if (answer.incarnation != now_.incarnation) now_.complete = false;
  now_.incarnation = answer.incarnation;
  now_.cursor = answer.cursor;
  std::size_t next = 0, gone = 0;
  for (const auto& table : answer.changed.tables) {
    if (table.begins) {
      now_.complete = false;
      for (const auto& [row, values] : now_.copy) now_.unsure.insert(row);
    }
    for (std::uint32_t i = 0; i < table.rows; ++i, ++next) {
      const std::int64_t row = part_.begin + answer.changed.rows[next];
      Row values(dim_);
      std::memcpy(values.data(), answer.changed.values.data() + next * dim_ * sizeof(float),
                  dim_ * sizeof(float));
      now_.copy[row] = values;
      now_.unsure.erase(row);
    }
    for (std::uint32_t i = 0; i < table.gone; ++i, ++gone) {
      const std::int64_t row = part_.begin + answer.changed.gone[gone];
      now_.copy.erase(row);
      now_.unsure.erase(row);
    }
    if (!table.complete) continue;
    now_.complete = true;
    for (const std::int64_t row : now_.unsure) now_.copy.erase(row);
    now_.unsure.clear();
  }
  settled_ = now_.complete && !answer.more && answer.age == Duration(0);
}

const PartFollower::Row* PartFollower::row(std::int64_t row) const {
  const auto at = now_.copy.find(row);
  return at == now_.copy.end() ? nullptr : &at->second;
}

}  // namespace cairn::simulation
