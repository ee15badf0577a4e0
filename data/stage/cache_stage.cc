// cache(): keeps the elements of the first pass, and gives them again in each pass after it.
//
// Every pass yields what the stages below yield in pass 0, so what is kept is a beginning of one
// fixed sequence, however far each iterator has read. An iterator that is opened at a state in
// another process goes on with the stages below where they stood, without keeping anything, until
// its pass is over; only in a later pass, whose state says nothing about them, does it have to read
// up to its place.
//
// A stage is in one of three positions: within what is kept (place_ below the store's size, the
// stages below stand anywhere), at the end of it (reading on also keeps), or passing (beyond it,
// nothing is kept because the elements between are missing).
#include <algorithm>

#include "data/dataset/dataset.h"
#include "data/dataset/stage.h"
#include "data/stage/cache_store.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {

constexpr std::int64_t kRowsAtOnce = 4096;

class CacheStage final : public StageOver {
 public:
  CacheStage(StagePtr input, std::unique_ptr<CacheStore> store)
      : StageOver(std::move(input)), store_(std::move(store)) {}

  Block next(std::int64_t most) override {
    Block block = passing_                  ? input_->next(most)
                  : place_ < store_->size() ? store_->read(place_, most)
                                            : keep(most);
    place_ += block.size();
    return block;
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = passing_ ? input_->skip(count) : 0;
    while (!passing_ && gone < count) {
      const std::int64_t kept = store_->size() - place_ - gone;
      const std::int64_t passed = kept > 0 ? std::min(kept, count - gone)
                                           : keep(std::min(count - gone, kRowsAtOnce)).size();
      if (passed == 0) break;
      gone += passed;
    }
    place_ += gone;
    return gone;
  }

  void restart(std::uint64_t) override {
    place_ = 0;
    if (passing_) elsewhere_ = true;
    passing_ = false;
  }

  void save(StateWriter& out) const override {
    out.number(static_cast<std::uint64_t>(place_));
    const bool at_end = place_ == store_->size() && !after_last_.empty();
    out.number(passing_ || at_end ? 1 : 0);
    if (!passing_ && !at_end) return;
    StateWriter below;
    if (passing_) input_->save(below);
    out.blob(passing_ ? below.bytes() : after_last_);
  }

  void load(StateReader& in) override {
    const std::int64_t place = in.number_up_to(kCountMax, "the place in the cache");
    const bool below_is_known = in.number_up_to(1, "a flag") == 1;
    const std::span<const std::byte> below =
        below_is_known ? in.blob() : std::span<const std::byte>();
    if (place > store_->size() && below_is_known && !store_->complete()) {
      load_below(below);
      passing_ = true;
      place_ = place;
    } else if (skip(place) != place) {
      throw InvalidArgumentError(str("the iterator state is of other data: it stands at element ",
                                     place, " of a cache of ", store_->size()));
    }
  }

 private:
  // Reads on, and keeps what it read. If anything throws, elsewhere_ stays set: the stages below
  // may have moved, and the next call puts them back behind the last element that is kept.
  Block keep(std::int64_t most) {
    if (store_->complete()) return {};
    if (elsewhere_) load_below(after_last_);
    elsewhere_ = true;  // unless all goes well
    Block block = input_->next(most);
    if (block.empty()) {
      store_->finish();
    } else {
      store_->append(block);
    }
    StateWriter after;
    input_->save(after);
    after_last_ = after.take();
    elsewhere_ = false;
    return block;
  }
  void load_below(std::span<const std::byte> state) {
    input_->restart(0);
    if (state.empty()) return;
    StateReader below(state);
    input_->load(below);
    below.expect_end();
  }

  std::unique_ptr<CacheStore> store_;
  std::int64_t place_ = 0;
  bool passing_ = false;  // beyond what is kept: the stages below are at our place
  // the stages below are not behind the last element that is kept
  bool elsewhere_ = true;
  std::vector<std::byte> after_last_;  // their state there; empty: at the beginning, or never read
};

}  // namespace

StagePtr make_cache_stage(StagePtr input, const StageSpec& spec) {
  const auto& cache = std::get<CacheSpec>(spec.kind);
  auto layout = std::make_shared<BlockLayout>(spec.element);
  auto store = cache.file.empty()
                   ? make_memory_cache(cache, std::move(layout))
                   : make_file_cache(cache, std::move(layout), fingerprint(Dataset(spec.input)));
  return std::make_unique<CacheStage>(std::move(input), std::move(store));
}

}  // namespace cairn
