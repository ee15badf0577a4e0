// Helpers for the readers and writers of a description: lists and texts are bounded before they are
// copied.
#pragma once
#include <capnp/list.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "data/dataset/schema.h"
#include "data/feature/dataset_bounds.h"
#include "data/feature/id_range.h"
#include "data/pipeline.capnp.h"

namespace cairn {

// The stage that a source of files writes itself to, and is read from (data/dataset/file_source.h).
struct StageWriter {
  pipeline::Stage::Builder stage;
};
struct StageReader {
  pipeline::Stage::Reader stage;
};

template <typename List>
void write_texts(List out, const std::vector<std::string>& texts) {
  for (unsigned i = 0; i < texts.size(); ++i) out.set(i, texts[i]);
}

// Bounded, because a text is copied.
inline std::string read_text(capnp::Text::Reader in) {
  constexpr std::size_t kTextBytesMax = 1u << 20;
  if (in.size() > kTextBytesMax)
    throw InvalidArgumentError(str("a text of ", in.size(), " bytes in a dataset, at most ",
                                   kTextBytesMax, " are possible"));
  return std::string(in.cStr(), in.size());
}
inline std::vector<std::string> read_texts(capnp::List<capnp::Text>::Reader in,
                                           std::size_t most = kDatasetColumnsMax) {
  if (in.size() > most)
    throw InvalidArgumentError(
        str("a list of ", in.size(), " texts in a dataset, at most ", most, " are possible"));
  std::vector<std::string> texts;
  for (auto text : in) texts.push_back(read_text(text));
  return texts;
}

template <typename List>
void check_size(const List& list, const char* what) {
  if (list.size() > kDatasetColumnsMax)
    throw InvalidArgumentError(str("a dataset with ", list.size(), " ", what, ", at most ",
                                   kDatasetColumnsMax, " are possible"));
}

inline DType read_dtype(std::uint8_t number) {
  if (number >= kDTypeCount)
    throw InvalidArgumentError(
        str("a dataset names dtype ", int{number}, ", which this program does not know"));
  return static_cast<DType>(number);
}

// A number beyond the last enumerator comes from a newer program; guessing its meaning would train
// on other data.
template <typename Enum>
Enum read_enum(std::uint8_t number, Enum last, const char* what) {
  if (number > static_cast<std::uint8_t>(last))
    throw InvalidArgumentError(
        str("a dataset names ", what, " ", int{number}, ", which this program does not know"));
  return static_cast<Enum>(number);
}

// The files of a source, and what happens to bad ones: of every format's struct.
template <typename Builder, typename Source>
void write_files(Builder out, const Source& source) {
  write_texts(out.initPaths(static_cast<unsigned>(source.paths.size())), source.paths);
  out.setOnError(static_cast<std::uint8_t>(source.options.on_error));
  out.setEmptyFiles(static_cast<std::uint8_t>(source.options.empty_files));
}
template <typename Reader>
std::vector<std::string> read_paths(Reader in) {
  return read_texts(in.getPaths(), kPathsMax);
}
template <typename Reader>
OnError read_on_error(Reader in) {
  return read_enum(in.getOnError(), OnError::kSkipAndCount, "an error policy");
}
template <typename Reader>
EmptyFiles read_empty_files(Reader in) {
  return read_enum(in.getEmptyFiles(), EmptyFiles::kSkip, "a policy for empty files");
}

template <typename List>
Shape read_shape(List in) {
  check_size(in, "dimensions");
  std::vector<std::int64_t> dims;
  for (const std::int64_t dim : in) dims.push_back(dim);
  return Shape(std::move(dims));
}
template <typename List>
void write_shape(List out, const Shape& shape) {
  for (unsigned i = 0; i < out.size(); ++i) out.set(i, shape[static_cast<int>(i)]);
}

// `out` is of what may have bounds of ids; it stays as it is where there are none.
template <typename Builder>
void write_ids(Builder out, const IdRange& ids) {
  if (ids.any()) return;
  auto made = out.initIds();
  auto rows = made.initRows(static_cast<unsigned>(ids.rows.size()));
  for (unsigned i = 0; i < rows.size(); ++i) rows.set(i, ids.rows[i]);
  made.setHasPadding(ids.padding.has_value());
  made.setPadding(ids.padding.value_or(0));
}
template <typename Reader>
IdRange read_ids(Reader in) {
  IdRange ids;
  check_size(in.getRows(), "bounds of ids");
  for (const std::int64_t rows : in.getRows()) ids.rows.push_back(rows);
  if (in.getHasPadding()) ids.padding = in.getPadding();
  return ids;
}

}  // namespace cairn
