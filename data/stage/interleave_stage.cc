// interleave(): several files at once, a block of elements of each in turn. Each file has stages of
// its own below, opened when its turn comes and dropped at its end, so that no more than
// cycle_length files are open.
//
// The order depends on the files' lengths alone, and not on how many elements a caller asks for at
// once: in_block_ counts through calls.
#include <algorithm>
#include <utility>

#include "data/dataset/stage.h"

namespace cairn {
namespace {

// A file that is being read, in its place of the cycle. A place whose file has ended gets the next
// one when its turn comes again.
struct Place {
  std::size_t file = 0;
  StagePtr stage;  // none: no file
};

class InterleaveStage final : public Stage {
 public:
  InterleaveStage(std::size_t files, const InterleaveSpec& spec, OpenFile open)
      : files_(files),
        block_(spec.block_length),
        open_(std::move(open)),
        places_(static_cast<std::size_t>(spec.cycle_length)) {}

  Block next(std::int64_t most) override {
    while (Place* place = current()) {
      Block block = place->stage->next(std::min(most, block_ - in_block_));
      if (!block.empty()) {
        pass(block.size());
        return block;
      }
      close(*place);
    }
    return {};
  }

  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count) {
      Place* place = current();
      if (place == nullptr) break;
      const std::int64_t step = std::min(count - gone, block_ - in_block_);
      const std::int64_t passed = place->stage->skip(step);
      gone += passed;
      pass(passed);
      if (passed < step) close(*place);
    }
    return gone;
  }

  void restart(std::uint64_t epoch) override {
    epoch_ = epoch;
    for (Place& place : places_) place = {};
    next_file_ = turn_ = 0;
    in_block_ = closed_skipped_ = 0;
  }

  // The state of every open file. Files before next_file_ that are not open have ended.
  void save(StateWriter& out) const override {
    out.number(next_file_);
    out.number(turn_);
    out.number(static_cast<std::uint64_t>(in_block_));
    out.number(static_cast<std::uint64_t>(closed_skipped_));
    for (const Place& place : places_) {
      out.number(place.stage ? place.file + 1 : 0);
      if (!place.stage) continue;
      StateWriter below;
      place.stage->save(below);
      out.blob(below.bytes());
    }
  }

  void load(StateReader& in) override {
    const auto files = static_cast<std::int64_t>(files_);
    next_file_ = static_cast<std::size_t>(in.number_up_to(files, "the next file"));
    turn_ = static_cast<std::size_t>(
        in.number_up_to(static_cast<std::int64_t>(places_.size()) - 1, "the place in the cycle"));
    in_block_ = in.number_up_to(block_ - 1, "the place in the block");
    closed_skipped_ = in.number_up_to(kCountMax, "the number of lines left out");
    for (Place& place : places_) {
      const std::int64_t file = in.number_up_to(files, "the file of a place");
      if (file == 0) continue;
      open_at(place, static_cast<std::size_t>(file - 1));
      StateReader below(in.blob());
      place.stage->load(below);
      below.expect_end();
    }
  }

  // Lines left out in files that are open, and in those that have ended: a closed file's stages are
  // gone, so their count is kept.
  std::int64_t skipped() const override {
    std::int64_t sum = closed_skipped_;
    for (const Place& place : places_)
      if (place.stage) sum += place.stage->skipped();
    return sum;
  }

 private:
  // The place whose turn it is; nullptr: no file is left.
  Place* current() {
    for (std::size_t tried = 0; tried < places_.size(); ++tried) {
      Place& place = places_[turn_];
      if (!place.stage && next_file_ < files_) open_at(place, next_file_++);
      if (place.stage) return &place;
      next_turn();
    }
    return nullptr;
  }
  void open_at(Place& place, std::size_t file) {
    place = {file, open_(file)};
    place.stage->restart(epoch_);
  }
  void close(Place& place) {
    closed_skipped_ += place.stage->skipped();
    place = {};
    next_turn();
  }
  void pass(std::int64_t elements) {
    in_block_ += elements;
    if (in_block_ == block_) next_turn();
  }
  void next_turn() {
    turn_ = (turn_ + 1) % places_.size();
    in_block_ = 0;
  }

  std::size_t files_;
  std::int64_t block_;
  OpenFile open_;
  std::vector<Place> places_;
  std::uint64_t epoch_ = 0;
  std::size_t next_file_ = 0, turn_ = 0;
  std::int64_t in_block_ = 0;        // elements of this turn so far
  std::int64_t closed_skipped_ = 0;  // lines left out of files that have ended
};

}  // namespace

StagePtr make_interleave_stage(std::size_t files, const InterleaveSpec& spec, OpenFile open) {
  return std::make_unique<InterleaveStage>(files, spec, std::move(open));
}

}  // namespace cairn
