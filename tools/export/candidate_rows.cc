#include "tools/export/candidate_rows.h"

#include <algorithm>

#include "core/base/error.h"
#include "data/dataset/dataset_iterator.h"
#include "tools/export/seen_candidates.h"
#include "tools/job/model/job_of_model.h"

namespace cairn::tools {
namespace {

CandidateName name_of(const Tensor& column, std::size_t row) {
  if (column.dtype() == DType::kString) return {0, &column.string_values()[row]};
  return {column.values<std::int64_t>()[row]};
}

std::span<const float> row_of(const Tensor& vectors, std::int64_t row) {
  const auto width = static_cast<std::size_t>(vectors.shape()[1]);
  return vectors.values<float>().subspan(static_cast<std::size_t>(row) * width, width);
}

}  // namespace

CandidateRows::CandidateRows(const CandidateFiles& files)
    : batch_(files.batch),
      model_(LoadedModel::load(files.model, files.device)),
      job_(job_of_model(model_.about(), files.files, files.skip_bad_rows)) {
  if (job_.model.objective != "retrieval")
    throw FailedPreconditionError(str("the model in ", files.model, " is no retrieval model (",
                                      "model.objective is \"", job_.model.objective,
                                      "\"), so that it has no candidates"));
  candidate_ = output("candidate");
  width_ = model_.about().outputs[candidate_].type.shape[1];
  name_ = rows().element_spec().find(job_.data.candidate);
}

// The outputs may have been replaced since (model/saved/replace_outputs.h).
std::size_t CandidateRows::output(const char* name) const {
  const auto& outputs = model_.about().outputs;
  const auto found = std::ranges::find(outputs, name, &ColumnSpec::name);
  if (found == outputs.end())
    throw FailedPreconditionError(str("the model in ", model_.about().folder,
                                      " is no retrieval model: it has no output \"", name, "\""));
  return static_cast<std::size_t>(found - outputs.begin());
}

// The files as they are: no feature keeps a text.
Dataset CandidateRows::rows() const { return raw_examples(job_).batch(batch_); }

CandidateRows::Count CandidateRows::count() const {
  SeenCandidates seen;
  Count count;
  const auto elements = open(rows());
  while (const auto batch = elements->next()) {
    const Tensor column = candidate_names((*batch)[name_]);
    count.is_text = column.dtype() == DType::kString;
    count.rows += column.elements();
    for (std::int64_t i = 0; i < column.elements(); ++i)
      seen.add(column, static_cast<std::size_t>(i));
  }
  count.candidates = seen.count();
  count.text_bytes = seen.text_bytes();
  if (count.rows == 0) throw InvalidArgumentError("the files have no example");
  return count;
}

// Names and features are read side by side: both are of the same rows.
void CandidateRows::each(const TakeCandidate& candidate) {
  const Dataset prepared = labelled_examples(job_, model_.about()).batch(batch_);
  const ElementSpec spec = prepared.element_spec();
  const auto features = open(prepared), names_read = open(rows());
  SeenCandidates seen;
  while (const auto batch = features->next()) {
    const auto names_batch = names_read->next();
    CAIRN_CHECK(names_batch.has_value(), "the files have fewer rows the second time");
    Element taken;
    for (const ColumnSpec& wanted : model_.about().input.columns)
      taken.push_back((*batch)[spec.find(wanted.name)]);
    const std::vector<Tensor> outputs = model_.predict(taken);
    const Tensor column = candidate_names((*names_batch)[name_]);
    for (std::int64_t i = 0; i < column.elements(); ++i) {
      const auto row = static_cast<std::size_t>(i);
      if (seen.add(column, row)) candidate(name_of(column, row), row_of(outputs[candidate_], i));
    }
  }
}

}  // namespace cairn::tools
