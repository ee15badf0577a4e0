// A job's features after one pass over its training data, and the datasets that have them.
//   Thread  any that may touch files; what records, as it says.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/stage/fit.h"
#include "nn/layers/embedding.h"
#include "tools/job/parts/job_source.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_objective.h"

namespace cairn::tools {

// Ids of an example: a column, or one of a column's several values, with the rows of its table.
struct IdFeature {
  std::string name;
  std::int64_t rows = 0;
  std::string field = name;  // the column that holds it
  int value = -1;            // which of the column's values it is; -1: all of them
  bool bags = false;         // the column is ragged
  std::string weights = "";  // of bags: the column of what their ids' vectors are multiplied by
  // For a cross: the features that it combines, which take the place of a column.
  std::vector<IdFeature> crossed = {};
  nn::Ids of(const Features& features) const;
};

// Each candidate's share of the training data of a retrieval.
struct CandidateShares {
  Tensor candidates;  // int64 [n], ascending: as FittedFeatures::groups_of() has them
  Tensor log_share;   // float32 [n + 1]: logarithms, and 0 for what is none of them
};

// The job's features as the training data has them. Saved with each checkpoint, since the ids of a
// trained model mean what they meant then (resume.h).
struct FittedFeatures {
  // For Dataset::features(); empty: the data's own columns serve as they are (records).
  std::vector<FeatureColumn> columns;
  std::vector<IdFeature> ids;
  bool numeric = false;  // there is a column "numeric"
  // Columns of numbers that the model reads as they are.
  std::vector<std::string> plain;
  std::string weight;  // the column of examples' weights; empty: all are 1
  // The column of list numbers for ranking, or of candidates' numbers for retrieval; else empty.
  std::string group;
  std::shared_ptr<const CandidateShares> shares;  // of retrieval; else null
  LabelScale label;
  std::int64_t examples = 0;  // of the training data, without what is held back
  LinesRead lines;            // of the training data
  // The features that the data itself gives, where the model keeps those of other data; else null.
  std::shared_ptr<const FittedFeatures> of_data;

  // float32 [b]; undefined: all are 1.
  Array weights_of(const Features& features) const;
  // int32 or int64 [b], one number for all examples of a list, or of a candidate; undefined: there
  // are none.
  Array groups_of(const Features& features) const;
};

// The column of the lists' or candidates' numbers, where features() makes it of that column.
FeatureColumn group_column(const Job& job);

// The statistics that the job needs of its training data. If the label is standardised, it is the
// last of the numbers.
FitRequest fit_request(const Job& job);
// Reads the training data once, for means, deviations and vocabularies.
//   Errors  the data's own.
FittedFeatures fit_features(const Job& job);
// Those of its columns that the model reads: neither weights nor the numbers of lists.
std::vector<FeatureColumn> columns_of_model(const FittedFeatures& features);

// The part of an input pipeline in the training data with its features, before shuffling and
// batching; and the data that the model is evaluated on, validation data first.
Dataset train_source(const Job& job, const FittedFeatures& features,
                     const InputContext& context = {});
std::vector<EvaluationData> eval_sources(const Job& job, const FittedFeatures& features);

// How examples are read and prepared for the trained model: data_to_predict() with its features.
Dataset examples_to_predict(const Job& job, const FittedFeatures& features);

}  // namespace cairn::tools
