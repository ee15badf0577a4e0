// Matrix factorisation by BPR, against areas that each step draws at random: which areas of a web
// site a user visits. A visit that was held out is among the first ten of a hundred areas in 0.10
// of the lists by chance, and in 0.76 by how popular the areas are. On a cluster of this machine:
//   cairn up --ps 2 --workers 2 -- build/dev/bin/matrix_factorisation --strategy=parameter_server
// --data=FILE reads other visits; --checkpoint=FOLDER saves the trained variables.
#include <cstdio>
#include <string>
#include <vector>

#include <cairn/cairn.h>

#include "examples/flags.h"
#include "examples/msweb.h"
using namespace cairn;

// User, area, and the place of the area in the list that the model ranks.
Dataset pairs(const std::vector<std::int64_t>& users, const std::vector<std::int64_t>& areas) {
  const std::int64_t n = std::ssize(users);
  return Dataset::from_tensor_slices({{"user", Tensor::of<std::int64_t>({n}, users)},
                                      {"area", Tensor::of<std::int64_t>({n, 1}, areas)},
                                      {"place", Tensor::zeros(DType::kInt64, {n})}},
                                     "place");
}

int main(int argc, char** argv) try {
  const Flags flags(argc, argv,
                    {{"strategy", "one_device"},
                     {"data", "examples/data/msweb/anonymous-msweb.data.gz"},
                     {"checkpoint", ""}});
  const auto strategy = make_strategy(flags["strategy"]);
  const auto scope = strategy->scope();
  constexpr std::int64_t kFirstArea = 1'000, kAreaEnd = 1'298, kOthers = 99;
  std::vector<std::int64_t> users[2], areas[2];  // of the visits to train on; held out
  for (const auto& [user, visited] : msweb_users(flags["data"]))
    for (std::int64_t i = 0; const std::int64_t area : visited) {
      const bool held = i++ == user % std::ssize(visited) && visited.size() > 2;
      users[held].push_back(user);
      areas[held].push_back(area);
    }
  const nn::Embedding taste({.name = "taste", .rows = 1 << 30, .dim = 16, .hashed = true});
  const nn::Embedding theme({.name = "theme", .rows = kAreaEnd, .dim = 16});
  const nn::Embedding appeal({.name = "appeal", .rows = kAreaEnd, .dim = 1});
  Model model([&](const Features& pair) {  // the scores of the area itself and of 99 others
    const Array others =
        random_integers_like(tile(pair["area"], {1, kOthers}), kFirstArea, kAreaEnd);
    const Array list = concat({pair["area"], others}, 1);
    const Array user = expand_dims(taste(pair["user"]), 1), themes = theme(list);
    const Array liked = reduce_sum(user * themes, {2});
    return liked + squeeze(appeal(list), 2);
  });
  model.compile({.optimizer = nn::LazyAdam({.learning_rate = 0.005f}),
                 .metrics = {nn::HitRate({.k = 10})},
                 .batch_loss = [](const Outputs& outputs, const Batch&) {
                   const Array scores = outputs[0].second;
                   const Array visited = slice(scores, 1, 0, 1),
                               others = slice(scores, 1, 1, kOthers);
                   return nn::bpr(visited, others);
                 }});
  model.fit(pairs(users[0], areas[0]).shuffle(100'000).batch(256), {.epochs = 4});
  const Logs held = model.evaluate(pairs(users[1], areas[1]).batch(256));
  std::printf("hit@10 %.4f\n", held.at("hit_rate@10"));
  if (!flags["checkpoint"].empty()) strategy->save({.folder = flags["checkpoint"]});
} catch (const std::exception& error) {
  std::fprintf(stderr, "matrix_factorisation: %s\n", error.what());
  return 1;
}
