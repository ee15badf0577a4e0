// A small saved model (tests/model/small_model.h), and requests for it.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "strategy/base/one_device_strategy.h"
#include "tests/model/small_model.h"

namespace cairn::serving::testing {

struct SmallRequests : ::testing::Test {
  OneDeviceStrategy strategy{3};
  cairn::testing::SmallSave small;
  SmallRequests() {
    cairn::testing::train(strategy, small.model, small.examples());
    small.save(strategy);
  }
  // Trains on, and saves the model again.
  void train_on(int steps = 1) {
    cairn::testing::train(strategy, small.model, small.examples(), steps);
    small.save(strategy);
  }
  // The columns that the model takes, in batches of this size.
  std::vector<Element> batches(std::int64_t size) const {
    LoadedModel loaded = LoadedModel::load(small.path);
    const Dataset data = loaded.examples({small.data}).batch(size);
    std::vector<Element> all;
    const auto iterator = open(data);
    while (const auto element = iterator->next()) {
      Element batch;
      for (const ColumnSpec& column : loaded.about().input.columns)
        batch.push_back((*element)[data.element_spec().find(column.name)]);
      all.push_back(std::move(batch));
    }
    return all;
  }
};

}  // namespace cairn::serving::testing
