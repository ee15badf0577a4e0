// Retrieval with two towers: from areas of a web site that a user has visited to one more. The
// other examples of a batch serve as negatives. Of users never seen, ten areas that the model names
// hold the visit looked for more often (0.77) than the ten most popular ones (0.62).
//   cairn up --ps 2 --workers 2 -- build/dev/bin/visits --strategy=parameter_server
// --data=FILE reads other visits; --checkpoint=FOLDER saves the trained variables, and
// --model=FOLDER the two towers; examples/visits.py also writes the areas that `cairn serve` is to
// recommend.
#include <cstdio>
#include <string>
#include <vector>

#include <cairn/cairn.h>

#include "examples/flags.h"
#include "examples/msweb.h"
using namespace cairn;

constexpr std::int64_t kFirstArea = 1'000, kAreas = 298, kNone = kAreas, kSeen = 8, kTests = 3'000;

int main(int argc, char** argv) try {
  const Flags flags(argc, argv,
                    {{"strategy", "one_device"},
                     {"data", "examples/data/msweb/anonymous-msweb.data.gz"},
                     {"checkpoint", ""},
                     {"model", ""}});
  const auto strategy = make_strategy(flags["strategy"]);
  const auto scope = strategy->scope();
  // The label is one visit of a user, beside up to kSeen others; in training, each visit in turn.
  std::vector<std::int64_t> seen, next;
  std::vector<float> counts(kAreas, 1);  // how often an area is the label, in training
  for (const auto& [user, areas] : msweb_users(flags["data"], 2)) {
    const bool is_test = next.size() < kTests;
    for (const std::int64_t label : areas) {
      if (is_test && label != areas[static_cast<std::size_t>(user) % areas.size()]) continue;
      for (const std::int64_t a : areas) seen.push_back(a == label ? kNone : a - kFirstArea);
      next.push_back(label - kFirstArea);
      seen.resize(next.size() * kSeen, kNone);
      if (!is_test) counts[static_cast<std::size_t>(next.back())] += 1;
    }
  }
  const Tensor x = Tensor::of<std::int64_t>({std::ssize(next), kSeen}, seen);
  const Tensor y = Tensor::of<std::int64_t>({std::ssize(next)}, next);
  const Dataset users = Dataset::from_tensor_slices({{"seen", x}, {"next", y}}, "next");
  const Array often = log(Tensor::of<float>({kAreas}, counts));
  const nn::Embedding bag({.rows = kAreas + 1, .dim = 64, .combiner = Combiner::kSum});
  const nn::Sequential query({bag, nn::Dense({.units = 64})});
  const nn::Embedding area({.name = "area", .rows = kAreas, .dim = 64});
  const nn::TwoTower towers({.query = query, .candidate = area});
  Model model([&](const Array& visited) {  // the scores of all areas
    const Array user = towers.embed_query(visited), areas = towers.embed_candidate(range(kAreas));
    return matmul(user, areas, false, true);
  });
  const auto loss = [&](const Outputs&, const Batch& batch) {
    const Array chance = gather(often, batch.label);  // log of how often it is a negative
    const Array scores = towers(batch.features["seen"], batch.label);
    return nn::in_batch_softmax(scores, {.log_probability = chance, .ids = batch.label});
  };
  const nn::LazyAdam adam({.learning_rate = 0.005f});
  model.compile({.optimizer = adam, .metrics = {nn::RecallAtK({.k = 10})}, .batch_loss = loss});
  model.fit(users.skip(kTests).shuffle(50'000).batch(256), {.epochs = 10});
  std::printf("recall@10 %.4f\n", model.evaluate(users.take(kTests).batch(256)).at("recall@10"));
  if (!flags["checkpoint"].empty()) strategy->save({.folder = flags["checkpoint"]});
  if (flags["model"].empty()) return 0;
  Model vectors(
      [&](const Features& in) {
        return Outputs{{"query", towers.embed_query(in["seen"])},
                       {"candidate", towers.embed_candidate(in["area"])}};
      },
      "visits");
  vectors.build({{{"seen", {DType::kInt64, {Shape::kUnknown, kSeen}}},
                  {"area", {DType::kInt64, {Shape::kUnknown}}}},
                 ""});
  vectors.save(flags["model"]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "visits: %s\n", error.what());
  return 1;
}
