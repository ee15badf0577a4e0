// An iterator opened at a state goes on exactly as the one that the state was taken from.
#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "core/graph/ops.h"
#include "data/dataset/block.h"
#include "data/stage/dataset_wire.h"
#include "tests/data/testing.h"
#include "tests/effort.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;

std::string csv_text(int rows) {
  std::string text = "id,word,tags\n";
  for (int i = 0; i < rows; ++i) {
    if (i % 7 == 3) text += "# a comment\n\n";
    if (i % 11 == 5) text += "bad,row\n";
    text += std::to_string(i) + ", \"w\"\"" + std::to_string(i % 5) + (i % 13 == 1 ? "\nb" : "") +
            "\",";
    for (int k = 0; k < i % 4; ++k) text += (k ? "|t" : "t") + std::to_string(k * i % 6);
    text += "\n";
  }
  return text;
}

std::string gzipped(const TempFolder& folder, const std::string& name, const std::string& text) {
  gzFile file = gzopen(folder.path(name).c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return folder.path(name);
}

CsvSchema csv_schema() {
  CsvSchema schema;
  schema.columns = {
      {"id", DType::kInt64}, {"word", DType::kString}, {"tags", DType::kString, {}, false, '|'}};
  schema.header = true;
  schema.comment = "#";
  return schema;
}

// RapidCheck makes every choice. It shrinks a failing pipeline to the shortest and simplest one
// that still fails, and prints how to run it again.
std::int64_t below(std::uint64_t bound) {
  return static_cast<std::int64_t>(*rc::gen::inRange<std::uint64_t>(0, bound));
}
std::uint64_t any_seed() { return *rc::gen::arbitrary<std::uint64_t>(); }

class RandomPipeline {
 public:
  explicit RandomPipeline(const TempFolder& folder) : folder_(folder) {}

  Dataset make() {
    Dataset dataset = source();
    bool repeated = false;
    for (std::int64_t i = 0, stages = 1 + below(6); i < stages; ++i)
      dataset = add_stage(dataset, repeated);
    return dataset.take(60);
  }

 private:
  Dataset source() {
    auto rows = static_cast<int>(below(60));
    switch (below(4)) {
      case 0: return Dataset::range(rows);
      case 1: {
        std::vector<std::int64_t> values(static_cast<std::size_t>(rows) * 2);
        std::int64_t made = 0;
        for (auto& value : values) value = ++made * 7919 % 1000;
        return Dataset::from_tensor_slices({{"pair", Tensor::of<std::int64_t>({rows, 2}, values)}});
      }
      case 2: {
        RecordSchema schema{{{"a", DType::kInt32, 1}, {"b", DType::kUint8, 3}}, ""};
        std::string bytes;
        for (int i = 0; i < rows * 7; ++i) bytes.push_back(static_cast<char>(i * 37 % 251));
        std::string path = folder_.write("r" + std::to_string(rows) + ".bin", bytes);
        std::string half = folder_.write("h" + std::to_string(rows) + ".bin",
                                         bytes.substr(0, static_cast<std::size_t>(rows / 2) * 7));
        interleavable_ = true;
        return Dataset::records({path, half, path}, schema, {.empty_files = EmptyFiles::kSkip});
      }
      default: {
        std::string text = csv_text(rows), name = "c" + std::to_string(rows);
        std::string path =
            below(2) ? gzipped(folder_, name + ".gz", text) : folder_.write(name, text);
        Dataset csv =
            Dataset::csv(below(2) ? std::vector{path, path} : std::vector{path}, csv_schema(),
                         {.on_error = OnError::kSkipAndCount, .empty_files = EmptyFiles::kSkip});
        interleavable_ = true;
        if (below(2)) csv = csv.shard(3, below(3));
        return below(2) ? csv
                        : csv.features({FeatureColumn::hashed("tags", 50),
                                        FeatureColumn::crossed({"id", "word"}, 1000),
                                        FeatureColumn::hashed("word", 9)});
      }
    }
  }
  static bool numeric(const Dataset& dataset) {
    const DType dtype = dataset.element_spec().columns.front().type.dtype;
    return dtype == DType::kInt32 || dtype == DType::kInt64;
  }
  static bool fits_a_batch(const Dataset& dataset) {
    return has_known_shapes(dataset.element_spec());
  }
  static std::string first_of(const Dataset& dataset) {
    return dataset.element_spec().columns.front().name;
  }
  static auto sum_is_not(const Dataset& dataset, std::int64_t divisor, std::int64_t rest) {
    return [name = first_of(dataset), divisor, rest](const cairn::Features& features) {
      const Array sum = reduce_sum(cast(features[name], DType::kInt64));
      return floor_mod(sum, Array(divisor)) != Array(rest);
    };
  }
  static Dataset doubled(const Dataset& dataset) {
    const auto twice = [name = first_of(dataset)](const cairn::Features& features) {
      return Outputs{{"doubled", cast(features[name], DType::kInt64) * Array(std::int64_t{2})}};
    };
    const std::int64_t calls = below(5);
    return dataset.map(twice, {calls == 0 ? kAutotune : calls});
  }
  Dataset add_stage(const Dataset& dataset, bool& repeated) {
    if (interleavable_ && below(3) == 0) {
      interleavable_ = false;
      return dataset.interleave(1 + below(3), 1 + below(4));
    }
    switch (below(21)) {
      case 6:
        interleavable_ = false;
        cached_ = true;
        return dataset.cache({1 << 20, ""});
      case 7:
        interleavable_ = false;
        cached_ = true;
        return dataset.cache({1 << 20, folder_.path("cache" + std::to_string(caches_++))});
      case 0: return dataset.shuffle(1 + below(20), any_seed());
      case 1:
        if (dataset.batched()) return dataset;
        if (fits_a_batch(dataset)) return dataset.batch(1 + below(7), {below(2) == 1});
        padded_ = true;
        return dataset.padded_batch(1 + below(7), {below(2) == 1});
      case 2: {
        bool endless = !repeated && below(2) == 1;
        repeated = true;
        endless_ |= endless;
        return dataset.repeat(endless ? -1 : 1 + below(3));
      }
      case 3: return dataset.take(below(80));
      case 4: return dataset.skip(below(10));
      case 5: {
        std::int64_t num = 1 + below(4);
        return dataset.shard(num, below(static_cast<std::uint64_t>(num)));
      }
      case 8:
        return dataset.batched() ? dataset.deal(1 + below(4), below(2) ? Deal::kCut : Deal::kInTurn)
                                 : dataset;
      case 9:
        return dataset.batched() && !padded_ ? dataset.rebatch({below(4), 1 + below(5)}) : dataset;
      case 10:
        if (dataset.batched()) return dataset.unbatch();
        padded_ = true;
        return dataset.padded_batch(1 + below(5));
      case 11: {
        if (dataset.batched() || !fits_a_batch(dataset)) return dataset;
        const WindowOptions options{below(4), 1 + below(2), below(2) == 1};
        return dataset.window(1 + below(4), options);
      }
      // Endless data is not filtered: perhaps no element would ever pass.
      case 12:
        return numeric(dataset) && !endless_ ? dataset.filter(sum_is_not(dataset, 3, 1)) : dataset;
      case 13: return numeric(dataset) ? dataset.take_while(sum_is_not(dataset, 31, 7)) : dataset;
      case 14:
      case 18: return numeric(dataset) ? doubled(dataset) : dataset;
      case 15:
      case 16:
      case 17: return with_others(dataset);
      default: return dataset.prefetch(1 + below(5));
    }
  }
  // Files of one cache would be written by two readers.
  Dataset with_others(const Dataset& dataset) {
    if (cached_) return dataset;
    interleavable_ = false;
    switch (below(3)) {
      case 0: return dataset.concatenate(dataset.skip(below(9)));
      case 1:
        return Dataset::sample_from_datasets({dataset, dataset.take(below(20))}, {1.0, 0.5},
                                             any_seed(), below(2) == 1);
      default: break;
    }
    for (const ColumnSpec& column : dataset.element_spec().columns)
      if (column.name == "value" || dataset.batched()) return dataset;
    return Dataset::zip({dataset, Dataset::range(20 + below(40)).shuffle(1 + below(9))});
  }
  const TempFolder& folder_;
  bool cached_ = false, endless_ = false;
  bool padded_ = false;  // batches differ in width, so that rebatch() refuses them
  bool interleavable_ = false;
  int caches_ = 0;
};

// RapidCheck begins with small cases, so several rounds are worth more than one long one.
void expect_of_all(std::uint64_t rounds, const char* what, const std::function<void()>& property) {
  for (std::uint64_t i = 0; i < rounds; ++i) ASSERT_TRUE(rc::check(what, property));
}

void goes_on_from_any_state() {
  TempFolder folder;
  // Ends before the folder: what an iterator that is gone was reading ahead may still have a
  // cache's file there.
  auto threads = make_thread_offload(2);
  auto at_once = make_inline_offload();
  const Dataset dataset = RandomPipeline(folder).make();
  const std::vector<std::string> whole = read_all(dataset);
  const OpenOptions ways[] = {{}, {.offload = threads.get()}, {.offload = at_once.get()}};

  auto running = open(dataset, {}, ways[below(3)]);
  for (std::size_t at = 0; at <= whole.size(); ++at) {
    auto resumed = open(dataset, running->state(), ways[at % 3]);
    RC_ASSERT(resumed->ordinal() == static_cast<std::int64_t>(at));
    RC_ASSERT(ordinal(running->state()) == static_cast<std::int64_t>(at));
    RC_ASSERT(running->state().bytes.size() < 4000u);
    const auto rest = rest_of(*resumed, at % 5 == 0 ? 1000 : 3);
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t left = whole.size() - at;
    const auto wanted = static_cast<std::ptrdiff_t>(std::min(left, rest.size()));
    RC_ASSERT(rest == std::vector<std::string>(from, from + wanted));
    RC_ASSERT(at % 5 != 0 || rest.size() == left);
    const auto next = running->next();
    RC_ASSERT((next ? to_text(*next) : "end") == (left > 0 ? whole[at] : "end"));
  }
}

void skips_to_where_reading_would_stand() {
  TempFolder folder;
  const Dataset dataset = RandomPipeline(folder).make();
  const std::vector<std::string> whole = read_all(dataset);
  const auto size = static_cast<std::int64_t>(whole.size());
  auto iterator = open(dataset);
  for (int hop = 0; hop < 12; ++hop) {
    const std::int64_t to = below(static_cast<std::uint64_t>(size) + 3);
    iterator->skip_to(to);
    RC_ASSERT(iterator->ordinal() == std::min(to, size));
    const auto next = iterator->next();
    RC_ASSERT((next ? to_text(*next) : "end") ==
              (to < size ? whole[static_cast<std::size_t>(to)] : "end"));
  }
}

TEST(Resume, AnyPipelineGoesOnFromAnyStateAsIfNeverInterrupted) {
  expect_of_all(effort(6), "goes on from any state", goes_on_from_any_state);
}

TEST(Resume, SkipToStandsWhereReadingWould) {
  expect_of_all(effort(2), "skips to where reading would stand",
                skips_to_where_reading_would_stand);
}

// A sample that ends with one of its inputs has another length in each pass, as its order has.
TEST(Resume, PassesOfDifferentLengthsAreSkippedByReading) {
  const Dataset few = Dataset::range(5), more = Dataset::range(9);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Dataset sample = Dataset::sample_from_datasets({few, more}, {1.0, 1.0}, seed, true);
    const Dataset shuffled = more.shuffle(9, seed).take_while([](const cairn::Features& features) {
      return features["value"] != Array(std::int64_t{4});
    });
    for (const Dataset& dataset : {sample.repeat(6), shuffled.repeat(6)}) {
      const std::vector<std::string> whole = read_all(dataset);
      EXPECT_EQ(cardinality(dataset), static_cast<std::int64_t>(whole.size()));
      for (std::size_t to = 0; to < whole.size(); to += 3) {
        auto iterator = open(dataset);
        iterator->skip_to(static_cast<std::int64_t>(to));
        EXPECT_EQ(to_text(iterator->next().value()), whole[to]) << "seed " << seed;
      }
    }
  }
}

TEST(Resume, EndlessRepeatIsSkippedByWholePasses) {
  auto iterator = open(Dataset::range(10).shuffle(10, 1).repeat());
  iterator->skip_to(5'000'000'000'003);
  auto far = iterator->state();
  EXPECT_EQ(iterator->ordinal(), 5'000'000'000'003);
  auto resumed = open(Dataset::range(10).shuffle(10, 1).repeat(), far);
  EXPECT_EQ(to_text(*iterator->next()), to_text(*resumed->next()));
}

TEST(Resume, AStateOfAnotherDatasetOrADamagedOneIsRefused) {
  auto iterator = open(Dataset::range(10).shuffle(4).batch(2));
  iterator->next();
  IteratorState state = iterator->state();
  EXPECT_THAT(error_of([&] { open(Dataset::range(11).shuffle(4).batch(2), state); }),
              HasSubstr("belongs to another dataset"));
  IteratorState cut = state;
  cut.bytes.pop_back();
  EXPECT_THAT(error_of([&] { open(Dataset::range(10).shuffle(4).batch(2), cut); }),
              HasSubstr("InvalidArgument"));
  for (std::size_t at = 0; at < state.bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      IteratorState mutated = state;
      mutated.bytes[at] ^= static_cast<std::byte>(1 << bit);
      try {  // either it is refused, or it is the state of some other place
        auto elsewhere = open(Dataset::range(10).shuffle(4).batch(2), mutated);
        rest_of(*elsewhere);
      } catch (const InvalidArgumentError&) {
      }
    }
}

TEST(Resume, AFileThatBecameShorterIsNamed) {
  TempFolder folder;
  std::string path = folder.write("a.csv", "1\n2\n3\n4\n");
  Dataset dataset = Dataset::csv(path, {.columns = {{"n", DType::kInt64}}});
  auto iterator = open(dataset);
  for (int i = 0; i < 3; ++i) iterator->next();
  folder.write("a.csv", "1\n");
  EXPECT_THAT(error_of([&] { open(dataset, iterator->state()); }),
              HasSubstr("a.csv ends before byte 6"));
}

TEST(Prefetch, KeepsOrderAndRaisesAnErrorAtItsPlaceEachTime) {
  TempFolder folder;
  auto threads = make_thread_offload(1);
  Dataset dataset =
      Dataset::csv(folder.write("a.csv", "1\n2\nx\n4\n"), {.columns = {{"n", DType::kInt64}}})
          .batch(1)
          .prefetch(8);
  auto iterator = open(dataset, {}, {.offload = threads.get()});
  iterator->next();
  iterator->next();
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(error_of([&] { iterator->next(); }),
                HasSubstr("a.csv:3:1: column \"n\": \"x\" is not of type int64"));
  EXPECT_EQ(iterator->ordinal(), 2);
}

TEST(Pipelines, OfOneDatasetHaveOrdersOfTheirOwnAndResumeInThem) {
  const Dataset dataset = Dataset::range(100).shuffle(40, 7).batch(3).shuffle(5, 7).repeat(2);
  EXPECT_EQ(read_all(dataset.for_pipeline(0)), read_all(dataset));
  EXPECT_EQ(serialize(dataset.for_pipeline(0)), serialize(dataset));
  std::set<std::vector<std::string>> orders;
  for (std::int64_t id = 0; id < 4; ++id) {
    const Dataset mine = dataset.for_pipeline(id);
    const std::vector<std::string> whole = read_all(mine);
    orders.insert(whole);
    EXPECT_EQ(read_all(parse_dataset(serialize(mine))), whole) << "another order after the wire";
    auto values = values_of(mine);
    std::sort(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<std::int64_t>(i / 2));

    auto iterator = open(mine);
    for (int i = 0; i < 17; ++i) iterator->next();
    auto resumed = open(parse_dataset(serialize(mine)), iterator->state());
    EXPECT_EQ(rest_of(*resumed), std::vector(whole.begin() + 17, whole.end()));
  }
  EXPECT_EQ(orders.size(), 4u);
  EXPECT_THROW(open(dataset.for_pipeline(1), open(dataset.for_pipeline(2))->state()),
               InvalidArgumentError);
}

TEST(Pipelines, AnOrderThatChoosesElementsIsSharedByAllOfThem) {
  const Dataset shuffled = Dataset::range(100).shuffle(100, 7);
  for (const Dataset& chosen : {shuffled.shard(4, 1), shuffled.take(10), shuffled.batch(2).skip(3)})
    EXPECT_EQ(read_all(chosen.for_pipeline(3)), read_all(chosen));
  const Dataset both = shuffled.take(50).shuffle(50, 7);  // which 50: shared; their order: not
  auto elements = [](const Dataset& dataset) {
    auto all = read_all(dataset);
    return std::set(all.begin(), all.end());
  };
  EXPECT_EQ(elements(both.for_pipeline(3)), elements(both));
  EXPECT_NE(read_all(both.for_pipeline(3)), read_all(both));
  EXPECT_THROW(shuffled.for_pipeline(-1), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::testing
