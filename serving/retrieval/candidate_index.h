// CandidateIndex: the candidates of a retrieval model, and which of them are the best for a query.
//
//   CandidateIndex films({.ids = ids, .vectors = vectors});
//   films.top(queries, 10, {});                    // the places of ten films for each query
//   films.find("Heat");                            // the place of one, to leave it out
//
// A query and a candidate are vectors, and their product is the candidate's score.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tensor/tensor.h"
#include "serving/retrieval/best_list.h"

namespace cairn::serving {

class ExactScan;
class HnswIndex;

struct CandidateSet {
  Tensor ids;      // int64 or strings [n], distinct
  Tensor vectors;  // float32 [n, d]
  // A sample of queries, float32 [m, d], by which the recall of an index is measured. Undefined: of
  // the candidates' own vectors, which are not distributed as queries are.
  Tensor queries = {};
};

enum class IndexKind : std::uint8_t {
  kExact,  // looks at every candidate
  kHnsw,   // looks at some hundreds, and may miss one of the best
};

struct CandidateIndexOptions {
  IndexKind kind = IndexKind::kExact;
  // These are kHnsw's, as hnswlib has them. A search keeps the `ef` nearest candidates in view, or
  // the k that it is to find if these are more.
  int links = 16, ef_construction = 200, ef = 100;
  std::int64_t sample_max = 200;  // queries that measure the recall
};

//   Thread  any; immutable.
class CandidateIndex {
 public:
  //   Errors  InvalidArgument: no candidates, other types or shapes than those above, an id that
  //           stands there twice, numbers that are not finite; names the candidate.
  //   Cost    of kExact a copy of the vectors; of kHnsw two while it is built, some seconds per
  //           10,000 candidates, and then what HnswIndex says beside the vectors.
  explicit CandidateIndex(CandidateSet set, const CandidateIndexOptions& options = {});
  ~CandidateIndex();
  CandidateIndex(const CandidateIndex&) = delete;
  CandidateIndex& operator=(const CandidateIndex&) = delete;

  std::int64_t size() const;
  std::int64_t width() const;
  const Tensor& ids() const { return set_.ids; }
  // The place of a candidate in ids(); -1: there is none of that id.
  std::int64_t find(std::int64_t id) const;
  std::int64_t find(std::string_view id) const;

  // For each row of `queries`, float32 [q, d], the places of the `k` best candidates and their
  // scores, from the best; fewer if there are no more. Those whose places are in leave_out[row] are
  // passed over; no lists: none are.
  //   Result  of kExact what a stable sort by descending score gives, whichever queries are asked
  //           together. Of kHnsw about recall() of that; scores have the same bits.
  //   Errors  InvalidArgument: queries of another type or width, or with numbers that are not
  //           finite; k below 1; lists that are neither none nor one per query, or with places that
  //           there are not.
  std::vector<std::vector<ScoredPlace>> top(
      const Tensor& queries, std::int64_t k,
      std::span<const std::vector<std::int64_t>> leave_out = {}) const;

  // Measured when it was built: which share of the 10 best of the sample's queries an index finds.
  // 1 of kExact.
  double recall() const { return recall_; }
  IndexKind kind() const { return options_.kind; }

 private:
  void index_ids();
  void build_hnsw();
  std::vector<ScoredPlace> search(std::span<const float> query, std::int64_t k,
                                  std::span<const std::int64_t> leave_out) const;
  double measured_recall(const ExactScan& exact) const;

  CandidateSet set_;  // kExact: without its vectors
  const CandidateIndexOptions options_;
  std::int64_t size_ = 0, width_ = 0;
  std::unordered_map<std::int64_t, std::int64_t> place_of_number_;
  std::unordered_map<std::string_view, std::int64_t> place_of_text_;  // views of set_.ids
  std::unique_ptr<const ExactScan> exact_;                            // kExact
  std::unique_ptr<HnswIndex> hnsw_;                                   // kHnsw
  double recall_ = 1;
};

}  // namespace cairn::serving
