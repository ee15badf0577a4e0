// The rows of a saved model's variables, as its weights hold them.
//   Thread  one; calls block on the disk.
//   Cost    a few megabytes, whatever the size of the variables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/saved/saved_model.h"
#include "tools/ckpt/opened_checkpoint.h"

namespace cairn::tools {

class ModelRows {
 public:
  explicit ModelRows(const SavedModel& model);

  using Take = std::function<void(std::span<const std::byte>)>;
  // Hands over the bytes of all rows of a dense variable, in order, in pieces. Rows that the
  // weights lack have their initial values.
  void dense(const VariableSpec& variable, const Take& take) const;
  // Hands over the ids of the rows that the weights have of a variable, ascending, with the rows.
  using TakeSome = std::function<void(std::span<const std::int64_t>, std::span<const std::byte>)>;
  void held(const VariableSpec& variable, const TakeSome& take) const;

 private:
  ckpt::OpenedCheckpoint weights_;
};

}  // namespace cairn::tools
