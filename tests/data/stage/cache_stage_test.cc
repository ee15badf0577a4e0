// A cache: the elements that it keeps, their place and bound, and its part of an iterator's state.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "data/dataset/block_bytes.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string numbers_from(std::int64_t first, int count) {
  std::string bytes;
  for (std::int64_t value = first; value < first + count; ++value)
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

Dataset records(const std::string& path) {
  return Dataset::records(path, {{{"value", DType::kInt64, 1}}, ""});
}

std::vector<std::int64_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

std::vector<std::string> names_in(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The one file in `folder` whose name begins with `beginning`.
std::string file_in(const TempFolder& folder, const std::string& beginning) {
  for (const std::string& name : names_in(folder))
    if (name.starts_with(beginning)) return folder.path(name);
  return "none";
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Columns of every kind, as examples and as batches.
Dataset all_kinds(const TempFolder& folder) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += std::to_string(i) + ",word" + std::to_string(i % 7) + ",";
    for (int k = 0; k < i % 4; ++k) text += (k > 0 ? "|t" : "t") + std::to_string(k);
    text += "\n";
  }
  CsvSchema schema;
  schema.columns = {
      {"id", DType::kFloat32}, {"word", DType::kString}, {"tags", DType::kString, {}, false, '|'}};
  return Dataset::csv(folder.write("kinds.csv", text), schema);
}

TEST(Cache, LaterPassesAreTheFirstAgainAndReadNothing) {
  TempFolder folder;
  const std::string path = folder.write("r", numbers_from(0, 5));
  auto iterator = open(records(path).cache().repeat(2));
  for (int i = 0; i < 6; ++i) iterator->next();  // one beyond the first pass
  folder.write("r", numbers_from(100, 5));
  EXPECT_EQ(rest_of(*iterator).size(), 4u);
  EXPECT_EQ(values_of(Dataset::range(9).shuffle(9, 3).cache().repeat(2)),
            values_of(Dataset::range(9).shuffle(9, 3, {false}).repeat(2)));
}

TEST(Cache, WhatIsKeptIsWhatIsBelow) {
  TempFolder folder;
  int n = 0;
  for (const Dataset& dataset : {all_kinds(folder), all_kinds(folder).batch(7),
                                 all_kinds(folder).shuffle(9).prefetch(3), Dataset::range(0)}) {
    const std::vector<std::string> once = read_all(dataset);
    std::vector<std::string> thrice;
    for (int i = 0; i < 3; ++i) thrice.insert(thrice.end(), once.begin(), once.end());
    const Dataset in_memory = dataset.cache(),
                  in_file = dataset.cache({.file = folder.path("cache" + std::to_string(n++))});
    EXPECT_EQ(read_all(in_memory.repeat(3)), thrice);
    EXPECT_EQ(read_all(in_file.repeat(3)), thrice) << "while it is written";
    EXPECT_EQ(read_all(in_file.repeat(3)), thrice) << "from the file";
    EXPECT_EQ(cardinality(in_memory), static_cast<std::int64_t>(once.size()));
  }
}

TEST(Cache, BeyondItsBoundItSaysHowMuchAndWhatToDo) {
  Dataset large = Dataset::range(1'000'000).batch(1000);
  EXPECT_THAT(error_of([&] { read_all(large.cache({.bytes_max = 1 << 20}), 2000); }),
              AllOf(HasSubstr("ResourceExhausted"), HasSubstr("1048576"), HasSubstr("bytes_max"),
                    HasSubstr("CacheOptions::file")));
  TempFolder folder;
  EXPECT_THAT(error_of([&] {
                read_all(large.cache({.bytes_max = 1 << 20, .file = folder.path("c")}), 2000);
              }),
              HasSubstr("raise CacheOptions::bytes_max"));
  EXPECT_TRUE(names_in(folder).empty()) << "half a file is left";
  EXPECT_EQ(read_all(large.cache({.bytes_max = 9 << 20}), 2000).size(), 1000u);
}

TEST(Cache, AFullOneKeepsItsPlaceAndFailsAgain) {
  auto iterator = open(Dataset::range(1'000'000).batch(1000).cache({.bytes_max = 1 << 20}));
  std::int64_t read = 0;
  while (error_of([&] { iterator->next(); }) == "no error") ++read;
  EXPECT_EQ(iterator->ordinal(), read);
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(error_of([&] { iterator->next(); }), HasSubstr("ResourceExhausted"));
  EXPECT_EQ(iterator->ordinal(), read);
}

TEST(Cache, AFileServesEveryIteratorOfTheSameDescription) {
  TempFolder folder;
  const std::string path = folder.write("r", numbers_from(0, 5));
  const Dataset cached = records(path).cache({.file = folder.path("c")});
  EXPECT_EQ(values_of(cached), counting(0, 5));
  folder.write("r", numbers_from(100, 5));
  EXPECT_EQ(values_of(parse_dataset(serialize(cached))), counting(0, 5));
  EXPECT_EQ(values_of(records(path).skip(1).cache({.file = folder.path("c")})), counting(101, 4))
      << "of another description";
}

TEST(Cache, AFileThatNobodyFinishedIsNoCache) {
  TempFolder folder;
  const std::string path = folder.write("r", numbers_from(0, 5));
  const Dataset cached = records(path).cache({.file = folder.path("c")});
  {
    auto iterator = open(cached);
    for (int i = 0; i < 5; ++i) iterator->next();  // all elements, but not their end
    EXPECT_THAT(file_in(folder, "c."), HasSubstr("partial"));
  }
  EXPECT_EQ(names_in(folder), std::vector<std::string>{"r"});
  folder.write("r", numbers_from(100, 5));
  EXPECT_EQ(values_of(cached), counting(100, 5));
}

TEST(Cache, ADamagedFileIsRefusedWhateverByteItIs) {
  TempFolder folder;
  const Dataset cached = Dataset::range(40).shuffle(40).cache({.file = folder.path("c")});
  const std::vector<std::string> whole = read_all(cached);
  const std::string file = file_in(folder, "c."), good = bytes_of(file);
  const std::string name = std::filesystem::path(file).filename().string();
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    folder.write(name, bad);
    EXPECT_THAT(error_of([&] { read_all(cached); }),
                AllOf(HasSubstr("DataLoss"), HasSubstr(name), HasSubstr("remove it")))
        << "byte " << at;
  }
  for (std::size_t size = 0; size < good.size(); size += 5) {
    folder.write(name, good.substr(0, size));
    EXPECT_THAT(error_of([&] { read_all(cached); }), HasSubstr("DataLoss")) << size << " bytes";
  }
  folder.write(name, good);
  EXPECT_EQ(read_all(cached), whole);
}

TEST(Cache, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(error_of([] { open(Dataset::range(3).cache({.file = "/no/such/folder/c"})); }),
              AllOf(HasSubstr("NotFound"), HasSubstr("/no/such/folder/c")));
}

// A position taken anywhere, in the first pass or a later one, opened where nothing is kept, or
// half, or all.
TEST(Cache, AnyPositionGoesOnWithTheRemainingElementsOnce) {
  TempFolder folder;
  const Dataset below = Dataset::range(23).shuffle(10, 5).batch(4);  // 6 batches
  for (const Dataset& cached :
       {below.cache().repeat(3), below.cache({.file = folder.path("c")}).repeat(3)}) {
    const std::vector<std::string> whole = read_all(below.cache().repeat(3));
    ASSERT_EQ(whole.size(), 18u);
    std::vector<IteratorState> states;
    auto running = open(cached);
    for (std::size_t i = 0; i < whole.size(); ++i, running->next())
      states.push_back(running->state());
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const std::vector<std::string> rest(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                          whole.end());
      if (at % 2 == 0) std::filesystem::remove(file_in(folder, "c."));  // on another machine
      EXPECT_EQ(rest_of(*open(cached, states[at])), rest) << "from " << at;
      auto moved = open(cached, states[at]);  // and back within one iterator, over what it kept
      for (std::int64_t back = 17; back >= 0; back -= 5) {
        moved->skip_to(back);
        EXPECT_EQ(rest_of(*moved), std::vector<std::string>(whole.begin() + back, whole.end()))
            << "from " << at << " to " << back;
      }
    }
  }
}

TEST(Cache, AStateOfOtherDataIsRefused) {
  TempFolder folder;
  const std::string path = folder.write("r", numbers_from(0, 9));
  const Dataset cached = records(path).cache().repeat(2);
  auto iterator = open(cached);
  for (int i = 0; i < 9 + 7; ++i) iterator->next();
  folder.write("r", numbers_from(0, 4));
  EXPECT_THAT(error_of([&] { open(cached, iterator->state()); }),
              AllOf(HasSubstr("InvalidArgument"), HasSubstr("other data")));
}

TEST(Cache, RefusesImpossibleOptions) {
  EXPECT_THAT(error_of([] { Dataset::range(3).cache({.bytes_max = 0}); }),
              HasSubstr("bytes_max is 0"));
  EXPECT_THAT(error_of([] { Dataset::range(3).cache({.file = std::string("a\0b", 3)}); }),
              HasSubstr("zero byte"));
}

TEST(BlockBytes, RubbishIsRefused) {
  const Dataset dataset =
      Dataset::from_tensor_slices({{"x", Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
                                   {"s", Tensor::strings({2}, {"p", "quite long"})}});
  const auto layout = std::make_shared<BlockLayout>(dataset.element_spec());
  const Block block = Block::packed(layout, 2,
                                    {Tensor::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4}),
                                     Tensor::strings({2}, {"p", "quite long"})});
  const std::vector<std::byte> good = encode(block);
  EXPECT_EQ(to_text(decode_block(good, layout).batch()), to_text(block.batch()));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(decode_block(std::span(good).first(size), layout), InvalidArgumentError) << size;
  for (std::size_t at = 0; at < good.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      try {
        EXPECT_EQ(decode_block(bad, layout).columns().size(), 2u);
      } catch (const InvalidArgumentError&) {
      }
    }
}

}  // namespace
}  // namespace cairn::testing
