#include "serving/server/version_candidates.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/look_up.h"
#include "serving/api/json_text.h"
#include "serving/model/served_model.h"
#include "serving/server/column_rows.h"
#include "serving/server/version_codecs.h"

namespace cairn::serving {
namespace {

constexpr const char *kQuery = "query", *kCandidate = "candidate";
constexpr std::int64_t kRowsAtOnce = 1024;

std::shared_ptr<const ServedModel> part(const ServedModel& version, const char* output) {
  const auto& outputs = version.about().outputs;
  if (std::ranges::find(outputs, output, &ColumnSpec::name) == outputs.end())
    throw FailedPreconditionError(str("the model has no output \"", output, "\", and candidates ",
                                      "are for a retrieval model, which has \"", kQuery,
                                      "\" and \"", kCandidate, "\": serve it without them"));
  return version.part({output});
}

// The vectors that a part of a model, which has one output, gives for all rows.
Tensor vectors_of(const ServedModel& model, const ColumnRows& rows) {
  Tensor all;
  std::int64_t width = 0;
  for (std::int64_t begin = 0; begin < rows.rows(); begin += kRowsAtOnce) {
    look_up();
    const std::int64_t end = std::min(rows.rows(), begin + kRowsAtOnce);
    const Tensor some = model.predict(rows.between(begin, end), 0).at(0);
    if (some.dtype() != DType::kFloat32 || some.shape().rank() != 2 ||
        some.shape()[0] != end - begin)
      throw FailedPreconditionError(str("the output \"", model.about().outputs[0].name, "\" is ",
                                        some.type().to_string(), " for ", end - begin,
                                        " examples, and a vector of floats for each is wanted"));
    if (begin == 0) {
      width = some.shape()[1];
      all = Tensor(DType::kFloat32, {rows.rows(), width});
    }
    std::memcpy(all.mutable_raw() + static_cast<std::size_t>(begin * width) * sizeof(float),
                some.raw(), some.bytes());
  }
  return all;
}

// Vectors of another version would be compared with queries that they were not trained with.
Tensor verified_vectors(const ServedModel& version, const CandidateData& data) {
  const std::int64_t step = version.about().global_step;
  if (!data.step)
    throw FailedPreconditionError(str("the candidates' vectors do not say of which training step ",
                                      "they are (\"step\"), and the version is of step ", step,
                                      ": give the candidates' columns, or export them again"));
  if (*data.step != step)
    throw FailedPreconditionError(
        str("the candidates' vectors are of the training step ", *data.step,
            ", and the version is of step ", step,
            ": give the candidates' columns, from which each version computes its own vectors"));
  return data.vectors;
}

}  // namespace

VersionCandidates make_candidates(const std::string& name, const ServedModel& version,
                                  CandidateData data, const CandidateIndexOptions& index,
                                  int threads) {
  VersionCandidates made;
  made.queries = part(version, kQuery);
  made.codecs = std::make_shared<VersionCodecs>(name, made.queries, threads);
  CandidateSet set{.ids = std::move(data.ids)};
  if (data.vectors.defined()) {
    set.vectors = verified_vectors(version, data);
  } else {
    const auto candidate = part(version, kCandidate);
    set.vectors =
        vectors_of(*candidate, ColumnRows(candidate->about().input, data.columns, kCandidate));
  }
  if (!data.queries.empty())
    set.queries =
        vectors_of(*made.queries, ColumnRows(made.queries->about().input, data.queries, kQuery));
  const Shape& query = made.queries->about().outputs[0].type.shape;
  if (query.rank() != 2 || !set.vectors.defined() || set.vectors.shape().rank() != 2 ||
      (query[1] != Shape::kUnknown && query[1] != set.vectors.shape()[1]))
    throw InvalidArgumentError(
        str("the model's queries are ", made.queries->about().outputs[0].type.to_string(),
            ", and the candidates' vectors ",
            set.vectors.defined() ? set.vectors.type().to_string() : std::string("none"),
            ": both have the same width"));
  made.index = std::make_shared<const CandidateIndex>(std::move(set), index);
  return made;
}

std::string candidates_file(const ModelToServe& what, const VersionPlace& place) {
  if (!what.candidates.empty()) return what.candidates;
  for (const std::string& folder : {place.model, what.path})
    if (std::string file = str(folder, '/', kCandidatesFile); !identity_of(file).empty())
      return file;
  return "";
}

std::shared_ptr<const VersionCandidates> candidates_at(const ModelToServe& what,
                                                       const VersionPlace& place,
                                                       const ServedModel& version,
                                                       const DirectoryOptions& options) {
  const std::string file = options.read_candidates ? candidates_file(what, place) : "";
  if (file.empty()) return nullptr;
  try {
    auto made = std::make_shared<const VersionCandidates>(
        make_candidates(what.name, version, options.read_candidates(version.about(), file),
                        options.index, options.threads + 1));
    log_info("model ", what.name, ": version ", place.version, " has ", made->index->size(),
             " candidates from ", file, "; recall@10 of their index is ",
             fixed(made->index->recall(), 3));
    return made;
  } catch (...) {
    const ErrorParts why = error_parts(std::current_exception());
    throw_error(why.code, str("the candidates in ", file, ": ", why.message));
  }
}

void verify_following(const VersionCandidates* serving, const VersionCandidates* next) {
  if (serving == nullptr) return;
  if (next == nullptr)
    throw FailedPreconditionError(str("the version that serves recommends candidates, and this ",
                                      "one has no file ", kCandidatesFile, ": put one beside it"));
  const auto columns = [](const VersionCandidates& of) {
    std::string all;
    for (const ColumnSpec& column : of.queries->about().input.columns)
      all += str(all.empty() ? "" : ", ", '"', column.name, "\" ", column.type.to_string());
    return all;
  };
  if (const std::string was = columns(*serving), is = columns(*next); was != is)
    throw InvalidArgumentError(str("it has another signature than the version that serves: its ",
                                   "queries are computed from ", is, ", and those of that one ",
                                   "from ", was, "; serve it under another name, or start the ",
                                   "server anew"));
}

std::string candidates_text(const CandidateIndex& index, const std::string& prefix) {
  std::string out =
      str("{\"", prefix, "count\": ", index.size(), ", \"", prefix, "width\": ", index.width(),
          ", \"", prefix, "index\": \"", index.kind() == IndexKind::kExact ? "exact" : "hnsw",
          "\", \"", prefix, "recall_at_10\": ");
  const Tensor recall = Tensor::of<double>({1}, std::vector<double>{index.recall()});
  ElementWriter(recall).append(out, 0, 1);
  return out += '}';
}

}  // namespace cairn::serving
