// Examples per second of Model::fit() on one device, for three small networks; with a command
// behind the name, the same network by another library in turns (bench/parts/fit_torch.py):
//
//   cairn-bench-fit convolutional "python3 bench/parts/fit_torch.py"
//   cairn-bench-fit perceptron | attention | all
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/graph/ops.h"
#include "model/model.h"
#include "nn/nn.h"
#include "strategy/base/one_device_strategy.h"

using namespace cairn;

namespace {

constexpr int kWindows = 7;
constexpr std::int64_t kSteps = 150;  // of a window
constexpr std::int64_t kVocabulary = 65, kTime = 64;

Tensor random_floats(const Shape& shape) {
  Tensor made(DType::kFloat32, shape);
  Random random(1);
  for (float& value : made.mutable_values<float>())
    value = static_cast<float>(random.below(1000)) / 1000;
  return made;
}

Tensor random_ids(const Shape& shape, std::uint64_t below) {
  Tensor made(DType::kInt32, shape);
  Random random(2);
  for (std::int32_t& value : made.mutable_values<std::int32_t>())
    value = static_cast<std::int32_t>(random.below(below));
  return made;
}

struct Job {
  std::int64_t batch = 0;
  Tensor x, y;
  std::function<Array(const Array&)> network;
  nn::Loss loss = nn::Loss("sparse_categorical_crossentropy", {.from_logits = true});
};

Job perceptron() {
  const std::int64_t examples = 128 * kSteps;
  return {128, random_floats({examples, 784}), random_ids({examples}, 10),
          nn::Mlp({.units = {128, 10}})};
}

Job convolutional() {
  const std::int64_t examples = 64 * kSteps;
  return {64, random_floats({examples, 28, 28, 1}), random_ids({examples}, 10),
          nn::Sequential({nn::Conv2D({.filters = 16, .kernel_size = {3, 3}, .activation = "relu"}),
                          nn::MaxPooling2D(),
                          nn::Conv2D({.filters = 32, .kernel_size = {3, 3}, .activation = "relu"}),
                          nn::MaxPooling2D(), nn::Flatten(), nn::Dense({.units = 10})})};
}

// One block of a transformer over characters.
Job attention() {
  const std::int64_t examples = 16 * kSteps, width = 64;
  Job job{16,
          random_ids({examples, kTime}, kVocabulary),
          random_ids({examples, kTime}, kVocabulary),
          {}};
  const nn::Embedding characters({.name = "characters", .rows = kVocabulary, .dim = width});
  const nn::PositionalEmbedding positions({.length = kTime});
  const nn::MultiHeadAttention heads({.num_heads = 4, .key_dim = 16, .causal = true});
  const nn::LayerNormalization first({.name = "first"}), second({.name = "second"});
  const nn::Dense wide({.units = 256, .activation = "relu", .name = "wide"});
  const nn::Dense narrow({.units = width, .name = "narrow"});
  const nn::Dense logits({.units = kVocabulary, .name = "logits"});
  job.network = [=](const Array& ids) {
    Array x = positions(characters(ids));
    x = first(x + heads(x));
    x = second(x + narrow(wide(x)));
    return logits(x);
  };
  job.loss = [](const Array& prediction, const Array& label) {
    const Array all = nn::sparse_softmax_cross_entropy(
        reshape(prediction, {Shape::kUnknown, kVocabulary}), reshape(label, {Shape::kUnknown}));
    return reduce_mean(reshape(all, {Shape::kUnknown, kTime}), {1});
  };
  return job;
}

Job job_named(const std::string& name) {
  if (name == "perceptron") return perceptron();
  if (name == "convolutional") return convolutional();
  if (name == "attention") return attention();
  throw InvalidArgumentError("a network is perceptron, convolutional or attention, not " + name);
}

// Runs another library's program for one window, and returns its figure: examples per second.
double run_other(const std::string& command) {
  std::FILE* const out = ::popen(command.c_str(), "r");
  double rate = 0;
  if (out == nullptr || std::fscanf(out, "%lf", &rate) != 1)
    throw InvalidArgumentError("no figure came from: " + command);
  ::pclose(out);
  return rate;
}

std::string text_of(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  char text[96];
  std::snprintf(text, sizeof text, "%.0f (%.0f to %.0f)", rates[rates.size() / 2], rates.front(),
                rates.back());
  return text;
}

double median(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

void measure(const std::string& name, const std::string& other) {
  OneDeviceStrategy strategy;
  const auto scope = strategy.scope();
  const Job job = job_named(name);
  Model model(job.network);
  model.compile({.optimizer = nn::Adam({.learning_rate = 0.001f}), .loss = job.loss});
  const FitOptions window{.batch_size = job.batch, .verbose = Verbose::kSilent};
  model.fit(job.x, job.y, window);  // traces and plans
  std::vector<double> own, others;
  for (int i = 0; i < kWindows; ++i) {
    const TimePoint began = system_clock().now();
    model.fit(job.x, job.y, window);
    const std::chrono::duration<double> took = system_clock().now() - began;
    own.push_back(static_cast<double>(job.batch * kSteps) / took.count());
    if (!other.empty()) others.push_back(run_other(other + " " + name));
  }
  std::printf("%s, batches of %lld, one thread: %s examples/s", name.c_str(),
              static_cast<long long>(job.batch), text_of(own).c_str());
  if (!other.empty())
    std::printf("; the other: %s; ratio %.2f", text_of(others).c_str(),
                median(own) / median(others));
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3)
    throw InvalidArgumentError("cairn-bench-fit NETWORK|all [COMMAND OF THE OTHER]");
  const std::string name = argv[1], other = argc == 3 ? argv[2] : "";
  for (const char* each : {"perceptron", "convolutional", "attention"})
    if (name == "all" || name == each) measure(each, other);
  if (name != "all") job_named(name);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "cairn-bench-fit: %s\n", error.what());
  return 1;
}
