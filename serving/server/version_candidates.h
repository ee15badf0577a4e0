// VersionCandidates: what one version of a retrieval model recommends from, and how.
#pragma once
#include <memory>
#include <string>

#include "serving/retrieval/candidate_index.h"
#include "serving/server/candidate_data.h"
#include "serving/server/model_directory.h"
#include "serving/server/version_places.h"

namespace cairn::serving {

//   Thread  any; each codec as VersionCodecs says.
struct VersionCandidates {
  std::shared_ptr<const ServedModel> queries;  // computes the output "query" alone
  std::shared_ptr<VersionCodecs> codecs;       // of its inputs
  std::shared_ptr<const CandidateIndex> index;
};

// Computes the vectors of the candidates with this version, unless they are there, and indexes
// them. `threads` compute, as ServedModel has them; `name` is the model's, for messages.
//   Errors  FailedPrecondition: the model has no output "query" or "candidate"; the vectors are of
//           another step than the version, or of none. InvalidArgument: a column that "candidate"
//           needs is not there or does not fit; vectors of another width than queries; those of
//           CandidateIndex.
//   Thread  0 of `version`'s parts; may take long.
VersionCandidates make_candidates(const std::string& name, const ServedModel& version,
                                  CandidateData data, const CandidateIndexOptions& index,
                                  int threads);

// The file with the candidates of a version; empty: it has none.
std::string candidates_file(const ModelToServe& what, const VersionPlace& place);
// The candidates in that file, as make_candidates() makes them; null: there is no file.
//   Errors  those of reading and of make_candidates(), with the file's name.
std::shared_ptr<const VersionCandidates> candidates_at(const ModelToServe& what,
                                                       const VersionPlace& place,
                                                       const ServedModel& version,
                                                       const DirectoryOptions& options);

// Whether the candidates of a version may follow those of the one that serves; null: it has none.
//   Errors  FailedPrecondition: the version has none, and the one that serves has. InvalidArgument:
//           its queries are computed from other columns. Clients of that one would break.
void verify_following(const VersionCandidates* serving, const VersionCandidates* next);

// {"count": 298, "width": 64, "index": "exact", "recall_at_10": 1.0}; each key behind `prefix`.
std::string candidates_text(const CandidateIndex& index, const std::string& prefix = "");

}  // namespace cairn::serving
