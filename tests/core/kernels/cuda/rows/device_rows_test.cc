// Variables that lie in a device's memory while steps compute on them: a run gives what it gives
// with variables in the host's memory, and the store has the newest rows whenever it is asked.
#include "tests/core/kernels/cuda/rows/device_rows_testing.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::HasSubstr;

const UpdateRule kAdam{RuleKind::kAdam, {0.9f, 0.99f, 1e-3f}};
const UpdateRule kLazyAdam{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}};

// Two lookups of one table, so that an update's ids are those of both; a dense layer; a slot rule
// for each; a read after an update.
TEST_F(DeviceRowsTest, StepsTrainAsWithVariablesInTheHostsMemory) {
  const Variable table = variable("table", noise({9, 4}, 1), kLazyAdam),
                 wide = variable("wide", noise({9, 1}, 2), kSgd),
                 layer = variable("layer", noise({4, 3}, 3), kAdam),
                 scale = variable("scale", tensor({1}, {2}), kSgd);
  const auto step = trace_function({ints({kAny}), ints({kAny}), floats({kAny, 3})}, [&](auto& in) {
    const Array rows = table.gather(arg(in, 0)) + table.gather(arg(in, 1));
    const Array out = tanh(matmul(rows, layer.read()) + wide.gather(arg(in, 0))) * scale.read();
    const Array loss = mean(square(out - arg(in, 2)));
    for (const auto& gradient : variable_gradients(loss)) {
      const UpdateRule& rule = gradient.variable.name() == "table"   ? kLazyAdam
                               : gradient.variable.name() == "layer" ? kAdam
                                                                     : kSgd;
      if (gradient.is_sparse())
        gradient.variable.update(rule, gradient.sparse, 0.1f);
      else
        gradient.variable.update(rule, gradient.dense, 0.1f);
    }
    scale.assign(scale.read() * 0.9f);
    return std::vector<Array>{loss, scale.read()};
  });
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> arguments = {ids_of({8, 0, 8, 3, 3}), ids_of({1, 8, 2, 3, i}),
                                           noise({5, 3}, 10 + i)};
    const auto want = run_on(host, step, arguments), got = run_on(device, step, arguments);
    for (std::size_t k = 0; k < want.size(); ++k) expect_near(got[k], want[k], str("output ", k));
  }
  expect_equal_stores();
}

#ifndef CAIRN_ON_GPU
TEST_F(DeviceRowsTest, AWarmStepAllocatesNothingAndMovesNoVariable) {
  const Variable layer = variable("layer", noise({4, 3}, 1), kSgd);
  const auto step = trace_function({floats({2, 4})}, [&](auto& in) {
    const Array loss = mean(square(matmul(arg(in, 0), layer.read())));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(kSgd, gradient.dense, 0.1f);
    return std::vector<Array>{loss};
  });
  const auto plan = make_plan(step.graph, {0});
  const std::vector<Tensor> arguments = {noise({2, 4}, 2)};
  run(plan, device.workspace, device.store, {}, arguments, {});
  const auto before = driver.counts();
  run(plan, device.workspace, device.store, {}, arguments, {});
  EXPECT_EQ(driver.counts().allocations, before.allocations);
  EXPECT_EQ(driver.counts().waits, before.waits + 1);  // for the loss
}

TEST_F(DeviceRowsTest, ASecondStepIsRecordedAndLaterOnesReplayed) {
  const Variable layer = variable("layer", noise({4, 3}, 1), kAdam);
  const auto step = trace_function({floats({2, 4})}, [&](auto& in) {
    const Array loss = mean(square(matmul(arg(in, 0), layer.read())));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(kAdam, gradient.dense, 0.1f);
    return std::vector<Array>{loss};
  });
  const auto plan = make_plan(step.graph, {0});
  for (int i = 0; i < 5; ++i)
    for (Side* side : {&host, &device})
      run(plan, side->workspace, side->store, {}, {noise({2, 4}, 2 + i)}, {});
  EXPECT_EQ(driver.counts().recordings, 1);
  EXPECT_EQ(driver.counts().replays, 4);
  expect_equal_stores();
}
#endif

// Tables of several sizes and rules, each with ids of its own, some of them more often than a team
// of threads adds up at once. Of two variables the learning rates differ.
TEST_F(DeviceRowsTest, ManyTablesAreUpdatedInOneGoAsOneByOne) {
  struct Table {
    std::int64_t rows, dim;
    const UpdateRule& rule;
  };
  const std::vector<Table> tables = {{9, 4, kSgd},      {20'000, 4, kSgd},      {33, 8, kSgd},
                                     {9, 4, kLazyAdam}, {20'000, 4, kLazyAdam}, {5, 3, kSgd}};
  std::vector<Variable> all;
  for (std::size_t t = 0; t < tables.size(); ++t)
    all.push_back(variable("table" + std::to_string(t),
                           noise({tables[t].rows, tables[t].dim}, 1 + t), tables[t].rule));
  const std::vector<SignatureEntry> types(tables.size(), ints({kAny}));
  const auto step = trace_function(types, [&](auto& in) {
    Array loss = mean(square(all[0].gather(arg(in, 0))));
    for (std::size_t t = 1; t < all.size(); ++t)
      loss = loss + mean(square(all[t].gather(arg(in, t))));
    float rate = 0.5f;
    for (const auto& gradient : variable_gradients(loss)) {
      const auto t = static_cast<std::size_t>(gradient.variable.name().back() - '0');
      gradient.variable.update(tables[t].rule, gradient.sparse, rate /= 2);
    }
    return std::vector<Array>{loss};
  });
  for (int i = 0; i < 4; ++i) {
    std::vector<Tensor> ids;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      std::vector<std::int64_t> some;
      for (std::int64_t k = 0; k < 150 + static_cast<std::int64_t>(t); ++k)
        some.push_back(k % 2 == 0 ? 3 : k * (i + 7) % tables[t].rows);
      ids.push_back(ids_of(some));
    }
    for (Side* side : {&host, &device}) run_on(*side, step, ids);
  }
  expect_equal_stores();
}

// Lookups that are stacked, as DLRM's are: gradients are read where they lie within that of the
// stack. One table has another rule than the others. Rows of three floats stand first in the
// concatenation, so that what follows does not begin where vectors may.
TEST_F(DeviceRowsTest, GradientsOfStackedLookupsAreReadWithinThatOfTheStack) {
  std::vector<Variable> all;
  for (int t = 0; t < 4; ++t)
    all.push_back(variable("table" + std::to_string(t),
                           noise({9, 4}, 1 + static_cast<std::uint64_t>(t)),
                           t == 2 ? kAdam : kSgd));
  const Variable narrow = variable("narrow", noise({9, 3}, 6), kSgd);
  const std::vector<SignatureEntry> types(5, ints({kAny}));
  const auto step = trace_function(types, [&](auto& in) {
    std::vector<Array> rows;
    for (std::size_t t = 0; t < all.size(); ++t) rows.push_back(all[t].gather(arg(in, t)));
    const Array crossed = dot_interaction(stack(rows, 1));
    const Array beside = concat({narrow.gather(arg(in, 4)), rows[0], crossed}, 1);
    const Array loss = mean(square(beside - 0.3f));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(gradient.variable.name() == "table2" ? kAdam : kSgd, gradient.sparse,
                               0.1f);
    return std::vector<Array>{loss};
  });
  for (int i = 0; i < 4; ++i) {
    std::vector<Tensor> ids;
    for (int t = 0; t < 5; ++t) ids.push_back(ids_of({8, t, 8, 3, (t + i) % 9}));
    for (Side* side : {&host, &device}) run_on(*side, step, ids);
  }
  expect_equal_stores();
}

// Updates by ids run beside one another, but for those of one variable.
TEST_F(DeviceRowsTest, UpdatesOfOneVariableComeInTheirOrder) {
  const Variable table = variable("table", noise({9, 4}, 1), kSgd),
                 other = variable("other", noise({9, 4}, 2), kSgd);
  const auto step = trace_function({ints({kAny}), floats({kAny, 4})}, [&](auto& in) {
    for (const Variable& one : {table, other}) {
      one.scatter_add(arg(in, 0), arg(in, 1));
      one.scatter_update(arg(in, 0), arg(in, 1) * 2.0f);
      one.scatter_add(arg(in, 0), arg(in, 1) * 3.0f);
    }
    return std::vector<Array>{};
  });
  for (int i = 0; i < 3; ++i)
    for (Side* side : {&host, &device})
      run_on(*side, step, {ids_of({8, 0, 8, 3, i}), noise({5, 4}, 3 + i)});
  expect_equal_stores();
}

TEST_F(DeviceRowsTest, WhatTheStoreChangesIsSeenByTheNextStep) {
  const Variable v = variable("v", tensor({2}, {1, 2}), kSgd);
  const auto doubled = trace_function({}, [&](auto&) {
    v.assign(v.read() * 2.0f);
    return std::vector<Array>{v.read()};
  });
  run_on(device, doubled, {});
  Update set{0, {RuleKind::kAssign, {}}, 0, {}, tensor({2}, {10, 20})};
  device.store.push({}, {&set, 1});
  expect_near(run_on(device, doubled, {})[0], tensor({2}, {20, 40}), "v");
  expect_near(read(device, 0), tensor({2}, {20, 40}), "v at home");
}

// Some of the 10,000 runs meet an id that is out of range, and some have batches of another size.
TEST_F(DeviceRowsTest, RunsThatFailLeaveNoMemoryBehind) {
  const Variable table = variable("table", noise({9, 4}, 1), kLazyAdam);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array loss = mean(square(table.gather(arg(in, 0))));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(kLazyAdam, gradient.sparse, 0.01f);
    return std::vector<Array>{loss};
  });
  const auto plan = make_plan(step.graph, {0});
  const std::size_t before = gpu->used_bytes();
  int failed = 0;
  {
    Workspace other(*gpu);
    std::size_t warm = 0;
    for (int i = 0; i < 10'000; ++i) {
      const std::int64_t last = i % 7 == 3 ? 9 : i % 9;
      const Tensor ids = i % 13 == 0 ? ids_of({1, 2, last}) : ids_of({8, 0, 8, last});
      try {
        run(plan, other, device.store, {}, {ids}, {});
      } catch (const InvalidArgumentError&) {
        ++failed;
      }
      if (i == 100) warm = gpu->used_bytes();
    }
    EXPECT_EQ(gpu->used_bytes(), warm);
  }
  EXPECT_EQ(gpu->used_bytes(), before);
  EXPECT_EQ(failed, 1429);
  const Tensor rows = read(device, 0);
  for (float value : rows.values<float>()) EXPECT_TRUE(std::isfinite(value));
}

TEST_F(DeviceRowsTest, AnIdOutOfRangeIsRaisedWithItsPlace) {
  const Variable table = variable("table", noise({9, 4}, 1), kSgd);
  const auto lookup = trace_function(
      {ints({kAny})}, [&](auto& in) { return std::vector<Array>{table.gather(arg(in, 0))}; });
  EXPECT_THAT(
      [&] {
        run_on(device, lookup, {ids_of({1, 9, 2})});
      },
      ::testing::ThrowsMessage<InvalidArgumentError>(
          AllOf(HasSubstr("id 9 at position 1"), HasSubstr("[0, 9)"))));
}

TEST_F(DeviceRowsTest, RowsComeHomeWhenTheWorkspaceEnds) {
  const Variable v = variable("v", tensor({2}, {1, 2}), kSgd);
  const auto doubled = trace_function({}, [&](auto&) {
    v.assign(v.read() * 2.0f);
    return std::vector<Array>{};
  });
  {
    Workspace other(*gpu);
    run(make_plan(doubled.graph, {0}), other, device.store, {}, {}, {});
  }
  expect_near(read(device, 0), tensor({2}, {2, 4}), "v");
}

}  // namespace
}  // namespace cairn
