#include <gmock/gmock.h>

#include <filesystem>

#include "core/base/error.h"
#include "tests/tools/ckpt/checkpoint_fixture.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::vector<T> elements(const std::string& path, const std::string& name) {
  const auto source = open_bytes(path);
  const ArrayListing listing = array_format(path) == ArrayFormat::kNpz
                                   ? list_npz(*source, path)
                                   : list_safetensors(*source, path);
  for (const StoredArray& array : listing.arrays) {
    if (array.info.name != name) continue;
    std::vector<T> values(array.info.bytes() / sizeof(T));
    ArrayCursor(array).read(reinterpret_cast<std::byte*>(values.data()), array.info.bytes());
    return values;
  }
  ADD_FAILURE() << "no array " << name;
  return {};
}

class ExportTest : public CkptTest, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Formats, ExportTest, testing::Values("safetensors", "npz"),
                         [](const auto& info) { return info.param; });

TEST_P(ExportTest, VariablesSlotsAndKeysAreArraysOfTheirNames) {
  make();
  const std::string out = file("out." + GetParam());
  EXPECT_EQ(ckpt({"export", file("checkpoints"), out, "--json"}), 0) << output();
  EXPECT_EQ(json()["arrays"], 5);
  const auto dense = elements<float>(out, "dense/kernel");
  ASSERT_EQ(dense.size(), 120u);
  EXPECT_EQ(dense[3 * 17 + 2], parameter(17, 2));
  EXPECT_EQ(elements<float>(out, "dense/kernel/accumulator")[3 * 17], 170.0f);
  EXPECT_THAT(elements<std::int64_t>(out, "hashed/keys"), ElementsAre(3, 70, 1'000'000'007));
  EXPECT_EQ(elements<float>(out, "hashed/values")[4], parameter(70, 1));
}

TEST_P(ExportTest, WhatIsImportedAgainIsTheSameCheckpoint) {
  const std::string source = make();
  const std::string out = file("out." + GetParam());
  EXPECT_EQ(ckpt({"export", source, out}), 0) << output();
  EXPECT_EQ(ckpt({"import", out, "--out", file("ckpt-00000007")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", source, file("ckpt-00000007")}), 0) << output();
  EXPECT_EQ(ckpt({"verify", file("ckpt-00000007")}), 0) << output();
  const auto a = storage::read_manifest(system_disk(), source);
  const auto b = storage::read_manifest(system_disk(), file("ckpt-00000007"));
  EXPECT_EQ(b.checkpoint, 7u);
  EXPECT_EQ(b.global_step, a.global_step);
  EXPECT_EQ(b.session, a.session);
}

TEST_P(ExportTest, SeveralFilesWithAnIndexAreOneImport) {
  const std::string source = make();
  const std::string out = file("out." + GetParam());
  EXPECT_EQ(ckpt({"export", source, out, "--shard-bytes", "500", "--json"}), 0) << output();
  EXPECT_GT(json()["files"].size(), 1u);
  EXPECT_EQ(ckpt({"import", out + ".index.json", "--out", file("again")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", source, file("again")}), 0) << output();
}

TEST_P(ExportTest, UntouchedRowsAreAnErrorThatNamesThemBeforeAnythingIsWritten) {
  const std::string source = make({.dense_rows = 38});
  const std::string out = file("out." + GetParam());
  EXPECT_EQ(ckpt({"export", source, out}), 2);
  EXPECT_THAT(output(),
              AllOf(HasSubstr("\"dense/kernel\": 2 of 40 rows"), HasSubstr("--untouched")));
  EXPECT_FALSE(system_disk().exists(out));
  EXPECT_EQ(ckpt({"export", source, out, "--untouched", "zeros"}), 0) << output();
  EXPECT_EQ(elements<float>(out, "dense/kernel")[3 * 39], 0.0f);
  EXPECT_EQ(elements<float>(out, "dense/kernel/accumulator")[3 * 39],
            rule_slots(dense_variable().rule).at(0).initial_value);
  std::filesystem::remove(out);
  EXPECT_EQ(ckpt({"export", source, out, "--untouched", "keys"}), 0) << output();
  EXPECT_EQ(elements<std::int64_t>(out, "dense/kernel/keys").size(), 38u);
  EXPECT_EQ(ckpt({"import", out, "--out", file("again")}), 0) << output();
  EXPECT_EQ(ckpt({"diff", source, file("again")}), 0) << output();
}

TEST_P(ExportTest, SomeVariablesWithoutSlotsComeBackWithoutSlots) {
  make();
  const std::string out = file("out." + GetParam());
  EXPECT_EQ(
      ckpt({"export", file("checkpoints"), out, "--no-slots", "--variables", "hashed", "--json"}),
      0);
  EXPECT_EQ(json()["arrays"], 2);
  EXPECT_EQ(ckpt({"import", out, "--out", file("again")}), 0) << output();
  const auto manifest = storage::read_manifest(system_disk(), file("again"));
  ASSERT_EQ(manifest.variables.size(), 1u);
  EXPECT_THAT(manifest.variables[0].slots, ElementsAre());
  EXPECT_TRUE(manifest.variables[0].hashed);
}

TEST_P(ExportTest, AFileThatExistsIsNotReplaced) {
  make();
  folder_.write("out." + GetParam(), "mine");
  EXPECT_EQ(ckpt({"export", file("checkpoints"), file("out." + GetParam())}), 1);
  EXPECT_EQ(folder_.read("out." + GetParam()), "mine");
}

// ---- files of other programs ----

// An array of each, as another program would write them.
std::string write_foreign(const std::string& path, std::vector<std::int64_t> keys) {
  const std::vector<float> dense = {1, 2, 3, 4, 5, 6}, values = {1, 2, 3, 4};
  ArrayWriter out(path, array_format(path),
                  {{"dense", DType::kFloat32, {3, 2}},
                   {"table/keys", DType::kInt64, {2}},
                   {"table/values", DType::kFloat32, {2, 2}}},
                  {});
  out.append(0, reinterpret_cast<const std::byte*>(dense.data()), 24);
  out.append(1, reinterpret_cast<const std::byte*>(keys.data()), 16);
  out.append(2, reinterpret_cast<const std::byte*>(values.data()), 16);
  out.finish();
  return path;
}

TEST_P(ExportTest, ArraysWithoutAManifestBecomeVariablesAndPairsHashedOnes) {
  const std::string in = write_foreign(file("in." + GetParam()), {7, 9});
  EXPECT_EQ(ckpt({"import", in, "--out", file("made"), "--rows", "table=100"}), 0) << output();
  EXPECT_EQ(ckpt({"get", file("made"), "table", "9", "--json"}), 0);
  EXPECT_EQ(json()["rows"][0]["parameters"], Json({3.0, 4.0}));
  const auto manifest = storage::read_manifest(system_disk(), file("made"));
  EXPECT_EQ(manifest.variables.at(1).shape, (Shape{100, 2}));
  EXPECT_TRUE(manifest.variables.at(1).hashed);
  EXPECT_EQ(manifest.variables.at(0).shape, (Shape{3, 2}));
}

TEST_P(ExportTest, KeysThatDoNotAscendAreRefusedAndLeaveNoCheckpoint) {
  const std::string in = write_foreign(file("in." + GetParam()), {9, 7});
  EXPECT_EQ(ckpt({"import", in, "--out", file("made")}), 2);
  EXPECT_THAT(output(), HasSubstr("row 7 does not follow row 9"));
  EXPECT_FALSE(system_disk().exists(file("made")));
}

}  // namespace
}  // namespace cairn::tools::ckpt
