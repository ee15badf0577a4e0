// FeaturePlan: feature columns made ready to run over raw columns, be they tensors or the cells of
// a file. Vocabularies become hash tables once, names become places once.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/element.h"
#include "data/feature/feature_column.h"
#include "data/feature/vocabulary_table.h"

namespace cairn {

// One column of some examples. Strings are views, so that the cells of a file are never copied:
// the bytes behind them must outlive the column.
struct RawColumn {
  DType dtype = DType::kFloat32;
  // Unless kString: [rows], or all values of a ragged column.
  Tensor values;
  std::span<const std::string_view> text;  // kString: the same; its owner outlives this column
  Tensor splits;                           // of a ragged column: int64 [rows + 1], from 0
  // Values, which of a ragged column are more or fewer than rows.
  std::size_t size() const {
    return dtype == DType::kString ? text.size() : static_cast<std::size_t>(values.elements());
  }
};

// The columns of one features() call, in order.
//   Thread  one at a time.
class FeaturePlan {
 public:
  // `columns` must fit `input`; features_element() has checked that.
  FeaturePlan(const ElementSpec& input, const std::vector<FeatureColumn>& columns);
  // Neither copied nor moved: steps point into it.
  FeaturePlan(const FeaturePlan&) = delete;
  FeaturePlan& operator=(const FeaturePlan&) = delete;

  // The names of the input columns that are read at all, each once: what a source has to decode.
  const std::vector<std::string>& inputs() const { return inputs_; }
  // The features of `rows` examples, in order; `raw[i]` is column inputs()[i]. A ragged feature is
  // two results.
  //   Cost  one pass per feature and input; no text is copied.
  std::vector<Tensor> apply(const std::vector<const RawColumn*>& raw, std::int64_t rows) const;

 private:
  struct Source {  // where one input of a feature comes from
    bool is_feature = false;
    std::size_t place = 0;  // in inputs_, or among the features (its first result)
  };
  // One feature with what it needs, looked up once.
  struct Step {
    const FeatureColumn* feature = nullptr;
    // In the order of the feature's inputs.
    std::vector<Source> sources;
    std::shared_ptr<const VocabularyTable> vocabulary;
  };
  // Lists `name` among the inputs, if it is a raw column and is not there yet.
  Source find(const ElementSpec& input, const std::string& name);
  // The features, as given; steps_ points into them.
  std::vector<FeatureColumn> columns_;
  std::vector<std::string> inputs_;
  std::vector<Step> steps_;
};

}  // namespace cairn
