// JobFixture: jobs that a test writes as texts, in a folder of the test's own.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/base/error.h"
#include "data/dataset/dataset_iterator.h"
#include "tests/tools/temp_folder.h"
#include "tools/job/parts/fitted_features.h"
#include "tools/job/parts/job_source.h"
#include "tools/job/spec/job.h"

namespace cairn::tools {

class JobFixture : public ::testing::Test {
 protected:
  Job job(const std::string& text) const { return parse_job(text, folder_.path() + "/some.toml"); }
  // The message of the error that `call` raises.
  template <typename Call>
  static std::string raised_by(Call call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "it was taken";
  }
  std::string error_of(const std::string& text) const {
    return raised_by([&] { fit_features(job(text)); });
  }
  // The first 100 examples of the training data, by column.
  std::map<std::string, Tensor> batch_of(const std::string& text) const {
    const Job read = job(text);
    const Dataset data = train_source(read, fit_features(read)).batch(100);
    const Element all = *open(data)->next();
    std::map<std::string, Tensor> columns;
    for (std::size_t i = 0; i < all.size(); ++i)
      columns[data.element_spec().columns[i].name] = all[i];
    return columns;
  }

  TempFolder folder_;
};

}  // namespace cairn::tools
