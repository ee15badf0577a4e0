// Tables of given rows against loops in double precision: forward, pooling, and three steps of each
// rule, in every shape that the kernels have.
#include "bench/gpu/embedding_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/gpu/embedding_host.h"
#include "core/kernels/cuda/embedding/launch.h"
#include "core/kernels/cuda/embedding/tables.h"

namespace cairn::bench {
namespace {

using cuda::Buffer;
using cuda::Rates;
using cuda::Rule;

struct Case {
  std::string name;
  int dim = 128;
  std::vector<std::int64_t> rows;     // per table
  std::vector<std::int64_t> lookups;  // per table
  Rule rule = Rule::kSgd;
  cuda::IdType type = cuda::IdType::kInt64;
  bool bags = false;
  cuda::Pooling pooling = cuda::Pooling::kSum;
  bool all_equal = false;  // every id of a table is its last row
  bool bad_ids = false;    // some ids are out of range
  bool wide = false;       // sort keys of 64 bits
};

class Reference {
 public:
  Reference(const Case& one, std::uint64_t seed) : case_(one), random_(seed) {
    slots_ = cuda::slot_floats(one.rule, one.dim);
    stride_ = one.dim + slots_;
    first_row_ = running_sum(one.rows);
    first_lookup_ = running_sum(one.lookups);
    std::uniform_real_distribution<float> uniform(-1, 1);
    table_.resize(static_cast<std::size_t>(first_row_.back() * stride_));
    for (float& value : table_) value = uniform(random_);
    for (std::size_t i = 0; i < table_.size(); ++i)  // slots: squares must not be negative
      if (static_cast<std::int64_t>(i) % stride_ >= one.dim) table_[i] = 0.1f;
  }

  void draw_step() {
    const std::int64_t n = first_lookup_.back();
    ids_.resize(static_cast<std::size_t>(n));
    row_.assign(static_cast<std::size_t>(n), -1);
    refused_ = 0;
    for (std::size_t t = 0; t < case_.rows.size(); ++t)
      for (std::int64_t i = first_lookup_[t]; i < first_lookup_[t + 1]; ++i) draw(t, i);
    bags_ = {0};
    while (bags_.back() < n)  // bags of 0 to 11 lookups; one of 300
      bags_.push_back(std::min<std::int64_t>(
          n, bags_.back() + (bags_.size() == 5 ? 300 : static_cast<std::int64_t>(random_() % 12))));
    bags_.push_back(n);
    gradients_.resize(static_cast<std::size_t>(outputs() * case_.dim));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& g : gradients_) g = uniform(random_);
  }

  std::int64_t outputs() const {
    return case_.bags ? static_cast<std::int64_t>(bags_.size()) - 1 : first_lookup_.back();
  }
  std::size_t bag_of(std::int64_t lookup) const {
    return static_cast<std::size_t>(std::upper_bound(bags_.begin(), bags_.end(), lookup) -
                                    bags_.begin() - 1);
  }
  double share(std::int64_t lookup) const {
    if (!case_.bags || case_.pooling == cuda::Pooling::kSum) return 1;
    const std::size_t bag = bag_of(lookup);
    return 1.0 / static_cast<double>(bags_[bag + 1] - bags_[bag]);
  }

  std::vector<double> forward() const {
    std::vector<double> out(static_cast<std::size_t>(outputs() * case_.dim), 0.0);
    for (std::int64_t i = 0; i < first_lookup_.back(); ++i) {
      if (row_[static_cast<std::size_t>(i)] < 0) continue;
      const std::size_t to = case_.bags ? bag_of(i) : static_cast<std::size_t>(i);
      for (int j = 0; j < case_.dim; ++j)
        out[to * static_cast<std::size_t>(case_.dim) + static_cast<std::size_t>(j)] +=
            share(i) *
            table_[static_cast<std::size_t>(row_[static_cast<std::size_t>(i)] * stride_ + j)];
    }
    return out;
  }

  void update(const Rates& rates) {
    std::map<std::int64_t, std::vector<double>> sums;
    for (std::int64_t i = 0; i < first_lookup_.back(); ++i) {
      const std::int64_t row = row_[static_cast<std::size_t>(i)];
      if (row < 0) continue;
      std::vector<double>& sum = sums[row];
      sum.resize(static_cast<std::size_t>(case_.dim));
      const std::size_t from = (case_.bags ? bag_of(i) : static_cast<std::size_t>(i)) *
                               static_cast<std::size_t>(case_.dim);
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += share(i) * gradients_[from + j];
    }
    distinct_ = static_cast<std::int64_t>(sums.size());
    for (const auto& [row, sum] : sums) apply(row, sum, rates);
  }

  std::vector<std::int64_t> first_row_, first_lookup_, ids_, row_, bags_;
  std::vector<float> table_, gradients_;
  std::int64_t slots_ = 0, stride_ = 0, refused_ = 0, distinct_ = 0;

 private:
  void draw(std::size_t t, std::int64_t i) {
    const std::int64_t rows = case_.rows[t];
    std::int64_t id = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(rows));
    if (random_() % 3 == 0) id %= 3;  // some are frequent
    if (id >= rows || random_() % 50 == 0 || case_.all_equal) id = rows - 1;
    bool good = true;
    if (case_.bad_ids && random_() % 10 == 0) {
      id = random_() % 2 == 0 ? rows : -1 - static_cast<std::int64_t>(random_() % 5);
      good = false;
      ++refused_;
    }
    ids_[static_cast<std::size_t>(i)] = id;
    if (good) row_[static_cast<std::size_t>(i)] = first_row_[t] + id;
  }

  void apply(std::int64_t row, const std::vector<double>& sum, const Rates& r) {
    float* p = table_.data() + row * stride_;
    float* slot = p + case_.dim;
    double squares = 0;
    for (const double g : sum) squares += g * g;
    if (case_.rule == Rule::kRowwiseAdagrad)
      slot[0] += static_cast<float>(squares / static_cast<double>(case_.dim));
    for (std::size_t j = 0; j < sum.size(); ++j) {
      const double g = sum[j];
      if (case_.rule == Rule::kSgd) p[j] -= static_cast<float>(r.rate * g);
      if (case_.rule == Rule::kRowwiseAdagrad)
        p[j] -= static_cast<float>(r.rate * g / (std::sqrt(double{slot[0]}) + r.epsilon));
      if (case_.rule != Rule::kAdam) continue;
      float& m = slot[j];
      float& v = slot[static_cast<std::size_t>(case_.dim) + j];
      m += static_cast<float>((g - m) * r.share_1);
      v += static_cast<float>((g * g - v) * r.share_2);
      p[j] -= static_cast<float>(double{r.rate} * m / (std::sqrt(double{v}) + r.epsilon));
    }
  }

  Case case_;
  std::mt19937_64 random_;
};

bool run(const Case& one, std::uint64_t seed) {
  Reference reference(one, seed);
  Buffer<float> table = to_device(reference.table_);
  const Buffer<std::int64_t> first_row = to_device(reference.first_row_);
  const Buffer<std::int64_t> first_lookup = to_device(reference.first_lookup_);
  cuda::Tables tables{table.get(),
                      reference.stride_,
                      one.rule == Rule::kAdam || one.rule == Rule::kRowwiseAdagrad ? one.dim : 0,
                      one.dim,
                      static_cast<int>(one.rows.size()),
                      first_row.get(),
                      *std::max_element(one.rows.begin(), one.rows.end())};
  if (one.wide) tables.rows_max = std::int64_t{1} << 40;
  cuda::RowGroups groups(tables, reference.first_lookup_.back() + 17);
  Buffer<Rates> rates(1);
  for (int step = 1; step <= 3; ++step) {
    reference.draw_step();
    const Buffer<std::int64_t> ids = to_device(reference.ids_);
    const Buffer<std::int32_t> narrow =
        to_device(std::vector<std::int32_t>(reference.ids_.begin(), reference.ids_.end()));
    const Buffer<std::int64_t> bag_starts = to_device(reference.bags_);
    const Buffer<float> gradients = to_device(reference.gradients_);
    cuda::Lookups lookups{ids.get(), one.type, first_lookup.get(), reference.first_lookup_.back()};
    if (one.type == cuda::IdType::kInt32) lookups.ids = narrow.get();
    const cuda::Bags bags{bag_starts.get(), static_cast<std::int64_t>(reference.bags_.size()) - 1,
                          one.pooling};
    Buffer<float> out = to_device(std::vector<float>(reference.gradients_.size(), NAN));
    if (one.bags)
      cuda::pool(tables, lookups, bags, out.get(), nullptr);
    else
      cuda::gather(tables, lookups, out.get(), nullptr);
    if (!same(one.name + ": forward", to_host(out), reference.forward(), 1e-5)) return false;

    const Rates now{.rate = 0.1f / static_cast<float>(step),
                    .share_1 = 0.1f,
                    .share_2 = 0.01f,
                    .epsilon = 1e-3f};
    cuda::check_cuda(cudaMemcpy(rates.get(), &now, sizeof now, cudaMemcpyHostToDevice), "rates");
    groups.find(lookups, one.bags ? &bags : nullptr, nullptr);
    const std::vector<float> before = to_host(table);
    cuda::apply(one.rule, tables, groups, gradients.get(), rates.get(), nullptr);
    const std::vector<float> first = to_host(table);
    copy_to(table, before);
    cuda::apply(one.rule, tables, groups, gradients.get(), rates.get(), nullptr);
    const std::vector<float> second = to_host(table);
    if (first != second) return failed(one.name + ": two updates of one step differ in bits");
    reference.update(now);
    const std::vector<double> want(reference.table_.begin(), reference.table_.end());
    if (!same(one.name + ": update", first, want, 1e-4)) return false;
    copy_to(table, reference.table_);  // errors must not add up from step to step
    if (groups.refused(nullptr) != reference.refused_)
      return failed(one.name + ": refused ids were miscounted");
    if (!one.bad_ids && groups.distinct(nullptr) != reference.distinct_)
      return failed(one.name + ": distinct rows were miscounted");
  }
  return true;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::vector<std::int64_t> rows = {1000, 0, 1, 37, 3000}, lookups = {900, 0, 40, 333, 2501};
  const auto rule_name = [](Rule rule) {
    return rule == Rule::kSgd ? "sgd" : rule == Rule::kAdam ? "adam" : "row-wise adagrad";
  };
  for (const int dim : {4, 32, 64, 100, 128, 200, 256, 384, 512})
    for (const Rule rule : {Rule::kSgd, Rule::kAdam, Rule::kRowwiseAdagrad}) {
      const std::string name = std::string(rule_name(rule)) + " " + std::to_string(dim);
      all.push_back({name, dim, rows, lookups, rule});
      all.push_back({name + " pooled", dim, rows, lookups, rule, cuda::IdType::kInt32, true,
                     dim % 3 == 0 ? cuda::Pooling::kSum : cuda::Pooling::kMean});
    }
  for (const int dim : {32, 128, 256}) {
    const std::string name = std::to_string(dim);
    Case equal{"all ids equal, " + name, dim, {5000, 3}, {20000, 65}, Rule::kSgd};
    equal.all_equal = true;
    all.push_back(equal);
    Case wrong{"ids out of range, " + name, dim, rows, lookups, Rule::kAdam};
    wrong.bad_ids = true;
    all.push_back(wrong);
    Case pooled{"ids out of range in sums, " + name,
                dim,
                rows,
                lookups,
                Rule::kSgd,
                cuda::IdType::kInt32,
                true};
    pooled.bad_ids = true;
    all.push_back(pooled);
    Case wide{"keys of 64 bits, " + name, dim, rows, lookups, Rule::kAdam};
    wide.wide = true;
    all.push_back(wide);
    all.push_back({"one lookup, " + name, dim, {7}, {1}, Rule::kAdam});
    all.push_back({"exactly one chunk and one more, " + name, dim, {1, 1}, {64, 65}, Rule::kSgd});
    all.push_back({"none, " + name, dim, {7, 5}, {0, 0}, Rule::kSgd});
  }
  return all;
}

}  // namespace

int check_embedding_tables() {
  int wrong = 0;
  const std::vector<Case> all = cases();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!run(all[i], 1000 + i)) ++wrong;
  std::printf("checks: tables of given rows: %zu cases, %d wrong\n", all.size(), wrong);
  return wrong;
}

}  // namespace cairn::bench
