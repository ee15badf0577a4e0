// WithinBatch: a stage that takes the batches below apart, and hands out some of their rows at a
// time. An iterator that is resumed within a batch reads that one again, so the state is the one
// before it, and how many of its rows were handed out.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "data/dataset/stage.h"

namespace cairn {

class WithinBatch : public StageOver {
 public:
  void restart(std::uint64_t epoch) override;
  void save(StateWriter& out) const override;
  void load(StateReader& in) override;

 protected:
  // `call` ("unbatch()") and `rows` are their names in messages.
  WithinBatch(StagePtr input, const char* call, const char* rows)
      : StageOver(std::move(input)), call_(call), rows_(rows) {}

  // Holds `batch` from now on; returns how many rows it has.
  virtual std::int64_t hold(Element batch) = 0;
  virtual void drop() = 0;

  // The rows of the batch at hand, and how many of them were handed out.
  std::int64_t size() const { return size_; }
  std::int64_t used() const { return used_; }
  void use_up_to(std::int64_t row) { used_ = row; }
  // Goes to the next batch with rows, if all of this one were handed out; false: there is none.
  bool find_rows() { return used_ < size_ || read(); }

 private:
  std::vector<std::byte> state_below() const;
  bool read();
  void forget();

  const char* call_;
  const char* rows_;
  std::int64_t size_ = 0, used_ = 0;
  std::vector<std::byte> before_;  // the state below before the batch was read
};

}  // namespace cairn
