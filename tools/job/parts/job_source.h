// The datasets that [data] of a job describes, column by column as the files have them.
#pragma once
#include <string>
#include <vector>

#include "data/dataset/dataset.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

// The part of an input pipeline in the training data, without what [validation] holds back of it;
// all of that where a data service deals it out.
//   Errors  InvalidArgument: columns that do not fit together; validation.split_by names none that
//           can be split by.
Dataset train_data(const Job& job, const InputContext& context = {});

// Data that models are evaluated on.
inline constexpr const char* kValidation = "validation";
struct EvaluationData {
  std::string name;  // kValidation or "test"
  std::string key;   // of the job file, for messages
  Dataset data;      // as the files have it
};
// The validation data and the test data, as far as the job names them.
std::vector<EvaluationData> eval_data(const Job& job);

// The data as a trained model reads it to predict. Where the format has columns that can be left
// out, it has neither label nor weight, which new files may lack. Records and libsvm lines keep
// both.
Dataset data_to_predict(const Job& job);

// Refuses a job without a label, and one whose label is text without a value.
void verify_label(const Job& job);

}  // namespace cairn::tools
