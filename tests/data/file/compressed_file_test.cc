// Compressed files of every format: whole, damaged, cut short, and with something behind them.
#include <gmock/gmock.h>
#include <zstd.h>

#include <map>

#include "data/file/tfrecord_writer.h"
#include "data/format/json/json_lines.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A format's file in two parts, at whose border a gzip member ends, and how it is read.
struct Format {
  std::string first, second;
  std::function<Dataset(const std::string& path)> dataset;
  std::string whole() const { return first + second; }
};

Dataset csv_of(const std::string& path) {
  return Dataset::csv(path, {.columns = {{"n", DType::kInt32}, {"s", DType::kString}}});
}

std::map<std::string, Format> formats() {
  const std::string head("\0\0\x08\x01\0\0\0\x04", 8);  // IDX: four examples of one byte
  return {
      {"csv", {"1,a\n2,b\n", "3,c\n4,d\n", csv_of}},
      {"text",
       {"one\ntwo\n", "three\nfour\n", [](auto& path) { return Dataset::text_lines(path); }}},
      {"libsvm", {"1 1:1\n0 2:3\n", "1 4:5\n", [](auto& path) { return Dataset::libsvm(path); }}},
      {"json_lines",
       {"{\"n\": 1, \"s\": \"a\"}\n{\"s\": \"b\", \"n\": 2}\n", "{\"n\": 3, \"s\": \"c\"}\n",
        [](auto& path) {
          return json_lines({path}, {.columns = {{"n", DType::kInt32}, {"s", DType::kString}}});
        }}},
      {"tfrecords",
       {framed("one") + framed("two"), framed("three"),
        [](auto& path) { return Dataset::tfrecords(path); }}},
      {"idx", {head + "ab", "cd", [](auto& path) {
                 return Dataset::idx({{"n", {path}, DType::kUint8}});
               }}}};
}

std::string as_zstd(const std::string& plain) {
  std::string out(ZSTD_compressBound(plain.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  return out;
}

struct Compressor {
  std::string name, ending;
  std::string (*pack)(const std::string&);
};
const Compressor kCompressors[] = {{"gzip", ".gz", as_gzip}, {"zstd", ".zst", as_zstd}};

// Calls `body` for every format and compressor.
template <typename Body>
void for_each_kind(Body body) {
  for (const auto& [name, format] : formats())
    for (const Compressor& compressor : kCompressors) {
      SCOPED_TRACE(name + ", " + compressor.name);
      body(format, compressor);
    }
}

// Nothing is lost without a word: either all rows are there, or an error names the file.
void expect_whole_or_told(const Format& format, const std::string& bytes,
                          const std::string& ending) {
  const TempFolder folder;
  const std::vector<std::string> all =
      read_all(format.dataset(folder.write("whole", format.whole())));
  ASSERT_FALSE(all.empty());
  const std::string path = folder.write("damaged" + ending, bytes);
  std::vector<std::string> rows;
  const std::string error = error_of([&] { rows = read_all(format.dataset(path)); });
  if (error == "no error")
    EXPECT_EQ(rows, all);
  else
    EXPECT_THAT(error, HasSubstr(path));
}

TEST(Compressed, PartsOneAfterAnotherAreOneTextInEveryFormat) {
  for_each_kind([](const Format& format, const Compressor& compressor) {
    const TempFolder folder;
    const std::vector<std::string> all =
        read_all(format.dataset(folder.write("a", format.whole())));
    const std::string parts = compressor.pack(format.first) + compressor.pack(format.second);
    EXPECT_EQ(read_all(format.dataset(folder.write("b", parts))), all);
    if (compressor.name == "gzip") {
      EXPECT_EQ(read_all(format.dataset(folder.write("c", parts + std::string(512, '\0')))), all)
          << "padded as on a tape";
    }
    const std::string skipped("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
    if (compressor.name == "zstd") {
      EXPECT_EQ(read_all(format.dataset(folder.write("d", skipped + parts + skipped))), all);
    }
  });
}

TEST(Compressed, WhatFollowsAPartIsReadOrRefusedInEveryFormat) {
  for_each_kind([](const Format& format, const Compressor& compressor) {
    const std::string one = compressor.pack(format.first), other = compressor.pack(format.second);
    const std::size_t first_size = format.first.size();
    for (const std::string& behind :
         {format.second, std::string(4, '\0') + other, "\x1e" + other.substr(1), "\n" + other}) {
      const TempFolder folder;
      const std::string path = folder.write("a", one + behind);
      EXPECT_THAT(error_of([&, &format = format] { read_all(format.dataset(path)); }),
                  AllOf(HasSubstr(str("DataLoss: the ", compressor.name, " file ", path,
                                      " is damaged at byte ")),
                        HasSubstr(str("after ", first_size, " bytes of text")),
                        HasSubstr("compress it anew")));
    }
  });
}

TEST(Compressed, AFlippedBitInAHeaderOrACutIsNeverSilent) {
  constexpr std::size_t kHeaderBits = 80;
  for_each_kind([](const Format& format, const Compressor& compressor) {
    const std::string one = compressor.pack(format.first),
                      whole = one + compressor.pack(format.second);
    for (const std::size_t part : {std::size_t{0}, one.size()}) {
      for (std::size_t bit = 0; bit < kHeaderBits; ++bit) {
        std::string bytes = whole;
        bytes[part + bit / 8] = static_cast<char>(bytes[part + bit / 8] ^ (1 << bit % 8));
        expect_whole_or_told(format, bytes, compressor.ending);
      }
    }
    for (std::size_t size = 1; size < whole.size(); ++size)
      if (size != one.size())
        expect_whole_or_told(format, whole.substr(0, size), compressor.ending);
  });
}

TEST(Compressed, OtherKindsOfFilesAreNamed) {
  const std::string tar = std::string(257, 'x') + "ustar" + std::string(300, '\0');
  const std::pair<std::string, std::string> kinds[] = {
      {"BZh91AY&SY\xC1\xC0", "a bzip2 file"}, {std::string("\xFD\x37zXZ\0\0\x04", 8), "an xz file"},
      {"PK\x03\x04\x14", "a zip archive"},    {"\x04\x22\x4D\x18\x64", "an lz4 file"},
      {"PAR1\x15\x04", "a Parquet file"},     {tar, "a tar archive"}};
  for (const auto& [name, format] : formats())
    for (const auto& [bytes, kind] : kinds) {
      const TempFolder folder;
      const std::string path = folder.write("a.csv", bytes);
      EXPECT_THAT(error_of([&, &format = format] { read_all(format.dataset(path)); }),
                  HasSubstr("InvalidArgument: " + path + " is " + kind + ", and files are read "))
          << name;
      if (name == "idx") continue;  // it reads too few bytes to name the kind of the file
      const std::string packed = folder.write("b.gz", as_gzip(bytes));
      EXPECT_THAT(error_of([&, &format = format] { read_all(format.dataset(packed)); }),
                  HasSubstr(packed + ", decompressed, is " + kind))
          << name;
    }
  const TempFolder folder;
  EXPECT_THAT(error_of([&] { read_all(csv_of(folder.write("a", as_gzip(as_zstd("1,a\n"))))); }),
              HasSubstr("is compressed twice"));
}

TEST(Compressed, RecordsRefuseWhatIsCompressed) {
  const TempFolder folder;
  const RecordSchema bytes{{{"b", DType::kUint8}}};
  const std::string packed = as_gzip("abcd");
  EXPECT_THAT(error_of([&] { read_all(Dataset::records(folder.write("a.gz", packed), bytes)); }),
              HasSubstr("a.gz is compressed, and records are read as they lie"));
  EXPECT_THAT(error_of([&] { cardinality(Dataset::records(folder.write("a.gz", packed), bytes)); }),
              HasSubstr("a.gz is compressed"));
  const RecordSchema sevens{{{"n", DType::kUint8, 7}}};
  ASSERT_NE(packed.size() % 7, 0u);
  EXPECT_THAT(error_of([&] { read_all(Dataset::records(folder.write("b", packed), sevens)); }),
              HasSubstr("b is compressed"));
  EXPECT_EQ(read_all(Dataset::records(folder.write("b", packed), bytes)).size(), packed.size())
      << "records may begin with any bytes";
}

TEST(Compressed, AnIdxFileThatGoesOnBehindItsLastExampleIsRefused) {
  const TempFolder folder;
  const Format idx = formats().at("idx");
  const std::string path = folder.write("a.gz", as_gzip(idx.whole() + "e"));
  EXPECT_THAT(error_of([&] { read_all(idx.dataset(path)); }),
              HasSubstr("DataLoss: " + path + " goes on behind the 4 examples of 1 bytes"));
}

}  // namespace
}  // namespace cairn::testing
