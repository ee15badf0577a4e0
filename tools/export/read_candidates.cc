#include "tools/export/read_candidates.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/export/candidate_columns.h"

namespace cairn::tools {
namespace {

constexpr std::string_view kQueryPrefix = "query/";
// Arrays that are no columns; where the model has a column "step" or "ids", it is both.
constexpr std::string_view kOwnNames[] = {"text", "text_ends"};

class NpzArrays {
 public:
  explicit NpzArrays(const std::string& path)
      : path_(path), listing_(ckpt::list_npz(*ckpt::open_bytes(path), path)) {}

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& array : listing_.arrays) all.push_back(array.info.name);
    return all;
  }
  bool has(const std::string& name) const {
    return std::ranges::any_of(listing_.arrays,
                               [&](const auto& array) { return array.info.name == name; });
  }
  //   Errors  InvalidArgument: it is not there.
  Tensor read(const std::string& name) const {
    for (const ckpt::StoredArray& array : listing_.arrays) {
      if (array.info.name != name) continue;
      Tensor made(array.info.dtype, Shape(array.info.shape));
      ckpt::ArrayCursor(array).read(made.mutable_raw(), array.info.bytes());
      return made;
    }
    refuse(str("it has no array \"", name, "\""));
  }
  // InvalidArgument, too: it is of another type or rank.
  Tensor read(const std::string& name, DType dtype, int rank) const {
    Tensor made = read(name);
    if (made.dtype() != dtype || made.shape().rank() != rank)
      refuse(str("its array \"", name, "\" is no ", dtype_name(dtype), " of rank ", rank));
    return made;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(
        str(path_, " has no candidates as docs/serving.md describes them: ", why));
  }

 private:
  std::string path_;
  ckpt::ArrayListing listing_;
};

Tensor texts_of(const NpzArrays& arrays) {
  const Tensor bytes = arrays.read("text", DType::kUint8, 1);
  const Tensor ends = arrays.read("text_ends", DType::kInt64, 1);
  const std::string_view all(reinterpret_cast<const char*>(bytes.raw()), bytes.bytes());
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const std::int64_t end : ends.values<std::int64_t>()) {
    if (end < static_cast<std::int64_t>(begin) || end > static_cast<std::int64_t>(all.size()))
      arrays.refuse(
          str("\"text_ends\" has ", end, " where ", begin, " to ", all.size(), " is possible"));
    texts.emplace_back(all.substr(begin, static_cast<std::size_t>(end) - begin));
    begin = static_cast<std::size_t>(end);
  }
  return Tensor::strings(ends.shape(), std::move(texts));
}

serving::CandidateData in_npz(const std::string& path) {
  const NpzArrays arrays(path);
  serving::CandidateData made{
      .ids = arrays.has("text_ends") ? texts_of(arrays) : arrays.read("ids", DType::kInt64, 1)};
  if (arrays.has("vectors")) made.vectors = arrays.read("vectors", DType::kFloat32, 2);
  if (made.vectors.defined() && arrays.has("step")) {
    const Tensor step = arrays.read("step", DType::kInt64, 1);
    if (step.elements() != 1) arrays.refuse("its array \"step\" is no single number");
    made.step = step.values<std::int64_t>()[0];
  }
  for (const std::string& name : arrays.names()) {
    if (name.starts_with(kQueryPrefix))
      made.queries[name.substr(kQueryPrefix.size())] = arrays.read(name);
    else if (!made.vectors.defined() && std::ranges::count(kOwnNames, name) == 0)
      made.columns[name] = arrays.read(name);
  }
  return made;
}

}  // namespace

serving::CandidateData read_candidates(const SavedModel& about, const std::string& file) {
  if (!system_disk().exists(file))
    throw NotFoundError(str("there is no file ", file, " to read candidates from"));
  return file.ends_with(".npz") ? in_npz(file) : candidates_in_rows(about, file);
}

}  // namespace cairn::tools
