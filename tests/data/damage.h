// Files that are not what they should be, and what must come of reading them: an error that names
// the file and the place, or rows left out and counted.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "tests/data/testing.h"

namespace cairn::testing {

inline std::string as_gzip(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, plain.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The seed says what happens to them: cut short, a bit flipped, bytes set to 0xFF as where a field
// says a size, bytes drawn anew, a piece repeated or left out.
inline std::string damaged(std::string bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::size_t most) { return static_cast<std::size_t>(random() % most); };
  for (std::size_t times = 1 + up_to(3); times > 0 && !bytes.empty(); --times) {
    const std::size_t at = up_to(bytes.size());
    const std::size_t size = std::min(bytes.size() - at, 1 + up_to(8));
    switch (random() % 6) {
      case 0: bytes.resize(at); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << up_to(8))); break;
      case 2: bytes.replace(at, size, size, '\xFF'); break;
      case 3:
        for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(random());
        break;
      case 4: bytes.insert(at, bytes.substr(at, size)); break;
      default: bytes.erase(at, size);
    }
  }
  return bytes;
}

struct Damages {
  int told = 0;      // files that ended the run
  int left_out = 0;  // files that were read with rows left out
};

// Reads `count` damaged files, plain and gzip in turn, under both policies. A message of
// kSkipAndCount is checked as an error is: it names the file, and a place behind it.
inline Damages read_damaged(const std::string& good, int count,
                            const std::function<Dataset(const std::string&, OnError)>& dataset) {
  const TempFolder folder;
  Damages found;
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(::testing::Message() << "damage " << i);
    const auto seed = static_cast<std::uint64_t>(i);
    std::string bytes = i % 8 == 7 ? damaged(as_gzip(good), seed) : damaged(good, seed);
    if (i % 8 == 3) bytes = as_gzip(bytes);
    const std::string path = folder.write("damaged", bytes);
    for (const OnError policy : {OnError::kFail, OnError::kSkipAndCount}) {
      const auto expect_place = [&](const std::string& message) {
        EXPECT_NE(message.find(path), std::string::npos) << message;
        EXPECT_TRUE(message.find_first_of("0123456789", message.find(path) + path.size()) !=
                    std::string::npos)
            << message;
      };
      const OpenOptions options{.line_events = {.on_skipped_row = expect_place}};
      try {
        const auto iterator = open(dataset(path, policy), {}, options);
        while (iterator->next()) continue;
        if (policy == OnError::kFail) {
          EXPECT_EQ(iterator->skipped(), 0);
        } else if (iterator->skipped() > 0) {
          ++found.left_out;
        }
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::kInvalidArgument || error.code() == Code::kDataLoss)
            << error.what();
        expect_place(error.what());
        ++found.told;
      }
    }
  }
  return found;
}

// An iterator that is resumed after each element yields what the one before would have, in every
// shard and in whatever order files are read.
inline void expect_resumes_everywhere(const Dataset& dataset) {
  const std::vector<std::string> all = read_all(dataset);
  const auto iterator = open(dataset);
  for (std::size_t i = 0; i <= all.size(); ++i) {
    const auto resumed = open(dataset, iterator->state());
    EXPECT_EQ(rest_of(*resumed),
              std::vector<std::string>(all.begin() + static_cast<long>(i), all.end()))
        << "after element " << i;
    EXPECT_LT(iterator->state().bytes.size(), 200u);
    iterator->next();
  }
}

// skip_to() and skip() meet the elements that reading would.
inline void expect_skips_as_it_reads(const Dataset& dataset) {
  const std::vector<std::string> all = read_all(dataset);
  for (std::size_t i = 0; i <= all.size(); ++i) {
    const auto iterator = open(dataset);
    iterator->skip_to(static_cast<std::int64_t>(i));
    EXPECT_EQ(rest_of(*iterator),
              std::vector<std::string>(all.begin() + static_cast<long>(i), all.end()));
  }
  EXPECT_EQ(cardinality(dataset), static_cast<std::int64_t>(all.size()));
}

// All of these for a dataset over several files, alone and under the stages that ask a source for
// more than reading on.
inline void expect_reads_as_a_source(const Dataset& dataset) {
  const std::vector<std::string> all = read_all(dataset);
  expect_resumes_everywhere(dataset);
  expect_skips_as_it_reads(dataset);
  expect_resumes_everywhere(dataset.interleave(2, 1));
  expect_resumes_everywhere(dataset.shuffle(4, 1).repeat(2));
  std::vector<std::string> dealt(all.size());
  for (std::int64_t shard = 0; shard < 3; ++shard) {
    const Dataset part = dataset.shard(3, shard);
    expect_resumes_everywhere(part);
    expect_skips_as_it_reads(part);
    const std::vector<std::string> own = read_all(part);
    for (std::size_t i = 0; i < own.size(); ++i)
      dealt.at(i * 3 + static_cast<std::size_t>(shard)) = own[i];
  }
  EXPECT_EQ(dealt, all);
  std::vector<std::string> interleaved = read_all(dataset.interleave(2, 1)), sorted = all;
  std::sort(interleaved.begin(), interleaved.end());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(interleaved, sorted);
}

}  // namespace cairn::testing
