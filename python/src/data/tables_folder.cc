#include "tables_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"
#include "data/feature/dataset_bounds.h"
#include "tables.h"

namespace cairn::python {
namespace {

// Left to whatever a description holds beside its tables, such as vocabularies.
constexpr std::int64_t kRoom = 1 << 20;
// In a dataset that is too large as a whole, tables below this travel all the same.
constexpr std::int64_t kSmall = 1 << 18;

std::string new_temporary_folder() {
  std::string path = (std::filesystem::temp_directory_path() / "cairn-tables-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    throw PermissionDeniedError(str("the folder ", path, " cannot be made: ", std::strerror(errno),
                                    "; name another one by tables_folder=\"...\""));
  return path;
}

// As a description has it: each text after a pointer, padded to words.
std::int64_t described_bytes(const Tensor& values) {
  auto bytes = static_cast<std::int64_t>(values.bytes());
  if (values.dtype() != DType::kString) return bytes;
  for (const std::string& text : values.string_values())
    bytes += static_cast<std::int64_t>(sizeof(std::int64_t) + (text.size() + 8) / 8 * 8);
  return bytes;
}

struct InMemory {
  std::int64_t bytes = 0;
  bool ragged = false;  // of columns that a description cannot hold, whatever their size
};
void count(const StageSpec* spec, InMemory& found) {
  if (spec == nullptr) return;
  if (const auto* tensors = std::get_if<TensorsSpec>(&spec->kind))
    for (const auto& [name, values] : tensors->columns) found.bytes += described_bytes(values);
  if (const auto* generator = std::get_if<GeneratorSpec>(&spec->kind))
    found.ragged |= columns_behind(generator->begin.get()) != nullptr;
  count(spec->input.get(), found);
  for (const auto& other : spec->others) count(other.get(), found);
}

}  // namespace

TablesFolder::~TablesFolder() {
  std::error_code ignored;  // whatever remains lies among temporary files, or in the run's folder
  if (made_) std::filesystem::remove_all(path_, ignored);
}

std::string TablesFolder::path() {
  const std::lock_guard hold(mutex_);
  if (ready_) return path_;
  if (path_.empty()) {
    path_ = new_temporary_folder();
    made_ = true;
  } else {
    path_ = std::filesystem::absolute(path_).string();
    made_ = ::mkdir(path_.c_str(), 0777) == 0;
    if (!made_ && errno != EEXIST) {
      const std::string text = str("the folder ", path_, " cannot be made: ", std::strerror(errno));
      if (errno == ENOENT) throw NotFoundError(text);
      throw PermissionDeniedError(text);
    }
  }
  ready_ = true;
  return path_;
}

Dataset travelling(const Dataset& dataset, const SharedOwner& owner) {
  if (owner == nullptr || owner->tables() == nullptr || !dataset.defined()) return dataset;
  const std::shared_ptr<TablesFolder> tables = owner->tables();
  const auto act = [&] {
    InMemory found;
    count(dataset.last().get(), found);
    const bool large = found.bytes > static_cast<std::int64_t>(kDatasetBytesMax) - kRoom;
    if (!large && !found.ragged) return dataset;
    return spilled(dataset, tables->path(), large ? kSmall : INT64_MAX);
  };
  return has_gil() ? released(act) : act();
}

}  // namespace cairn::python
