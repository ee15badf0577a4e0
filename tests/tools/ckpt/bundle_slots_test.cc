// Slots of TensorFlow bundles become slots of variables where their names leave no doubt, and stay
// variables of their own elsewhere.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/disk/disk.h"
#include "storage/manifest.h"
#include "tests/tools/ckpt/checkpoint_fixture.h"
#include "tools/ckpt/bundle_slots.h"
#include "tools/ckpt/import_plan.h"

namespace cairn::tools::ckpt {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class BundleSlotsTest : public testing::Test {
 protected:
  void add(const std::string& name, std::vector<std::int64_t> shape = {4, 2}) {
    listing_.arrays.push_back({.info = {name, DType::kFloat32, std::move(shape)}});
  }
  // As TensorFlow 2 marks it.
  void add_slot(const std::string& variable, const std::string& slot,
                std::vector<std::int64_t> shape = {4, 2}) {
    add(variable + "/" + slot, std::move(shape));
    listing_.arrays.back().slot_of = variable;
    listing_.arrays.back().slot = slot;
    listing_.arrays.back().optimizer = "optimizer";
  }
  void add_steps(const std::string& name, std::int64_t steps) {
    folder_.write("steps", std::string(reinterpret_cast<const char*>(&steps), sizeof steps));
    listing_.arrays.push_back(
        {.info = {name, DType::kInt64, {}}, .path = folder_.path() + "/steps"});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const StoredArray& array : listing_.arrays) names.push_back(array.info.name);
    return names;
  }
  TempFolder folder_;
  ArrayListing listing_;
};

TEST_F(BundleSlotsTest, OfAdagradAndFtrlAreNamedByThemselves) {
  add("a");
  add_slot("a", "accumulator");
  add("b");
  add_slot("b", "accumulator");
  add_slot("b", "linear");
  const auto slots = take_bundle_slots(listing_, "");
  EXPECT_EQ(slots.at("a").rule.kind, RuleKind::kAdagrad);
  EXPECT_EQ(slots.at("b").rule.kind, RuleKind::kFtrl);
  EXPECT_THAT(slots.at("b").slots, ElementsAre("accumulator", "linear"));
  const ImportPlan plan = plan_import("f", listing_, {}, slots);
  ASSERT_EQ(plan.variables.size(), 2u);
  EXPECT_EQ(plan.variables[1].fields.size(), 3u);
}

TEST_F(BundleSlotsTest, OfVersion1AreNamedAsTheRuleNamesThem) {
  add("w");
  add("w/Adam");
  add("w/Adam_1");
  add_steps("global_step", 12);
  const auto slots = take_bundle_slots(listing_, "");
  EXPECT_EQ(slots.at("w").rule.kind, RuleKind::kAdam);
  EXPECT_EQ(slots.at("w").updates, 12);
  EXPECT_THAT(names(), ElementsAre("w", "w/m", "w/v", "global_step"));
}

// Adam, Adamax and Nadam have slots of these names.
TEST_F(BundleSlotsTest, CalledMAndVAreTakenForAdamsOnlyWhereTheUserSaysSo) {
  add("w");
  add_slot("w", "m");
  add_slot("w", "v");
  add_steps("optimizer/iter", 7);
  EXPECT_THAT(take_bundle_slots(listing_, ""), IsEmpty());
  EXPECT_EQ(plan_import("f", listing_, {}).variables.size(), 4u);
  const auto slots = take_bundle_slots(listing_, "lazy_adam");
  EXPECT_EQ(slots.at("w").rule.kind, RuleKind::kLazyAdam);
  EXPECT_EQ(slots.at("w").updates, 7);
  EXPECT_THROW(take_bundle_slots(listing_, "nadam"), InvalidArgumentError);
}

// The first step after a restore would be ten times too long.
TEST_F(BundleSlotsTest, OfAdamWithoutACountOfStepsStayVariables) {
  add("w");
  add_slot("w", "m");
  add_slot("w", "v");
  EXPECT_THAT(take_bundle_slots(listing_, "adam"), IsEmpty());
}

TEST_F(BundleSlotsTest, OfAnotherShapeOrOfNoVariableStayVariables) {
  add("w");
  add_slot("w", "accumulator", {4});
  add_slot("gone", "accumulator");
  add("v/Adagrad");
  EXPECT_THAT(take_bundle_slots(listing_, ""), IsEmpty());
  EXPECT_THAT(names(), ElementsAre("w", "w/accumulator", "gone/accumulator", "v/Adagrad"));
}

class BundleImportTest : public CkptTest {};

TEST_F(BundleImportTest, ABundleOfTensorFlowGivesAVariableWithItsSlot) {
  const std::string bundle =
      std::filesystem::absolute("tests/tools/ckpt/foreign/tensorflow.index").string();
  EXPECT_EQ(ckpt({"import", bundle, "--out", file("ckpt-00000001"), "--json"}), 0) << output();
  EXPECT_EQ(json()["with_slots"], 1);
  const auto manifest = storage::read_manifest(system_disk(), file("ckpt-00000001"));
  ASSERT_EQ(manifest.variables.size(), 1u);
  EXPECT_EQ(manifest.variables[0].rule.kind, RuleKind::kAdagrad);
  EXPECT_THAT(manifest.variables[0].slots, ElementsAre("accumulator"));
  EXPECT_EQ(ckpt({"verify", file("ckpt-00000001")}), 0) << output();
}

}  // namespace
}  // namespace cairn::tools::ckpt
