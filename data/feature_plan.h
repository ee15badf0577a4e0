// FeaturePlan: feature columns made ready to run over raw columns, be they tensors or the cells of
// a file.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/element.h"
#include "data/feature_column.h"
#include "data/vocabulary_table.h"

namespace cairn {

// One column of some examples. Strings are views, so that the cells of a file need never be copied.
struct RawColumn {
  DType dtype = DType::kFloat32;
  // unless kString: [rows], or of a ragged column all its values
  Tensor values;
  std::span<const std::string_view> text;  // kString: the same; somebody else's, who outlives this
  Tensor splits;                           // of a ragged column: int64 [rows + 1], from 0
  std::size_t size() const {
    return dtype == DType::kString ? text.size() : static_cast<std::size_t>(values.elements());
  }
};

// Thread: one at a time.
class FeaturePlan {
 public:
  // `columns` fit `input` (features_element() has said so).
  FeaturePlan(const ElementSpec& input, const std::vector<FeatureColumn>& columns);
  FeaturePlan(const FeaturePlan&) = delete;
  FeaturePlan& operator=(const FeaturePlan&) = delete;

  // The names of the input columns that are read at all.
  const std::vector<std::string>& inputs() const { return inputs_; }
  // The features of `rows` examples, in order; `raw[i]` is column inputs()[i].
  std::vector<Tensor> apply(const std::vector<const RawColumn*>& raw, std::int64_t rows) const;

 private:
  struct Source {  // where one input of a feature comes from
    bool is_feature = false;
    std::size_t place = 0;  // in inputs_, or among the features (its first result)
  };
  struct Step {
    const FeatureColumn* feature = nullptr;
    std::vector<Source> sources;
    std::shared_ptr<const VocabularyTable> vocabulary;
  };
  Source find(const ElementSpec& input, const std::string& name);
  std::vector<FeatureColumn> columns_;
  std::vector<std::string> inputs_;
  std::vector<Step> steps_;
};

}  // namespace cairn
