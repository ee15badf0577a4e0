// GroupStore: the variables of replicas in sync, as the step of one of them sees them. It reads
// what is there, and makes one push of those of all members.
//
//   copies     Every member has all variables of its own, and applies each push to them: they stay
//              equal, since all apply the same bits.
//   one place  All members read the same variables, and member 0 alone applies a push to them.
//
//   Errors  those of the store below and of SharedUpdates. If one is raised, no member has applied
//           the push, unless it is the store's own, which all copies raise alike.
//   Thread  the member's. In one place several members pull at once: the store below must allow it.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collective/local/shared_updates.h"

namespace cairn {

class GroupStore final : public VariableStore {
 public:
  enum class Rows : std::uint8_t { kCopies, kOnePlace };
  // Both outlive it.
  GroupStore(Collective& group, VariableStore& rows, Rows which)
      : rows_(rows), which_(which), first_(group.rank() == 0), updates_(group) {}

  void pull(const StepContext& step, std::span<Read> reads) override { rows_.pull(step, reads); }
  void push(const StepContext& step, std::span<Update> updates) override;
  // A member's own copy may lie on its device. What the device makes of it, it makes when all
  // members have come with the same.
  RowLender* lender() override { return which_ == Rows::kCopies ? rows_.lender() : nullptr; }
  bool wants_announced() const override { return which_ == Rows::kCopies; }
  std::vector<bool> announce(const StepContext&, std::span<const Update> updates) override {
    return updates_.announce(updates);
  }
  std::shared_ptr<std::byte> update_place(VariableId variable, std::size_t bytes) override {
    return rows_.update_place(variable, bytes);
  }

 private:
  VariableStore& rows_;
  const Rows which_;
  const bool first_;
  SharedUpdates updates_;
};

}  // namespace cairn
