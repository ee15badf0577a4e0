// CountedStage: the base of sources whose files say how many examples they hold, so that
// any example is found by multiplication: skipping and resuming read nothing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "data/dataset/stage.h"

namespace cairn {

class CountedStage : public Stage {
 public:
  std::int64_t skip(std::int64_t count) override {
    std::int64_t gone = 0;
    while (gone < count && !at_end()) {
      const std::int64_t here = std::min(count - gone, rows_left());
      gone += here;
      pass(here);
      if (rows_left() == 0) next_file();
    }
    return gone;
  }
  void restart(std::uint64_t) override {
    leave_file();
    file_ = 0;
    row_ = 0;
  }
  void save(StateWriter& out) const override {
    out.number(file_);
    out.number(static_cast<std::uint64_t>(row_));
  }
  void load(StateReader& in) override {
    leave_file();
    file_ = static_cast<std::size_t>(
        in.number_up_to(static_cast<std::int64_t>(rows_of_.size()), "the number of the file"));
    row_ = in.number_up_to(at_end() ? 0 : rows_of_[file_], row_name_);
  }

 protected:
  // `rows_of`: the number of rows in each file. `row_name`: a row's name in errors, "the record".
  CountedStage(std::vector<std::int64_t> rows_of, const char* row_name)
      : rows_of_(std::move(rows_of)), row_name_(row_name) {}

  // Called before it goes to another file, or back to the first.
  virtual void leave_file() = 0;

  // Goes to the next row, in a later file if this one has none left; false: there is none.
  bool find_row() {
    while (!at_end() && rows_left() == 0) next_file();
    return !at_end();
  }
  void pass(std::int64_t rows) { row_ += rows; }
  std::int64_t rows_left() const { return rows_of_[file_] - row_; }
  std::size_t files() const { return rows_of_.size(); }
  std::size_t file() const { return file_; }
  std::int64_t row() const { return row_; }

 private:
  bool at_end() const { return file_ == rows_of_.size(); }
  void next_file() {
    leave_file();
    ++file_;
    row_ = 0;
  }

  std::vector<std::int64_t> rows_of_;
  const char* row_name_;
  std::size_t file_ = 0;
  std::int64_t row_ = 0;
};

}  // namespace cairn
