// The candidates of a retrieval model with their vectors, for an index of any kind.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/export/candidate_rows.h"

namespace cairn::tools {

struct CandidateRequest {
  CandidateFiles from;
  std::string out;                        // ends in .npz, or in .hnsw
  int links = 16, ef_construction = 200;  // of the index
};
struct CandidateExport {
  std::vector<std::string> files;
  std::int64_t candidates = 0, width = 0;
};

// Computes the vector of each distinct candidate of the files, from its first row, and writes
// them: as the array `vectors` [n, d] of an npz, or as an index of hnswlib whose labels are the
// places in that order. The npz, or OUT.ids.npz beside the index, says which candidate has which
// place: `ids`, int64 [n]; or, of texts, `text`, their bytes one after another, and `text_ends`,
// int64 [n]. It also has `step`, int64 [1], the training step of the model.
//   Cost    the names of all candidates in memory; an index as a whole. The files are read twice.
//   Errors  InvalidArgument: the name of `out`; FailedPrecondition: no retrieval model, or not of
//           `cairn train`. AlreadyExists. Nothing is written then. Those of reading, of running and
//           of the disk.
//   Thread  any that may block on files.
CandidateExport export_candidates(const CandidateRequest& request);

}  // namespace cairn::tools
