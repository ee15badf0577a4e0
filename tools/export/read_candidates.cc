#include "tools/export/read_candidates.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kSample = 200;  // queries

// Vectors one after another into a matrix of known size.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t width)
      : made_(DType::kFloat32, {rows, width}), at_(made_.mutable_values<float>().begin()) {}
  void append(std::span<const float> row) { at_ = std::ranges::copy(row, at_).out; }
  const Tensor& made() const { return made_; }

 private:
  Tensor made_;
  std::span<float>::iterator at_;
};

serving::CandidateSet from_rows(const CandidateFiles& files) {
  CandidateRows rows(files);
  const CandidateRows::Count all = rows.count();
  const std::int64_t sample = std::min(all.rows, kSample);
  Matrix vectors(all.candidates, rows.width()), queries(sample, rows.width());
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  std::int64_t row = 0, taken = 0;
  rows.each(
      [&](const CandidateName& name, std::span<const float> vector) {
        if (name.text != nullptr)
          texts.push_back(*name.text);
        else
          numbers.push_back(name.number);
        vectors.append(vector);
      },
      [&](std::span<const float> query) {
        if (taken < sample && row++ == taken * all.rows / sample) {
          queries.append(query);
          ++taken;
        }
      });
  const Shape size{all.candidates};
  return {.ids = all.is_text ? Tensor::strings(size, std::move(texts))
                             : Tensor::of<std::int64_t>(size, numbers),
          .vectors = vectors.made(),
          .queries = queries.made()};
}

// ---- npz ----

class NpzArrays {
 public:
  explicit NpzArrays(const std::string& path)
      : path_(path), listing_(ckpt::list_npz(*ckpt::open_bytes(path), path)) {}

  bool has(const std::string& name) const {
    return std::ranges::any_of(listing_.arrays,
                               [&](const auto& array) { return array.info.name == name; });
  }
  //   Errors  InvalidArgument: it is not there, or of another type or rank.
  Tensor read(const std::string& name, DType dtype, std::size_t rank) const {
    for (const ckpt::StoredArray& array : listing_.arrays) {
      if (array.info.name != name) continue;
      if (array.info.dtype != dtype || array.info.shape.size() != rank)
        refuse(str("its array \"", name, "\" is no ", dtype_name(dtype), " of rank ", rank));
      Tensor made(dtype, Shape(array.info.shape));
      ckpt::ArrayCursor(array).read(made.mutable_raw(), array.info.bytes());
      return made;
    }
    refuse(str("it has no array \"", name, "\""));
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidArgumentError(str(path_, " has no candidates as `cairn model candidates` writes ",
                                   "them to an .npz: ", why));
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

serving::CandidateSet from_npz(const std::string& path) {
  const NpzArrays arrays(path);
  return {.ids = arrays.has("text_ends") ? texts_of(arrays) : arrays.read("ids", DType::kInt64, 1),
          .vectors = arrays.read("vectors", DType::kFloat32, 2)};
}

}  // namespace

serving::CandidateSet read_candidates(const CandidateFiles& files) {
  return files.files.size() == 1 && files.files.front().ends_with(".npz")
             ? from_npz(files.files.front())
             : from_rows(files);
}

}  // namespace cairn::tools
