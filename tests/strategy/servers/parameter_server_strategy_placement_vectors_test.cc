// placement_Nps.json: which ps each variable, and each part of one, is put on when they are made in
// turn.
#include "nn/optimizers/optimizer.h"
#include "tests/strategy/servers/turns.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

using testing::Turns;

// Answers what the case recorded, whatever it is asked.
class Fixed final : public Partitioner {
 public:
  explicit Fixed(std::vector<std::int64_t> parts) : parts_(std::move(parts)) {}
  std::vector<std::int64_t> operator()(const Shape&, DType, int) const override { return parts_; }

 private:
  std::vector<std::int64_t> parts_;
};

// "none", "fixed5", "min64": 64 bytes, at most as many parts as ps.
std::shared_ptr<const Partitioner> partitioner_of(const std::string& name, int ps) {
  if (name == "none") return nullptr;
  if (name.starts_with("fixed")) return FixedShardsPartitioner(std::stoll(name.substr(5)));
  if (name.starts_with("min"))
    return MinSizePartitioner({.min_shard_bytes = std::stoll(name.substr(3)), .max_shards = ps});
  throw InvalidArgumentError("no test knows the partitioner " + name);
}

void takes_turns(const Json& test, int) {
  const Json &in = test.at("in"), &out = test.at("out");
  const int ps = in.at("num_ps");
  Turns turns(ps, partitioner_of(in.at("partitioner"), ps),
              in.at("counter_at_start").get<std::uint64_t>());
  for (std::size_t i = 0; i < in.at("shapes").size(); ++i) {
    Variable made = turns.create("v" + std::to_string(i), testing::shape_of(in.at("shapes").at(i)));
    EXPECT_EQ(turns.describe(made), out.at("variables").at(i)) << "variable " << i;
  }
  EXPECT_EQ(turns.registry().placed(), out.at("counter_at_end").get<std::uint64_t>());
}

void lies_beside_another(const Json& test, int ps) {
  const Json& out = test.at("out");
  Turns turns(ps, nullptr, out.at("counter_before").get<std::uint64_t>() - 1);
  Variable first = turns.create("first", {4});
  auto beside = turns.cluster.strategy().colocate_vars_with(first);
  Variable colocated = turns.create("colocated", {4});
  EXPECT_EQ(turns.device(first), out.at("first"));
  EXPECT_EQ(turns.device(colocated), out.at("colocated"));
  EXPECT_EQ(turns.registry().placed(), out.at("counter_after").get<std::uint64_t>());
}

// Slots lie in the rows that they belong to, so each part's shard is its slots' shard too.
void slots_lie_with_their_rows(const Json& test, int ps) {
  const Json& out = test.at("out");
  const Json& variable = out.at("variable");
  const std::string first = variable.at("shards").at(0).at("device");
  const std::uint64_t turn = std::stoull(first.substr(first.rfind(':') + 1));
  Turns turns(ps, FixedShardsPartitioner(static_cast<std::int64_t>(variable.at("shards").size())),
              turn);
  auto scope = turns.cluster.strategy().scope();
  Variable made = turns.create("e", testing::shape_of(variable.at("shape")));
  nn::Adagrad adagrad({.learning_rate = 0.1f});
  Variable iterations = adagrad.iterations();
  turns.cluster.strategy().add_slots(made, adagrad.rule());
  EXPECT_EQ(turns.describe(made), variable);
  for (std::size_t i = 0; i < out.at("slots").size(); ++i) {
    EXPECT_EQ(out.at("slots").at(i).at("device"), variable.at("shards").at(i).at("device"));
    EXPECT_EQ(out.at("slots").at(i).at("shape"), variable.at("shards").at(i).at("shape"));
  }
  EXPECT_EQ(turns.registry().layout()->find("e")->rule.kind, adagrad.rule().kind);
  EXPECT_EQ(turns.device(iterations), out.at("iterations_device"));
}

void refuses_another_axis(const Json& test, int ps) {
  const Json& returned = test.at("in").at("partitioner_returns");
  auto parts =
      // None: nothing
      returned.is_null() ? std::vector<std::int64_t>{} : returned.get<std::vector<std::int64_t>>();
  Turns turns(ps, std::make_shared<Fixed>(parts));
  EXPECT_TRUE(testing::refused(test.at("out")));
  EXPECT_THROW(turns.create("v", testing::shape_of(test.at("in").at("shape"))),
               InvalidArgumentError);
  EXPECT_EQ(turns.registry().placed(), 0u);
}

void a_scalar_is_whole(const Json& test, int ps) {
  Turns turns(ps, FixedShardsPartitioner(2));
  Json described = turns.describe(turns.create("v", {}));
  EXPECT_EQ(described.at("sharded"), test.at("out").at("sharded"));
  EXPECT_EQ(described.at("shape"), test.at("out").at("shape"));
}

// The reference refuses; here a variable has an initializer in any case, zeros where none is named
// (docs/differences.md).
void without_an_initial_value_it_is_zero(const Json& test, int ps) {
  EXPECT_TRUE(testing::refused(test.at("out")));
  Turns turns(ps, FixedShardsPartitioner(2));
  Variable made = turns.create("v", {4, 2});
  EXPECT_EQ(turns.parts(made).size(), 2u);
  Tensor all = made.read().eval();
  for (float value : all.values<float>()) EXPECT_EQ(value, 0.0f);
}

void run(int ps) {
  auto with_ps = [ps](void (*run_case)(const Json&, int)) {
    return [ps, run_case](const Json& test) { run_case(test, ps); };
  };
  testing::run_cases("placement_" + std::to_string(ps) + "ps",
                     {{"round_robin", with_ps(takes_turns)},
                      {"colocate", with_ps(lies_beside_another)},
                      {"slots", with_ps(slots_lie_with_their_rows)},
                      {"bad_partitioner", with_ps(refuses_another_axis)},
                      {"scalar", with_ps(a_scalar_is_whole)},
                      {"no_initial_value", with_ps(without_an_initial_value_it_is_zero)}});
}

TEST(Vectors, PlacementOnOnePs) { run(1); }
TEST(Vectors, PlacementOnTwoPs) { run(2); }
TEST(Vectors, PlacementOnThreePs) { run(3); }
TEST(Vectors, PlacementOnFivePs) { run(5); }

}  // namespace
}  // namespace cairn
