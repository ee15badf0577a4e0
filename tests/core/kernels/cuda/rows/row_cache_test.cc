// Tables in the host's memory behind a cache: steps have the bits of steps without one, whatever is
// prepared ahead and however small the cache is, and nothing moves while a step may use it.
#include "core/kernels/cuda/rows/row_cache.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/base/error.h"
#include "tests/core/kernels/cuda/rows/row_cache_run.h"

namespace cairn {
namespace {

using cuda::RowCache;
using Job = testing::RowCacheJob;
using ::testing::HasSubstr;
using testing::RowCacheRun;
using ::testing::ThrowsMessage;

const UpdateRule kCachedSgd{RuleKind::kSgd, {}},
    kCachedAdam{RuleKind::kLazyAdam, {0.9f, 0.99f, 1e-3f}};

void expect_the_bits_of_a_run_without_a_cache(const Job& job) {
  RowCacheRun run(job);
  run.run();
  run.queue.wait();
  run.expect_equal_outputs();
  run.cache->flush();
  run.expect_equal_tables();
}

TEST(RowCache, StepsHaveTheBitsOfStepsWithoutOne) {
  std::uint64_t seed = 100;
  for (const UpdateRule& rule : {kCachedSgd, kCachedAdam})
    for (const bool skewed : {false, true})
      for (const int lookahead : {0, 1, 2, 3, 4, 5, 6}) {
        Job job;
        job.rule = rule;
        job.skewed = skewed;
        job.lookahead = lookahead;
        job.places = 40 * (lookahead + 1);  // just as many as always suffice
        job.seed = ++seed;
        SCOPED_TRACE(str("seed ", seed, ", lookahead ", lookahead));
        expect_the_bits_of_a_run_without_a_cache(job);
      }
}

// The window of candidates is then only a part of the cache.
TEST(RowCache, ACacheOfMorePlacesThanBatchesCanFillHasTheSameBits) {
  for (const std::int64_t places : {37, 100, 399, 1000}) {
    Job job;
    job.places = places;
    job.lookups = 12;
    job.lookahead = 1;
    job.steps = 60;
    job.seed = static_cast<std::uint64_t>(places);
    expect_the_bits_of_a_run_without_a_cache(job);
  }
}

TEST(RowCache, EqualRunsReadAndWriteTheSameRows) {
  Job job;
  job.places = 120;
  RowCacheRun one(job), other(job);
  one.run();
  other.run();
  const auto a = one.cache->counts(), b = other.cache->counts();
  EXPECT_EQ(a.found, b.found);
  EXPECT_EQ(a.read, b.read);
  EXPECT_EQ(a.written, b.written);
  EXPECT_GT(a.written, 0u);
}

TEST(RowCache, CountsRowsFoundReadAndWritten) {
  Job job;
  job.places = 1000;  // more than there are rows
  RowCacheRun run(job);
  run.run();
  std::set<std::int64_t> seen;
  std::uint64_t found = 0;
  for (int t = 0; t < job.steps; ++t)
    for (const std::int64_t row : run.rows_of(t)) found += seen.insert(row).second ? 0 : 1;
  EXPECT_EQ(run.cache->counts().found, found);
  EXPECT_EQ(run.cache->counts().read, seen.size());
  EXPECT_EQ(run.cache->counts().written, 0u);
}

TEST(RowCache, RowsThatWereOnlyReadAreNotWritten) {
  Job job;
  job.places = 120;
  RowCacheRun run(job);
  for (int t = 0; t < job.steps; ++t) {
    run.prepare(t, RowCache::Access::kReads);
    run.gather(t, run.cache->use());
    run.cache->release();
  }
  run.queue.wait();
  run.expect_equal_outputs();
  EXPECT_GT(run.cache->counts().read, 120u);
  EXPECT_EQ(run.cache->counts().written, 0u);
}

// Rows 0 to 9 in three batches, then rows of one batch each, more than there is room for.
TEST(RowCache, RowsThatManyBatchesLookUpOutlastRowsOfOneBatch) {
  Job job;
  job.first_row = {0, 1000};
  job.lookups = 10;
  job.places = 20;
  job.lookahead = 0;
  job.steps = 7;
  job.id = [](int step, std::int64_t i) { return step < 3 || step == 6 ? i : step * 10 + i; };
  RowCacheRun run(job);
  run.run();
  EXPECT_EQ(run.cache->counts().read, 10u + 3 * 10u);
  EXPECT_EQ(run.cache->counts().found, 2 * 10u + 10u);
}

TEST(RowCache, AFlushBetweenStepsLosesNoUpdateOfBatchesThatArePrepared) {
  Job job;
  job.places = 120;
  RowCacheRun run(job);
  run.prepare(0);
  run.prepare(1);
  run.step(0);
  run.prepare(2);
  run.cache->flush();
  run.expect_equal_tables();
  for (int t = 1; t < job.steps; ++t) {
    if (t + 2 < job.steps) run.prepare(t + 2);
    run.step(t);
  }
  run.cache->flush();
  run.expect_equal_tables();
}

TEST(RowCache, AnIdThatIsOutOfRangeHasNoPlace) {
  Job job;  // of tables of 100, 0, 3 and 297 rows
  RowCacheRun run(job);
  const std::vector<std::int32_t> ids = {99, 100, -1, 2, 3, 296, 297, 5};
  const std::map<std::size_t, std::int64_t> rows = {{0, 99}, {3, 102}, {5, 399}, {7, 108}};
  const auto sent = run.sent(ids);
  const auto first_lookup = run.sent(std::vector<std::int64_t>{0, 3, 3, 5, 8});
  run.queue.wait();
  run.cache->prepare(
      {sent->data(), cuda::IdType::kInt32, first_lookup->as<std::int64_t>(), std::ssize(ids)},
      RowCache::Access::kReads);
  const auto places = run.fetched(run.cache->use(), std::ssize(ids));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto row = rows.find(i);
    ASSERT_EQ(places[i] >= 0, row != rows.end()) << "lookup " << i;
    if (places[i] < 0) continue;
    const auto* const cached = reinterpret_cast<const float*>(run.cache->block().base);
    EXPECT_EQ(run.fetched(cached + places[i] * job.dim, job.dim),
              std::vector<float>(run.home() + row->second * job.dim,
                                 run.home() + (row->second + 1) * job.dim));
  }
  EXPECT_EQ(run.cache->counts().read, rows.size());
}

TEST(RowCache, NothingWaitsForTheDeviceBetweenSteps) {
  Job job;
  job.places = 120;
  RowCacheRun run(job);
  const auto before = run.driver.counts();
  run.run();
  EXPECT_EQ(run.driver.counts().waits, before.waits);
  EXPECT_EQ(run.driver.counts().allocations, before.allocations);
}

TEST(RowCache, ACacheThatBatchesInFlightOverfillIsAFault) {
  Job job;
  job.skewed = false;
  job.places = 50;
  RowCacheRun run(job);
  for (int t = 0; t < 3; ++t) run.prepare(t);
  run.cache->use();
  run.cache->release();
  EXPECT_THAT([&] { run.queue.wait(); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("a cache of 50 rows has no room")));
}

// ---- what the driver finds, so that its silence above means something ----

TEST(RowCache, AStepThatDoesNotWaitForItsBatchIsARace) {
  Job job;
  job.lookahead = 0;
  RowCacheRun run(job);
  run.prepare(0);
  const std::int32_t* const places = run.cache->use();
  run.cache->release();
  run.prepare(1);  // into the same memory
  EXPECT_THAT([&] { run.gather(1, places); }, ThrowsMessage<InternalError>(HasSubstr("a race")));
}

TEST(RowCache, AnUpdateAfterTheReleaseIsARace) {
  Job job;
  job.lookahead = 0;
  job.places = 40;
  job.skewed = false;
  RowCacheRun run(job);
  run.prepare(0);
  const std::int32_t* const places = run.cache->use();
  run.cache->release();
  run.update(0, places);
  EXPECT_THAT([&] { run.prepare(1); }, ThrowsMessage<InternalError>(HasSubstr("a race")));
}

// ---- refusals ----

TEST(RowCache, CallsOutOfOrderAreRefused) {
  Job job;
  job.lookahead = 1;
  RowCacheRun run(job);
  EXPECT_THROW(run.cache->use(), FailedPreconditionError);
  EXPECT_THROW(run.cache->release(), FailedPreconditionError);
  run.prepare(0);
  run.prepare(1);
  EXPECT_THAT([&] { run.prepare(2); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("a lookahead of 1 allows")));
  run.cache->use();
  EXPECT_THROW(run.cache->use(), FailedPreconditionError);
}

TEST(RowCache, SizesThatDoNotFitAreRefused) {
  testing::FakeDriver driver;
  cuda::Queue queue(driver, cpu_device());
  std::byte* const pinned = driver.allocate_pinned(4096);
  const auto make = [&](std::int64_t stride, std::vector<std::int64_t> first_row,
                        cuda::RowCacheOptions options) {
    const RowCache made(queue, {DType::kFloat32, pinned, 8, 4, stride, 0}, first_row, options);
  };
  EXPECT_NO_THROW(make(4, {0, 8}, {10, 10, 1}));
  EXPECT_THROW(make(6, {0, 8}, {10, 10, 1}), InvalidArgumentError);
  EXPECT_THROW(make(4, {0, 7}, {10, 10, 1}), InvalidArgumentError);
  EXPECT_THROW(make(4, {0, 9, 8}, {10, 10, 1}), InvalidArgumentError);
  EXPECT_THROW(make(4, {0, 8}, {0, 10, 1}), InvalidArgumentError);
  EXPECT_THROW(make(4, {0, 8}, {10, 0, 1}), InvalidArgumentError);
  EXPECT_THROW(make(4, {0, 8}, {10, 10, -1}), InvalidArgumentError);
  driver.release_pinned(pinned);
}

}  // namespace
}  // namespace cairn
