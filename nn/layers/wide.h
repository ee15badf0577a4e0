// The wide part of Wide & Deep: a linear model over categorical columns and their crosses. It
// memorises combinations of values, where the deep part generalises over them.
//   Source  Cheng et al., "Wide & Deep Learning for Recommender Systems", arXiv:1606.07792.
//   Thread  one, as everything that records.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nn/layers/embedding.h"
#include "nn/layers/id_cross.h"

namespace cairn {
class Features;
}

namespace cairn::nn {

// A column of ids in [0, rows), one per example: a vocabulary, a hash or a bucket
// (data/feature/feature_column.h).
// A column of bags has any number of them (core/tensor/element.h).
struct WideColumn {
  std::string name;
  std::int64_t rows = 0;
  bool bags = false;
  std::string weights = "";  // of bags: the column by which each id's weight is multiplied
};

// One weight for each combination of the columns' values, or for each of `buckets` hashes of the
// combination if there are fewer of those.
struct WideCross {
  std::vector<std::string> columns;  // at least two of WideOptions::columns, none of bags
  std::int64_t buckets = 0;          // 0: one for each combination
};

// Columns are required. A linear model begins with zeros, unlike an embedding, whose vectors would
// all receive the same gradient. `buckets`, `rows` and names are fixed for the life of a
// checkpoint.
struct WideOptions {
  std::vector<WideColumn> columns = {};
  std::vector<WideCross> crosses = {};
  bool use_bias = false;
  Initializer initializer = {};  // zeros
  std::string name = "wide";
  bool hashed = false;  // as an Embedding's
};

// The sum of the weights of an example's ids: -> [b, 1]. One variable NAME [all rows, 1], in which
// columns and then crosses follow one another, so that a step makes one lookup however many columns
// there are; NAME/bias [1] if asked for.
// An id that a bag holds twice counts twice.
//   Errors  InvalidArgument: no column, rows below 1, a cross over an unknown column, over bags, or
//           over more than 2^31 combinations hashed. When run: an id outside its column fails the
//           lookup as id -1, and never reads a neighbour's weight.
class Wide {
 public:
  explicit Wide(WideOptions options);
  Array operator()(const std::vector<Array>& ids) const;  // beside columns, each int32 or int64 [b]
  Array operator()(const Features& features) const;       // the columns by name
  Array operator()(const std::vector<Ids>& ids) const;    // beside columns
  // Rows of the variable: those of all columns, and those of all crosses.
  std::int64_t rows() const { return rows_; }
  // The table, and the bias if there is one. InvalidArgument: it was not called in this scope yet.
  std::vector<Variable> variables() const;

 private:
  // A cross with its columns found.
  struct Cross {
    std::vector<std::size_t> columns;
    IdCross combined;
  };
  Cross resolve(const WideCross& cross) const;
  // [b, columns that are no bags]: row numbers of the table, or -1 for an id outside its column.
  Array placed_columns(const std::vector<Array>& ids) const;
  Array placed_bags(std::size_t column, const Array& ids) const;  // the same of one column of bags
  Array placed_crosses(const std::vector<Array>& ids) const;      // [b, crosses]

  WideOptions options_;
  std::vector<Cross> crosses_;
  std::vector<std::size_t> plain_;     // places of the columns that are no bags
  std::vector<std::int64_t> offsets_;  // of columns, then of crosses
  std::int64_t rows_ = 0;
  std::vector<Embedding> table_;  // one
  LayerVariables bias_;
};

}  // namespace cairn::nn
