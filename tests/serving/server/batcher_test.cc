// Requests that wait at the same time are computed together; each gets its own outputs, and its own
// error.
#include "serving/server/batcher.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "serving/model/served_model.h"
#include "tests/serving/small_requests.h"

namespace cairn::serving::testing {
namespace {

// Collects answers, and waits for them.
class Answers {
 public:
  std::function<void(Answer)> take(std::size_t i) {
    return [this, i](Answer answer) {
      const std::lock_guard hold(mutex_);
      answers_[i] = std::move(answer);
      changed_.notify_all();
    };
  }
  Answer wait(std::size_t i) {
    std::unique_lock hold(mutex_);
    if (!changed_.wait_for(hold, std::chrono::seconds(60), [&] { return answers_.contains(i); }))
      throw DeadlineExceededError(str("no answer ", i));
    return answers_.at(i);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::size_t, Answer> answers_;
};

struct BatcherTest : SmallRequests {
  std::shared_ptr<const ServedModel> model = ServedModel::load(small.path, {.threads = 3});
  Answers answers;

  // Holds up the only computing thread until it is destroyed.
  struct Blocked {
    explicit Blocked(Batcher& batcher) {
      batcher.run([this](int) {
        std::unique_lock hold(mutex);
        changed.wait(hold, [this] { return free; });
        ended = true;
        changed.notify_all();
      });
    }
    ~Blocked() {
      std::unique_lock hold(mutex);
      free = true;
      changed.notify_all();
      changed.wait(hold, [this] { return ended; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool free = false, ended = false;
  };
};

TEST_F(BatcherTest, EachRequestGetsTheOutputsOfItsOwnExamples) {
  const auto other = ServedModel::load(small.path);
  for (const int threads : {1, 3}) {
    Answers answers;
    const std::vector<Element> requests = batches(3);
    Batcher batcher({.threads = threads});
    for (std::size_t i = 0; i < requests.size(); ++i)
      batcher.submit(
          {model, requests[i], requests[i].back().shape()[0], TimePoint::max(), answers.take(i)});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Answer answer = answers.wait(i);
      if (answer.error) std::rethrow_exception(answer.error);
      const std::vector<Tensor> wanted = other->predict(requests[i], 0);
      ASSERT_EQ(answer.outputs.size(), wanted.size());
      for (std::size_t o = 0; o < wanted.size(); ++o) {
        ASSERT_EQ(answer.outputs[o].type(), wanted[o].type());
        EXPECT_EQ(std::memcmp(answer.outputs[o].raw(), wanted[o].raw(), wanted[o].bytes()), 0);
      }
    }
  }
}

TEST_F(BatcherTest, TheErrorOfOneRequestIsNotToldToTheOthers) {
  std::vector<Element> requests = batches(1);
  const std::size_t ids = model->about().input.find("ids");
  Tensor outside(requests[1][ids].dtype(), {1}), one_id(DType::kInt64, {2});
  if (outside.dtype() == DType::kInt64)
    outside.mutable_values<std::int64_t>()[0] = 1'000'000;
  else
    outside.mutable_values<std::int32_t>()[0] = 1'000'000;
  one_id.mutable_values<std::int64_t>()[0] = 0;
  one_id.mutable_values<std::int64_t>()[1] = 1;
  requests[1][ids] = outside;
  requests[1][model->about().input.find("ids/row_splits")] = one_id;
  Batcher batcher({.threads = 1});
  {
    Blocked blocked(batcher);
    for (std::size_t i = 0; i < 3; ++i)
      batcher.submit({model, requests[i], 1, TimePoint::max(), answers.take(i)});
  }
  EXPECT_FALSE(answers.wait(0).error);
  EXPECT_THROW(std::rethrow_exception(answers.wait(1).error), InvalidArgumentError);
  EXPECT_FALSE(answers.wait(2).error);
}

// Its leading dimension is unknown when the model is saved, as that of a row for each example is.
TEST_F(BatcherTest, AnOutputWithoutARowForEachExampleIsRefusedAndTheNextRequestServed) {
  const Function ids = strategy.function([](Iterator input) {
    return Outputs{{"ids", input.get_next().features.values("ids")}};
  });
  const std::string path = small.folder.path() + "/ids";
  save_model(strategy, ids, cairn::testing::input_of(small.examples()), {}, path);
  const auto other = ServedModel::load(path);
  Batcher batcher({.threads = 1});
  const Element request = batches(3)[0];
  batcher.submit({other, request, 3, TimePoint::max(), answers.take(0)});
  EXPECT_THROW(std::rethrow_exception(answers.wait(0).error), FailedPreconditionError);
  batcher.submit({model, request, 3, TimePoint::max(), answers.take(1)});
  EXPECT_FALSE(answers.wait(1).error);
}

TEST_F(BatcherTest, RefusesMoreThanTheQueueHolds) {
  const std::vector<Element> requests = batches(1);
  Batcher batcher({.threads = 1, .queue_max = 2});
  {
    Blocked blocked(batcher);
    batcher.submit({model, requests[0], 1, TimePoint::max(), answers.take(0)});
    batcher.submit({model, requests[1], 1, TimePoint::max(), answers.take(1)});
    EXPECT_EQ(batcher.waiting(), 2);
    EXPECT_THROW(batcher.submit({model, requests[2], 1, TimePoint::max(), answers.take(2)}),
                 ResourceExhaustedError);
  }
  EXPECT_FALSE(answers.wait(0).error);
  EXPECT_FALSE(answers.wait(1).error);
  batcher.submit({model, requests[2], 1, TimePoint::max(), answers.take(3)});
  EXPECT_FALSE(answers.wait(3).error);
}

// The order in which requests are answered, by a thread that is held up until all of them wait.
struct BatcherOrderTest : BatcherTest {
  void submit(Batcher& batcher, std::size_t i, const Element& request) {
    const std::int64_t examples = request.back().shape()[0];
    batcher.submit({model, request, examples, TimePoint::max(), [this, i](Answer answer) {
                      order.push_back(i);
                      answers.take(i)(std::move(answer));
                    }});
  }
  std::vector<std::size_t> order;  // by the one computing thread
};

TEST_F(BatcherOrderTest, ARequestWithFewExamplesPassesThoseWithMany) {
  const std::vector<Element> large = batches(3), small_ones = batches(1);
  Batcher batcher({.threads = 1, .batch_max = 3});
  {
    Blocked blocked(batcher);
    for (std::size_t i = 0; i < 3; ++i) submit(batcher, i, large[0]);
    submit(batcher, 3, small_ones[0]);
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(answers.wait(i).error);
  EXPECT_EQ(order, (std::vector<std::size_t>{3, 0, 1, 2}));
}

TEST_F(BatcherOrderTest, AFullQueueRefusesTheRequestsWhoseTurnIsLast) {
  const std::vector<Element> large = batches(3), small_ones = batches(1);
  Batcher batcher({.threads = 1, .queue_max = 6});
  {
    Blocked blocked(batcher);
    submit(batcher, 0, large[0]);
    submit(batcher, 1, large[0]);
    EXPECT_THROW(submit(batcher, 2, large[0]), ResourceExhaustedError);
    submit(batcher, 3, small_ones[0]);
    EXPECT_EQ(batcher.waiting(), 4);
  }
  EXPECT_FALSE(answers.wait(0).error);
  EXPECT_THROW(std::rethrow_exception(answers.wait(1).error), ResourceExhaustedError);
  EXPECT_FALSE(answers.wait(3).error);
}

TEST_F(BatcherOrderTest, TheFloodOfOneModelTakesNoRoomFromAnother) {
  const auto other = ServedModel::load(small.path);
  const std::vector<Element> large = batches(3), small_ones = batches(1);
  Batcher batcher({.threads = 1, .queue_max = 6});
  {
    Blocked blocked(batcher);
    for (std::size_t i = 0; i < 6; ++i) submit(batcher, i, small_ones[0]);
    batcher.submit({other, large[0], 3, TimePoint::max(), answers.take(6)});
    EXPECT_EQ(batcher.waiting(), 6);
  }
  EXPECT_FALSE(answers.wait(6).error);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(answers.wait(i).error != nullptr, i >= 3) << "request " << i;
}

TEST_F(BatcherTest, ARequestWhoseDeadlineHasPassedIsNotComputed) {
  Batcher batcher({.threads = 1});
  batcher.submit({model, batches(1)[0], 1, TimePoint{}, answers.take(0)});
  EXPECT_THROW(std::rethrow_exception(answers.wait(0).error), DeadlineExceededError);
}

TEST_F(BatcherTest, ARequestThatWaitsForOthersIsAnsweredAtItsDeadline) {
  Batcher batcher({.threads = 1, .batch_wait = std::chrono::hours(1)});
  batcher.submit({model, batches(1)[0], 1, system_clock().now() + std::chrono::milliseconds(20),
                  answers.take(0)});
  EXPECT_THROW(std::rethrow_exception(answers.wait(0).error), DeadlineExceededError);
  EXPECT_EQ(batcher.waiting(), 0);
}

TEST_F(BatcherTest, WhatStillWaitsAtTheEndIsAnswered) {
  Answers answers;
  {
    Batcher batcher({.threads = 1, .batch_wait = std::chrono::hours(1)});
    batcher.submit({model, batches(1)[0], 1, TimePoint::max(), answers.take(0)});
  }
  EXPECT_THROW(std::rethrow_exception(answers.wait(0).error), CancelledError);
}

TEST_F(BatcherTest, AFullBatchDoesNotWaitForOthers) {
  const std::vector<Element> requests = batches(1);
  Batcher batcher({.threads = 1, .batch_max = 2, .batch_wait = std::chrono::hours(1)});
  batcher.submit({model, requests[0], 1, TimePoint::max(), answers.take(0)});
  batcher.submit({model, requests[1], 1, TimePoint::max(), answers.take(1)});
  EXPECT_FALSE(answers.wait(0).error);
  EXPECT_FALSE(answers.wait(1).error);
}

}  // namespace
}  // namespace cairn::serving::testing
