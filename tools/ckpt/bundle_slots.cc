#include "tools/ckpt/bundle_slots.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "tools/ckpt/format/manifest_arrays.h"

namespace cairn::tools::ckpt {
namespace {

// The tensors that stand beside a variable, by TensorFlow's names, and what they are here.
struct Known {
  std::vector<std::string> theirs;
  RuleKind kind;
  bool counts;  // the rule depends on the number of steps
};

std::vector<Known> known_slots(const std::string& optimizer) {
  std::vector<Known> known = {{{"accumulator"}, RuleKind::kAdagrad, false},
                              {{"accumulator", "linear"}, RuleKind::kFtrl, false},
                              {{"m", "v", "vhat"}, RuleKind::kAmsgrad, true},
                              {{"Adagrad"}, RuleKind::kAdagrad, false},
                              {{"Ftrl", "Ftrl_1"}, RuleKind::kFtrl, false}};
  const RuleKind adam = optimizer == "lazy_adam" ? RuleKind::kLazyAdam : RuleKind::kAdam;
  known.push_back({{"Adam", "Adam_1"}, adam, true});
  if (!optimizer.empty()) known.push_back({{"m", "v"}, adam, true});
  return known;
}

// The reference's constants, which a bundle does not hold: a program's own take their place when
// it restores.
UpdateRule rule_of(RuleKind kind) {
  switch (kind) {
    case RuleKind::kAdagrad:
      return make_rule(
          kind, {{"initial_accumulator", 0.1f}, {"epsilon", 1e-7f}, {"epsilon_under_root", 0.0f}});
    case RuleKind::kFtrl:
      return make_rule(kind, {{"learning_rate_power", -0.5f},
                              {"initial_accumulator", 0.1f},
                              {"l1", 0.0f},
                              {"l2", 0.0f},
                              {"beta", 0.0f},
                              {"l2_shrinkage", 0.0f}});
    default:
      return make_rule(kind, {{"beta_1", 0.9f},
                              {"beta_2", 0.999f},
                              {"epsilon", 1e-7f},
                              {"share_1", 0.0f},
                              {"share_2", 0.0f}});
  }
}

class SlotFinder {
 public:
  SlotFinder(ArrayListing& listing, const std::string& optimizer) : known_(known_slots(optimizer)) {
    for (StoredArray& array : listing.arrays) by_name_.emplace(array.info.name, &array);
    for (StoredArray& array : listing.arrays) {
      if (array.slot_of.empty()) mark_of_version_1(array);
      if (!array.slot_of.empty()) slots_[array.slot_of].push_back(&array);
    }
  }

  std::map<std::string, BundleSlots> take() {
    std::map<std::string, BundleSlots> taken;
    for (const auto& [variable, arrays] : slots_)
      if (auto slots = take(variable, arrays)) taken.emplace(variable, std::move(*slots));
    return taken;
  }

 private:
  // NAME/Adam beside NAME: only where the last part is a name that an optimizer gives.
  void mark_of_version_1(StoredArray& array) const {
    const std::size_t at = array.info.name.rfind('/');
    if (at == std::string::npos || !by_name_.contains(array.info.name.substr(0, at))) return;
    const std::string last = array.info.name.substr(at + 1);
    const auto gives = [&](const Known& known) {
      return known.theirs[0][0] < 'a' && std::ranges::count(known.theirs, last) > 0;
    };
    if (!std::ranges::any_of(known_, gives)) return;
    array.slot_of = array.info.name.substr(0, at);
    array.slot = last;
  }

  std::optional<BundleSlots> take(const std::string& name,
                                  const std::vector<StoredArray*>& arrays) const {
    const auto variable = by_name_.find(name);
    if (variable == by_name_.end()) return std::nullopt;
    std::set<std::string> theirs;
    for (const StoredArray* array : arrays) {
      const ArrayInfo& of = variable->second->info;
      if (array->info.shape != of.shape || array->info.dtype != of.dtype ||
          array->optimizer != arrays[0]->optimizer)
        return std::nullopt;
      theirs.insert(array->slot);
    }
    for (const Known& known : known_) {
      if (theirs != std::set(known.theirs.begin(), known.theirs.end())) continue;
      const auto steps = steps_of(*arrays[0]);
      if (known.counts && !steps.has_value()) return std::nullopt;
      BundleSlots slots{rule_of(known.kind), {}, steps.value_or(0)};
      for (const SlotSpec& slot : rule_slots(slots.rule)) slots.slots.emplace_back(slot.name);
      for (StoredArray* array : arrays)
        array->info.name = slot_name(name, slots.slots.at(place_in(known.theirs, array->slot)));
      return slots;
    }
    return std::nullopt;
  }

  static std::size_t place_in(const std::vector<std::string>& names, const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  }

  std::optional<std::int64_t> steps_of(const StoredArray& slot) const {
    const auto found =
        by_name_.find(slot.optimizer.empty() ? "global_step" : slot.optimizer + "/iter");
    if (found == by_name_.end() || found->second->info.bytes() != sizeof(std::int64_t) ||
        found->second->info.dtype != DType::kInt64)
      return std::nullopt;
    std::int64_t steps = 0;
    ArrayCursor(*found->second).read(reinterpret_cast<std::byte*>(&steps), sizeof steps);
    if (steps < 0) return std::nullopt;
    return steps;
  }

  std::vector<Known> known_;
  std::map<std::string, StoredArray*> by_name_;
  std::map<std::string, std::vector<StoredArray*>> slots_;
};

}  // namespace

std::map<std::string, BundleSlots> take_bundle_slots(ArrayListing& listing,
                                                     const std::string& optimizer) {
  if (!optimizer.empty() && optimizer != "adam" && optimizer != "lazy_adam")
    throw InvalidArgumentError(str("--optimizer takes adam or lazy_adam, whose slots \"m\" and ",
                                   "\"v\" are, and not \"", optimizer, "\""));
  return SlotFinder(listing, optimizer).take();
}

}  // namespace cairn::tools::ckpt
