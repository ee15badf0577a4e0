#include "storage/row_log/row_log_store.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace cairn::storage {
namespace {

class RowLogCut final : public ColdCut {
 public:
  explicit RowLogCut(Cut cut) : cut_(std::move(cut)) {}
  std::uint64_t rows() const override { return cut_.rows(); }
  void next(std::size_t most, RowsDone done) override {
    cut_.read(cut_.next_places(most), {}, std::move(done));
  }

 private:
  Cut cut_;
};

class RowLogCutOfSome final : public ColdCut {
 public:
  RowLogCutOfSome(Cut cut, std::vector<Place> places)
      : cut_(std::move(cut)), places_(std::move(places)) {}
  std::uint64_t rows() const override { return places_.size(); }
  void next(std::size_t most, RowsDone done) override {
    const auto some = std::span(places_).subspan(next_, std::min(most, places_.size() - next_));
    next_ += some.size();
    cut_.read(some, {}, std::move(done));
  }

 private:
  Cut cut_;
  std::vector<Place> places_;
  std::size_t next_ = 0;
};

class RowLogStore final : public ColdStore {
 public:
  RowLogStore(IoQueue& io, const RowLogOptions& options, Moved moved)
      : log_(io, options, std::move(moved)) {}
  std::size_t room() const override { return log_.room(); }
  void append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
              std::span<Place> places) override {
    log_.append(keys, rows, places);
  }
  void release(std::span<const Place> places) override { log_.release(places); }
  void read(std::span<const Place> places, RowsDone done) override {
    log_.read(places, {}, std::move(done));
  }
  std::unique_ptr<ColdCut> freeze() override { return std::make_unique<RowLogCut>(log_.freeze()); }
  std::unique_ptr<ColdCut> freeze(std::vector<Place> places) override {
    return std::make_unique<RowLogCutOfSome>(log_.freeze(), std::move(places));
  }
  std::vector<Place> live_places(Place first, std::size_t most) const override {
    return log_.live_places(first, most);
  }
  ColdUse use() const override {
    const RowLogCounters now = log_.counters();
    return {now.live_rows, now.disk_bytes,
            now.unwritten_bytes + now.disk_bytes / log_.layout().width / 8};
  }

 private:
  RowLog log_;
};

}  // namespace

std::unique_ptr<ColdStore> make_row_log_store(IoQueue& io, const RowLogOptions& options,
                                              Moved moved) {
  return std::make_unique<RowLogStore>(io, options, std::move(moved));
}

}  // namespace cairn::storage
