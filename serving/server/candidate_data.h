// CandidateData: the candidates of a retrieval model as a file or a program has them, from which
// each version of the model makes its own index.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"
#include "model/saved/saved_model.h"

namespace cairn::serving {

struct CandidateData {
  Tensor ids;  // int64 or strings [n], distinct
  // The columns that the model's output "candidate" is computed from, by name: [n, ...], and of a
  // ragged column "NAME/row_splits" as well. Others are passed over. None: `vectors` are there.
  std::map<std::string, Tensor> columns = {};
  // float32 [n, d], which a version of the training step `step` has computed.
  Tensor vectors = {};
  std::optional<std::int64_t> step = {};
  // A sample of queries, by which an index's recall is measured: the columns that the output
  // "query" is computed from, [m, ...]. None: the candidates' own vectors are the sample.
  std::map<std::string, Tensor> queries = {};
};

// Reads the candidates of a model from a file.
//   Errors  those of reading; they make the server refuse the version.
//   Thread  the one that loads versions; may block on files.
using ReadCandidates =
    std::function<CandidateData(const SavedModel& about, const std::string& file)>;

// The file that is taken where none is named, in the folder of the model or above its versions.
inline constexpr const char* kCandidatesFile = "candidates.npz";

}  // namespace cairn::serving
