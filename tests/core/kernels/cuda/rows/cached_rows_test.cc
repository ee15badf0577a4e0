// Tables in the host's memory of which a device caches the rows in use: steps have the bits that
// they have with the tables on the device, and the store has the newest rows whenever it is asked.
#include "core/exec/device_rows.h"
#include "core/kernels/cuda/device.h"
#include "tests/core/executor_testing.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

using namespace testing;  // NOLINT: ours and gmock's
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const UpdateRule kLazy{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}};
constexpr std::int64_t kRows = RowLayout::kRowsBeside;
constexpr std::size_t kBytesPerRow = 4;  // of a table, for the numbers of its rows

// The same variables twice: `whole` has its tables on the device, `cached` behind caches.
class CachedRowsTest : public ::testing::Test {
 protected:
  struct Side {
    explicit Side(Device& device) : workspace(std::make_unique<Workspace>(device)) {}
    LocalStore store;
    std::unique_ptr<Workspace> workspace;
  };

  Variable variable(const std::string& name, const Shape& shape, const UpdateRule& rule) {
    auto spec = std::make_shared<VariableSpec>();
    spec->name = name;
    spec->dtype = DType::kFloat32;
    spec->shape = shape;
    spec->initializer = Initializer::from(noise(shape, variables_.size() + 1));
    for (Side* side : {&whole, &cached}) side->store.add_slots(side->store.create(spec), rule);
    return variables_.emplace_back(spec);
  }
  // All caches together get this for rows, besides the numbers of `rows` rows.
  void cache_in(std::int64_t rows, std::size_t bytes) {
    DeviceCache limit;
    limit.bytes = static_cast<std::size_t>(rows) * kBytesPerRow + bytes;
    cached.workspace->limit_tables(limit);
  }
  std::shared_ptr<const Plan> plan_of(const ConcreteFunction& function) const {
    std::vector<VariableId> ids;
    for (const auto& used : function.variables)
      for (VariableId id = 0; id < variables_.size(); ++id)
        if (variables_[id].shared_spec() == used) ids.push_back(id);
    return make_plan(function.graph, ids);
  }
  // Runs it on both, and compares what comes out.
  void run_both(const std::shared_ptr<const Plan>& plan, const std::vector<Tensor>& arguments) {
    const auto want = run(plan, *whole.workspace, whole.store, {}, arguments, {});
    const auto got = run(plan, *cached.workspace, cached.store, {}, arguments, {});
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(bytes(got[i]), bytes(want[i]));
  }
  static std::string bytes(const Tensor& t) {
    return {reinterpret_cast<const char*>(t.raw()), t.bytes()};
  }
  static std::string bytes(const LocalStore& store, VariableId id) {
    const RowBlock block = store.block(id);
    return {reinterpret_cast<const char*>(block.base),
            static_cast<std::size_t>(block.rows * block.row_stride) * sizeof(float)};
  }
  // With slots.
  void expect_equal_stores() {
    for (VariableId id = 0; id < variables_.size(); ++id) {
      EXPECT_TRUE(bytes(whole.store, id) == bytes(cached.store, id)) << variables_[id].name();
      EXPECT_EQ(whole.store.updates(id), cached.store.updates(id)) << variables_[id].name();
    }
  }
  std::size_t cache_bytes() const { return gpu->figures()->cache_bytes; }
  // Ids that mostly come again, and some that do not.
  static Tensor some_ids(std::int64_t count, int seed, std::int64_t rows = kRows) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < count; ++i)
      ids.push_back(i % 3 == 0 ? i % 7 : (i * 7919 + seed * 104'729) % rows);
    return ids_of(ids);
  }
  // Looks rows up and moves them.
  ConcreteFunction training(const Variable& table, const UpdateRule& rule) const {
    return trace_function({ints({kAny})}, [&](auto& in) {
      const Array loss = mean(square(table.gather(arg(in, 0)) - 0.3f));
      for (const auto& gradient : variable_gradients(loss))
        gradient.variable.update(rule, gradient.sparse, 0.1f);
      return std::vector<Array>{loss};
    });
  }

  const UpdateRule every_rule_{RuleKind::kAdam, {0.9f, 0.99f, 1e-3f}};
  FakeDriver driver;
  std::unique_ptr<Device> gpu = cuda::make_device("gpu:0", driver, cpu_device());
  Side whole{*gpu}, cached{*gpu};
  std::vector<Variable> variables_;
};

// Two tables of different width and rule, one looked up twice, and a dense layer.
TEST_F(CachedRowsTest, StepsHaveTheBitsOfStepsOnWholeTables) {
  const Variable table = variable("table", {kRows, 4}, kLazy),
                 wide = variable("wide", {kRows, 8}, kSgd), layer = variable("layer", {4, 8}, kSgd);
  const auto step = trace_function({ints({kAny}), ints({kAny})}, [&](auto& in) {
    const Array rows = table.gather(arg(in, 0)) + table.gather(arg(in, 1));
    const Array loss = mean(square(tanh(matmul(rows, layer.read())) + wide.gather(arg(in, 1))));
    for (const auto& gradient : variable_gradients(loss)) {
      if (gradient.is_sparse())
        gradient.variable.update(gradient.variable.name() == "table" ? kLazy : kSgd,
                                 gradient.sparse, 0.1f);
      else
        gradient.variable.update(kSgd, gradient.dense, 0.1f);
    }
    return std::vector<Array>{loss, rows};
  });
  const auto plan = plan_of(step);
  cache_in(2 * kRows, 100'000);
  for (int i = 0; i < 40; ++i) run_both(plan, {some_ids(60, 2 * i), some_ids(60, 2 * i + 1)});
  EXPECT_GT(cache_bytes(), 2 * kRows * kBytesPerRow);
  EXPECT_LT(cache_bytes(), 2 * kRows * kBytesPerRow + 150'000);
  expect_equal_stores();
}

// Values of equal ids are joined in different ways, and one variable's updates come in their order.
TEST_F(CachedRowsTest, UpdatesByOtherIdsThanTheReadsFindTheirRows) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto step = trace_function({ints({kAny}), ints({kAny})}, [&](auto& in) {
    const Array rows = table.gather(arg(in, 0));
    table.scatter_add(arg(in, 1), rows * 0.5f);
    table.scatter_update(arg(in, 0), rows * 2.0f);
    table.scatter_sub(arg(in, 1), rows);
    return std::vector<Array>{table.gather(arg(in, 1))};
  });
  const auto plan = plan_of(step);
  cache_in(kRows, 60'000);
  for (int i = 0; i < 20; ++i) run_both(plan, {some_ids(50, i), some_ids(50, 100 + i)});
  EXPECT_GT(cache_bytes(), 0u);
  expect_equal_stores();
}

// Evaluations come in between, with larger batches, and ids of int32.
TEST_F(CachedRowsTest, BatchesOfOtherSizesAndKindsShareTheCache) {
  const Variable table = variable("table", {kRows, 4}, kLazy);
  const auto train = plan_of(training(table, kLazy));
  const auto narrow = trace_function({TensorType{DType::kInt32, {kAny, 2}}}, [&](auto& in) {
    return std::vector<Array>{table.gather(arg(in, 0))};
  });
  const auto evaluate = plan_of(narrow);
  cache_in(kRows, 100'000);
  for (int i = 0; i < 12; ++i) {
    run_both(train, {some_ids(40 + i, i)});
    Tensor ids(DType::kInt32, {30 * (1 + i % 3), 2});
    for (std::size_t k = 0; k < static_cast<std::size_t>(ids.elements()); ++k)
      ids.mutable_values<std::int32_t>()[k] =
          static_cast<std::int32_t>((k * 7919 + static_cast<std::size_t>(i) * 31) % kRows);
    run_both(evaluate, {ids});
  }
  expect_equal_stores();
}

TEST_F(CachedRowsTest, TheStoreHasTheNewestRowsAndItsChangesAreSeen) {
  const Variable table = variable("table", {kRows, 4}, kLazy);
  const auto train = plan_of(training(table, kLazy));
  cache_in(kRows, 60'000);
  for (int i = 0; i < 12; ++i) {
    run_both(train, {some_ids(50, i)});
    if (i % 3 == 1) expect_equal_stores();
    if (i % 4 != 2) continue;
    Tensor ids = ids_of({0, 3, 5});
    for (Side* side : {&whole, &cached}) {
      Update set{
          0, {RuleKind::kAssign, {}}, 0, ids, noise({3, 4}, 50 + static_cast<std::uint64_t>(i))};
      side->store.push({}, {&set, 1});
    }
  }
  EXPECT_GT(cache_bytes(), 0u);
  expect_equal_stores();
}

TEST_F(CachedRowsTest, ALookAtTheRowsEndsNoCache) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto train = plan_of(training(table, kSgd));
  cache_in(kRows, 60'000);
  run_both(train, {some_ids(50, 1)});
  const std::size_t before = cache_bytes();
  Read read{0, ids_of({0, 1, 2}), {}};
  cached.store.pull({}, {&read, 1});
  EXPECT_EQ(cache_bytes(), before);
  Read same{0, ids_of({0, 1, 2}), {}};
  whole.store.pull({}, {&same, 1});
  EXPECT_EQ(bytes(read.value), bytes(same.value));
}

TEST_F(CachedRowsTest, RowsComeHomeWhenTheWorkspaceEnds) {
  const Variable table = variable("table", {kRows, 4}, kLazy);
  const auto train = plan_of(training(table, kLazy));
  cache_in(kRows, 60'000);
  for (int i = 0; i < 3; ++i) run_both(train, {some_ids(50, i)});
  cached.workspace = nullptr;
  EXPECT_EQ(cache_bytes(), 0u);
  expect_equal_stores();
}

// It is done at home, and lookups begin a new cache.
TEST_F(CachedRowsTest, AStepThatUsesATableWholeHasItsNewestRows) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto train = plan_of(training(table, kSgd));
  const auto halved = trace_function({}, [&](auto&) {
    table.assign(table.read() * 0.5f);
    return std::vector<Array>{reduce_sum(table.read())};
  });
  const auto halve = plan_of(halved);
  cache_in(kRows, 60'000);
  for (int i = 0; i < 3; ++i) {
    run_both(train, {some_ids(50, i)});
    const auto want = run(halve, *whole.workspace, whole.store, {}, {}, {})[0].values<float>()[0];
    const auto got = run(halve, *cached.workspace, cached.store, {}, {}, {})[0].values<float>()[0];
    EXPECT_NEAR(got, want, 1e-2f);
  }
  run_both(train, {some_ids(50, 9)});
  EXPECT_GT(cache_bytes(), 0u);
  expect_equal_stores();
}

// ---- what is cached ----

TEST_F(CachedRowsTest, ByDefaultTablesLieWholeWhereTheyFit) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  run_both(plan_of(training(table, kSgd)), {some_ids(50, 1)});
  EXPECT_EQ(cache_bytes(), 0u);
}

TEST_F(CachedRowsTest, ByDefaultTheLargestIsCachedWhereNotAllFit) {
  const Variable large = variable("large", {4 * kRows, 8}, kLazy),
                 small = variable("small", {kRows, 4}, kSgd);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array loss =
        mean(square(large.gather(arg(in, 0)))) + mean(square(small.gather(arg(in, 0))));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(gradient.variable.name() == "large" ? kLazy : kSgd, gradient.sparse,
                               0.1f);
    return std::vector<Array>{loss};
  });
  const auto plan = plan_of(step);
  run(plan, *whole.workspace, whole.store, {}, {some_ids(50, 0)}, {});
  driver.limit(driver.used_bytes() + (std::size_t{3} << 20));
  for (int i = 0; i < 10; ++i) {
    if (i > 0) run(plan, *whole.workspace, whole.store, {}, {some_ids(50, i)}, {});
    run(plan, *cached.workspace, cached.store, {}, {some_ids(50, i)}, {});
  }
  EXPECT_GT(cache_bytes(), std::size_t{1} << 20);
  // The variables of the other side, and the small one.
  EXPECT_EQ(gpu->figures()->variables_bytes,
            4u * kRows * 24 * sizeof(float) + 2u * kRows * 4 * sizeof(float));
  expect_equal_stores();
}

TEST_F(CachedRowsTest, VariablesThatNoCacheTakesLieWhole) {
  const Variable few = variable("few", {100, 4}, kLazy), odd = variable("odd", {kRows, 17}, kSgd),
                 every = variable("every", {kRows, 4}, every_rule_);
  const auto step = trace_function({ints({kAny})}, [&](auto& in) {
    const Array loss = mean(square(few.gather(arg(in, 0)))) + mean(square(odd.gather(arg(in, 0)))) +
                       mean(square(every.gather(arg(in, 0))));
    for (const auto& gradient : variable_gradients(loss))
      gradient.variable.update(gradient.variable.name() == "few"   ? kLazy
                               : gradient.variable.name() == "odd" ? kSgd
                                                                   : every_rule_,
                               gradient.sparse, 0.1f);
    return std::vector<Array>{loss};
  });
  const auto plan = plan_of(step);
  cache_in(0, 1000);
  for (int i = 0; i < 3; ++i) run_both(plan, {some_ids(50, i, 100)});
  EXPECT_EQ(cache_bytes(), 0u);
  expect_equal_stores();
}

// ---- what goes wrong ----

TEST_F(CachedRowsTest, ABatchOfMoreRowsThanTheCacheHoldsIsAnErrorWithTheTableAndTheCure) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto train = plan_of(training(table, kSgd));
  cache_in(kRows, 292 * 300 + 32 * 100);  // for batches of 300 lookups, 100 rows
  std::vector<std::int64_t> ids(300);
  for (std::int64_t i = 0; i < 300; ++i) ids[static_cast<std::size_t>(i)] = i % 100;
  run_both(train, {ids_of(ids)});
  for (std::int64_t i = 0; i < 300; ++i) ids[static_cast<std::size_t>(i)] = i % 120;
  EXPECT_THAT([&] { run(train, *cached.workspace, cached.store, {}, {ids_of(ids)}, {}); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("the table \"table\" has a cache of 100 rows"),
                        HasSubstr("looks up 120 different ones"), HasSubstr("device_cache"))));
}

TEST_F(CachedRowsTest, ALimitThatLeavesNoRoomForRowsIsAnErrorWithTheTableAndTheCure) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto train = plan_of(training(table, kSgd));
  cache_in(kRows, 200);
  EXPECT_THAT(
      [&] { run(train, *cached.workspace, cached.store, {}, {some_ids(50, 1)}, {}); },
      ThrowsMessage<ResourceExhaustedError>(AllOf(
          HasSubstr("the table \"table\""), HasSubstr("16384 rows"), HasSubstr("device_cache"))));
}

TEST_F(CachedRowsTest, AnIdOutOfRangeIsRaisedWithItsPlace) {
  const Variable table = variable("table", {kRows, 4}, kSgd);
  const auto train = plan_of(training(table, kSgd));
  cache_in(kRows, 60'000);
  run_both(train, {some_ids(3, 1)});
  EXPECT_THAT(
      [&] {
        run(train, *cached.workspace, cached.store, {}, {ids_of({1, kRows, 2})}, {});
      },
      ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("the variable \"table\""),
                                                HasSubstr("id 16384 at position 1"),
                                                HasSubstr("[0, 16384)"))));
}

TEST_F(CachedRowsTest, WarmStepsAllocateNothingAndWaitOnceEach) {
  const Variable table = variable("table", {kRows, 4}, kLazy);
  const auto train = plan_of(training(table, kLazy));
  cache_in(kRows, 60'000);
  for (int i = 0; i < 3; ++i)
    run(train, *cached.workspace, cached.store, {}, {some_ids(50, i)}, {});
  const auto before = driver.counts();
  for (int i = 0; i < 5; ++i)
    run(train, *cached.workspace, cached.store, {}, {some_ids(50, i)}, {});
  EXPECT_EQ(driver.counts().allocations, before.allocations);
  EXPECT_EQ(driver.counts().waits, before.waits + 5);
  EXPECT_EQ(driver.counts().recordings, 0);
}

}  // namespace
}  // namespace cairn
