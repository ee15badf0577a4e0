#include "serving/retrieval/candidate_index.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/error.h"
#include "core/base/look_up.h"
#include "serving/retrieval/exact_scan.h"
#include "serving/retrieval/hnsw_index.h"

namespace cairn::serving {
namespace {

constexpr std::int64_t kRecallAt = 10;

bool is_matrix(const Tensor& tensor) {
  return tensor.defined() && tensor.dtype() == DType::kFloat32 && tensor.shape().rank() == 2;
}

// The row of the first number that is not finite; -1: all are.
std::int64_t row_not_finite(const Tensor& matrix) {
  const auto values = matrix.values<float>();
  const auto found =
      std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return found == values.end() ? -1 : (found - values.begin()) / matrix.shape()[1];
}

std::span<const float> row_of(const Tensor& matrix, std::int64_t row) {
  const auto width = static_cast<std::size_t>(matrix.shape()[1]);
  return matrix.values<float>().subspan(static_cast<std::size_t>(row) * width, width);
}

std::string id_text(const Tensor& ids, std::int64_t place) {
  const auto at = static_cast<std::size_t>(place);
  return ids.dtype() == DType::kString ? str("\"", ids.string_values()[at], "\"")
                                       : str(ids.values<std::int64_t>()[at]);
}

void verify(const CandidateSet& set) {
  if (!is_matrix(set.vectors) || set.vectors.elements() == 0)
    throw InvalidArgumentError(
        str("candidates have vectors float32 [n, d], and these are ",
            set.vectors.defined() ? set.vectors.type().to_string() : std::string("none")));
  const std::int64_t n = set.vectors.shape()[0];
  if (!set.ids.defined() || !(set.ids.shape() == Shape{n}) ||
      (set.ids.dtype() != DType::kInt64 && set.ids.dtype() != DType::kString))
    throw InvalidArgumentError(
        str("candidates have an id, int64 or string, for each of ", n, " vectors, and these are ",
            set.ids.defined() ? set.ids.type().to_string() : std::string("none")));
  if (const std::int64_t row = row_not_finite(set.vectors); row >= 0)
    throw InvalidArgumentError(
        str("the vector of candidate ", id_text(set.ids, row), " has a number that is not finite"));
  if (set.queries.defined() &&
      (!is_matrix(set.queries) || set.queries.shape()[1] != set.vectors.shape()[1]))
    throw InvalidArgumentError(str("the sample of queries is ", set.queries.type().to_string(),
                                   ", and the candidates' vectors ",
                                   set.vectors.type().to_string()));
}

}  // namespace

CandidateIndex::CandidateIndex(CandidateSet set, const CandidateIndexOptions& options)
    : set_(std::move(set)), options_(options) {
  verify(set_);
  size_ = set_.vectors.shape()[0];
  width_ = set_.vectors.shape()[1];
  index_ids();
  auto exact = std::make_unique<const ExactScan>(set_.vectors.values<float>(), width_);
  if (options_.kind == IndexKind::kHnsw) {
    build_hnsw();
    recall_ = measured_recall(*exact);
  } else {
    exact_ = std::move(exact);
    set_.vectors = {};
  }
  set_.queries = {};
}

CandidateIndex::~CandidateIndex() = default;

std::int64_t CandidateIndex::size() const { return size_; }
std::int64_t CandidateIndex::width() const { return width_; }

void CandidateIndex::index_ids() {
  const auto note = [this](auto& places, const auto& id, std::int64_t place) {
    if (!places.emplace(id, place).second)
      throw InvalidArgumentError(
          str("the candidate ", id_text(set_.ids, place), " stands there twice"));
  };
  for (std::int64_t place = 0; place < size_; ++place) {
    const auto at = static_cast<std::size_t>(place);
    if (set_.ids.dtype() == DType::kString)
      note(place_of_text_, set_.ids.string_values()[at], place);
    else
      note(place_of_number_, set_.ids.values<std::int64_t>()[at], place);
  }
}

std::int64_t CandidateIndex::find(std::int64_t id) const {
  const auto found = place_of_number_.find(id);
  return found == place_of_number_.end() ? -1 : found->second;
}
std::int64_t CandidateIndex::find(std::string_view id) const {
  const auto found = place_of_text_.find(id);
  return found == place_of_text_.end() ? -1 : found->second;
}

void CandidateIndex::build_hnsw() {
  hnsw_ = std::make_unique<HnswIndex>(width_, size_, options_.links, options_.ef_construction);
  for (std::int64_t i = 0; i < size_; ++i) {
    look_up();
    hnsw_->add(row_of(set_.vectors, i), static_cast<std::uint64_t>(i));
  }
  hnsw_->set_ef(options_.ef);
}

// The sample is spread evenly over what is there.
double CandidateIndex::measured_recall(const ExactScan& exact) const {
  const Tensor& all =
      set_.queries.defined() && set_.queries.elements() > 0 ? set_.queries : set_.vectors;
  const std::int64_t rows = all.shape()[0], count = std::min(rows, options_.sample_max);
  std::int64_t wanted = 0, found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::span<const float> query = row_of(all, i * rows / count);
    const auto best = exact.top(query, kRecallAt, {}).front();
    const auto got = search(query, kRecallAt, {});
    wanted += static_cast<std::int64_t>(best.size());
    for (const ScoredPlace& one : best)
      found += std::ranges::count(got, one.place, &ScoredPlace::place);
  }
  return wanted == 0 ? 1 : static_cast<double>(found) / static_cast<double>(wanted);
}

// As many more are looked for as are to be passed over.
std::vector<ScoredPlace> CandidateIndex::search(std::span<const float> query, std::int64_t k,
                                                std::span<const std::int64_t> leave_out) const {
  const std::int64_t most =
      std::min(size_, std::min(k, size_) + static_cast<std::int64_t>(leave_out.size()));
  BestList best(static_cast<std::size_t>(std::min(k, size_)));
  for (const std::uint64_t label : hnsw_->search(query, most)) {
    const auto place = static_cast<std::int64_t>(label);
    if (!std::ranges::binary_search(leave_out, place))
      best.add({product_of(query, row_of(set_.vectors, place)), place});
  }
  return best.take();
}

std::vector<std::vector<ScoredPlace>> CandidateIndex::top(
    const Tensor& queries, std::int64_t k,
    std::span<const std::vector<std::int64_t>> leave_out) const {
  if (!is_matrix(queries) || queries.shape()[1] != width_)
    throw InvalidArgumentError(
        str("queries are float32 [q, ", width_, "], and these are ",
            queries.defined() ? queries.type().to_string() : std::string("none")));
  if (const std::int64_t row = row_not_finite(queries); row >= 0)
    throw InvalidArgumentError(str("query ", row, " has a number that is not finite"));
  if (k < 1) throw InvalidArgumentError(str("k is ", k, ", it must be at least 1"));
  const std::int64_t rows = queries.shape()[0];
  if (!leave_out.empty() && static_cast<std::int64_t>(leave_out.size()) != rows)
    throw InvalidArgumentError(str("lists of candidates to leave out are one per query, and there ",
                                   "are ", leave_out.size(), " for ", rows, " queries"));
  std::vector<std::vector<std::int64_t>> sorted(leave_out.begin(), leave_out.end());
  for (auto& list : sorted) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
    if (!list.empty() && (list.front() < 0 || list.back() >= size_))
      throw InvalidArgumentError(str("a candidate to leave out has the place ",
                                     list.front() < 0 ? list.front() : list.back(), ", of ", size_,
                                     " candidates"));
  }
  if (exact_) return exact_->top(queries.values<float>(), k, sorted);
  std::vector<std::vector<ScoredPlace>> all;
  for (std::int64_t row = 0; row < rows; ++row)
    all.push_back(search(
        row_of(queries, row), k,
        sorted.empty() ? std::span<const std::int64_t>() : sorted[static_cast<std::size_t>(row)]));
  return all;
}

}  // namespace cairn::serving
