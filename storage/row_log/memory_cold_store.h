// MemoryColdStore: a ColdStore whose answers come when its owner says so, in an order of its own.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "storage/row_log/cold_store.h"

namespace cairn::storage {

// How a store behaves that is to find faults in those who use it.
struct MemoryColdStoreOptions {
  std::size_t row_bytes = 0;
  // Runs this later, from outside the call; any two in any order.
  std::function<void(std::function<void()>)> later;
  std::size_t room = 1 << 20;  // rows a call
  // A row that is live is moved for every so many that are released; 0: never.
  std::size_t moves_after = 0;
};

class MemoryColdStore final : public ColdStore {
 public:
  MemoryColdStore(MemoryColdStoreOptions options, Moved moved);
  std::size_t room() const override { return options_.room; }
  void append(std::span<const std::uint64_t> keys, std::span<const std::byte> rows,
              std::span<Place> places) override;
  void release(std::span<const Place> places) override;
  void read(std::span<const Place> places, RowsDone done) override;
  std::unique_ptr<ColdCut> freeze() override;
  std::unique_ptr<ColdCut> freeze(std::vector<Place> places) override;
  std::vector<Place> live_places(Place first, std::size_t most) const override;
  ColdUse use() const override;

 private:
  struct Record {
    std::uint64_t key;
    std::vector<std::byte> row;
  };
  class Cut;
  void move_one();

  MemoryColdStoreOptions options_;
  Moved moved_;
  // Shared with cuts, which see a record that was released as long as they hold it.
  std::map<Place, std::shared_ptr<const Record>> records_;
  Place next_ = 0;
  std::size_t released_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace cairn::storage
