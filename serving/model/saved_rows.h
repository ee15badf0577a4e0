// The rows of a saved model's weights, as a stream for each variable.
//   Thread  one; calls block on the disk.
//   Cost    a few blocks of rows in memory, whatever the size of the variables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/variable.h"
#include "storage/manifest.h"
#include "storage/row_store.h"

namespace cairn::serving {

class SavedRowsReader {
 public:
  // Opens the checkpoint in `folder`.
  //   Errors  NotFound, DataLoss, Unimplemented: storage's; they name the file.
  explicit SavedRowsReader(std::string folder);

  std::uint64_t seed() const { return manifest_.seed; }  // of initial values
  std::int64_t global_step() const { return manifest_.global_step; }
  // Hands over the rows that the checkpoint has of a variable, ascending, without their slots.
  //   Errors  DataLoss: it has none of that name, or of another type; or a block is damaged.
  using Take = std::function<void(std::int64_t row, const std::byte* values)>;
  void read(const VariableSpec& variable, const Take& take) const;

  // The manifest's entry of a variable.   Errors  DataLoss as read().
  const storage::VariableInfo& find(const VariableSpec& variable) const;
  const std::string& folder() const { return folder_; }
  const storage::Manifest& manifest() const { return manifest_; }
  // In the order of the manifest. They belong to this.
  std::vector<storage::DatabaseReader*> readers() const;

 private:
  std::string folder_;
  storage::Manifest manifest_;
  std::vector<std::unique_ptr<storage::DatabaseReader>> databases_;
};

}  // namespace cairn::serving
