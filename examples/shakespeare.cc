// The next character of Shakespeare's plays, by a GRU on two mirrored replicas.
//
//   build/dev/bin/shakespeare --epochs=4
//
// Beside it: the frequencies of single characters come to 3.347 nats per character of the last
// tenth of the text, those of pairs to 2.482, another library's LSTM of the same size to 1.777
// after a thousand steps. This program reaches 1.72 after four epochs, which are as many steps.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include <cairn/cairn.h>

using namespace cairn;

namespace {

constexpr std::int64_t kTime = 64;

std::string text_in(const std::string& path) {
  std::string text;
  const auto lines = open(Dataset::text_lines(path));
  while (const auto line = lines->next()) text += line->front().string_values()[0] + "\n";
  return text;
}

// Windows of the text, each beside itself one character later: int32 [n, kTime] both.
Dataset windows(const std::string& text, const std::map<char, std::int32_t>& ids) {
  const std::int64_t count = (static_cast<std::int64_t>(text.size()) - 1) / kTime;
  Tensor x(DType::kInt32, {count, kTime}), y(DType::kInt32, {count, kTime});
  for (std::size_t i = 0; i < static_cast<std::size_t>(count * kTime); ++i) {
    x.mutable_values<std::int32_t>()[i] = ids.at(text[i]);
    y.mutable_values<std::int32_t>()[i] = ids.at(text[i + 1]);
  }
  return Dataset::from_tensor_slices({{"x", x}, {"y", y}}, "y");
}

// The mean over the characters of each window, in nats.
Array nats(const Array& logits, const Array& label) {
  const Array flat = reshape(logits, {Shape::kUnknown, logits.shape()[2]});
  const Array all = nn::sparse_softmax_cross_entropy(flat, reshape(label, {Shape::kUnknown}));
  return reduce_mean(reshape(all, {Shape::kUnknown, kTime}), {1});
}

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, std::string> flags = {
      {"--epochs", "4"}, {"--data", "examples/data/tinyshakespeare/input.txt.gz"}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i], name = argument.substr(0, argument.find('='));
    if (!flags.contains(name) || name.size() == argument.size())
      throw InvalidArgumentError("an argument is --epochs=N or --data=FILE, not " + argument);
    flags[name] = argument.substr(name.size() + 1);
  }
  const std::string text = text_in(flags["--data"]);
  std::map<char, std::int32_t> ids;
  for (const char each : text) ids.emplace(each, 0);
  std::int32_t next = 0;
  for (auto& [each, id] : ids) id = next++;

  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  const auto scope = strategy.scope();
  const nn::Embedding characters({.name = "characters", .rows = next, .dim = 64});
  const nn::GRU gru({.units = 128, .return_sequences = true});
  const nn::Dense logits({.units = next});
  Model model([&](const Array& x) { return logits(gru(characters(x))); });
  model.compile(
      {.optimizer = nn::Adam({.learning_rate = 0.004f, .clipping = {.global_clipnorm = 1}}),
       .loss = nats});
  const std::size_t nine_tenths = text.size() / 10 * 9;
  model.fit(windows(text.substr(0, nine_tenths), ids).shuffle(20'000, 1).batch(64),
            {.epochs = std::atoll(flags["--epochs"].c_str())});
  const Logs judged = model.evaluate(windows(text.substr(nine_tenths), ids).batch(64));
  std::printf("validation: %.4f nats per character\n", judged.at("loss"));
} catch (const std::exception& error) {
  std::fprintf(stderr, "shakespeare: %s\n", error.what());
  return 1;
}
