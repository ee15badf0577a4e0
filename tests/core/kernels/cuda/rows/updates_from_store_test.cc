// Updates that come to a store of variables that it has lent to a device: the device makes them.
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"
#include "tests/core/some_rules.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's

std::vector<UpdateRule> rules() {
  std::vector<UpdateRule> all = own_rules();
  for (const UpdateRule& one :
       {UpdateRule{RuleKind::kSgd, {}}, UpdateRule{RuleKind::kAdam, {0.9f, 0.99f, 1e-3f}},
        UpdateRule{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}}})
    all.push_back(one);
  return all;
}

struct UpdatesFromStore : DeviceRowsTest {
  // Reads every variable, after which the device has them.
  void read_all() {
    const auto step = trace_function({}, [&](auto&) {
      std::vector<Array> values;
      for (const Variable& one : variables) values.push_back(one.read() * 1.0f);
      return values;
    });
    for (Side* side : {&host, &device}) run_on(*side, step, {});
  }
  void push(const std::vector<Update>& updates) {
    for (Side* side : {&host, &device}) {
      std::vector<Update> own = updates;
      side->store.push({}, own);
    }
  }
};

TEST_F(UpdatesFromStore, AreMadeWhereTheVariablesLie) {
  const std::vector<UpdateRule> all = rules();
  for (std::size_t i = 0; i < all.size(); ++i) variable(str("v", i), noise({9, 4}, i), all[i]);
  read_all();
  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<Update> updates;
    for (VariableId id = 0; id < all.size(); ++id) {
      updates.push_back({id, all[id], 0.1f, ids_of({1, 4, 8}), noise({3, 4}, 10 * round + id)});
      updates.push_back({id, all[id], 0.1f, {}, noise({9, 4}, 100 + 10 * round + id)});
      updates.push_back({id, all[id], 0.1f, ids_of({}), noise({0, 4}, 1)});
    }
    push(updates);
    read_all();
  }
  push({{0, {RuleKind::kAssign, {}}, 0, ids_of({2, 3}), noise({2, 4}, 7)}});
#ifndef CAIRN_ON_GPU
  EXPECT_GT(driver.use().bytes(cuda::Use::kVariables), 0u);
#endif
  expect_equal_stores();
}

// Nothing of a push is made if one of its updates does not fit.
TEST_F(UpdatesFromStore, OfWhichOneIsWrongChangeNothing) {
  const UpdateRule sgd{RuleKind::kSgd, {}};
  variable("table", noise({9, 4}, 1), sgd);
  read_all();
  std::vector<Update> updates = {{0, sgd, 0.1f, ids_of({1}), noise({1, 4}, 2)},
                                 {0, sgd, 0.1f, ids_of({9}), noise({1, 4}, 3)}};
  EXPECT_THROW(device.store.push({}, updates), InvalidArgumentError);
  expect_equal_stores();
}

#ifndef CAIRN_ON_GPU
// The variable then comes home, as for any change that its holder cannot make.
TEST_F(UpdatesFromStore, ForWhichTheDeviceHasNoMemoryAreMadeAtHome) {
  const UpdateRule sgd{RuleKind::kSgd, {}};
  variable("table", noise({9, 4}, 1), sgd);
  read_all();
  driver.limit(driver.used_bytes());
  push({{0, sgd, 0.1f, ids_of({1, 4}), noise({2, 4}, 2)}});
  expect_equal_stores();
}
#endif

}  // namespace
}  // namespace cairn
