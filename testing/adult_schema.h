// The Adult data as the tests read it: columns, label, and the usual features.
// examples/data/adult/README.md describes the files.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cairn::testing {

// tests run in the project's root
inline const std::string kAdultTrain = "examples/data/adult/adult.data.gz";
inline const std::string kAdultTest = "examples/data/adult/adult.test.gz";

inline const std::vector<std::string> kAdultNumeric = {"age", "education-num", "capital-gain",
                                                       "capital-loss", "hours-per-week"};
inline const std::vector<std::string> kAdultText = {"workclass",  "education",     "marital-status",
                                                    "occupation", "relationship",  "race",
                                                    "sex",        "native-country"};

inline CsvSchema adult_schema() {
  CsvSchema schema;
  for (const char* name :
       {"age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
        "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
        "native-country", "income"})
    schema.columns.push_back({.name = name, .dtype = DType::kString});
  for (int number : {0, 2, 4, 10, 11, 12})
    schema.columns[static_cast<std::size_t>(number)].dtype = DType::kInt32;
  schema.label = {"income", {">50K", ">50K."}, {"<=50K", "<=50K."}};
  schema.comment = "|";
  schema.unknown = "?";
  return schema;
}

// Hashed ids for the texts, one dense vector of the numbers, a bucketised age and its cross.
inline std::vector<FeatureColumn> adult_features() {
  std::vector<NumericInput> numbers;
  for (const auto& name : kAdultNumeric)
    numbers.push_back({.column = name, .log1p = name.starts_with("capital")});
  std::vector<FeatureColumn> features = {FeatureColumn::numeric(numbers)};
  for (const auto& name : kAdultText) features.push_back(FeatureColumn::hashed(name, 1000));
  features.push_back(FeatureColumn::bucketised("age", {18, 25, 30, 35, 40, 45, 50, 55, 60, 65}));
  features.push_back(FeatureColumn::crossed({"education", "occupation"}, 10'000));
  return features;
}

}  // namespace cairn::testing
