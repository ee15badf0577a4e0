// A signal that comes while a kernel computes is handled on the thread's own stack, and nothing of
// the program is overwritten by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <cstdint>
#include <vector>

#include "core/exec/executor.h"
#include "core/kernels/cpu/gemm.h"
#include "core/rows/local_store.h"
#include "tests/core/graph_testing.h"
#include "tests/core/noise.h"

namespace cairn {
namespace {

constexpr int kSignals = 20;
constexpr suseconds_t kEveryUs = 200;

std::uintptr_t lowest, end;  // of this thread's stack
volatile sig_atomic_t handled, elsewhere;

void on_alarm(int) {
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  handled = handled + 1;
  if (frame < lowest || frame >= end) elsewhere = elsewhere + 1;
}

// An alarm every kEveryUs.
class Signals : public ::testing::Test {
 protected:
  Signals() {
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* stack = nullptr;
    std::size_t bytes = 0;
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
    lowest = reinterpret_cast<std::uintptr_t>(stack);
    end = lowest + bytes;
    struct sigaction action {};
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    set_timer(kEveryUs);
  }
  ~Signals() override {
    set_timer(0);
    sigaction(SIGALRM, &before_, nullptr);
  }

  // Computes until enough signals have been handled, and says how many of them were elsewhere.
  template <typename F>
  int handled_elsewhere(F compute) {
    handled = 0;
    elsewhere = 0;
    while (handled < kSignals) compute();
    return elsewhere;
  }

 private:
  static void set_timer(suseconds_t us) {
    const itimerval every{.it_interval = {0, us}, .it_value = {0, us}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }

  struct sigaction before_ {};
};

TEST_F(Signals, AreHandledOnTheStackWhileProductsAreComputed) {
  for (const std::int64_t k : {16, 64, 65, 100, 256, 1000})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Gemm shape{128, 96, k, transpose_a, transpose_b};
        std::vector<float> a(128 * static_cast<std::size_t>(k), 1.0f),
            b(96 * static_cast<std::size_t>(k), 1.0f), c(128 * 96);
        EXPECT_EQ(handled_elsewhere([&] { gemm(shape, a.data(), b.data(), c.data()); }), 0)
            << "sums of " << k << (transpose_a ? ", a transposed" : "")
            << (transpose_b ? ", b transposed" : "");
        EXPECT_THAT(c, ::testing::Each(static_cast<float>(k)));
      }
}

TEST_F(Signals, AreHandledOnTheStackWhileConvolutionsAreComputed) {
  const Tensor x = testing::noise({4, 12, 12, 64}, 1), filter = testing::noise({3, 3, 64, 32}, 2);
  const ConcreteFunction function = testing::trace_function({}, [&](const auto&) {
    const Array y = conv2d(x, filter);
    return std::vector<Array>{y, conv2d_grad_input(y, filter, x, {}),
                              conv2d_grad_filter(y, x, filter, {})};
  });
  const auto plan = make_plan(function.graph, {});
  Workspace workspace;
  LocalStore store;
  EXPECT_EQ(handled_elsewhere([&] { run(plan, workspace, store, {}, {}, {}); }), 0);
}

}  // namespace
}  // namespace cairn
