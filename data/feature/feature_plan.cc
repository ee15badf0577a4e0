// Each kind of feature is one loop over a column. An integer counts as its decimal text wherever
// texts are hashed or looked up, so that a vocabulary of a column does not depend on whether the
// schema calls it a string or an integer.
#include "data/feature/feature_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/feature/hash.h"
#include "data/feature/text_ngrams.h"

namespace cairn {
namespace {

using Kind = FeatureColumn::Kind;

// Calls visit(i, value) for every value of a numeric or boolean column.
template <typename Visit>
void each_number(const RawColumn& column, Visit visit) {
  auto over = [&](auto values) {
    for (std::size_t i = 0; i < values.size(); ++i) visit(i, values[i]);
  };
  switch (column.dtype) {
    case DType::kFloat32: return over(column.values.values<float>());
    case DType::kFloat64: return over(column.values.values<double>());
    case DType::kInt32: return over(column.values.values<std::int32_t>());
    case DType::kInt64: return over(column.values.values<std::int64_t>());
    case DType::kUint8: return over(column.values.values<std::uint8_t>());
    case DType::kBool: return over(column.values.values<bool>());
    default: CAIRN_CHECK(false, "no numbers in ", dtype_name(column.dtype));
  }
}

// Calls visit(i, text) for every value of a string or integer column; an integer as its decimal
// text.
template <typename Visit>
void each_text(const RawColumn& column, Visit visit) {
  if (column.dtype == DType::kString) {
    for (std::size_t i = 0; i < column.text.size(); ++i) visit(i, column.text[i]);
    return;
  }
  each_number(column, [&](std::size_t i, auto value) {
    char text[24];
    auto end = std::to_chars(text, text + sizeof(text), static_cast<std::int64_t>(value)).ptr;
    visit(i, std::string_view(text, static_cast<std::size_t>(end - text)));
  });
}

// Computed in float64, since float32 rounds today's seconds since 1970 to multiples of 128.
float days_between(double date, std::int64_t until) {
  return static_cast<float>((static_cast<double>(until) - date) /
                            static_cast<double>(kSecondsPerDay));
}

// `stride` places the inputs of a feature side by side in one row.
void write_numeric(const NumericInput& numeric, const RawColumn& column, float* out,
                   std::size_t stride) {
  float scale = 1.0f / numeric.stddev;
  each_number(column, [&](std::size_t i, auto value) {
    float x = numeric.days_until ? days_between(static_cast<double>(value), *numeric.days_until)
                                 : static_cast<float>(value);
    if (numeric.log1p) x = std::copysign(std::log1p(std::fabs(x)), x);
    out[i * stride] = (x - numeric.mean) * scale;
  });
}

void write_date_part(DatePart part, const RawColumn& column, std::int64_t* out) {
  each_number(column, [&](std::size_t i, auto value) {
    out[i] = part_of_date(part, static_cast<std::int64_t>(value));
  });
}

void write_bucketised(const std::vector<float>& boundaries, const RawColumn& column,
                      std::int64_t* out) {
  each_number(column, [&](std::size_t i, auto value) {
    out[i] = std::upper_bound(boundaries.begin(), boundaries.end(), static_cast<float>(value)) -
             boundaries.begin();
  });
}

// Ids of the values in their order, shifted by one if the id for unknown values comes first.
void write_vocabulary(const VocabularyTable& table, Oov oov, const RawColumn& column,
                      std::int64_t* out) {
  std::int64_t base = oov == Oov::kFirst ? 1 : 0, unseen = oov == Oov::kFirst ? 0 : table.size();
  each_text(column, [&](std::size_t i, std::string_view text) {
    std::int64_t place = table.find(text);
    out[i] = place < 0 ? unseen : place + base;
  });
}

void write_hashed(std::int64_t buckets, const RawColumn& column, std::int64_t* out) {
  each_text(column, [&](std::size_t i, std::string_view text) {
    out[i] = hash_bucket(text_hash(text), buckets);
  });
}

// The ids of all texts, and where each text's begin.
void add_words(const FeatureColumn& feature, std::span<const std::string_view> texts,
               std::vector<Tensor>& results) {
  std::vector<std::int64_t> ids;
  Tensor splits(DType::kInt64, {static_cast<std::int64_t>(texts.size()) + 1});
  auto ends = splits.mutable_values<std::int64_t>();
  ends[0] = 0;
  NgramHasher hasher(feature.ngrams);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    hasher.each(texts[i],
                [&](std::uint64_t hash) { ids.push_back(hash_bucket(hash, feature.buckets)); });
    ends[i + 1] = static_cast<std::int64_t>(ids.size());
  }
  results.push_back(Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())},
                                             std::span<const std::int64_t>(ids)));
  results.push_back(splits);
}

// The values but those that equal `padding`, and where each of the `rows` begins.
template <typename T>
void add_without(std::int64_t padding, const RawColumn& column, std::int64_t rows,
                 std::vector<Tensor>& results) {
  const auto all = column.values.values<T>();
  const Tensor had = column.splits;
  const std::size_t each = rows == 0 ? 0 : all.size() / static_cast<std::size_t>(rows);
  std::vector<T> kept;
  std::vector<std::int64_t> splits{0};
  for (std::size_t row = 0, i = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::size_t end =
        had.defined() ? static_cast<std::size_t>(had.values<std::int64_t>()[row + 1]) : i + each;
    for (; i < end; ++i)
      if (static_cast<std::int64_t>(all[i]) != padding) kept.push_back(all[i]);
    splits.push_back(static_cast<std::int64_t>(kept.size()));
  }
  results.push_back(Tensor::of<T>({splits.back()}, std::span<const T>(kept)));
  results.push_back(Tensor::of<std::int64_t>({rows + 1}, std::span<const std::int64_t>(splits)));
}

void add_without_padding(std::int64_t padding, const RawColumn& column, std::int64_t rows,
                         std::vector<Tensor>& results) {
  switch (column.dtype) {
    case DType::kInt32: return add_without<std::int32_t>(padding, column, rows, results);
    case DType::kUint8: return add_without<std::uint8_t>(padding, column, rows, results);
    default: return add_without<std::int64_t>(padding, column, rows, results);
  }
}

}  // namespace

// Raw columns before earlier features, as features_element() checks. An input that several features
// read is listed once.
FeaturePlan::Source FeaturePlan::find(const ElementSpec& input, const std::string& name) {
  bool raw = std::any_of(input.columns.begin(), input.columns.end(),
                         [&](const auto& column) { return column.name == name; });
  if (!raw) {
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (columns_[i].name == name) return {true, i};
  }
  auto place = std::find(inputs_.begin(), inputs_.end(), name);
  if (place == inputs_.end()) place = inputs_.insert(inputs_.end(), name);
  return {false, static_cast<std::size_t>(place - inputs_.begin())};
}

FeaturePlan::FeaturePlan(const ElementSpec& input, const std::vector<FeatureColumn>& columns)
    : columns_(columns) {
  for (const auto& feature : columns_) {
    Step step{&feature, {}, nullptr};
    for (const auto& numeric : feature.numerics)
      step.sources.push_back(find(input, numeric.column));
    for (const auto& name : feature.inputs) step.sources.push_back(find(input, name));
    if (feature.kind == Kind::kVocabulary)
      step.vocabulary = std::make_shared<VocabularyTable>(feature.values);
    steps_.push_back(std::move(step));
  }
}

// A ragged feature makes two results, its ids and its row splits, so a crossed feature finds an
// earlier one by first_result and not by its number. An id of 0 must count in a cross, hence
// earlier ids are hashed as id + 1.
std::vector<Tensor> FeaturePlan::apply(const std::vector<const RawColumn*>& raw,
                                       std::int64_t rows) const {
  std::vector<Tensor> results;
  std::vector<std::size_t> first_result;
  for (const auto& step : steps_) {
    const FeatureColumn& feature = *step.feature;
    first_result.push_back(results.size());
    auto input = [&](std::size_t i) -> const RawColumn& { return *raw[step.sources[i].place]; };
    if (feature.kind == Kind::kNumeric) {
      Tensor dense(DType::kFloat32, {rows, feature.width()});
      float* out = dense.mutable_values<float>().data();
      for (std::size_t i = 0; i < feature.numerics.size(); ++i)
        write_numeric(feature.numerics[i], input(i), out + i, feature.numerics.size());
      results.push_back(dense);
      continue;
    }
    if (feature.padding) {
      add_without_padding(*feature.padding, input(0), rows, results);
      continue;
    }
    if (feature.kind == Kind::kAsIs) {
      results.push_back(input(0).values);
      if (input(0).splits.defined()) results.push_back(input(0).splits);
      continue;
    }
    if (feature.kind == Kind::kWords) {
      add_words(feature, input(0).text, results);
      continue;
    }
    std::int64_t size =
        feature.kind == Kind::kCrossed ? rows : static_cast<std::int64_t>(input(0).size());
    Tensor ids(DType::kInt64, {size});
    std::int64_t* out = ids.mutable_values<std::int64_t>().data();
    switch (feature.kind) {
      case Kind::kVocabulary: write_vocabulary(*step.vocabulary, feature.oov, input(0), out); break;
      case Kind::kHashed: write_hashed(feature.buckets, input(0), out); break;
      case Kind::kBucketised: write_bucketised(feature.boundaries, input(0), out); break;
      case Kind::kDatePart: write_date_part(feature.part, input(0), out); break;
      default: {
        std::fill_n(out, size, 0);
        for (const auto& source : step.sources) {
          auto add = [&](std::size_t i, std::uint64_t hash) {
            out[i] =
                static_cast<std::int64_t>(cross_hash(static_cast<std::uint64_t>(out[i]), hash));
          };
          if (source.is_feature) {
            auto earlier = results[first_result[source.place]].values<std::int64_t>();
            for (std::size_t i = 0; i < earlier.size(); ++i)
              add(i, mix_bits(static_cast<std::uint64_t>(earlier[i]) + 1));
          } else {
            each_text(*raw[source.place],
                      [&](std::size_t i, std::string_view text) { add(i, text_hash(text)); });
          }
        }
        for (std::int64_t i = 0; i < size; ++i)
          out[i] = hash_bucket(static_cast<std::uint64_t>(out[i]), feature.buckets);
      }
    }
    results.push_back(ids);
    if (feature.kind != Kind::kCrossed && input(0).splits.defined())
      results.push_back(input(0).splits);
  }
  return results;
}

}  // namespace cairn
