// A small retrieval model: 60 films of which a user's taste prefers some, in two towers of
// untrained weights; and what numpy would call its exact top k.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/graph/ops.h"
#include "model/saved/loaded_model.h"
#include "model/saved/saved_model.h"
#include "nn/layers/dense.h"
#include "nn/layers/embedding.h"
#include "serving/server/candidate_data.h"
#include "strategy/base/one_device_strategy.h"
#include "tests/tools/temp_folder.h"

namespace cairn::serving::testing {

struct TwoTowers {
  static constexpr std::int64_t kFilms = 60, kUsers = 40;
  // The id of a film is not its number.
  static std::int64_t id_of(std::int64_t film) { return 1000 + 3 * film; }

  tools::TempFolder folder;
  std::string path = folder.path() + "/films";

  // Another seed gives another model with the same signature. Its queries are computed from what a
  // user has seen as well, if `uses_seen`.
  void save(std::uint64_t seed, const std::string& to, bool uses_seen = true) const {
    OneDeviceStrategy strategy{seed};
    const auto scope = strategy.scope();
    const nn::Embedding users({.name = "user", .rows = kUsers, .dim = 8, .seed = seed});
    const nn::Embedding films({.name = "film", .rows = kFilms, .dim = 8, .seed = seed + 1});
    const nn::Embedding seen(
        {.name = "seen", .rows = kFilms, .dim = 8, .combiner = Combiner::kSum, .seed = seed + 2});
    const Function predict = strategy.function([&](Iterator input) {
      const Features in = input.get_next().features;
      const Array user = users(in["user"]);
      const Array query = uses_seen ? user + seen(in.values("seen"), in.row_splits("seen")) : user;
      const Array candidate = films(in["film"]) * in["weight"];
      return Outputs{{"score", reduce_sum(query * candidate, {1})},
                     {"query", query},
                     {"candidate", candidate}};
    });
    constexpr std::int64_t kAny = Shape::kUnknown;
    const ElementSpec input{{{"film", {DType::kInt64, {kAny}}},
                             {"seen", {DType::kInt64, {kAny}}},
                             {"seen/row_splits", {DType::kInt64, {kAny}}},
                             {"user", {DType::kInt64, {kAny}}},
                             {"weight", {DType::kFloat32, {kAny, 1}}}},
                            ""};
    save_model(strategy, predict, input, {}, to);
  }
  static CandidateData candidates() {
    std::vector<std::int64_t> films(kFilms), ids(kFilms);
    std::iota(films.begin(), films.end(), 0);
    std::ranges::transform(films, ids.begin(), id_of);
    std::vector<float> weights(kFilms);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1 + 0.01f * static_cast<float>(i);
    return {.ids = Tensor::of<std::int64_t>({kFilms}, ids),
            .columns = {{"film", Tensor::of<std::int64_t>({kFilms}, films)},
                        {"weight", Tensor::of<float>({kFilms, 1}, weights)}}};
  }
  // The films for a user who has seen nothing, by descending score, and by ascending place where
  // scores are equal: from the model's own outputs.
  static std::vector<std::int64_t> best_for(const std::string& model, std::int64_t user,
                                            std::int64_t k) {
    LoadedModel loaded = LoadedModel::load(model);
    const CandidateData all = candidates();
    const Tensor users =
        Tensor::of<std::int64_t>({kFilms}, std::vector<std::int64_t>(kFilms, user));
    const Tensor splits =
        Tensor::of<std::int64_t>({kFilms + 1}, std::vector<std::int64_t>(kFilms + 1, 0));
    const auto outputs = loaded.predict({all.columns.at("film"), Tensor(DType::kInt64, {0}), splits,
                                         users, all.columns.at("weight")});
    const auto scores = outputs[0].values<float>();
    std::vector<std::int64_t> order(kFilms);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(),
                             [&](auto i) { return scores[static_cast<std::size_t>(i)]; });
    order.resize(static_cast<std::size_t>(k));
    std::ranges::transform(order, order.begin(), id_of);
    return order;
  }
};

}  // namespace cairn::serving::testing
