#include "tools/export/candidate_columns.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/look_up.h"
#include "data/dataset/dataset_iterator.h"
#include "tools/export/seen_candidates.h"
#include "tools/job/model/job_of_model.h"

namespace cairn::tools {
namespace {

constexpr std::int64_t kBatch = 4096;
constexpr std::size_t kSample = 1000;  // queries, or up to twice as many

Tensor rows_of(const Tensor& column, const std::vector<std::int64_t>& rows) {
  const Shape shape = column.shape().with_dim(0, std::ssize(rows));
  const auto width = static_cast<std::size_t>(shape.row_elements());
  if (column.dtype() == DType::kString) {
    std::vector<std::string> texts;
    for (const std::int64_t row : rows) {
      const auto from =
          column.string_values().subspan(static_cast<std::size_t>(row) * width, width);
      texts.insert(texts.end(), from.begin(), from.end());
    }
    return Tensor::strings(shape, std::move(texts));
  }
  const std::size_t bytes = width * dtype_bytes(column.dtype());
  Tensor made(column.dtype(), shape);
  std::byte* to = made.mutable_raw();
  for (const std::int64_t row : rows) {
    std::memcpy(to, column.raw() + static_cast<std::size_t>(row) * bytes, bytes);
    to += bytes;
  }
  return made;
}

// Rows of the columns that a model takes, chosen batch by batch.
class ChosenRows {
 public:
  explicit ChosenRows(const ElementSpec& input) : input_(input), parts_(input.columns.size()) {}

  void add(const Element& batch, const std::vector<std::int64_t>& rows) {
    if (rows.empty()) return;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t splits = place_of(input_.columns[i].name + "/row_splits");
      if (input_.columns[i].name.ends_with("/row_splits"))
        parts_[i].push_back(lengths(batch[i], rows));
      else if (splits == batch.size())
        parts_[i].push_back(rows_of(batch[i], rows));
      else
        parts_[i].push_back(rows_of(batch[i], values(batch[splits], rows)));
    }
  }
  std::map<std::string, Tensor> taken() const {
    std::map<std::string, Tensor> columns;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (!parts_[i].empty()) {
        const std::string& name = input_.columns[i].name;
        columns[name] = name.ends_with("/row_splits") ? splits(parts_[i]) : joined(parts_[i]);
      }
    return columns;
  }

 private:
  std::size_t place_of(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(input_.columns, name, &ColumnSpec::name) -
                                    input_.columns.begin());
  }
  static Tensor lengths(const Tensor& splits, const std::vector<std::int64_t>& rows) {
    const auto at = splits.values<std::int64_t>();
    Tensor made(DType::kInt64, {std::ssize(rows)});
    std::ranges::transform(rows, made.mutable_values<std::int64_t>().begin(), [&](auto row) {
      const auto i = static_cast<std::size_t>(row);
      return at[i + 1] - at[i];
    });
    return made;
  }
  static std::vector<std::int64_t> values(const Tensor& splits,
                                          const std::vector<std::int64_t>& rows) {
    const auto at = splits.values<std::int64_t>();
    std::vector<std::int64_t> all;
    for (const std::int64_t row : rows)
      for (std::int64_t i = at[static_cast<std::size_t>(row)];
           i < at[static_cast<std::size_t>(row) + 1]; ++i)
        all.push_back(i);
    return all;
  }
  static Tensor splits(const std::vector<Tensor>& lengths) {
    std::vector<std::int64_t> all{0};
    for (const Tensor& part : lengths)
      for (const std::int64_t length : part.values<std::int64_t>())
        all.push_back(all.back() + length);
    return Tensor::of<std::int64_t>({std::ssize(all)}, all);
  }
  static Tensor joined(const std::vector<Tensor>& parts) {
    std::int64_t rows = 0;
    for (const Tensor& part : parts) rows += part.shape()[0];
    const Shape shape = parts.front().shape().with_dim(0, rows);
    if (parts.front().dtype() == DType::kString) {
      std::vector<std::string> all;
      for (const Tensor& part : parts)
        all.insert(all.end(), part.string_values().begin(), part.string_values().end());
      return Tensor::strings(shape, std::move(all));
    }
    Tensor all(parts.front().dtype(), shape);
    std::byte* to = all.mutable_raw();
    for (const Tensor& part : parts) {
      if (part.bytes() > 0) std::memcpy(to, part.raw(), part.bytes());
      to += part.bytes();
    }
    return all;
  }

  const ElementSpec& input_;
  std::vector<std::vector<Tensor>> parts_;  // by column
};

// Which rows are in an even sample of rows whose number is not known beforehand: every stride-th,
// where the stride doubles once there are twice as many as wanted.
class EvenSample {
 public:
  void take(const Element& batch, std::int64_t rows, const ElementSpec& input) {
    for (std::int64_t i = 0; i < rows; ++i, ++row_) {
      if (row_ % stride_ != 0) continue;
      ChosenRows one(input);
      one.add(batch, {i});
      taken_.push_back(one.taken());
      if (taken_.size() < 2 * kSample) continue;
      for (std::size_t k = 0; k < kSample; ++k) taken_[k] = std::move(taken_[2 * k]);
      taken_.resize(kSample);
      stride_ *= 2;
    }
  }
  std::map<std::string, Tensor> columns(const ElementSpec& input) const {
    ChosenRows all(input);
    for (const auto& one : taken_) {
      Element row;
      for (const ColumnSpec& column : input.columns) row.push_back(one.at(column.name));
      all.add(row, {0});
    }
    return all.taken();
  }

 private:
  std::int64_t row_ = 0, stride_ = 1;
  std::vector<std::map<std::string, Tensor>> taken_;
};

Job verified_job(const SavedModel& about, const std::string& file) {
  Job job = job_of_model(about, {file}, false);
  if (job.model.objective != "retrieval")
    throw FailedPreconditionError(str("the model in ", about.folder, " is no retrieval model (",
                                      "model.objective is \"", job.model.objective,
                                      "\"), so that it has no candidates"));
  return job;
}

// The names of the candidates, in the order of their first rows.
class CandidateNames {
 public:
  void add(const Tensor& column, std::size_t row) {
    is_text_ = column.dtype() == DType::kString;
    if (is_text_)
      texts_.push_back(column.string_values()[row]);
    else
      numbers_.push_back(column.values<std::int64_t>()[row]);
  }
  Tensor made() {
    const Shape size{is_text_ ? std::ssize(texts_) : std::ssize(numbers_)};
    return is_text_ ? Tensor::strings(size, std::move(texts_))
                    : Tensor::of<std::int64_t>(size, numbers_);
  }

 private:
  bool is_text_ = false;
  std::vector<std::int64_t> numbers_;
  std::vector<std::string> texts_;
};

}  // namespace

// Names and features are read side by side: both are of the same rows.
serving::CandidateData candidates_in_rows(const SavedModel& about, const std::string& file) {
  const Job job = verified_job(about, file);
  const Dataset raw = raw_examples(job).batch(kBatch);
  const Dataset prepared = labelled_examples(job, about).batch(kBatch);
  const std::size_t name = raw.element_spec().find(job.data.candidate);
  const ElementSpec spec = prepared.element_spec();
  const auto features = open(prepared), names_read = open(raw);
  SeenCandidates seen;
  CandidateNames names;
  ChosenRows candidates(about.input);
  EvenSample sample;
  while (const auto batch = features->next()) {
    const auto names_batch = names_read->next();
    look_up();
    CAIRN_CHECK(names_batch.has_value(), "the names end before the features");
    Element taken;
    for (const ColumnSpec& wanted : about.input.columns)
      taken.push_back((*batch)[spec.find(wanted.name)]);
    const Tensor column = candidate_names((*names_batch)[name]);
    std::vector<std::int64_t> first;
    for (std::int64_t i = 0; i < column.elements(); ++i)
      if (seen.add(column, static_cast<std::size_t>(i))) {
        first.push_back(i);
        names.add(column, static_cast<std::size_t>(i));
      }
    candidates.add(taken, first);
    sample.take(taken, column.elements(), about.input);
  }
  if (seen.count() == 0) throw InvalidArgumentError("the file has no example");
  return {
      .ids = names.made(), .columns = candidates.taken(), .queries = sample.columns(about.input)};
}

}  // namespace cairn::tools
