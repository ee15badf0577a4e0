#include "storage/manifest.h"

#include <gmock/gmock.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/disk/memory_disk.h"
#include "storage/base64.h"

namespace cairn::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Manifest full_manifest() {
  Manifest out{.checkpoint = 42,
               .global_step = 1000,
               .saved_at_us = 1'700'000'000'000'001,
               .session = ~std::uint64_t{0},
               .seed = 9,
               .layout_version = 3};
  out.variables.push_back({"deep/kernel",
                           DType::kFloat32,
                           {128, 64},
                           true,
                           {RuleKind::kAdagrad, {0.1f, 1e-7f}},
                           {"accumulator"},
                           {{0, 64}, {64, 128}}});
  out.variables.push_back({"count", DType::kInt64, {}, false, {}, {}, {{0, 1}}});
  out.variables.push_back({"wide/table",
                           DType::kFloat32,
                           {std::int64_t{1} << 40, 1},
                           true,
                           {},
                           {},
                           {{0, std::int64_t{1} << 40}},
                           true});
  out.databases.push_back(
      {"ps-0-shard-0",
       192,
       70'000,
       {{"ps-0-shard-0/000008.sst", 65'000, 0xdeadbeef}, {"ps-0-shard-0/CURRENT", 16, 7}}});
  out.low_watermark = 990;
  out.applied = {{991, 993}, {999, 1000}};
  out.datasets.push_back({"0", 4321, std::string("\0state\xff\n", 8), 4300, {{4325, 4327}}});
  out.metadata = R"({"job":"adult","seed":3})";
  out.base = "ckpt-00000041";
  return out;
}

TEST(Manifest, ComesBackEqual) {
  const Manifest manifest = full_manifest();
  EXPECT_EQ(parse_manifest(to_text(manifest), "MANIFEST.json"), manifest);
  EXPECT_EQ(parse_manifest(to_text(Manifest{}), "MANIFEST.json"), Manifest{});
}

TEST(Manifest, EveryFlippedByteAndEveryCutIsDataLoss) {
  const std::string sound = to_text(full_manifest());
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bad = sound;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THROW(parse_manifest(bad, "MANIFEST.json"), DataLossError) << "byte " << at;
    EXPECT_THROW(parse_manifest(sound.substr(0, at), "MANIFEST.json"), DataLossError)
        << "cut at " << at;
  }
}

// The text of a program's manifest before its checksum, and the same with a right one.
std::string body_of(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  return text.substr(0, text.rfind(" \"crc32c\""));
}
std::string sealed(const std::string& body) {
  return body + " \"crc32c\": " + std::to_string(crc32c(body)) + "\n}\n";
}

TEST(Manifest, IsJson) {
  const Json json = parse_json(to_text(full_manifest()), "the manifest");
  EXPECT_EQ(json.at("checkpoint"), 42);
  EXPECT_EQ(json.at("crc32c"), crc32c(body_of(full_manifest())));
}

TEST(Manifest, TheFirstFormatIsStillRead) {
  std::string old = body_of(full_manifest());
  old.replace(old.size() - 2, 2, "\n}\n");
  old.replace(old.find("\"format\": 2"), 11, "\"format\": 1");
  const std::string text = old + "checksum " + std::to_string(crc32c(old)) + "\n";
  EXPECT_EQ(parse_manifest(text, "MANIFEST.json"), full_manifest());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_THROW(parse_manifest(bad, "MANIFEST.json"), DataLossError) << "byte " << at;
    EXPECT_THROW(parse_manifest(text.substr(0, at), "MANIFEST.json"), DataLossError)
        << "cut at " << at;
  }
}

TEST(Manifest, ListsWithinListsBeyondAllMeasureAreDataLoss) {
  constexpr int kDeep = 100'000;
  std::string body = body_of(Manifest{});
  const std::size_t at = body.find("\"metadata\": {}") + 12;
  body.replace(at, 2, std::string(kDeep, '[') + std::string(kDeep, ']'));
  EXPECT_THROW(parse_manifest(sealed(body), "MANIFEST.json"), DataLossError);
}

// Under a right checksum: another program wrote it.
std::string with(const std::string& field, const std::string& value) {
  std::string body = body_of(full_manifest());
  const std::size_t at = body.find("\"" + field + "\": ") + field.size() + 4;
  body.replace(at, body.find(',', at) - at, value);
  return sealed(body);
}

TEST(Manifest, ANumberThatItsFieldCannotHoldIsDataLoss) {
  EXPECT_NO_THROW(parse_manifest(with("seed", "18446744073709551615"), "MANIFEST.json"));
  for (const char* value : {"18446744073709551616", "-1", "1.5", "1e30", "true", "\"7\""})
    EXPECT_THROW(parse_manifest(with("seed", value), "MANIFEST.json"), DataLossError) << value;
  EXPECT_THROW(parse_manifest(with("global_step", "9223372036854775808"), "MANIFEST.json"),
               DataLossError);
}

TEST(Manifest, AMissingOneNamesTheFileAndTheCure) {
  const MemoryDisk disk;
  try {
    read_manifest(disk, "checkpoints/ckpt-00000007");
    ADD_FAILURE() << "found what is not there";
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("checkpoints/ckpt-00000007/MANIFEST.json"),
                                    HasSubstr("cairn ckpt ls")));
  }
}

TEST(Manifest, ATornCommitLeavesNoCheckpoint) {
  MemoryDisk disk;
  disk.make_folder("c/ckpt-00000001");
  disk.crash_at_write(0, 100);
  EXPECT_THROW(commit(disk, "c/ckpt-00000001", full_manifest()), UnavailableError);
  disk.recover();
  EXPECT_THROW(read_manifest(disk, "c/ckpt-00000001"), NotFoundError);
  commit(disk, "c/ckpt-00000001", full_manifest());
  EXPECT_EQ(read_manifest(disk, "c/ckpt-00000001"), full_manifest());
}

TEST(Manifest, MetadataThatIsNotJsonIsRefused) {
  Manifest manifest;
  manifest.metadata = "{not json";
  EXPECT_THROW(to_text(manifest), InvalidArgumentError);
}

TEST(Manifest, FilesAreGroupedByDatabase) {
  const auto databases = group_by_database({{"b/1", 10, 0}, {"a/1", 1, 0}, {"b/2", 5, 0}});
  ASSERT_EQ(databases.size(), 2u);
  EXPECT_EQ(databases[0].name, "b");
  EXPECT_EQ(databases[0].bytes, 15u);
  EXPECT_EQ(databases[1].files.size(), 1u);
}

TEST(Base64, AgreesWithTheRfc) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  EXPECT_THROW(from_base64("Zg="), InvalidArgumentError);
  EXPECT_THROW(from_base64("Z!=="), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::storage
